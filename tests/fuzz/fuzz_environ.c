// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the host's answer about a process: executable, arguments,
 * cgroup, environment and status, down to the workload.
 */
#include "process/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct environ_facts facts;
	struct identity *id;
	struct workload *w;

	environ_parse((const char *)data, len, &facts);
	environ_done(&facts);
	if (identity_parse(data, len, "", &id) < 0)
		return 0;
	if (identity_workload(id, NULL, 0, &w) == 0)
		workload_put(w);
	identity_put(id);
	return 0;
}
