// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot_ways.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static bool ways_bit(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static void ways_set_bit(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= 1ULL << at % 64;
}

void hotspot_ways_begin(struct hotspot_ways *w, uint32_t size)
{
	const size_t bytes = ((size_t)size + 63) / 64 * sizeof(uint64_t);

	w->nr_aims = w->steps = 0;
	w->grew = false;
	memset(w->bare[0], 0, bytes);
	memset(w->bare[1], 0, bytes);
	memset(w->aimed, 0, bytes);
}

struct hotspot_way hotspot_ways_met(const struct hotspot_way *a, const struct hotspot_way *b)
{
	struct hotspot_way met = *a;

	met.copied = a->copied && b->copied;
	if (a->words != b->words || a->by_push != b->by_push || (a->words == HOTSPOT_RANGE_COPIED && !met.copied)) {
		met.words = met.copied ? HOTSPOT_RANGE_COPIED : HOTSPOT_RANGE_UNKNOWN;
		met.by_push = false;
	}
	return met;
}

static void ways_meet(struct hotspot_ways *w, struct hotspot_way *have, const struct hotspot_way *way)
{
	const struct hotspot_way met = hotspot_ways_met(have, way);

	w->grew |= met.words != have->words || met.by_push != have->by_push || met.copied != have->copied;
	*have = met;
}

static void ways_add_bare(struct hotspot_ways *w, uint32_t at, bool copied)
{
	w->grew |= !ways_bit(w->bare[copied], at);
	ways_set_bit(w->bare[copied], at);
}

/* The aim at an offset; nr_aims: there is none. */
static uint32_t ways_find(const struct hotspot_ways *w, uint32_t at)
{
	uint32_t i = ways_bit(w->aimed, at) ? 0 : w->nr_aims;

	while (i < w->nr_aims && w->aim[i].at != at)
		i++;
	return i;
}

int hotspot_ways_add(struct hotspot_ways *w, uint32_t at, const struct hotspot_way *way)
{
	uint32_t i;

	if (!way->words) {
		ways_add_bare(w, at, way->copied);
		return 0;
	}
	i = ways_find(w, at);
	w->steps += ways_bit(w->aimed, at) ? i : 0;
	if (w->steps > WAYS_STEPS)
		return -E2BIG;
	if (i < w->nr_aims) {
		ways_meet(w, &w->aim[i].way, way);
		return 0;
	}
	if (w->nr_aims == WAYS_AIMS)
		return -E2BIG;
	w->aim[w->nr_aims].at = at;
	w->aim[w->nr_aims++].way = *way;
	ways_set_bit(w->aimed, at);
	w->grew = true;
	return 0;
}

/* One more of those that meet. */
static void ways_join(struct hotspot_way *ret, bool *any, const struct hotspot_way *way)
{
	*ret = *any ? hotspot_ways_met(ret, way) : *way;
	*any = true;
}

bool hotspot_ways_at(const struct hotspot_ways *w, uint32_t at, struct hotspot_way *ret)
{
	const uint32_t aim = ways_find(w, at);
	bool any = aim < w->nr_aims;

	if (any)
		*ret = w->aim[aim].way;
	for (uint32_t i = 0; i < ARRAY_SIZE(w->bare); i++)
		if (ways_bit(w->bare[i], at))
			ways_join(ret, &any, &(struct hotspot_way){.copied = i});
	return any;
}
