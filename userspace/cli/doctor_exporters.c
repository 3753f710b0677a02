// SPDX-License-Identifier: Apache-2.0
/*
 * The check of destinations: what each answered last, from the status of
 * otprofd. Where it does not run, 'otprofd --try' sends each a request without
 * samples, from a process without rights, and prints what was answered.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"
#include "cli/session.h"

#define FIX_KEY	 "headers_file: a header with a key that the receiver accepts"
#define FIX_OTLP "endpoint, protocol: a receiver of OTLP profiles; in a Collector, --feature-gates=service.profilesSupport"
#define FIX_SIZE "request_max_size in [profile], or the receiver's limits"
#define FIX_PORT "start the receiver, or correct endpoint: OTLP's usual ports are 4318 for HTTP, 4317 for gRPC"

/* By a part of the last error; the first that it contains counts. */
static const struct {
	const char *part, *fix;
} doctor_answers[] = {
	{"HTTP 401", FIX_KEY},
	{"HTTP 403", FIX_KEY},
	{"gRPC UNAUTHENTICATED", FIX_KEY},
	{"gRPC PERMISSION_DENIED", FIX_KEY},
	{"HTTP 413", FIX_SIZE},
	{"gRPC RESOURCE_EXHAUSTED", FIX_SIZE},
	{"HTTP 404", FIX_OTLP},
	{"HTTP 405", FIX_OTLP},
	{"HTTP 415", FIX_OTLP},
	{"gRPC UNIMPLEMENTED", FIX_OTLP},
	{"an OTLP/gRPC receiver?", FIX_OTLP},
	{"certificate", "tls_ca_file: the authority of the receiver's certificate; tls_cert_file and tls_key_file if it wants ours"},
	{"SSL", "endpoint: https:// for a receiver with TLS alone"},
	{"resolve", "endpoint: the receiver's name, which cannot be resolved here"},
	{"onnect", FIX_PORT}, /* connect, Connection */
	{"writing to", "endpoint: a directory with room, which net's user may write to"},
};

static const char *doctor_answer_fix(const char *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(doctor_answers); i++)
		if (strstr(error, doctor_answers[i].part))
			return doctor_answers[i].fix;
	return "otprof status, and journalctl -u otprofd for earlier errors";
}

static void doctor_count_exporters(const json_t *destinations, struct finding *f)
{
	unsigned int all = 0, deliver = 0;
	const char *name, *error, *failing = NULL, *why = "";
	json_t *d;

	json_object_foreach((json_t *)(uintptr_t)destinations, name, d)
	{
		error = client_text(d, "last_error");
		all++;
		deliver += !*error && client_number(d, "requests");
		if (*error && !failing) {
			failing = name;
			why = error;
		}
	}
	if (!failing) {
		doctor_set(f, DOCTOR_OK, "%u of %u deliver%s", deliver, all, deliver < all ? ", the others have not sent yet" : "");
		return;
	}
	doctor_set(f, DOCTOR_WARN, "%u of %u deliver; %s: %s", deliver, all, failing, why);
	doctor_fix(f, "[exporter %s] in /etc/otprof.conf: %s", failing, doctor_answer_fix(why));
}

#define TRY_LINE 512

static pid_t doctor_start_try(const char *config, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		session_exec_otprofd((char *[]){(char *)"otprofd", (char *)"--try", (char *)(uintptr_t)(*config ? "-f" : NULL),
					  (char *)(uintptr_t)config, NULL});
		_exit(127);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	if (pid < 0)
		close(fds[0]);
	return pid;
}

struct doctor_tried {
	unsigned int all, answer;
	char name[TRY_LINE], why[TRY_LINE]; /* of the first that does not */
	char other[TRY_LINE];	      /* the last line that is none of these: an error */
};

/* NAME, ok or fails, text; between tabs. */
static void doctor_take_line(struct doctor_tried *t, char *line)
{
	char *verdict = strchr(line, '\t'), *text = verdict ? strchr(verdict + 1, '\t') : NULL;

	line[strcspn(line, "\n")] = '\0';
	if (!text) {
		snprintf(t->other, sizeof(t->other), "%s", line);
		return;
	}
	*verdict++ = '\0';
	*text++ = '\0';
	t->all++;
	if (!strcmp(verdict, "ok")) {
		t->answer++;
	} else if (!*t->name) {
		snprintf(t->name, sizeof(t->name), "%s", line);
		snprintf(t->why, sizeof(t->why), "%s", text);
	}
}

static void doctor_report_tried(const struct doctor_tried *t, bool ran, struct finding *f)
{
	if (!ran || !t->all) {
		doctor_set(f, DOCTOR_OK, "not known: otprofd does not run, and its exporters cannot be tried%s%s",
			   *t->other ? ": " : "", t->other);
		return;
	}
	if (!*t->name) {
		doctor_set(f, DOCTOR_OK, "%u of %u answer a request without samples", t->answer, t->all);
		return;
	}
	doctor_set(f, DOCTOR_WARN, "%u of %u answer a request without samples; %s: %s", t->answer, t->all, t->name,
		   t->why);
	doctor_fix(f, "[exporter %s] in /etc/otprof.conf: %s", t->name, doctor_answer_fix(t->why));
}

static void doctor_try_exporters(const struct doctor *d, struct finding *f)
{
	struct doctor_tried tried = {0};
	char config[400] = "", line[TRY_LINE];
	int fd, status = -1;
	pid_t pid;
	FILE *in;

	if (*d->root)
		snprintf(config, sizeof(config), "%s/etc/otprof.conf", d->root);
	pid = doctor_start_try(config, &fd);
	in = pid > 0 ? fdopen(fd, "r") : NULL;
	while (in && fgets(line, sizeof(line), in))
		doctor_take_line(&tried, line);
	if (in)
		fclose(in);
	if (pid > 0)
		waitpid(pid, &status, 0);
	doctor_report_tried(&tried, WIFEXITED(status) && !WEXITSTATUS(status), f);
}

void doctor_exporters(struct doctor *d, struct finding *f)
{
	const json_t *status = doctor_status(d);

	if (!status)
		doctor_try_exporters(d, f);
	else if (!strcmp(client_text(status, "sampler.mode"), "none"))
		doctor_set(f, DOCTOR_OK, "none: this otprofd takes no samples (mode = none)");
	else
		doctor_count_exporters(client_at(status, "ledger.destinations"), f);
}
