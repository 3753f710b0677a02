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
	struct perf_event *counter; /* owned: the ticks' source instead of the timer; under the mutex */
	bool stale; /* the CPU went since that was made */
	struct otprof_session *session; /* borrowed */
	struct otp_cpu_counters *counters; /* in the counters' area */
	unsigned int cpu;

	u64 budget_ns; /* when budget_left was right */
	u64 budget_left; /* stack bytes above the default that may be copied now */
	u64 loss_samples; /* lost to a full ring and not yet reported by a record */
	u64 loss_first_seq;
	u64 time_ns; /* the sample under way: */
	u64 seq;
	u64 kstack[OTP_KSTACK_MAX];

	u64 usual_ns; /* of a tick lately */
	u64 run_ns, runs, longest_ns; /* others read them as they are */
	u64 due_ns; /* the first tick since the timer was armed, by CPU hotplug; 0: it is not */
	u64 past_ticks; /* that were due before that */
};

struct otprof_session {
	struct kref kref;
	struct mutex mutex;

	/* Set by config, constant from then on. */
	bool configured;
	u64 flags; /* OTPROF_CONFIG_* */
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

	/* Ticks. */
	struct hlist_node hotplug;
	bool started;
	bool quiet; /* CPUs are added or taken away by us, not by hotplug */
	u64 period_ns; /* changes only while no tick can come */
	u64 phase_ns; /* ticks of all CPUs keep their distance from here */
	u32 spread; /* among so many places in a period */
	struct cpumask *changed; /* owned: CPUs that went or came since the last look */
};

/* The most that ring and tables of one session may take, in MiB. */
extern unsigned int otprof_memory_max;

/* How many there may be: a session that only a view still holds is one of them. */
extern unsigned int otprof_sessions_max;

/* -EBUSY: there are as many as there may be; -ENOMEM. */
int otprof_session_new(struct otprof_session **ret);
struct otprof_session *otprof_session_get(struct otprof_session *s);
void otprof_session_put(struct otprof_session *s);

/* Everything below: under the mutex. */
bool otprof_session_period_valid(u64 period_ns);
int otprof_session_config(struct otprof_session *s, const struct otprof_config *c);
int otprof_session_set_defaults(struct otprof_session *s, const struct otp_defaults *d);
/* -EALREADY; whatever a counter or a tracepoint says. */
int otprof_session_start(struct otprof_session *s);
/* When it returns, the session has nothing more under way. */
void otprof_session_stop(struct otprof_session *s);
int otprof_session_set_period(struct otprof_session *s, u64 period_ns);
void otprof_session_times(struct otprof_session *s, struct otprof_times *ret);

/* Called in a tick or with interrupts off: wakes the reader, once, when so much lies unread. 0: never. */
void otprof_session_notice(struct otprof_session *s, u32 wake_bytes);

/* Of any CPU, wanted or not. */
static inline struct otp_cpu_counters *otprof_session_counters(const struct otprof_session *s, unsigned int cpu)
{
	return (struct otp_cpu_counters *)s->counters_area.at + cpu;
}

/* Slots of the ring: a CPU's tick, and what is not one and can be interrupted by it. */
static inline unsigned int otprof_session_slots(const struct otprof_session *s)
{
	return s->flags & OTPROF_CONFIG_LIFE ? 2 * nr_cpu_ids : nr_cpu_ids;
}

/* Pages of the ring's data, which appear twice. */
static inline unsigned long otprof_session_data_pages(const struct otprof_session *s)
{
	return s->ring_bytes >> PAGE_SHIFT;
}

#endif
