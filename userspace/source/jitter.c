// SPDX-License-Identifier: Apache-2.0
#include "source/jitter.h"

#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"

#define STRETCH_TICKS  20
#define STRETCH_MIN_NS (400 * NSEC_PER_MSEC)
#define STRETCH_LATE   64 /* times a stretch: later was a suspended host, not a busy one */

/* Rates vary by a third of the mean up to 100 Hz, by less above. In units of 1 / ONE. */
#define ONE             (1u << 20)
#define SPREAD_MOST     (ONE / 3)
#define SPREAD_LEAST    (ONE / 16)
#define SPREAD_LATE     (ONE / 256)
#define SPREAD_MEAN_NS  (10 * NSEC_PER_MSEC)

void jitter_init(struct jitter *j)
{
	/* Early after boot there may be none: then the time has to do. */
	if (getrandom(&j->state, sizeof(j->state), GRND_NONBLOCK) != sizeof(j->state))
		j->state = clock_now_ns();
}

/* Uniform from 0 to below limit, which is small against 2^64. A counter, mixed by MurmurHash3's last step. */
static uint64_t jitter_below(struct jitter *j, uint64_t limit)
{
	j->state += 0x9e3779b97f4a7c15ULL;
	return hash_u64(j->state) % limit;
}

static uint64_t jitter_planned(uint64_t mean_ns)
{
	return MAX(STRETCH_TICKS * mean_ns, STRETCH_MIN_NS);
}

/* How long the next stretch will last, by experience. */
static uint64_t jitter_lasts(const struct jitter *j, uint64_t mean_ns)
{
	return MAX(j->lasted_ns, jitter_planned(mean_ns));
}

uint64_t jitter_begin(struct jitter *j, uint64_t mean_ns, uint64_t now_ns)
{
	uint64_t planned = jitter_planned(mean_ns), spread = planned / 5;

	if (j->began_ns && now_ns - j->began_ns < STRETCH_LATE * planned)
		j->lasted_ns = MAX(now_ns - j->began_ns, j->lasted_ns - j->lasted_ns / 5);
	j->began_ns = now_ns;
	return now_ns + planned - spread + jitter_below(j, 2 * spread);
}

static uint64_t jitter_spread(const struct jitter *j, uint64_t mean_ns)
{
	uint64_t spread = MAX(SPREAD_MOST * MIN(mean_ns, SPREAD_MEAN_NS) / SPREAD_MEAN_NS, (uint64_t)SPREAD_LEAST);
	double late = (double)jitter_lasts(j, mean_ns) / (double)jitter_planned(mean_ns);

	return MAX((uint64_t)((double)spread / late), (uint64_t)SPREAD_LATE);
}

/* How many times the mean rate the next stretch needs, for ticks that are missing and the half that it will lose. */
static double jitter_catch_up(const struct jitter *j, uint64_t mean_ns, int64_t behind_ns)
{
	int64_t lasts = (int64_t)jitter_lasts(j, mean_ns);
	int64_t behind = MIN(MAX(behind_ns, -lasts / 4), lasts / 4);

	return (double)(lasts + behind + (int64_t)mean_ns / 2) / (double)lasts;
}

uint64_t jitter_period(struct jitter *j, uint64_t mean_ns, int64_t behind_ns)
{
	uint64_t spread = jitter_spread(j, mean_ns);
	double rate = (double)(ONE - spread + jitter_below(j, 2 * spread)) / ONE;
	double period = (double)mean_ns / (rate * jitter_catch_up(j, mean_ns, behind_ns));

	return (uint64_t)MIN(MAX(period, (double)mean_ns / 2), (double)mean_ns * 4);
}
