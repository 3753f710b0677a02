// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the text of /proc/PID/cgroup. */
#include "process/cgroup.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct cgroup_facts facts;

	cgroup_parse((const char *)data, len, &facts);
	return 0;
}
