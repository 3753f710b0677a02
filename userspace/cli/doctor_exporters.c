// SPDX-License-Identifier: Apache-2.0
/*
 * The check of destinations: what each answered last, from the status of
 * otprofd. Only its net process speaks to receivers, so nothing is sent here.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"

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

static void doctor_count_exporters(json_t *destinations, struct finding *f)
{
	unsigned int all = 0, deliver = 0;
	const char *name, *error, *failing = NULL, *why = "";
	json_t *d;

	json_object_foreach(destinations, name, d)
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

void doctor_exporters(struct doctor *d, struct finding *f)
{
	_cleanup_(json_decrefp) json_t *status = NULL;
	char dir[400];

	snprintf(dir, sizeof(dir), "%s" CLI_RUNTIME_DIR, d->root);
	if (client_status(dir, &status) < 0)
		doctor_set(f, DOCTOR_OK, "not known: otprofd does not run, or not for this user");
	else if (!strcmp(client_text(status, "sampler.mode"), "none"))
		doctor_set(f, DOCTOR_OK, "none: this otprofd takes no samples (mode = none)");
	else
		doctor_count_exporters(json_object_get(json_object_get(status, "ledger"), "destinations"), f);
}
