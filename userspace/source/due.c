// SPDX-License-Identifier: Apache-2.0
#include "source/due.h"

#include "base/clock.h"
#include "base/cleanup.h"

static uint64_t due_clock_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC); /* the timers' own */
}

void due_begin(struct due *d, uint64_t enabled_ns, uint64_t period)
{
	due_read(d, enabled_ns);
	d->since_ns = enabled_ns;
	due_stretch(d, enabled_ns, 0, period);
}

void due_read(struct due *d, uint64_t enabled_ns)
{
	d->read_ns = enabled_ns;
	d->read_at_ns = due_clock_ns();
}

uint64_t due_enabled_now(const struct due *d)
{
	return d->read_ns + (due_clock_ns() - d->read_at_ns);
}

uint64_t due_ticks(const struct due *d, uint64_t enabled_ns)
{
	return d->ticks + (enabled_ns > d->from_ns ? (enabled_ns - d->from_ns) / d->period : 0);
}

uint64_t due_ticks_read(const struct due *d, uint64_t enabled_ns, uint64_t mean)
{
	if (enabled_ns + d->period >= d->from_ns)
		return due_ticks(d, enabled_ns);
	return enabled_ns > d->since_ns ? MIN(d->ticks, (enabled_ns - d->since_ns) / mean) : 0;
}

void due_stretch(struct due *d, uint64_t enabled_ns, uint64_t ticks, uint64_t period)
{
	d->ticks = ticks;
	d->from_ns = enabled_ns;
	d->period = period;
}
