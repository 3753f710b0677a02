// SPDX-License-Identifier: Apache-2.0
/*
 * The check of interpreted code: how much of it has names, and how its decoders
 * fare, from the status of otprofd.
 */
#include <jansson.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"

static void doctor_describe_runtimes(const json_t *at, struct finding *f)
{
	uint64_t frames = client_number(at, "frames"), unknown = client_number(at, "frames_unknown");
	uint64_t late = client_number(at, "decoders.late"), died = client_number(at, "decoders.died");

	doctor_set(f, late || died ? DOCTOR_WARN : DOCTOR_OK,
		   "%llu interpreters walked, %llu not; %.2f %% of %llu frames named; decoders: %llu started, %llu work, %llu "
		   "wait, %llu too late, %llu ended in a question",
		   (unsigned long long)client_number(at, "runtimes"), (unsigned long long)client_number(at, "runtimes_refused"),
		   format_percent(frames - unknown, frames), (unsigned long long)frames,
		   (unsigned long long)client_number(at, "decoders.started"),
		   (unsigned long long)client_number(at, "decoders.live"),
		   (unsigned long long)client_number(at, "decoders.waiting"), (unsigned long long)late, (unsigned long long)died);
	if (late || died || client_number(at, "runtimes_refused"))
		doctor_fix(f, "otprof explain PID, for a process without names, says why");
}

void doctor_runtimes(struct doctor *d, struct finding *f)
{
	_cleanup_(json_decrefp) json_t *status = NULL;
	char dir[400];
	const json_t *at;

	snprintf(dir, sizeof(dir), "%s" CLI_RUNTIME_DIR, d->root);
	if (client_status(dir, &status) < 0) {
		doctor_set(f, DOCTOR_OK, "not known: otprofd does not run, or not for this user");
		return;
	}
	at = client_at(status, "quality.interpreted");
	if (client_number(at, "runtimes") || client_number(at, "runtimes_refused"))
		doctor_describe_runtimes(at, f);
	else
		doctor_set(f, DOCTOR_OK, "none was met, or [runtimes] walk is off");
}
