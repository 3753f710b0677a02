// SPDX-License-Identifier: Apache-2.0
#include "base/origin.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const names[] = {
#define X(number, NAME, name) [number] = name,
	OTP_ORIGINS(X)
#undef X
};

static const char *const aliases[] = {
#define X(NAME, alias, kind, PERF, type, unit, period_type, period_unit) [OTP_ORIGIN_##NAME] = alias,
	ORIGINS(X)
#undef X
};

static const struct origin_types types[] = {
#define X(NAME, alias, kind, PERF, type, unit, period_type, period_unit) \
	[OTP_ORIGIN_##NAME] = {type, unit, period_type, period_unit},
	ORIGINS(X)
#undef X
};

#define COUNT(...) +1
_Static_assert((0 ORIGINS(COUNT)) == (0 OTP_ORIGINS(COUNT)), "each origin of the contract has its line in the table");

const char *origin_name(uint32_t origin)
{
	return origin < ARRAY_SIZE(names) ? names[origin] : NULL;
}

const struct origin_types *origin_types(uint32_t origin)
{
	return origin < ARRAY_SIZE(types) && types[origin].type ? &types[origin] : NULL;
}

int origin_find(const char *name, uint8_t *ret)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && (!strcmp(names[i], name) || (aliases[i] && !strcmp(aliases[i], name)))) {
			*ret = (uint8_t)i;
			return 0;
		}
	return -ENOENT;
}

int origins_slot(const struct origins *o, uint8_t origin)
{
	for (uint32_t i = 0; i < o->count && i < OTP_ORIGINS_MAX; i++)
		if (o->slot[i].sampled && o->slot[i].origin == origin)
			return (int)i;
	return -ENOENT;
}

uint32_t origins_slot_of(const struct origins *o, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	int slot = rec->len < sizeof(*s) ? 0 : origins_slot(o, s->origin);

	return slot < 0 ? 0 : (uint32_t)slot;
}

struct origins origins_of_clock(uint64_t period_ns)
{
	return (struct origins){
		.count = 1,
		.slot[0] = {.origin = OTP_ORIGIN_CPU_CLOCK, .sampled = true, .period = period_ns},
	};
}
