/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One timer event per CPU, kept alive while CPUs come and go. What hangs on
 * it (a BPF program, a buffer) is the business of whoever opens it.
 *
 * Called by the BPF and perf sources, one thread.
 * An event dies when its CPU goes offline: it stays open, reads and enables
 * succeed, but it never ticks again, also when the CPU is back. What shows it
 * is its time, which stands still: every look at the CPUs compares two
 * readings, so that a CPU that went and came between two looks is noticed too.
 */
#ifndef OTP_SOURCE_EVENTS_H
#define OTP_SOURCE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "source/cpus.h"

struct perf_event_attr;

/* One CPU's event: disabled, readable as value, time enabled, time running. Owned, or negative errno. */
typedef int events_open_fn(void *ctx, uint32_t cpu);

struct events {
	int *fds; /* by CPU, -1: none; owned */
	uint32_t nr; /* possible CPUs */
	struct cpus wanted;
	events_open_fn *open;
	void *ctx; /* of open */
	uint64_t period_ns;
	uint64_t *idle_from_ns; /* by CPU, its idle time when its event began; owned */
	uint64_t *enabled_from_ns; /* by CPU, its time enabled when the period last changed; owned */
	uint64_t closed_ticks; /* expected of events that were closed */
	uint64_t closed_idle;
	bool hardware;
	bool started;
};

/* list NULL: all CPUs. */
int events_init(struct events *e, uint32_t nr, const char *list, uint64_t period_ns, bool hardware);
void events_done(struct events *e);
/* Opens, disabled, on every wanted CPU that is online; -ENODEV where none is. */
int events_open(struct events *e, events_open_fn *open, void *ctx);
/* Each event anew, as open now makes them, while the others go on. */
int events_reopen(struct events *e);
int events_start(struct events *e);
int events_stop(struct events *e);
int events_follow(struct events *e, int *ret_changed);
/* From the next tick on, running or not. What was due until now was due by the old period. */
int events_set_period(struct events *e, uint64_t period_ns);
uint64_t events_expected(const struct events *e);
/* Of these, what was due while its CPU was idle. */
uint64_t events_idle(const struct events *e);

/* perf_event_open for all tasks of one CPU; owned, or negative errno. */
int event_open(struct perf_event_attr *attr, uint32_t cpu);
/* For one task and what it starts, on that CPU; pid 0: ourselves. */
int event_open_task(struct perf_event_attr *attr, uint32_t pid, uint32_t cpu);
/* What makes an event tick: cycles, or the CPU's clock. */
void event_tick_attr(struct perf_event_attr *attr, uint64_t period_ns, bool hardware);
/* An event that counts nothing and reports process life, with the tail that proc_event_decode reads. */
void event_life_attr(struct perf_event_attr *attr);
/* An enabled event whose time stands still will never fire again. */
bool event_dead(int fd);

#endif
