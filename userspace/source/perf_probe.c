// SPDX-License-Identifier: Apache-2.0
#include "source/perf_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "source/events.h"
#include "source/pids.h"

/* Linux, include/linux/proc_ns.h: PROC_PID_INIT_INO */

int perf_paranoid(void)
{
	char text[32];
	int level;

	if (file_read_text("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) < 0)
		return 2;
	return sscanf(text, "%d", &level) == 1 ? level : 2;
}

/* The plainest event: it only shows the permission. */
static int perf_try_open(bool everybody)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = !everybody,
		.exclude_hv = !everybody,
	};
	struct cpus online;
	uint32_t cpu = 0;
	int fd = cpus_online(&online);

	while (fd == 0 && cpu < CPUS_MAX - 1 && !cpus_has(&online, cpu))
		cpu++;
	if (fd == 0)
		fd = everybody ? event_open(&attr, cpu) : event_open_task(&attr, 0, cpu);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int perf_refused(int err, const struct source_config *cfg, char why[SOURCE_WHY])
{
	int paranoid = perf_paranoid();

	if (err != -EACCES && err != -EPERM)
		snprintf(why, SOURCE_WHY, "this kernel has no perf events: %s", strerror(-err));
	else if (cfg->nr_pids && paranoid > 2)
		snprintf(why, SOURCE_WHY,
			 "kernel.perf_event_paranoid = %d forbids perf events to ordinary users: let root set it to 2 "
			 "(sysctl kernel.perf_event_paranoid=2), or run as root",
			 paranoid);
	else if (cfg->nr_pids)
		snprintf(why, SOURCE_WHY,
			 "perf_event_open is refused although kernel.perf_event_paranoid = %d allows it: a container's "
			 "system call filter does that",
			 paranoid);
	else
		snprintf(why, SOURCE_WHY,
			 "the kernel refuses perf events of the whole host: CAP_PERFMON is needed, CAP_SYS_ADMIN where "
			 "kernel.perf_event_paranoid (here %d) is above 2",
			 paranoid);
	return err;
}

int perf_probe(const struct source_config *cfg, bool *ret_single, char why[SOURCE_WHY])
{
	int err = perf_try_open(true);

	if (err == 0 && !pids_are_the_hosts())
		return snprintf(why, SOURCE_WHY,
				"otprofd runs in a pid namespace of its own and would name the wrong processes: start it in "
				"the host's (hostPID: true, docker run --pid=host)"),
		       -EINVAL;
	*ret_single = err < 0 && cfg->nr_pids;
	if (*ret_single)
		err = perf_try_open(false);
	return err < 0 ? perf_refused(err, cfg, why) : 0;
}

bool perf_is_of_kernel(uint8_t origin)
{
	return origin == OTP_ORIGIN_CONTEXT_SWITCHES || origin == OTP_ORIGIN_CPU_MIGRATIONS;
}

int perf_explain(const struct slots *s, uint32_t slot, int err, const struct source_config *cfg, char why[SOURCE_WHY])
{
	uint8_t origin = s->origins.slot[slot].origin;

	if (err == -EACCES && perf_is_of_kernel(origin))
		snprintf(why, SOURCE_WHY,
			 "%s happen in the kernel, which kernel.perf_event_paranoid = %d hides from ordinary users: run as root, "
			 "or let root set it to 1",
			 origin_name(origin), perf_paranoid());
	else if (err == -EPERM)
		snprintf(why, SOURCE_WHY,
			 "no room for perf buffers: they count as locked memory of this user; raise "
			 "kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK (ulimit -l), or end other recordings");
	else if (err == -EACCES)
		snprintf(why, SOURCE_WHY, "the kernel refuses to observe a process of somebody else");
	else if (err == -ESRCH)
		snprintf(why, SOURCE_WHY, "none of the processes lives any more");
	else if (err == -EMFILE || err == -E2BIG)
		snprintf(why, SOURCE_WHY,
			 "too few file descriptors: one for each thread, CPU and event is needed, and one besides; raise "
			 "LimitNOFILE (ulimit -n)");
	else
		return slots_explain(s, slot, err, cfg, why);
	return err;
}
