// SPDX-License-Identifier: Apache-2.0
/*
 * otprofd --try: sends each exporter a request without samples, and prints a
 * line for each: its name, "ok" or "fails", and what was answered, between
 * tabs. A process for each exporter, with net's user and filter; what it prints
 * has no secret: texts of transports have none.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "export/http_loop.h"
#include "export/transport.h"

/* A resource of service.name otprof without profiles, and a dictionary of zero entries. */
static const char try_request[] =
	"\x0a\x1c\x0a\x1a\x0a\x18\x0a\x0c" "service.name" "\x12\x08\x0a\x06" "otprof"
	"\x12\x2a\x0a\x00\x12\x00\x1a\x00\x22\x1c\x0a\x10" "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" "\x12\x08"
	"\0\0\0\0\0\0\0\0" "\x2a\x00\x32\x00\x3a\x00";

struct try {
	const struct export_config *cfg;
	const struct transport_ops *ops;
	struct transport_host *host;
	struct transport *transport;
	struct outcome outcome;
	bool done;
};

static void try_on_outcome(void *ctx, const struct outcome *o)
{
	struct try *t = ctx;

	t->outcome = *o;
	t->done = true;
}

static void try_print(const struct export_config *cfg, bool ok, const char *text)
{
	dprintf(STDOUT_FILENO, "%s\t%s\t%s\n", cfg->name, ok ? "ok" : "fails", text);
}

/* Connection, TLS, path and rights are right where a receiver only misses the samples: Pyroscope does. */
static bool try_misses_samples(const struct outcome *o)
{
	static const char *const texts[] = {"HTTP 400", "HTTP 500", "gRPC INVALID_ARGUMENT"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (o->kind == OUTCOME_REFUSED && !strncmp(o->text, texts[i], strlen(texts[i])))
			return true;
	return false;
}

static bool try_is_good(const struct outcome *o)
{
	return o->kind == OUTCOME_DELIVERED || o->kind == OUTCOME_PARTIAL || try_misses_samples(o);
}

static void try_wait(struct try *t)
{
	uint64_t end = clock_now_ns() + t->cfg->timeout_ns + NSEC_PER_SEC;

	while (!t->done && clock_now_ns() < end) {
		struct pollfd p = {.fd = http_loop_fd(t->host), .events = POLLIN};

		http_loop_run(t->host);
		if (!t->done)
			poll(&p, 1, 50);
	}
	if (!t->done)
		outcome_retry(&t->outcome, false, "no answer in time");
}

static int try_send(struct try *t)
{
	const struct body body = {.id = 1, .data = try_request, .len = sizeof(try_request) - 1};
	int rc = t->ops->send(t->transport, &body, &t->outcome);

	if (rc == 0)
		try_wait(t);
	return MIN(rc, 0);
}

/* Key files are read while their rights are still there. */
static int try_one(const struct config *c, const struct export_config *cfg)
{
	struct try t = {.cfg = cfg, .ops = transport_find(cfg)};
	int rc = http_loop_new(&t.host);

	if (rc == 0)
		rc = t.ops->open(cfg, t.host, try_on_outcome, &t, &t.transport);
	if (rc == 0 && sandbox_try(c) < 0)
		rc = -EPERM;
	if (rc == 0)
		rc = try_send(&t);
	if (rc < 0)
		try_print(cfg, false, strerror(-rc));
	else
		try_print(cfg, try_is_good(&t.outcome), t.outcome.text);
	return 0;
}

static void try_start(const struct config *c, const struct export_config *cfg)
{
	pid_t pid;

	if (export_directory(cfg)) {
		try_print(cfg, true, "a directory: not tried");
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(try_one(c, cfg));
	if (pid < 0)
		try_print(cfg, false, strerror(errno));
}

int try_main(const struct config *c)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return 1;
	for (uint32_t i = 0; i < c->nr_exporters; i++)
		try_start(c, &c->exporters[i]);
	while (wait(NULL) > 0)
		;
	return 0;
}
