/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One sampler, owned by an open of /dev/otprof. Its memory is freed with the
 * last descriptor, of the device or of a view; sampling ends with the device's.
 *
 * Called by the device, under mutex, may sleep. Ticks read only the fields marked
 * so, and only while timers run.
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
#include "kmod/schedule.h"
#include "kmod/uapi/otprof_dev.h"

/* In the ring's area: the reader's page, the producer's page, then the data. */
#define OTPROF_RING_HEAD_PAGES 2

/* otp_defaults as ticks read them: replaced, never changed. */
struct otprof_defaults {
	struct otp_defaults d;
	struct rcu_head rcu;
};

/* State of one CPU between ticks; only its own tick uses it, unless stated otherwise. */
struct otprof_cpu {
	struct hrtimer timer;
	struct perf_event *counter; /* owned: ticks instead of the timer; under the mutex */
	bool stale; /* the CPU went offline after counter was opened */
	bool failed; /* the counter was taken by others when last looked at; under the mutex */
	struct otprof_session *session; /* borrowed */
	struct otp_cpu_counters *counters; /* in the counters' area */
	unsigned int cpu;

	u64 budget_ns; /* time of budget_left */
	u64 budget_left; /* stack bytes above OTP_STACK_FLOOR that could be copied then */
	u64 loss_samples; /* lost to a full ring, not yet reported by a record */
	u64 loss_first_seq;
	/* Of the sample under way: */
	u64 time_ns;
	u64 seq;
	u64 kstack[OTP_KSTACK_MAX];
	struct otprof_walking *walking; /* owned; NULL: the session has no room for walks */

	u64 usual_ns; /* moving average of a tick's duration */
	u64 run_ns, runs, longest_ns; /* other CPUs read them without a lock */
	struct otprof_schedule schedule; /* of the timer's ticks, set by CPU hotplug; begin_ns 0: not armed */
	u64 last_tick; /* its number in the schedule */
	u64 past_ticks; /* due before schedule began */
};

struct otprof_session {
	struct kref kref;
	struct mutex mutex;

	/* Set by config, constant afterwards. */
	bool configured;
	u64 flags; /* OTPROF_CONFIG_* */
	u32 ring_bytes;
	u32 walks_max;
	struct cpumask *wanted; /* owned */
	struct otprof_cpu **cpus; /* owned, by CPU number; NULL for those not wanted */
	unsigned int cpus_nr;
	struct otprof_area ring_area, counters_area;

	/* Read by ticks. */
	struct otprof_ring ring;
	u64 *pending; /* owned */
	struct otprof_plans plans;
	struct otprof_defaults __rcu *defaults; /* owned */

	/* A tick that reaches wake_bytes wakes the reader, once. */
	struct irq_work wake;
	wait_queue_head_t readers;
	u32 woken;
	u64 woken_for_young_ns; /* written where a young process was sampled; of two CPUs both may wake: harmless */

	/* Ticks. */
	struct hlist_node hotplug;
	bool started;
	bool quiet; /* start or stop adds and removes CPUs, not hotplug */
	u64 period_ns; /* changes only while no timer is armed */
	u64 seed; /* of the CPUs' schedules, drawn at each start */
	struct cpumask *changed; /* owned: CPUs gone online or offline since the last otprof_timers_cpus */
};

/* Bound of ring and tables of one session, in MiB. */
extern unsigned int otprof_memory_max;

/* Bound on sessions, including those that only a view still holds. */
extern unsigned int otprof_sessions_max;

/* One reference, the caller's. -EBUSY: there are otprof_sessions_max; -ENOMEM. */
int otprof_session_new(struct otprof_session **ret);
struct otprof_session *otprof_session_get(struct otprof_session *s);
void otprof_session_put(struct otprof_session *s);

/* Everything below: under the mutex. */
bool otprof_session_period_valid(u64 period_ns);
int otprof_session_config(struct otprof_session *s, const struct otprof_config *c);
int otprof_session_set_defaults(struct otprof_session *s, const struct otp_defaults *d);
/* -EALREADY, or the error of a counter or tracepoint. */
int otprof_session_start(struct otprof_session *s);
/* When it returns, no tick and no event of the session runs or will run. */
void otprof_session_stop(struct otprof_session *s);
int otprof_session_set_period(struct otprof_session *s, u64 period_ns);
void otprof_session_times(struct otprof_session *s, struct otprof_times *ret);

/* Called in a tick or with interrupts off: wakes the reader, once, at wake_bytes unread bytes. 0: never. */
void otprof_session_notice(struct otprof_session *s, u32 wake_bytes);
/* Called in a tick that sampled a young process: wakes the reader, unless it was woken so a moment ago. */
void otprof_session_notice_young(struct otprof_session *s, u64 now_ns);

/* cpu: any, sampled or not. */
static inline struct otp_cpu_counters *otprof_session_counters(const struct otprof_session *s, unsigned int cpu)
{
	return (struct otp_cpu_counters *)s->counters_area.at + cpu;
}

/* Slots of the ring: one for each CPU's tick; with LIFE one more for its events, which a tick may interrupt. */
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
