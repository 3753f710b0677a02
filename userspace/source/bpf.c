// SPDX-License-Identifier: Apache-2.0
/*
 * The eBPF sampler as a source: loads the program, owns its maps and events.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "source/bpf_probe.h"
#include "source/pids.h"
#include "source/size.h"
#include "source/slots.h"
#include "source/source.h"

#include "sampler.skel.h"

#define PLANS_DEFAULT 8192
#define WALKS_DEFAULT 1024
#define SWEEP_EVERY_NS NSEC_PER_SEC

/* A map by process. */
struct bpf_by_pid {
	uint32_t max;
	uint64_t swept_ns; /* last time that entries of dead processes were dropped */
};

struct source_bpf {
	struct source source;
	struct sampler *skel; /* owned */
	struct slots slots;
	struct otp_defaults defaults;
	uint32_t ring_bytes;
	uint32_t possible;
	bool started;
	struct bpf_by_pid plans, walks;
};

static struct source_bpf *bpf_self(const struct source *s)
{
	return container_of(s, struct source_bpf, source);
}

/* libbpf's first warning while it loads, which names the cause; for why. */
static char libbpf_warning[SOURCE_WHY];

static int libbpf_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN && !libbpf_warning[0])
		vsnprintf(libbpf_warning, sizeof(libbpf_warning), fmt, ap);
	return 0;
}

static int bpf_load_failed(int err, char why[SOURCE_WHY])
{
	libbpf_warning[strcspn(libbpf_warning, "\n")] = '\0';
	snprintf(why, SOURCE_WHY, "the kernel refuses the BPF sampler: %s%s%.380s", strerror(-err),
		 libbpf_warning[0] ? ": " : "", libbpf_warning);
	return err;
}

static int bpf_probe(const struct source_config *cfg, char why[SOURCE_WHY])
{
	return bpf_probe_host(why);
}

/* Memory charged by 5.10: values, hash elements with their heads, pages of the ring, and room for libbpf's own. */
static uint64_t bpf_memory_charged(const struct source_bpf *b)
{
	uint64_t per_cpu = OTP_SCRATCH + sizeof(struct otp_walker) +
			   b->slots.origins.count * sizeof(struct otp_cpu_counters) + 512;

	return (uint64_t)b->ring_bytes + b->possible * per_cpu + (uint64_t)b->plans.max * (sizeof(struct otp_plan) + 96) +
	       (uint64_t)b->walks.max * (sizeof(struct otp_walks_ready) + 96) + (4096ULL + 1024) * 96 + (1u << 20);
}

static int bpf_size_maps(struct source_bpf *b)
{
	struct sampler *s = b->skel;
	int err = bpf_map__set_max_entries(s->maps.counters, b->possible * b->slots.origins.count);

	err = err ? err : bpf_map__set_max_entries(s->maps.cpus, b->possible);
	err = err ? err : bpf_map__set_max_entries(s->maps.scratch, b->possible);
	err = err ? err : bpf_map__set_max_entries(s->maps.walkers, b->possible);
	err = err ? err : bpf_map__set_max_entries(s->maps.plans, b->plans.max);
	err = err ? err : bpf_map__set_max_entries(s->maps.walks, b->walks.max);
	return err ? err : bpf_map__set_max_entries(s->maps.ring, b->ring_bytes);
}

static int bpf_write_defaults(struct source_bpf *b, const struct otp_defaults *d)
{
	struct otp_defaults now = *d;
	uint32_t zero = 0;

	now.running = b->started;
	if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.defaults), &zero, &now, BPF_ANY) < 0)
		return -errno;
	b->defaults = *d;
	return 0;
}

/* By slot; the clock's is on_tick. */
static struct bpf_program *bpf_slot_program(const struct source_bpf *b, uint32_t slot)
{
	struct bpf_program *const programs[OTP_ORIGINS_MAX] = {
		b->skel->progs.on_tick,	   b->skel->progs.on_event_1, b->skel->progs.on_event_2, b->skel->progs.on_event_3,
		b->skel->progs.on_event_4, b->skel->progs.on_event_5, b->skel->progs.on_event_6, b->skel->progs.on_event_7,
	};

	return programs[slot];
}

/* Programs of slots that are not sampled are not loaded: each takes the verifier time, and the kernel memory. */
static int bpf_choose_programs(struct source_bpf *b)
{
	int err = bpf_program__set_autoload(b->skel->progs.on_event, b->slots.list.count);

	for (uint32_t slot = 0; !err && slot < OTP_ORIGINS_MAX; slot++)
		err = bpf_program__set_autoload(bpf_slot_program(b, slot),
						slot < b->slots.origins.count && b->slots.origins.slot[slot].sampled);
	return err;
}

static void bpf_set_constants(struct source_bpf *b)
{
	b->skel->rodata->cpus_nr = b->possible;
	for (uint32_t slot = 0; slot < b->slots.origins.count; slot++)
		b->skel->rodata->slot_origin[slot] = b->slots.origins.slot[slot].origin;
}

/* The programs of the slots tail-call the one that samples. */
static int bpf_connect_programs(struct source_bpf *b)
{
	int fd = bpf_program__fd(b->skel->progs.on_event);
	uint32_t zero = 0;

	if (!b->slots.list.count)
		return 0;
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.event_programs), &zero, &fd, BPF_ANY) < 0 ? -errno : 0;
}

static int bpf_load(struct source_bpf *b, const struct source_config *cfg, char why[SOURCE_WHY])
{
	libbpf_print_fn_t print;
	int err;

	b->plans.max = cfg->plans_max ? cfg->plans_max : PLANS_DEFAULT;
	b->walks.max = cfg->walks_max ? cfg->walks_max : WALKS_DEFAULT;
	err = bpf_raise_memlock(bpf_memory_charged(b), why);
	if (err < 0)
		return err;
	libbpf_warning[0] = '\0';
	print = libbpf_set_print(libbpf_print);
	b->skel = sampler__open();
	err = b->skel ? bpf_size_maps(b) : -errno;
	if (err == 0)
		err = bpf_choose_programs(b);
	if (err == 0) {
		bpf_set_constants(b);
		err = sampler__load(b->skel);
	}
	if (err == 0)
		err = bpf_connect_programs(b);
	if (err == 0)
		err = bpf_write_defaults(b, &cfg->defaults);
	libbpf_set_print(print);
	return err < 0 ? bpf_load_failed(err, why) : 0;
}

static int bpf_slot_open(void *ctx, uint32_t slot, uint32_t cpu)
{
	const struct source_bpf *b = ctx;
	struct perf_event_attr attr = {0};
	_cleanup_(closep) int fd = -1;

	event_setup_attr(&attr, slots_in_force(&b->slots, slot));
	fd = event_open(&attr, cpu);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(bpf_slot_program(b, slot))) < 0)
		return -errno;
	return steal_fd(&fd);
}

static void bpf_close(struct source *s)
{
	struct source_bpf *b = bpf_self(s);

	slots_done(&b->slots);
	sampler__destroy(b->skel);
}

static int bpf_open(struct source *s, const struct source_config *cfg, char why[SOURCE_WHY])
{
	struct source_bpf *b = bpf_self(s);
	int err = cpus_possible(&b->possible);
	uint32_t slot = 0;

	if (err < 0)
		return snprintf(why, SOURCE_WHY, "/sys/devices/system/cpu/possible: %s", strerror(-err)), err;
	b->ring_bytes = cfg->ring_bytes ? cfg->ring_bytes :
					  size_ring(b->possible, event_list_rate(&cfg->events, cfg->frequency_hz));
	err = slots_init(&b->slots, b->possible, cfg);
	if (err < 0)
		return snprintf(why, SOURCE_WHY, "no memory"), err;
	err = bpf_load(b, cfg, why);
	if (err < 0)
		return err;
	err = slots_open(&b->slots, bpf_slot_open, b, &slot);
	return err < 0 ? slots_explain(&b->slots, slot, err, cfg, why) : 0;
}

static void bpf_layout(const struct source *s, struct source_layout *ret)
{
	const struct source_bpf *b = bpf_self(s);

	*ret = (struct source_layout){
		.ring_fd = bpf_map__fd(b->skel->maps.ring),
		.ring_bytes = b->ring_bytes,
		.counters_fd = bpf_map__fd(b->skel->maps.counters),
		.cpus = b->possible,
		.counters_stride = sizeof(struct otp_cpu_counters),
		.origins = b->slots.origins,
		.consumer_fd = -1,
		.wake_fd = -1,
	};
}

static int bpf_set_rate(struct source *s, uint32_t frequency_hz, uint32_t configured_hz)
{
	return slots_set_rate(&bpf_self(s)->slots, frequency_hz, configured_hz);
}

static uint64_t bpf_vary(struct source *s, uint64_t now_ns)
{
	return slots_vary(&bpf_self(s)->slots, now_ns);
}

static int bpf_set_defaults(struct source *s, const struct otp_defaults *d)
{
	return bpf_write_defaults(bpf_self(s), d);
}

static int bpf_start(struct source *s)
{
	struct source_bpf *b = bpf_self(s);
	int err;

	/* Samples may be taken from the first event on, so started is set before the events are enabled. */
	b->started = true;
	err = bpf_write_defaults(b, &b->defaults);
	return err < 0 ? err : slots_start(&b->slots);
}

static int bpf_stop(struct source *s)
{
	struct source_bpf *b = bpf_self(s);
	int err = slots_stop(&b->slots);

	b->started = false;
	return err < 0 ? err : bpf_write_defaults(b, &b->defaults);
}

static int bpf_map_set(const struct bpf_map *map, const void *key, const void *value)
{
	int fd = bpf_map__fd(map);

	if (value)
		return bpf_map_update_elem(fd, key, value, BPF_ANY) < 0 ? -errno : 0;
	return bpf_map_delete_elem(fd, key) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * The end of a process is not reported, least of all if the engine died: entries
 * of dead processes stay until their room is needed.
 */
static bool bpf_sweep(const struct bpf_map *map, struct bpf_by_pid *p)
{
	int fd = bpf_map__fd(map);
	uint32_t pid, next, *at = NULL, gone = 0;
	uint64_t now = clock_now_ns();

	if (now - p->swept_ns < SWEEP_EVERY_NS)
		return false;
	p->swept_ns = now;
	for (uint32_t i = 0; i <= p->max && bpf_map_get_next_key(fd, at, &next) == 0; i++) {
		/* Deleted only when the next key is known: from a deleted key, iteration would start again. */
		if (at && pid_is_gone(pid))
			gone += bpf_map_delete_elem(fd, &pid) == 0;
		pid = next;
		at = &pid;
	}
	if (at && pid_is_gone(pid))
		gone += bpf_map_delete_elem(fd, &pid) == 0;
	return gone;
}

static int bpf_set_of_process(const struct bpf_map *map, struct bpf_by_pid *p, uint32_t pid, const void *value)
{
	int err = bpf_map_set(map, &pid, value);

	return err == -E2BIG && bpf_sweep(map, p) ? bpf_map_set(map, &pid, value) : err;
}

static int bpf_set_plan(struct source *s, uint32_t pid, const struct otp_plan *p)
{
	struct source_bpf *b = bpf_self(s);
	struct otp_plan own = p ? *p : (struct otp_plan){0};

	own.pid = pid;
	return bpf_set_of_process(b->skel->maps.plans, &b->plans, pid, p ? &own : NULL);
}

static int bpf_set_walk(struct source *s, uint32_t pid, const struct otp_walks *w)
{
	struct source_bpf *b = bpf_self(s);
	struct otp_walks_ready ready;

	if (w)
		otp_walks_prepare(&ready, w, pid);
	return bpf_set_of_process(b->skel->maps.walks, &b->walks, pid, w ? &ready : NULL);
}

static int bpf_set_hint(struct source *s, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	char key[OTP_COMM_LEN];

	memcpy(key, comm, sizeof(key));
	return bpf_map_set(bpf_self(s)->skel->maps.hints, key, h);
}

static int bpf_set_cgroup(struct source *s, uint64_t cgroup_id, const struct otp_cgroup_rule *r)
{
	return bpf_map_set(bpf_self(s)->skel->maps.cgroup_rules, &cgroup_id, r);
}

static int bpf_follow_cpus(struct source *s, int *ret_changed)
{
	return slots_follow(&bpf_self(s)->slots, ret_changed);
}

static uint64_t bpf_expected_ticks(struct source *s)
{
	return events_expected(&bpf_self(s)->slots.events[0]);
}

static uint64_t bpf_idle_ticks(struct source *s)
{
	return events_idle(&bpf_self(s)->slots.events[0]);
}

static void bpf_program_run_time(const struct bpf_program *program, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) < 0)
		return;
	*ns += info.run_time_ns;
	*runs += info.run_cnt;
}

/* The time of a program that tail-calls another includes the other's. */
static void bpf_run_time(struct source *s, uint64_t *ret_ns, uint64_t *ret_runs)
{
	const struct source_bpf *b = bpf_self(s);

	*ret_ns = *ret_runs = 0;
	for_each_slot(&b->slots, slot)
		bpf_program_run_time(bpf_slot_program(b, slot), ret_ns, ret_runs);
}

const struct source_ops source_bpf = {
	.name = "bpf",
	.size = sizeof(struct source_bpf),
	.probe = bpf_probe,
	.open = bpf_open,
	.close = bpf_close,
	.layout = bpf_layout,
	.start = bpf_start,
	.stop = bpf_stop,
	.set_rate = bpf_set_rate,
	.vary = bpf_vary,
	.set_defaults = bpf_set_defaults,
	.set_plan = bpf_set_plan,
	.set_walk = bpf_set_walk,
	.set_hint = bpf_set_hint,
	.set_cgroup = bpf_set_cgroup,
	.follow_cpus = bpf_follow_cpus,
	.expected_ticks = bpf_expected_ticks,
	.idle_ticks = bpf_idle_ticks,
	.run_time = bpf_run_time,
};
