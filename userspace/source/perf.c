// SPDX-License-Identifier: Apache-2.0
/*
 * Perf events as a source: where neither eBPF nor the module can be used, and
 * for an ordinary user's own processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/perf_internal.h"
#include "source/perf_probe.h"
#include "source/size.h"

#define PLANS_DEFAULT  8192
#define PUMP_FAST_NS   (50 * NSEC_PER_MSEC)
#define PUMP_SLOW_NS   (250 * NSEC_PER_MSEC)
#define RESIZE_NS      NSEC_PER_SEC
#define SHRINK_NS      (60 * NSEC_PER_SEC)
#define SAMPLES_LEAST  (32u << 10)
#define SAMPLES_MOST   (4u << 20)
#define SAMPLES_ALL    (64u << 20) /* of all CPUs and slots together */
#define LIFE_LEAST     (16u << 10)
#define LIFE_MOST      (128u << 10)
#define SINGLE_DUMP    16384 /* events of single processes cannot be opened again: deep enough from the start */

/* --- sizes --- */

/* The shortest time between two samples of a slot; unknown where an event has a period (perf_samples_by_period). */
static uint64_t perf_period_ns(const struct source_perf *p)
{
	uint64_t ns = p->slots.origins.slot[0].period;

	for (uint32_t i = 0; i < p->slots.list.count; i++)
		if (p->slots.list.event[i].frequency_hz)
			ns = MIN(ns, NSEC_PER_SEC / p->slots.list.event[i].frequency_hz);
	return ns;
}

static bool perf_samples_by_period(const struct source_perf *p)
{
	for (uint32_t i = 0; i < p->slots.list.count; i++)
		if (p->slots.list.event[i].period)
			return true;
	return false;
}

/* Half a second of samples; an ordinary user has less locked memory: a quarter. */
static size_t perf_samples_wanted(const struct source_perf *p)
{
	uint64_t hz = NSEC_PER_SEC / perf_period_ns(p), enough;
	size_t size = 4 * SAMPLES_LEAST, most = MIN(SAMPLES_MOST, SAMPLES_ALL / (p->nr * p->slots.origins.count));

	enough = hz * (p->dump_start + PERF_SAMPLE_REST) / (p->single ? 4 : 2);
	if (perf_samples_by_period(p))
		enough = most;
	while (size < enough && 2 * size <= most)
		size *= 2;
	return size;
}

/* The largest copy at which the buffers hold a tenth of a second. */
static uint32_t perf_dump_bound(const struct source_perf *p, uint32_t most)
{
	uint64_t each = p->samples_bytes * 10 * perf_period_ns(p) / NSEC_PER_SEC;
	uint32_t dump = most;

	while (dump > 1024 && dump + PERF_SAMPLE_REST > each)
		dump /= 2;
	return dump;
}

/* A quarter of the buffer at full rate. */
static uint64_t perf_pump_every(const struct source_perf *p)
{
	uint64_t samples = p->samples_bytes / 4 / (p->dump_bytes + PERF_SAMPLE_REST);

	if (perf_samples_by_period(p))
		return PUMP_FAST_NS;
	return MAX(MIN(samples * perf_period_ns(p), PUMP_SLOW_NS), PUMP_FAST_NS);
}

/* --- open and close --- */

static void perf_close(struct source *s)
{
	struct source_perf *p = perf_self(s);

	slots_done(&p->slots);
	perf_attach_close(p);
	perf_buffers_close(p);
	free(p->cpus);
	ring_writer_close(&p->ring);
	if (p->counters)
		munmap(p->counters, p->counters_bytes);
	closep(&p->counters_fd);
	closep(&p->wake_fd);
	perf_choice_done(&p->choice);
	perf_tasks_done(&p->tasks);
	buf_done(&p->items);
}

/* Writable by the monitor, read-only for all others. */
static int perf_counters_open(struct source_perf *p)
{
	_cleanup_(closep) int fd = memfd_create("otprof-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[40];
	void *map;

	p->counters_bytes = ALIGN_UP((size_t)p->nr * p->slots.origins.count * sizeof(*p->counters),
				     (size_t)sysconf(_SC_PAGESIZE));
	if (fd < 0 || ftruncate(fd, (off_t)p->counters_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	p->counters_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->counters_fd < 0)
		return -errno;
	map = mmap(NULL, p->counters_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	p->counters = map;
	return 0;
}

static int perf_memory_open(struct source_perf *p, const struct source_config *cfg)
{
	uint32_t rate = event_list_rate(&cfg->events, cfg->frequency_hz);
	int err = 0;

	p->cpus = calloc(p->nr, sizeof(*p->cpus));
	if (!p->cpus)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < p->nr; cpu++)
		p->cpus[cpu].life_fd = -1;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return -errno;
	err = perf_counters_open(p);
	if (err < 0)
		return err;
	return ring_writer_open(&p->ring, cfg->ring_bytes ? cfg->ring_bytes : size_ring(p->nr, rate));
}

/* Locked memory is bounded per user: halved until it fits. */
static int perf_buffers_fit(struct source_perf *p, uint32_t cpu)
{
	int err;

	while ((err = perf_buffers_open(p, cpu)) == -EPERM && p->samples_bytes > SAMPLES_LEAST) {
		perf_buffers_close(p);
		p->samples_bytes /= 2;
		p->life_bytes = MAX(p->life_bytes / 2, (size_t)LIFE_LEAST);
	}
	return err;
}

/* All of one size. A buffer opened before a size did not fit is opened again in the next round. */
static int perf_open_all_buffers(struct source_perf *p, const struct source_config *cfg)
{
	struct cpus online;
	size_t size;
	int err = cpus_online(&online);

	p->dump_start = MIN(ALIGN_UP(cfg->defaults.stack_bytes, 8u), OTP_HEAD_STACK);
	p->dump_start = MAX(p->dump_start, p->single ? SINGLE_DUMP : 512u);
	p->samples_bytes = perf_samples_wanted(p);
	p->life_bytes = LIFE_MOST;
	do {
		size = p->samples_bytes;
		for (uint32_t cpu = 0; !err && cpu < p->nr; cpu++)
			if (cpus_has(&online, cpu) && cpus_has(&p->wanted, cpu))
				err = perf_buffers_fit(p, cpu);
	} while (!err && size != p->samples_bytes);
	p->dump_max = perf_dump_bound(p, OTP_HEAD_STACK);
	p->dump_bytes = MIN(p->dump_start, p->dump_max);
	return err;
}

static int perf_slot_open(void *ctx, uint32_t slot, uint32_t cpu)
{
	return perf_event_open_slot(ctx, slot, PERF_EVERYBODY, cpu);
}

/* Process life of each online CPU; a CPU whose event died with it gets another. */
static int perf_life_follow(struct source_perf *p)
{
	struct cpus online;
	int err = cpus_online(&online);

	for (uint32_t cpu = 0; !err && cpu < p->nr; cpu++) {
		struct perf_cpu *c = &p->cpus[cpu];

		if (!cpus_has(&online, cpu) || (c->life_fd >= 0 && !event_dead(c->life_fd)))
			continue;
		closep(&c->life_fd);
		c->life_fd = perf_life_open(p, PERF_EVERYBODY, cpu);
		if (c->life_fd < 0 && c->life_fd != -ENODEV)
			err = c->life_fd;
	}
	return err;
}

/* Events of process life before samples: a process forked in between is known. */
static int perf_open_all_events(struct source_perf *p, const struct source_config *cfg, uint32_t *ret_slot)
{
	int err;

	if (p->single)
		return perf_attach(p, cfg->pids, cfg->nr_pids, ret_slot);
	err = perf_life_follow(p);
	return err < 0 ? err : slots_open(&p->slots, perf_slot_open, p, ret_slot);
}

/* Finds the CPUs and the origins to sample. */
static int perf_session_init(struct source_perf *p, const struct source_config *cfg)
{
	int err = cpus_possible(&p->nr);

	memset(&p->wanted, 0xff, sizeof(p->wanted));
	if (!err && cfg->cpus)
		err = cpus_parse(cfg->cpus, &p->wanted);
	return err ? err : slots_init(&p->slots, p->nr, cfg);
}

static int perf_open(struct source *s, const struct source_config *cfg, char why[SOURCE_WHY])
{
	struct source_perf *p = perf_self(s);
	uint32_t slot = 0;
	int err;

	p->counters_fd = p->wake_fd = p->choice.cgroups.mount_fd = -1;
	err = perf_probe(cfg, &p->single, why);
	if (err < 0)
		return err;
	p->dump_bytes = MIN(cfg->defaults.stack_bytes, OTP_HEAD_STACK);
	perf_choice_init(&p->choice, &cfg->defaults, cfg->plans_max ? cfg->plans_max : PLANS_DEFAULT);
	err = perf_session_init(p, cfg);
	if (!err)
		err = perf_memory_open(p, cfg);
	if (!err)
		err = perf_probe_attr(p, p->single ? 0 : PERF_EVERYBODY, &slot);
	p->tasks.read_cgroups = !p->format.cgroup;
	if (!err && !p->single && p->format.callchain)
		softirq_code_read(&p->softirqs);
	if (!err)
		err = perf_open_all_buffers(p, cfg);
	if (!err)
		err = perf_open_all_events(p, cfg, &slot);
	return err < 0 ? perf_explain(&p->slots, slot, err, cfg, why) : 0;
}

static int perf_probe_op(const struct source_config *cfg, char why[SOURCE_WHY])
{
	bool single;

	return perf_probe(cfg, &single, why);
}

/* --- while it runs --- */

static void perf_layout(const struct source *s, struct source_layout *ret)
{
	const struct source_perf *p = perf_self(s);

	*ret = (struct source_layout){
		.ring_fd = p->ring.ring_fd,
		.ring_bytes = p->ring.size,
		.counters_fd = p->counters_fd,
		.cpus = p->nr,
		.counters_stride = sizeof(*p->counters),
		.origins = p->slots.origins,
		.consumer_fd = p->ring.consumer_fd,
		.wake_fd = p->wake_fd,
		.life = p->single,
		.fixed_rate = p->single,
	};
}

static int perf_start(struct source *s)
{
	struct source_perf *p = perf_self(s);

	p->started = true;
	p->next_pump_ns = 0;
	if (!p->single)
		return slots_start(&p->slots);
	perf_attach_enable(p, true);
	return 0;
}

static int perf_stop(struct source *s)
{
	struct source_perf *p = perf_self(s);
	int err = 0;

	if (p->single)
		perf_attach_enable(p, false);
	else
		err = slots_stop(&p->slots);
	perf_pump_until(p, UINT64_MAX);
	p->started = false;
	return err;
}

/* Inherited events have periods of their own, which cannot be changed. */
static int perf_set_rate(struct source *s, uint32_t frequency_hz, uint32_t configured_hz)
{
	struct source_perf *p = perf_self(s);
	int err;

	if (p->single)
		return -EOPNOTSUPP;
	perf_pump_until(p, clock_now_ns());
	err = slots_set_rate(&p->slots, frequency_hz, configured_hz);
	if (err < 0)
		return err;
	p->dump_max = perf_dump_bound(p, OTP_HEAD_STACK);
	p->deepest_changed = true;
	return 0;
}

/* Clocks of tasks stand still while their task does: no wall-clock timer is in step with them. */
static uint64_t perf_vary(struct source *s, uint64_t now_ns)
{
	struct source_perf *p = perf_self(s);

	return p->single ? UINT64_MAX : slots_vary(&p->slots, now_ns);
}

static int perf_set_defaults(struct source *s, const struct otp_defaults *d)
{
	struct source_perf *p = perf_self(s);

	p->deepest_changed |= d->stack_bytes != p->choice.defaults.stack_bytes;
	p->choice.defaults = *d;
	return 0;
}

static int perf_set_plan(struct source *s, uint32_t pid, const struct otp_plan *plan)
{
	struct source_perf *p = perf_self(s);

	p->deepest_changed |= plan && plan->stack_bytes > p->dump_bytes;
	return perf_choice_set_plan(&p->choice, pid, plan);
}

static int perf_set_hint(struct source *s, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	struct source_perf *p = perf_self(s);

	p->deepest_changed |= h && h->stack_bytes > p->dump_bytes;
	return perf_choice_set_hint(&p->choice, comm, h ? h->stack_bytes : 0);
}

static int perf_set_cgroup(struct source *s, uint64_t cgroup_id, const struct otp_cgroup_rule *r)
{
	return perf_cgroups_set(&perf_self(s)->choice.cgroups, cgroup_id, r ? r->select : OTP_SELECT_UNSET);
}

static int perf_follow_cpus(struct source *s, int *ret_changed)
{
	struct source_perf *p = perf_self(s);
	int err;

	*ret_changed = 0;
	if (p->single)
		return 0;
	err = perf_life_follow(p);
	return err < 0 ? err : slots_follow(&p->slots, ret_changed);
}

/* The number of ticks due in user code alone is unknown. */
static uint64_t perf_expected_ticks(struct source *s)
{
	const struct source_perf *p = perf_self(s);

	if (p->user_only || p->slots.hardware || p->slots.list.no_clock)
		return 0;
	return p->single ? perf_attach_running_ns(p) / perf_period_ns(p) : events_expected(&p->slots.events[0]);
}

static uint64_t perf_idle_ticks(struct source *s)
{
	const struct source_perf *p = perf_self(s);

	return p->single ? 0 : events_idle(&p->slots.events[0]);
}

/* To the next power of two at once, down only after a while in which no plan asked for more. */
static void perf_resize(struct source_perf *p, uint64_t now_ns)
{
	uint32_t want = 1024, deepest;

	if (p->single || now_ns < p->next_resize_ns || (!p->deepest_changed && now_ns < p->next_resize_ns + SHRINK_NS))
		return;
	p->deepest_changed = false;
	p->next_resize_ns = now_ns + RESIZE_NS;
	deepest = MIN(perf_choice_deepest(&p->choice), p->dump_max);
	while (want < deepest)
		want *= 2;
	want = MIN(want, p->dump_max);
	if (want == p->dump_bytes)
		return;
	p->dump_bytes = want;
	slots_reopen(&p->slots);
}

static uint64_t perf_pump(struct source *s, uint64_t now_ns)
{
	struct source_perf *p = perf_self(s);

	if (!p->started)
		return UINT64_MAX;
	if (now_ns < p->next_pump_ns)
		return p->next_pump_ns;
	perf_pump_until(p, clock_now_ns());
	perf_resize(p, now_ns);
	p->next_pump_ns = now_ns + perf_pump_every(p);
	return p->next_pump_ns;
}

/* The kernel's part is perf's own and not measured; the rest is the monitor's CPU time. */
static void perf_run_time(struct source *s, uint64_t *ret_ns, uint64_t *ret_runs)
{
	*ret_ns = *ret_runs = 0;
}

const struct source_ops source_perf = {
	.name = "perf",
	.size = sizeof(struct source_perf),
	.probe = perf_probe_op,
	.open = perf_open,
	.close = perf_close,
	.layout = perf_layout,
	.start = perf_start,
	.stop = perf_stop,
	.set_rate = perf_set_rate,
	.vary = perf_vary,
	.set_defaults = perf_set_defaults,
	.set_plan = perf_set_plan,
	.set_hint = perf_set_hint,
	.set_cgroup = perf_set_cgroup,
	.follow_cpus = perf_follow_cpus,
	.expected_ticks = perf_expected_ticks,
	.idle_ticks = perf_idle_ticks,
	.pump = perf_pump,
	.run_time = perf_run_time,
};
