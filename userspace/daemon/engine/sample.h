/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample in the engine: views of the ring's bytes, or of a copy where the
 * sample has to wait.
 * Called by the engine, one thread. Pointers are borrowed from the record (until
 * the ring is released) or owned by the parked sample that holds them.
 */
#ifndef OTP_DAEMON_ENGINE_SAMPLE_H
#define OTP_DAEMON_ENGINE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"

struct sample {
	struct otp_sample head;
	uint64_t value;          /* the amount of its origin's unit that it stands for */
	uint32_t slot;           /* of its origin in the session; set by the pipeline */
	uint64_t valid;          /* registers that reg holds, as bits */
	const uint64_t *reg;     /* NULL: no user registers */
	const uint64_t *kernel;  /* innermost first */
	uint32_t nr_kernel;
	uint32_t stack_len;
	uint64_t stack_addr;
	const uint8_t *stack;
	uint64_t base_addr;      /* bytes below the stack's end, beyond the copy */
	const uint8_t *base;     /* NULL: none */
	uint32_t base_len;
	bool chunk_lost;         /* the copy went on, but a chunk was lost */
	/* Interpreters' frames, by plan; NULL: none. Its words follow the head, as many as it says (sample_walk_words). */
	const struct otp_walked *walks[OTP_WALK_PLANS];
};

/* The words of a walk: the root's, then those of each frame. */
static inline const uint64_t *sample_walk_words(const struct otp_walked *w)
{
	return (const uint64_t *)(w + 1);
}

static inline uint32_t sample_walk_bytes(const struct otp_walked *w)
{
	return (uint32_t)(sizeof(*w) + (w->root_words + (uint32_t)w->frames * w->frame_words) * sizeof(uint64_t));
}

/* Modes whose user side is not to be unwound. */
#define SAMPLE_NO_USER_SIDE (OTP_MODE_KTHREAD | OTP_MODE_NO_USER | OTP_MODE_EXITING | OTP_MODE_COMPAT)

#endif
