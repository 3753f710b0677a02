// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the text of /proc/PID/stat. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/proc_stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len);
	struct proc_stat s;

	if (text && !proc_stat_parse(text, &s) && (strlen(s.comm) >= sizeof(s.comm) || !s.state))
		abort();
	free(text);
	return 0;
}
