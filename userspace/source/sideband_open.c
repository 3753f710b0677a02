// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor's half: events and buffers. Every buffer stays mapped here as
 * long as the side-band lives: the kernel drops records of a buffer that
 * nobody maps, without a word, so an engine that dies would lose them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/cpus.h"
#include "source/events.h"
#include "source/size.h"
#include "source/source.h"

struct sideband_cpu {
	int buffer_fd; /* its event owns the buffer, dead or alive; -1: none yet */
	int event_fd;  /* of a CPU that came back: writes to the same buffer; -1: buffer_fd is it */
	void *base;
};

struct sideband {
	struct sideband_cpu *cpus; /* owned */
	uint32_t *order;           /* CPUs in the order in which their buffers were made; owned */
	uint32_t nr;
	uint32_t buffers;
	size_t map_bytes;
	size_t data_bytes;
	bool no_build_id; /* the kernel does not know it: before 5.12 */
};

static int dummy_open(struct sideband *s, uint32_t cpu)
{
	struct perf_event_attr attr;
	int fd;

	event_life_attr(&attr);
	attr.watermark = 1;
	attr.wakeup_watermark = (uint32_t)(s->data_bytes / 2);
	attr.build_id = !s->no_build_id;
	fd = event_open(&attr, cpu);
	if (fd == -EINVAL && !s->no_build_id) {
		s->no_build_id = true;
		attr.build_id = 0;
		fd = event_open(&attr, cpu);
	}
	return fd;
}

static int buffer_open(struct sideband *s, uint32_t cpu)
{
	_cleanup_(closep) int fd = dummy_open(s, cpu);
	void *base;

	if (fd < 0)
		return fd;
	base = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	s->cpus[cpu].base = base;
	s->cpus[cpu].buffer_fd = steal_fd(&fd);
	s->order[s->buffers++] = cpu;
	return 0;
}

/* The engine has the old buffer mapped: a new event writes there. */
static int buffer_revive(struct sideband *s, uint32_t cpu)
{
	struct sideband_cpu *c = &s->cpus[cpu];
	_cleanup_(closep) int fd = dummy_open(s, cpu);

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->buffer_fd) < 0)
		return -errno;
	if (c->event_fd >= 0)
		close(c->event_fd);
	c->event_fd = steal_fd(&fd);
	return 0;
}

static int cpu_follow(struct sideband *s, uint32_t cpu, int *changed)
{
	struct sideband_cpu *c = &s->cpus[cpu];
	int err;

	if (c->buffer_fd < 0)
		err = buffer_open(s, cpu);
	else if (event_dead(c->event_fd >= 0 ? c->event_fd : c->buffer_fd))
		err = buffer_revive(s, cpu);
	else
		return 0;
	if (err == -ENODEV)
		return 0;
	if (err == 0)
		(*changed)++;
	return err;
}

int sideband_follow_cpus(struct sideband *s, int *ret_changed)
{
	struct cpus online;
	int changed = 0, err = cpus_online(&online), each;

	*ret_changed = 0;
	if (!s)
		return 0;
	if (err < 0)
		return err;
	for (uint32_t cpu = 0; cpu < s->nr; cpu++) {
		if (!cpus_has(&online, cpu))
			continue;
		each = cpu_follow(s, cpu, &changed);
		if (each < 0)
			err = each;
	}
	*ret_changed = changed;
	return err;
}

static int sideband_alloc(uint32_t data_bytes, struct sideband **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sideband *s;
	uint32_t nr;
	int err = cpus_possible(&nr);

	if (err < 0)
		return err;
	if (data_bytes < page || (data_bytes & (data_bytes - 1)))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*ret = s;
	s->data_bytes = data_bytes;
	s->map_bytes = page + data_bytes;
	s->cpus = calloc(nr, sizeof(*s->cpus));
	s->order = calloc(nr, sizeof(*s->order));
	if (!s->cpus || !s->order)
		return -ENOMEM;
	s->nr = nr;
	for (uint32_t cpu = 0; cpu < nr; cpu++)
		s->cpus[cpu] = (struct sideband_cpu){.buffer_fd = -1, .event_fd = -1};
	return 0;
}

static void explain(int err, uint32_t data_bytes, char why[SOURCE_WHY])
{
	switch (err) {
	case -EINVAL:
		snprintf(why, SOURCE_WHY, "sideband_bytes = %u is no power of two of at least a page", data_bytes);
		break;
	case -EACCES:
	case -EPERM:
		snprintf(why, SOURCE_WHY,
			 "the kernel refuses the perf events that report process life: CAP_PERFMON and CAP_IPC_LOCK are "
			 "needed (CAP_SYS_ADMIN where kernel.perf_event_paranoid is above 2)");
		break;
	case -EMFILE:
		snprintf(why, SOURCE_WHY, "too few file descriptors for one per CPU: raise LimitNOFILE (ulimit -n)");
		break;
	default:
		snprintf(why, SOURCE_WHY, "perf events that report process life: %s", strerror(-err));
	}
}

int sideband_open(const struct source_config *cfg, struct sideband **ret, char why[SOURCE_WHY])
{
	uint32_t data_bytes = cfg->sideband_bytes ? cfg->sideband_bytes : size_sideband((uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	struct sideband *s = NULL;
	int changed, err = sideband_alloc(data_bytes, &s);

	if (err == 0)
		err = sideband_follow_cpus(s, &changed);
	if (err < 0) {
		explain(err, data_bytes, why);
		sideband_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (uint32_t cpu = 0; cpu < s->nr; cpu++) {
		struct sideband_cpu *c = &s->cpus[cpu];

		if (c->event_fd >= 0)
			close(c->event_fd);
		if (c->base)
			munmap(c->base, s->map_bytes);
		if (c->buffer_fd >= 0)
			close(c->buffer_fd);
	}
	free(s->cpus);
	free(s->order);
	free(s);
}

uint32_t sideband_buffers(const struct sideband *s)
{
	return s ? s->buffers : 0;
}

int sideband_fd(const struct sideband *s, uint32_t i, size_t *ret_data_bytes)
{
	*ret_data_bytes = s->data_bytes;
	return s->cpus[s->order[i]].buffer_fd;
}
