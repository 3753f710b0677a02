// SPDX-License-Identifier: Apache-2.0
#include "source/slots.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

/* The kernel lowers it by itself where interrupts are slow, and refuses any frequency above. */
static uint32_t slots_frequency_max(void)
{
	char text[32];
	long hz = file_read_text("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) > 0 ? atol(text) : 0;

	return hz > 0 && hz < UINT32_MAX ? (uint32_t)hz : UINT32_MAX;
}

/* The session's current frequency as a share of the configured one. */
static uint32_t slots_rate_hz(const struct slots *s)
{
	return (uint32_t)(NSEC_PER_SEC / s->origins.slot[0].period);
}

static uint32_t slots_event_hz(const struct slots *s, const struct event_spec *e, uint64_t hz)
{
	uint64_t wanted = e->frequency_hz ? e->frequency_hz : s->configured_hz;

	return (uint32_t)MIN(MAX(wanted * hz / s->configured_hz, 1ULL), (uint64_t)s->frequency_max);
}

/* What is to be counted in a slot, at the periods of origins. */
static void slots_setup(const struct slots *s, uint32_t slot, struct event_setup *ret)
{
	uint64_t configured = s->configured_hz, hz = MIN(slots_rate_hz(s), configured);
	const struct event_spec *e;

	if (!slot) {
		*ret = event_of_clock(s->origins.slot[0].period, s->hardware);
		return;
	}
	e = &s->list.event[slot - 1];
	*ret = event_of_origin(e->origin, e->period * configured / hz, slots_event_hz(s, e, hz));
}

static void slots_set_origins(struct slots *s, uint32_t frequency_hz)
{
	struct event_setup setup;

	event_list_origins(&s->list, NSEC_PER_SEC / frequency_hz, &s->origins);
	for (uint32_t slot = 1; slot < s->origins.count; slot++) {
		slots_setup(s, slot, &setup);
		if (!setup.by_frequency)
			s->origins.slot[slot].period = setup.period;
	}
}

int slots_init(struct slots *s, uint32_t nr_cpus, const struct source_config *cfg)
{
	struct event_setup setup;
	int err = 0;

	*s = (struct slots){.list = cfg->events, .configured_hz = cfg->frequency_hz,
			    .frequency_max = UINT32_MAX, .hardware = cfg->hardware};
	slots_set_origins(s, cfg->frequency_hz);
	for_each_slot(s, slot) {
		slots_setup(s, slot, &setup);
		if (!err)
			err = events_init(&s->events[slot], nr_cpus, cfg->cpus, &setup);
	}
	return err;
}

void slots_done(struct slots *s)
{
	for (uint32_t slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		events_done(&s->events[slot]);
}

static int slots_open_one(void *opener, uint32_t cpu)
{
	const struct slot_opener *o = opener;

	return o->slots->open(o->slots->ctx, o->slot, cpu);
}

int slots_open(struct slots *s, slots_open_fn *open, void *ctx, uint32_t *ret_slot)
{
	int err = 0;

	s->open = open;
	s->ctx = ctx;
	for_each_slot(s, slot) {
		if (err)
			break;
		s->openers[slot] = (struct slot_opener){.slots = s, .slot = slot};
		*ret_slot = slot;
		err = events_open(&s->events[slot], slots_open_one, &s->openers[slot]);
	}
	return err;
}

/* Calls all slots, returns the first error. */
#define SLOTS_EACH(s, call)                          \
	({                                           \
		int _err = 0, _each;                 \
		for_each_slot(s, slot) {             \
			_each = (call);              \
			_err = _err ? _err : _each;  \
		}                                    \
		_err;                                \
	})

int slots_reopen(struct slots *s)
{
	return SLOTS_EACH(s, events_reopen(&s->events[slot]));
}

int slots_start(struct slots *s)
{
	return SLOTS_EACH(s, events_start(&s->events[slot]));
}

int slots_stop(struct slots *s)
{
	return SLOTS_EACH(s, events_stop(&s->events[slot]));
}

int slots_follow(struct slots *s, int *ret_changed)
{
	int changed = 0, err;

	*ret_changed = 0;
	err = SLOTS_EACH(s, ({
				 int _r = events_follow(&s->events[slot], &changed);
				 *ret_changed += changed;
				 _r;
			 }));
	return err;
}

/* Events other than the clock follow the program, not time. */
uint64_t slots_vary(struct slots *s, uint64_t now_ns)
{
	return s->origins.slot[0].sampled ? events_vary(&s->events[0], now_ns) : UINT64_MAX;
}

/* Sets the periods of origins on every slot's events; stops at the first error. */
static int slots_apply_rate(struct slots *s)
{
	struct event_setup setup;
	int err = 0;

	for_each_slot(s, slot) {
		slots_setup(s, slot, &setup);
		if (!err)
			err = events_set_period(&s->events[slot], setup.period);
	}
	return err;
}

int slots_set_rate(struct slots *s, uint32_t frequency_hz, uint32_t configured_hz)
{
	uint32_t before = slots_rate_hz(s), configured_before = s->configured_hz;
	int err;

	if (frequency_hz < SOURCE_HZ_MIN || frequency_hz > SOURCE_HZ_MAX)
		return -ERANGE;
	s->configured_hz = configured_hz;
	s->frequency_max = slots_frequency_max();
	slots_set_origins(s, frequency_hz);
	err = slots_apply_rate(s);
	if (!err)
		return 0;
	s->configured_hz = configured_before;
	slots_set_origins(s, before);
	slots_apply_rate(s);
	return err;
}

static bool slots_is_missing(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV;
}

int slots_explain(const struct slots *s, uint32_t slot, int err, const struct source_config *cfg, char why[SOURCE_WHY])
{
	const char *name = origin_name(s->origins.slot[slot].origin);
	const struct event_setup *setup = slots_in_force(s, slot);

	if (err == -ENODEV && cfg->cpus)
		snprintf(why, SOURCE_WHY, "none of the CPUs %.200s is online", cfg->cpus);
	else if (slots_is_missing(err) && !slot)
		snprintf(why, SOURCE_WHY, "this machine has no hardware cycle counter: set hardware_events = false");
	else if (slots_is_missing(err) && setup->type == PERF_TYPE_HARDWARE)
		snprintf(why, SOURCE_WHY,
			 "this machine has no hardware counter of %s: a virtual machine without one, or a processor that does not count them",
			 name);
	else if (slots_is_missing(err))
		snprintf(why, SOURCE_WHY, "this kernel has no event %s", name);
	else if (err == -EINVAL && setup->by_frequency)
		snprintf(why, SOURCE_WHY,
			 "%s: %u samples a second are more than kernel.perf_event_max_sample_rate allows", name,
			 (unsigned int)setup->period);
	else if (err == -EACCES || err == -EPERM)
		snprintf(why, SOURCE_WHY,
			 "the kernel refuses perf events: CAP_PERFMON is needed, CAP_SYS_ADMIN where "
			 "kernel.perf_event_paranoid is above 2");
	else
		snprintf(why, SOURCE_WHY, "perf event %s: %s", name, strerror(-err));
	return err;
}
