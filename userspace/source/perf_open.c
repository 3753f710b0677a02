// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/perf_internal.h"
#include "source/perf_probe.h"

/* --- buffers --- */

/* Writes nothing itself. It is an event of this process, not of a CPU, so it stays when the CPU goes offline. */
static int perf_owner_open(uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		.disabled = 1,
		.exclude_kernel = 1,
	};

	return event_open_task(&attr, 0, cpu);
}

static int perf_buffer_open(struct sideband_buffer *b, size_t data_bytes, uint32_t cpu)
{
	size_t map_bytes = (size_t)sysconf(_SC_PAGESIZE) + data_bytes;
	_cleanup_(closep) int fd = perf_owner_open(cpu);
	void *base;

	if (fd < 0)
		return fd;
	base = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	/* Stack bytes are secrets. */
	madvise(base, map_bytes, MADV_DONTDUMP);
	*b = (struct sideband_buffer){
		.fd = steal_fd(&fd),
		.page = base,
		.data = (const uint8_t *)base + (map_bytes - data_bytes),
		.data_bytes = data_bytes,
		.map_bytes = map_bytes,
	};
	return 0;
}

static void perf_buffer_close(struct sideband_buffer *b)
{
	if (!b->page)
		return;
	munmap(b->page, b->map_bytes);
	close(b->fd);
	*b = (struct sideband_buffer){0};
}

int perf_buffers_open(struct source_perf *p, uint32_t cpu)
{
	struct perf_cpu *c = &p->cpus[cpu];
	int err = 0;

	for_each_slot(&p->slots, slot)
		if (!err && !c->samples[slot].page)
			err = perf_buffer_open(&c->samples[slot], p->samples_bytes, cpu);
	if (!err && !c->life.page)
		err = perf_buffer_open(&c->life, p->life_bytes, cpu);
	return err;
}

void perf_buffers_close(struct source_perf *p)
{
	for (uint32_t cpu = 0; p->cpus && cpu < p->nr; cpu++) {
		closep(&p->cpus[cpu].life_fd);
		p->cpus[cpu].life_fd = -1;
		for (uint32_t slot = 0; slot < OTP_ORIGINS_MAX; slot++)
			perf_buffer_close(&p->cpus[cpu].samples[slot]);
		perf_buffer_close(&p->cpus[cpu].life);
	}
}

/* --- events --- */

static void perf_slot_attr(const struct source_perf *p, uint32_t slot, struct perf_event_attr *attr)
{
	const struct event_setup *setup = slots_in_force(&p->slots, slot);

	*attr = (struct perf_event_attr){
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = perf_sample_regs(),
		.sample_stack_user = p->dump_bytes,
		.exclude_kernel = p->user_only,
		.exclude_hv = p->user_only,
		.exclude_callchain_user = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
		.inherit = p->single,
	};
	event_setup_attr(attr, setup);
	/*
	 * For an event by period its samples need not hold the period, and must
	 * not: of a software event the kernel would then write every single one
	 * (perf_swevent_event).
	 */
	if (slot && setup->by_frequency)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (p->format.callchain)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (p->format.cgroup)
		attr->sample_type |= PERF_SAMPLE_CGROUP;
}

static int perf_open_for(struct perf_event_attr *attr, uint32_t pid, uint32_t cpu)
{
	return pid == PERF_EVERYBODY ? event_open(attr, cpu) : event_open_task(attr, pid, cpu);
}

static int perf_buffer_attach(int fd, const struct sideband_buffer *to)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, to->fd) < 0 ? -errno : 0;
}

int perf_event_open_slot(struct source_perf *p, uint32_t slot, uint32_t pid, uint32_t cpu)
{
	struct perf_event_attr attr;
	_cleanup_(closep) int fd = -1;
	int err = perf_buffers_open(p, cpu);

	if (err < 0)
		return err;
	perf_slot_attr(p, slot, &attr);
	fd = perf_open_for(&attr, pid, cpu);
	if (fd < 0)
		return fd;
	err = perf_buffer_attach(fd, &p->cpus[cpu].samples[slot]);
	return err < 0 ? err : steal_fd(&fd);
}

/*
 * For the whole host the side-band reports mappings to the engine, so only
 * tasks and names are needed here; for single processes this is the only
 * report.
 */
static void perf_life_attr(const struct source_perf *p, struct perf_event_attr *attr)
{
	event_life_attr(attr);
	attr->inherit = p->single;
	attr->exclude_kernel = p->single;
	attr->exclude_hv = p->single;
	attr->mmap = attr->mmap2 = p->single;
	attr->build_id = p->single && !p->no_build_id;
}

int perf_life_open(struct source_perf *p, uint32_t pid, uint32_t cpu)
{
	struct perf_event_attr attr;
	_cleanup_(closep) int fd = -1;
	int err = perf_buffers_open(p, cpu);

	if (err < 0)
		return err;
	perf_life_attr(p, &attr);
	fd = perf_open_for(&attr, pid, cpu);
	if (fd == -EINVAL && attr.build_id) {
		p->no_build_id = true;
		perf_life_attr(p, &attr);
		fd = perf_open_for(&attr, pid, cpu);
	}
	if (fd < 0)
		return fd;
	err = perf_buffer_attach(fd, &p->cpus[cpu].life);
	return err < 0 ? err : steal_fd(&fd);
}

static int perf_try_slot(const struct source_perf *p, uint32_t slot, uint32_t pid)
{
	_cleanup_(closep) int fd = -1;
	struct perf_event_attr attr;
	struct cpus online;
	uint32_t cpu = 0;

	perf_slot_attr(p, slot, &attr);
	if (cpus_online(&online) == 0)
		while (cpu < CPUS_MAX - 1 && !cpus_has(&online, cpu))
			cpu++;
	fd = perf_open_for(&attr, pid, cpu);
	return fd < 0 ? fd : 0;
}

static int perf_try_all(const struct source_perf *p, uint32_t pid, uint32_t *ret_slot)
{
	int err = 0;

	for_each_slot(&p->slots, slot) {
		if (err)
			break;
		*ret_slot = slot;
		err = perf_try_slot(p, slot, pid);
	}
	return err;
}

/* Before Linux 5.7 samples cannot hold the cgroup. */
static int perf_try_formats(struct source_perf *p, uint32_t pid, uint32_t *ret_slot)
{
	int err;

	p->format.cgroup = true;
	err = perf_try_all(p, pid, ret_slot);
	if (err != -EINVAL)
		return err;
	p->format.cgroup = false;
	return perf_try_all(p, pid, ret_slot);
}

int perf_probe_attr(struct source_perf *p, uint32_t pid, uint32_t *ret_slot)
{
	int err;

	p->format = (struct perf_format){.callchain = true};
	p->user_only = false;
	err = perf_try_formats(p, pid, ret_slot);
	if ((err != -EACCES && err != -EPERM) || pid == PERF_EVERYBODY)
		return err;
	p->user_only = true;
	p->format.callchain = false;
	for_each_slot(&p->slots, slot)
		if (perf_is_of_kernel(p->slots.origins.slot[slot].origin)) {
			*ret_slot = slot;
			return -EACCES;
		}
	return perf_try_formats(p, pid, ret_slot);
}
