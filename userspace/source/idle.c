// SPDX-License-Identifier: Apache-2.0
#include "source/idle.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* "cpu3 user nice system idle iowait ...": the lines of CPUs come first. */
void idle_parse(FILE *stat, uint64_t tick_ns, uint64_t *ns, uint32_t nr)
{
	uint64_t idle, iowait;
	char line[512];
	uint32_t cpu;

	while (fgets(line, sizeof(line), stat) && !strncmp(line, "cpu", 3))
		if (sscanf(line, "cpu%" SCNu32 " %*u %*u %*u %" SCNu64 " %" SCNu64, &cpu, &idle, &iowait) == 3 &&
		    cpu < nr && idle < UINT64_MAX / 2 / tick_ns && iowait < UINT64_MAX / 2 / tick_ns)
			ns[cpu] = (idle + iowait) * tick_ns;
}

int idle_read(uint64_t *ns, uint32_t nr)
{
	_cleanup_(fclosep) FILE *stat = fopen("/proc/stat", "re");
	long hz = sysconf(_SC_CLK_TCK);

	if (!stat || hz <= 0)
		return stat ? -EINVAL : -errno;
	idle_parse(stat, NSEC_PER_SEC / (uint64_t)hz, ns, nr);
	return 0;
}
