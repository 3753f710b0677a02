// SPDX-License-Identifier: Apache-2.0
/*
 * The check of interpreted code: how much of it has names, and how its decoders
 * fare, from the status of otprofd.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"

static void doctor_describe_decoders(const json_t *at, char *to, size_t size)
{
	snprintf(to, size,
		 "%" PRIu64 " started, %" PRIu64 " work, %" PRIu64 " wait, %" PRIu64 " too late, %" PRIu64
		 " ended in a question",
		 client_number(at, "started"), client_number(at, "live"), client_number(at, "waiting"),
		 client_number(at, "late"), client_number(at, "died"));
}

static void doctor_describe_runtimes(const json_t *at, struct finding *f)
{
	uint64_t frames = client_number(at, "frames"), refused = client_number(at, "runtimes_refused");
	bool failed = client_number(at, "decoders.late") || client_number(at, "decoders.died");
	char decoders[DOCTOR_TEXT / 2];

	doctor_describe_decoders(client_at(at, "decoders"), decoders, sizeof(decoders));
	doctor_set(f, failed ? DOCTOR_WARN : DOCTOR_OK,
		   "%" PRIu64 " interpreters walked, %" PRIu64 " not; %.2f %% of %" PRIu64 " frames named; decoders: %s",
		   client_number(at, "runtimes"), refused,
		   format_percent(frames - client_number(at, "frames_unknown"), frames), frames, decoders);
	if (failed || refused)
		doctor_fix(f, "otprof explain PID, for a process without names, says why");
}

void doctor_runtimes(struct doctor *d, struct finding *f)
{
	const json_t *status = doctor_status(d), *at;

	if (!status) {
		doctor_set(f, DOCTOR_OK, DOCTOR_NOT_RUNNING);
		return;
	}
	at = client_at(status, "quality.interpreted");
	if (client_number(at, "runtimes") || client_number(at, "runtimes_refused"))
		doctor_describe_runtimes(at, f);
	else
		doctor_set(f, DOCTOR_OK, "none was met, or [runtimes] walk is off");
}
