// SPDX-License-Identifier: Apache-2.0
/*
 * Single processes: an event for every existing thread and every CPU, inherited
 * by all that they start. The part of perf that an ordinary user may use.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "source/perf_internal.h"

#define THREADS_MAX 1024 /* existing ones; threads and processes that they start need no descriptor */
#define ROUNDS	    4	 /* to find threads that start meanwhile */

struct attached {
	uint32_t tid;
	int life_fd;
	int fds[OTP_ORIGINS_MAX]; /* by slot; -1: not sampled */
};

static const struct attached *perf_attached(const struct source_perf *p, size_t *ret_nr)
{
	*ret_nr = p->attached.len / sizeof(struct attached);
	return (const struct attached *)(const void *)p->attached.data;
}

static bool perf_is_attached(const struct source_perf *p, uint32_t tid)
{
	size_t nr;
	const struct attached *a = perf_attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		if (a[i].tid == tid)
			return true;
	return false;
}

static void perf_attached_close(const struct attached *a)
{
	for (uint32_t slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		closep(&a->fds[slot]);
	closep(&a->life_fd);
}

/* Life first: a sample needs the records of its process. */
static int perf_attach_cpu(struct source_perf *p, uint32_t tid, uint32_t cpu, uint32_t *ret_slot)
{
	struct attached a = {.tid = tid, .life_fd = perf_life_open(p, tid, cpu)};
	int err = MIN(a.life_fd, 0);

	memset(a.fds, 0xff, sizeof(a.fds));
	for_each_slot(&p->slots, slot) {
		if (err < 0)
			break;
		*ret_slot = slot;
		a.fds[slot] = err = perf_event_open_slot(p, slot, tid, cpu);
	}
	if (err >= 0) {
		buf_add(&p->attached, &a, sizeof(a));
		err = p->attached.failed ? -ENOMEM : 0;
	}
	if (err < 0)
		perf_attached_close(&a);
	return err;
}

static int perf_attach_thread(struct source_perf *p, uint32_t tid, uint32_t *ret_slot)
{
	struct cpus online;
	int err = cpus_online(&online);

	for (uint32_t cpu = 0; !err && cpu < p->nr; cpu++)
		if (cpus_has(&online, cpu) && cpus_has(&p->wanted, cpu))
			err = perf_attach_cpu(p, tid, cpu, ret_slot);
	return err == -ESRCH ? 0 : err; /* it ended meanwhile */
}

/* Returns the number of new threads. */
static int perf_attach_threads(struct source_perf *p, uint32_t pid, uint32_t *ret_slot)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[40];
	int found = 0, err = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid || perf_is_attached(p, tid))
			continue;
		if (++found > THREADS_MAX)
			return -E2BIG;
		err = perf_attach_thread(p, tid, ret_slot);
	}
	return err < 0 ? err : found;
}

int perf_attach(struct source_perf *p, const uint32_t *pids, uint32_t nr, uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < nr; i++) {
		int found = 1;

		for (int round = 0; round < ROUNDS && found > 0; round++)
			found = perf_attach_threads(p, pids[i], ret_slot);
		if (found < 0)
			return found;
	}
	return p->attached.len ? 0 : -ESRCH;
}

void perf_attach_enable(struct source_perf *p, bool on)
{
	size_t nr;
	const struct attached *a = perf_attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		for_each_slot(&p->slots, slot)
			ioctl(a[i].fds[slot], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t perf_attach_running_ns(const struct source_perf *p)
{
	struct { uint64_t value, enabled, running; } t;
	uint64_t sum = 0;
	size_t nr;
	const struct attached *a = perf_attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		if (read(a[i].fds[0], &t, sizeof(t)) == sizeof(t))
			sum += t.running;
	return sum;
}

void perf_attach_close(struct source_perf *p)
{
	size_t nr;
	const struct attached *a = perf_attached(p, &nr);

	for (size_t i = 0; i < nr; i++)
		perf_attached_close(&a[i]);
	buf_done(&p->attached);
}
