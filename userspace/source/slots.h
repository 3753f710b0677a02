/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a session: for each slot of its origins, one event on
 * every CPU (source/events.h).
 *
 * Called by the BPF and perf sources, one thread. In place: its address stays
 * while events are open.
 */
#ifndef OTP_SOURCE_SLOTS_H
#define OTP_SOURCE_SLOTS_H

#include "source/events.h"
#include "source/source.h"

/* A slot's event on one CPU, as events_open_fn. */
typedef int slots_open_fn(void *ctx, uint32_t slot, uint32_t cpu);

struct slots {
	struct events events[OTP_ORIGINS_MAX]; /* by slot; empty where a slot is not sampled */
	struct slot_opener {
		struct slots *slots;
		uint32_t slot;
	} openers[OTP_ORIGINS_MAX];
	slots_open_fn *open;
	void *ctx;		/* of open; borrowed */
	struct event_list list; /* rates as configured */
	struct origins origins; /* with the periods in force */
	uint32_t configured_hz; /* of the CPU clock: where its rate is lower, those of events are, in proportion */
	uint32_t frequency_max; /* the kernel's, when the rate last changed; at first none: what it refuses is an error */
	bool hardware;
};

int slots_init(struct slots *s, uint32_t nr_cpus, const struct source_config *cfg);
void slots_done(struct slots *s);
/* Disabled events on every wanted CPU. *ret_slot: the one that failed. */
int slots_open(struct slots *s, slots_open_fn *open, void *ctx, uint32_t *ret_slot);
int slots_reopen(struct slots *s); /* as events_reopen, for every slot */
int slots_start(struct slots *s);
int slots_stop(struct slots *s);
int slots_follow(struct slots *s, int *ret_changed);
uint64_t slots_vary(struct slots *s, uint64_t now_ns); /* as source_ops.vary */
/* As source_ops.set_rate. -ERANGE; else all or none. */
int slots_set_rate(struct slots *s, uint32_t frequency_hz, uint32_t configured_hz);

/* What is counted in a slot, at the rate in force; borrowed. */
static inline const struct event_setup *slots_in_force(const struct slots *s, uint32_t slot)
{
	return &s->events[slot].setup;
}

#define for_each_slot(s, slot)                                          \
	for (uint32_t slot = 0; slot < (s)->origins.count; slot++)      \
		if ((s)->origins.slot[slot].sampled)

/* A text of why the events of a slot cannot be opened; returns err. */
int slots_explain(const struct slots *s, uint32_t slot, int err, const struct source_config *cfg, char why[SOURCE_WHY]);

#endif
