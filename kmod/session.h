/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One sampler: what an open of /dev/otprof owns. Its memory goes with the last
 * descriptor, of the device or of a view; sampling ends with the device's.
 *
 * Called by the device, under mutex, where it may sleep. Ticks read what is
 * marked so, and only while timers run.
 */
#ifndef OTPROF_SESSION_H
#define OTPROF_SESSION_H

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "kmod/area.h"
#include "kmod/plans.h"
#include "kmod/ring.h"
#include "kmod/uapi/otprof_dev.h"

/* In the ring's area: the reader's page, ours, then the data. */
#define OTPROF_RING_HEAD_PAGES 2

/* otp_defaults as ticks see them: replaced, never changed. */
struct otprof_defaults {
	struct otp_defaults d;
	struct rcu_head rcu;
};

/* What one CPU remembers from tick to tick; touched by its tick alone, where nothing else is said. */
struct otprof_cpu {
	struct hrtimer timer;
	struct otprof_session *session; /* borrowed */
	struct otp_cpu_counters *counters; /* in the counters' area */
	u8 *scratch; /* owned; NULL: there was no memory for it */
	unsigned int cpu;
	bool armed; /* by CPU hotplug only */

	u64 budget_start_ns; /* of the current 100 ms */
	u64 budget_used; /* stack bytes above the default in them */
	u64 loss_samples; /* lost to a full ring and not yet reported by a record */
	u64 loss_first_seq;
	u64 time_ns; /* the sample under way: */
	u64 seq;
	u64 stack_left; /* stack bytes that are wanted beyond the head */
	u64 stack_next; /* and where they begin */

	u64 run_ns, runs, longest_ns; /* others read them as they are */
	u64 armed_ns; /* when the timer was armed, by CPU hotplug; others read it */
	u64 past_ticks; /* that were to be expected before that */
};

struct otprof_session {
	struct kref kref;
	struct mutex mutex;

	/* Set by config, constant from then on. */
	bool configured;
	u64 period_ns;
	u32 ring_bytes;
	struct cpumask *wanted; /* owned */
	struct otprof_cpu **cpus; /* owned, by CPU number; NULL for those not wanted */
	unsigned int cpus_nr;
	struct otprof_area ring_area, counters_area;

	/* Read by ticks. */
	struct otprof_ring ring;
	u64 *pending; /* owned */
	struct otprof_plans plans;
	struct otprof_defaults __rcu *defaults; /* owned */

	/* A tick that passes the mark wakes the reader, once. */
	struct irq_work wake;
	wait_queue_head_t readers;
	u32 woken;

	/* Timers. */
	struct hlist_node hotplug;
	bool started;
	u64 phase_ns; /* ticks of all CPUs keep their distance from here */
	u32 spread; /* among so many places in a period */
	struct cpumask *changed; /* owned: CPUs that went or came since the last look */
};

struct otprof_session *otprof_session_new(void); /* NULL: no memory */
struct otprof_session *otprof_session_get(struct otprof_session *s);
void otprof_session_put(struct otprof_session *s);

/* Everything below: under the mutex. */
int otprof_session_config(struct otprof_session *s, const struct otprof_config *c);
int otprof_session_set_defaults(struct otprof_session *s, const struct otp_defaults *d);
void otprof_session_times(struct otprof_session *s, struct otprof_times *ret);

/* Pages of the ring's data, which appear twice. */
static inline unsigned long otprof_session_data_pages(const struct otprof_session *s)
{
	return s->ring_bytes >> PAGE_SHIFT;
}

#endif
