// SPDX-License-Identifier: Apache-2.0
/*
 * Single processes: an event for every thread that there is and every CPU,
 * inherited by all that they start. What an ordinary user may have of perf.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "source/perf_internal.h"

#define THREADS_MAX 1024 /* that are there already; what they start costs no descriptor */
#define ROUNDS	    4	 /* threads that come while we look at the others */

struct attached {
	uint32_t tid;
	int tick_fd, life_fd;
};

static const struct attached *attached(const struct source_perf *p, size_t *ret_nr)
{
	*ret_nr = p->attached.len / sizeof(struct attached);
	return (const struct attached *)(const void *)p->attached.data;
}

static bool is_attached(const struct source_perf *p, uint32_t tid)
{
	size_t nr;
	const struct attached *a = attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		if (a[i].tid == tid)
			return true;
	return false;
}

/* Life first: no sample without what is known of its process. */
static int attach_cpu(struct source_perf *p, uint32_t tid, uint32_t cpu)
{
	_cleanup_(closep) int life_fd = perf_life_open(p, tid, cpu);
	_cleanup_(closep) int tick_fd = life_fd < 0 ? -1 : perf_tick_open(p, tid, cpu);
	struct attached *to;

	if (life_fd < 0 || tick_fd < 0)
		return life_fd < 0 ? life_fd : tick_fd;
	to = buf_reserve(&p->attached, sizeof(*to));
	if (!to)
		return -ENOMEM;
	*to = (struct attached){.tid = tid, .tick_fd = steal_fd(&tick_fd), .life_fd = steal_fd(&life_fd)};
	buf_commit(&p->attached, sizeof(*to));
	return 0;
}

static int attach_thread(struct source_perf *p, uint32_t tid)
{
	struct cpus online;
	int err = cpus_online(&online);

	for (uint32_t cpu = 0; !err && cpu < p->nr; cpu++)
		if (cpus_has(&online, cpu) && cpus_has(&p->events.wanted, cpu))
			err = attach_cpu(p, tid, cpu);
	return err == -ESRCH ? 0 : err; /* it has ended meanwhile */
}

/* Returns how many threads were new. */
static int attach_threads(struct source_perf *p, uint32_t pid)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[40];
	int found = 0, err = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid || is_attached(p, tid))
			continue;
		if (++found > THREADS_MAX)
			return -E2BIG;
		err = attach_thread(p, tid);
	}
	return err < 0 ? err : found;
}

int perf_attach(struct source_perf *p, const uint32_t *pids, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		int found = 1;

		for (int round = 0; round < ROUNDS && found > 0; round++)
			found = attach_threads(p, pids[i]);
		if (found < 0)
			return found;
	}
	return p->attached.len ? 0 : -ESRCH;
}

void perf_attach_enable(struct source_perf *p, bool on)
{
	size_t nr;
	const struct attached *a = attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		ioctl(a[i].tick_fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t perf_attach_running_ns(const struct source_perf *p)
{
	struct { uint64_t value, enabled, running; } t;
	uint64_t sum = 0;
	size_t nr;
	const struct attached *a = attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		if (read(a[i].tick_fd, &t, sizeof(t)) == sizeof(t))
			sum += t.running;
	return sum;
}

void perf_attach_close(struct source_perf *p)
{
	size_t nr;
	const struct attached *a = attached(p, &nr);

	for (size_t i = 0; i < nr; i++) {
		close(a[i].tick_fd);
		close(a[i].life_fd);
	}
	buf_done(&p->attached);
}
