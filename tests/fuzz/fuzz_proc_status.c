// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the text of /proc/PID/status. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/proc_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len);
	struct proc_status s;

	if (text && !proc_status_parse(text, &s) && !proc_status_has_group(&s, s.gid))
		abort();
	free(text);
	return 0;
}
