/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways of control through compiled code of HotSpot that meet where jumps lead to: what is on the stack there beside the frame.
 *
 * Private to hotspot_pushed.c. Bounded by WAYS_AIMS; those without words are free. Units: bytes from the start of the code.
 */
#ifndef OTP_RUNTIME_HOTSPOT_WAYS_H
#define OTP_RUNTIME_HOTSPOT_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot.h"

#define WAYS_BYTES (256u << 10) /* of code */
#define WAYS_AIMS  512
#define WAYS_STEPS (4u << 20) /* in all, to find aims */
#define WAYS_LEFT  (HOTSPOT_RANGE_KEPT + 1)

struct hotspot_way {
	uint32_t words; /* as of struct hotspot_range; WAYS_LEFT: the frame was left, and not yet returned from */
	bool by_push; /* a call takes them for arguments */
	bool copied;  /* rcx is the stack pointer of the frame alone (x86_64.ad, string_indexof: always that one) */
};

struct hotspot_ways {
	uint32_t nr_aims, steps;
	bool grew; /* since the caller has set it to false: something else is known of a place */
	struct { uint32_t at; struct hotspot_way way; } aim[WAYS_AIMS];
	uint64_t bare[2][WAYS_BYTES / 64]; /* ways without words, by copied: a bit for each offset */
	uint64_t aimed[WAYS_BYTES / 64];   /* there is an aim */
};

/* Of code of so many bytes, WAYS_BYTES at most. */
void hotspot_ways_begin(struct hotspot_ways *w, uint32_t size);
/* What is known where both ways meet. */
struct hotspot_way hotspot_ways_met(const struct hotspot_way *a, const struct hotspot_way *b);
/* A way leads to an offset below the size. 0; -E2BIG: there is no room, or no step is left. */
int hotspot_ways_add(struct hotspot_ways *w, uint32_t at, const struct hotspot_way *way);
/* What the jumps that lead there bring; false: none does. */
bool hotspot_ways_at(const struct hotspot_ways *w, uint32_t at, struct hotspot_way *ret);

#endif
