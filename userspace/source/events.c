// SPDX-License-Identifier: Apache-2.0
#include "source/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/origin.h"
#include "source/idle.h"

struct event_times {
	uint64_t value, enabled, running;
};

static int event_open_pid(struct perf_event_attr *attr, pid_t pid, uint32_t cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int event_open(struct perf_event_attr *attr, uint32_t cpu)
{
	return event_open_pid(attr, -1, cpu);
}

int event_open_task(struct perf_event_attr *attr, uint32_t pid, uint32_t cpu)
{
	return event_open_pid(attr, (pid_t)pid, cpu);
}

struct event_setup event_of_clock(uint64_t period_ns, bool hardware)
{
	if (!hardware)
		return (struct event_setup){
			.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .period = period_ns};
	return (struct event_setup){.type = PERF_TYPE_HARDWARE,
				    .config = PERF_COUNT_HW_CPU_CYCLES,
				    .by_frequency = true,
				    .period = NSEC_PER_SEC / period_ns};
}

struct event_setup event_of_origin(uint8_t origin, uint64_t period, uint32_t frequency_hz)
{
	static const struct { uint32_t type; uint64_t config; } perf[] = {
#define X(NAME, alias, kind, PERF, ...) [OTP_ORIGIN_##NAME] = {PERF_TYPE_##kind, PERF_COUNT_##PERF},
		ORIGINS(X)
#undef X
	};

	return (struct event_setup){.type = perf[origin].type,
				    .config = perf[origin].config,
				    .by_frequency = !period,
				    .period = period ? period : frequency_hz};
}

void event_setup_attr(struct perf_event_attr *attr, const struct event_setup *setup)
{
	attr->type = setup->type;
	attr->config = setup->config;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr->disabled = 1;
	attr->freq = setup->by_frequency;
	attr->sample_period = setup->period; /* a union with sample_freq */
}

/* A timer's ticks are due by time, and its CPUs are apart. */
static bool event_is_timer(const struct event_setup *setup)
{
	return setup->type == PERF_TYPE_SOFTWARE && setup->config == PERF_COUNT_SW_CPU_CLOCK && !setup->by_frequency;
}

void event_life_attr(struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
	};
}

/* Both kinds of event read as value, time enabled, time running. */
static bool event_read_enabled(int fd, uint64_t *ret_ns)
{
	struct event_times t;

	if (read(fd, &t, sizeof(t)) != sizeof(t))
		return false;
	*ret_ns = t.enabled;
	return true;
}

/*
 * Reads the time enabled of an event, unless it is dead. A read of nothing is
 * that of an event in error (Linux, kernel/events/core.c, __perf_read): a pinned
 * one that found no counter. No event here is pinned; one that finds no counter
 * waits for its turn, and its time enabled goes on.
 */
static bool event_read_alive(int fd, uint64_t *ret_ns)
{
	uint64_t first;

	return event_read_enabled(fd, &first) && event_read_enabled(fd, ret_ns) && *ret_ns != first;
}

bool event_dead(int fd)
{
	uint64_t enabled;

	return !event_read_alive(fd, &enabled);
}

int events_init(struct events *e, uint32_t nr, const char *list, const struct event_setup *setup)
{
	int err;

	*e = (struct events){.nr = nr, .setup = *setup};
	memset(&e->wanted, 0xff, sizeof(e->wanted));
	if (list && (err = cpus_parse(list, &e->wanted)) < 0)
		return err;
	e->fds = malloc(nr * sizeof(*e->fds));
	e->due = calloc(nr, sizeof(*e->due));
	if (!e->fds || !e->due) {
		events_done(e);
		return -ENOMEM;
	}
	jitter_init(&e->jitter);
	for (uint32_t cpu = 0; cpu < nr; cpu++)
		e->fds[cpu] = -1;
	return 0;
}

static uint64_t event_enabled_ns(int fd)
{
	uint64_t enabled;

	return event_read_enabled(fd, &enabled) ? enabled : 0;
}

static uint64_t events_ticks_of(const struct events *e, uint32_t cpu)
{
	if (!event_is_timer(&e->setup) || e->fds[cpu] < 0)
		return 0;
	return due_ticks_read(&e->due[cpu], event_enabled_ns(e->fds[cpu]), e->setup.period);
}

/* Without interrupting the CPU; that it went offline since the last reading is not noticed. */
static uint64_t events_enabled_now(const struct events *e, const struct due *d)
{
	return MAX(e->started ? due_enabled_now(d) : d->read_ns, d->from_ns);
}

/* Idle time of all CPUs, owned; NULL where it cannot be read, or is not needed: ticks of a timer only are due when idle. */
static uint64_t *events_idle_now(const struct events *e)
{
	uint64_t *ns = event_is_timer(&e->setup) ? calloc(e->nr, sizeof(*ns)) : NULL;

	if (ns && idle_read(ns, e->nr) < 0) {
		free(ns);
		return NULL;
	}
	return ns;
}

static uint64_t events_idle_ticks(const struct events *e, uint32_t cpu, const uint64_t *now)
{
	if (!now || e->fds[cpu] < 0 || now[cpu] <= e->due[cpu].idle_from_ns)
		return 0;
	return (now[cpu] - e->due[cpu].idle_from_ns) / e->setup.period;
}

static void events_close_cpu(struct events *e, uint32_t cpu)
{
	_cleanup_(freep) uint64_t *now = events_idle_now(e);

	e->closed_idle += events_idle_ticks(e, cpu, now);
	e->closed_ticks += events_ticks_of(e, cpu);
	close(e->fds[cpu]);
	e->fds[cpu] = -1;
}

void events_done(struct events *e)
{
	for (uint32_t cpu = 0; e->fds && cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			close(e->fds[cpu]);
	free(e->fds);
	free(e->due);
	*e = (struct events){0};
}

/* Counts the CPU's idle time from now on. */
static void events_begin_idle(struct events *e, uint32_t cpu)
{
	_cleanup_(freep) uint64_t *now = events_idle_now(e);

	if (now)
		e->due[cpu].idle_from_ns = now[cpu];
}

static void events_begin_idle_all(struct events *e)
{
	_cleanup_(freep) uint64_t *now = events_idle_now(e);

	for (uint32_t cpu = 0; now && cpu < e->nr; cpu++)
		e->due[cpu].idle_from_ns = now[cpu];
}

/* For an event by frequency the kernel expects the frequency in place of the period. */
static int event_set_period(int fd, uint64_t period)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

/* The kernel begins a whole period anew, on a CPU that is online and on one that is not. */
static void events_vary_cpu(struct events *e, uint32_t cpu)
{
	struct due *d = &e->due[cpu];
	uint64_t mean = e->setup.period, enabled, ticks, period;

	if (!event_is_timer(&e->setup))
		return;
	enabled = events_enabled_now(e, d);
	ticks = due_ticks(d, enabled);
	period = jitter_period(&e->jitter, mean, (int64_t)(enabled - d->since_ns - ticks * mean));
	if (event_set_period(e->fds[cpu], period) == 0)
		due_stretch(d, enabled, ticks, period);
}

/* Counts the CPU's ticks from enabled_ns on, at the period in force, in stretches. */
static void events_begin_cpu(struct events *e, uint32_t cpu, uint64_t enabled_ns)
{
	due_begin(&e->due[cpu], enabled_ns, e->setup.period);
	events_vary_cpu(e, cpu);
}

/* A CPU that goes offline meanwhile is skipped: 0. */
static int events_open_cpu(struct events *e, uint32_t cpu)
{
	int fd = e->open(e->ctx, cpu);

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return fd;
	if (e->started && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		close(fd);
		return 0;
	}
	if (e->started)
		events_begin_idle(e, cpu);
	e->fds[cpu] = fd;
	events_begin_cpu(e, cpu, 0);
	return 1;
}

int events_open(struct events *e, events_open_fn *open, void *ctx)
{
	struct cpus online;
	uint32_t opened = 0;
	int err = cpus_online(&online);

	e->open = open;
	e->ctx = ctx;
	for (uint32_t cpu = 0; err >= 0 && cpu < e->nr; cpu++) {
		if (!cpus_has(&online, cpu) || !cpus_has(&e->wanted, cpu))
			continue;
		err = events_open_cpu(e, cpu);
		opened += err > 0;
	}
	if (err < 0)
		return err;
	return opened ? 0 : -ENODEV;
}

/* CPUs without an event are left to events_follow. */
int events_reopen(struct events *e)
{
	int err = 0, each;

	for (uint32_t cpu = 0; cpu < e->nr; cpu++) {
		if (e->fds[cpu] < 0)
			continue;
		events_close_cpu(e, cpu);
		each = events_open_cpu(e, cpu);
		if (each < 0)
			err = each;
	}
	return err;
}

int events_start(struct events *e)
{
	int changed;

	events_begin_idle_all(e);
	e->jitter.began_ns = 0; /* the time stopped is no stretch */
	for (uint32_t cpu = 0; cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0) {
			due_read(&e->due[cpu], event_enabled_ns(e->fds[cpu]));
			ioctl(e->fds[cpu], PERF_EVENT_IOC_ENABLE, 0);
		}
	e->started = true;
	return events_follow(e, &changed);
}

int events_stop(struct events *e)
{
	e->closed_idle = events_idle(e);
	e->started = false;
	for (uint32_t cpu = 0; cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			ioctl(e->fds[cpu], PERF_EVENT_IOC_DISABLE, 0);
	return 0;
}

int events_set_period(struct events *e, uint64_t period)
{
	uint64_t before = e->setup.period;
	int err = 0;

	e->closed_idle = events_idle(e);
	if (e->started)
		events_begin_idle_all(e);
	e->closed_ticks = events_expected(e);
	e->setup.period = period;
	e->jitter.lasted_ns = 0;
	for (uint32_t cpu = 0; !err && cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			err = event_set_period(e->fds[cpu], period);
	/* All or none: CPUs must not have different rates. */
	for (uint32_t cpu = 0; err && cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			event_set_period(e->fds[cpu], before);
	if (err)
		e->setup.period = before;
	for (uint32_t cpu = 0; cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			events_begin_cpu(e, cpu, event_enabled_ns(e->fds[cpu]));
	return err;
}

uint64_t events_vary(struct events *e, uint64_t now_ns)
{
	uint64_t next;

	if (!event_is_timer(&e->setup))
		return UINT64_MAX;
	next = jitter_begin(&e->jitter, e->setup.period, now_ns);
	for (uint32_t cpu = 0; e->started && cpu < e->nr; cpu++)
		if (e->fds[cpu] >= 0)
			events_vary_cpu(e, cpu);
	return next;
}

static int events_follow_cpu(struct events *e, uint32_t cpu, bool online, int *changed)
{
	uint64_t enabled;
	int n = 0;

	if (e->fds[cpu] >= 0 && online && event_read_alive(e->fds[cpu], &enabled)) {
		due_read(&e->due[cpu], enabled);
		return 0;
	}
	if (e->fds[cpu] >= 0) {
		events_close_cpu(e, cpu);
		n = 1;
	}
	if (online) {
		int err = events_open_cpu(e, cpu);

		if (err < 0)
			return err;
		n |= err;
	}
	*changed += n;
	return 0;
}

int events_follow(struct events *e, int *ret_changed)
{
	int changed = 0, err = 0, each;
	struct cpus online;

	/* The time of events that are not enabled stands still anyway; events_start checks them. */
	if (e->started) {
		err = cpus_online(&online);
		if (err < 0)
			return err;
	}
	for (uint32_t cpu = 0; e->started && cpu < e->nr; cpu++) {
		if (!cpus_has(&e->wanted, cpu))
			continue;
		each = events_follow_cpu(e, cpu, cpus_has(&online, cpu), &changed);
		if (each < 0)
			err = each;
	}
	*ret_changed = changed;
	return err;
}

uint64_t events_expected(const struct events *e)
{
	uint64_t ticks = e->closed_ticks;

	for (uint32_t cpu = 0; cpu < e->nr; cpu++)
		ticks += events_ticks_of(e, cpu);
	return ticks;
}

uint64_t events_idle(const struct events *e)
{
	_cleanup_(freep) uint64_t *now = NULL;
	uint64_t ticks = e->closed_idle;

	if (!e->started || !event_is_timer(&e->setup))
		return ticks;
	now = events_idle_now(e);
	for (uint32_t cpu = 0; cpu < e->nr; cpu++)
		ticks += events_idle_ticks(e, cpu, now);
	return ticks;
}
