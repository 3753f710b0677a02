/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the hub's slots: one list that configuration, environment, store
 * and API are made from.
 *
 * Plain data. Called by all of these.
 */
#ifndef OTP_HUB_LIMITS_H
#define OTP_HUB_LIMITS_H

#include <stdint.h>

/* X(NAME, field, "key", default, minimum, maximum) */
#define HUB_LIMITS(X)                                                                    \
	X(MAX_SLOTS, max_slots, "max_slots", 24, 1, 1024)                                \
	X(TTL, slot_ttl_seconds, "slot_ttl_seconds", 120, 5, 86400)                      \
	X(MAX_BYTES, slot_max_bytes, "slot_max_bytes", 8388608, 262144, 1073741824)      \
	X(CLEANUP, cleanup_interval_seconds, "cleanup_interval_seconds", 15, 1, 3600)

struct hub_limits {
#define X(NAME, field, key, value, min, max) uint64_t field;
	HUB_LIMITS(X)
#undef X
};

/* HUB_MAX_SLOTS_MIN, HUB_MAX_SLOTS_MAX, and so on: the range of each. */
enum {
#define X(NAME, field, key, value, min, max) HUB_##NAME##_MIN = (min), HUB_##NAME##_MAX = (max),
	HUB_LIMITS(X)
#undef X
};

extern const struct hub_limits hub_limits_default;

#endif
