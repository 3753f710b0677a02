// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of the running otprofd's hub and of what it samples for a while,
 * from its status.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/doctor.h"
#include "cli/select.h"

void doctor_hub(struct doctor *d, struct finding *f)
{
	const json_t *status = doctor_status(d);
	const char *error = client_text(status, "hub.error"), *listen = client_text(status, "hub.listen");

	if (!status) {
		doctor_set(f, DOCTOR_OK, DOCTOR_NOT_RUNNING);
	} else if (!client_is_true(status, "hub.on")) {
		doctor_set(f, DOCTOR_OK, "off");
	} else if (*error) {
		doctor_set(f, DOCTOR_WARN, "there is none: %s; it is tried again every minute", error);
		doctor_fix(f, "[hub] listen in /etc/otprof.conf: an address that is free; ss -ltnp tells who has %s",
			   listen);
	} else if (!client_is_true(status, "hub.ready")) {
		doctor_set(f, DOCTOR_WARN, "its process does not start");
		doctor_fix(f, "journalctl -u otprofd");
	} else {
		doctor_set(f, DOCTOR_OK, "at %s%s", listen,
			   strcmp(client_text(status, "sampler.mode"), "none") ? "" : ", for profiles of other hosts");
	}
}

void doctor_selection(struct doctor *d, struct finding *f)
{
	const json_t *status = doctor_status(d);
	_cleanup_(buf_done) struct buf text = {0};

	if (!status) {
		doctor_set(f, DOCTOR_OK, DOCTOR_NOT_RUNNING);
		return;
	}
	select_sentence(client_at(status, "selection"), &text);
	doctor_set(f, client_is_true(status, "selection.on") ? DOCTOR_WARN : DOCTOR_OK, "%s", buf_cstr(&text));
	if (client_is_true(status, "selection.on"))
		doctor_fix(f, "otprof select --end");
}
