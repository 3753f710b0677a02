/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf event per CPU, opened again as CPUs go offline and online: the CPU
 * clock, or another event that samples stand for. What is attached to it (a BPF
 * program, a buffer) is left to the open function of the caller.
 *
 * Called by the BPF and perf sources, one thread.
 * An event dies when its CPU goes offline: it stays open, reads and enables
 * succeed, but it never ticks again, even when the CPU is back online. Only its
 * time shows this, which stands still: events_follow compares two readings, so
 * it notices also a CPU that went offline and back between two calls.
 */
#ifndef OTP_SOURCE_EVENTS_H
#define OTP_SOURCE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "source/cpus.h"
#include "source/due.h"
#include "source/jitter.h"

struct perf_event_attr;

/* What is counted, and how often it fires. */
struct event_setup {
	uint32_t type;	 /* perf_event_attr's type and config */
	uint64_t config;
	bool by_frequency;
	uint64_t period; /* of the CPU clock in nanoseconds, else in events; by_frequency: firings a second */
};

/* The CPU clock: as a timer, or, with hardware, as cycles at this rate. */
struct event_setup event_of_clock(uint64_t period_ns, bool hardware);
/* Another origin: every period events, or, with period 0, frequency_hz times a second. */
struct event_setup event_of_origin(uint8_t origin, uint64_t period, uint32_t frequency_hz);

/* One CPU's event: disabled, readable as value, time enabled, time running. Owned, or negative errno. */
typedef int events_open_fn(void *ctx, uint32_t cpu);

struct events {
	int *fds; /* by CPU, -1: none; owned */
	uint32_t nr; /* possible CPUs */
	struct cpus wanted;
	events_open_fn *open;
	void *ctx; /* of open */
	struct event_setup setup;
	struct due *due; /* by CPU; owned */
	struct jitter jitter;
	uint64_t closed_ticks; /* due in the time of events that were closed */
	uint64_t closed_idle;  /* of these, due while the CPU was idle */
	bool started;
};

/* list NULL: all CPUs. */
int events_init(struct events *e, uint32_t nr, const char *list, const struct event_setup *setup);
void events_done(struct events *e);
/* Opens, disabled, on every wanted CPU that is online; -ENODEV where none is. */
int events_open(struct events *e, events_open_fn *open, void *ctx);
/* Replaces one event after the other by a new one of open, while the others run. */
int events_reopen(struct events *e);
int events_start(struct events *e);
int events_stop(struct events *e);
/* Opens the events of CPUs that are online again, closes those of CPUs that are offline. */
int events_follow(struct events *e, int *ret_changed);
/* Changes setup.period from the next firing on, running or not; events_expected counts each time by its own period. */
int events_set_period(struct events *e, uint64_t period);
/* Begins a new stretch on every CPU, with a random period; returns when to call it again. UINT64_MAX: no timer. */
uint64_t events_vary(struct events *e, uint64_t now_ns);
/* Ticks due by the time that the events were enabled; 0, unknown, for all but the CPU clock as a timer. */
uint64_t events_expected(const struct events *e);
/* Of these, the ticks due while their CPU was idle. */
uint64_t events_idle(const struct events *e);

/* perf_event_open for all tasks of one CPU; owned, or negative errno. */
int event_open(struct perf_event_attr *attr, uint32_t cpu);
/* For one task and its later children, on that CPU; pid 0: this process. */
int event_open_task(struct perf_event_attr *attr, uint32_t pid, uint32_t cpu);
void event_setup_attr(struct perf_event_attr *attr, const struct event_setup *setup);
/* An event that counts nothing and reports process life, with the tail that proc_event_decode reads. */
void event_life_attr(struct perf_event_attr *attr);
/* An enabled event whose time stands still will never fire again. */
bool event_dead(int fd);

#endif
