// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the text of /proc/PID/status. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/proc_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The ids that were found, as the kernel writes them, are found again. */
static bool is_found_again(const struct proc_status *s)
{
	struct proc_status again;
	char text[128];

	snprintf(text, sizeof(text), "Uid:\t%u\t%u\nGid:\t0\t%u\n", s->real_uid, s->uid, s->gid);
	return !proc_status_parse(text, &again) && again.real_uid == s->real_uid && again.uid == s->uid &&
	       again.gid == s->gid;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len);
	struct proc_status s;

	if (text && !proc_status_parse(text, &s) && (!proc_status_has_group(&s, s.gid) || !is_found_again(&s)))
		abort();
	free(text);
	return 0;
}
