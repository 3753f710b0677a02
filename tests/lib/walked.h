/* SPDX-License-Identifier: Apache-2.0 */
/* A finished walk, read as the engine reads it: for tests that include kmod/uapi/otprof_walk.h with a reader of their own. */
#ifndef OTP_TESTS_WALKED_H
#define OTP_TESTS_WALKED_H

#include "runtime/runtime.h"

/* The words of its i-th frame, which stay the walker's. What else words has is left as it is. */
static inline void walked_words(const struct otp_walker *w, const struct otp_walked *head, uint32_t i,
				struct runtime_words *words)
{
	words->root = (const uint64_t *)(const void *)(w->out + OTP_WALK_HEAD);
	words->nr_root = head->root_words;
	words->count = head->frame_words - 1u;
	words->word = words->root + head->root_words + (size_t)i * head->frame_words + 1;
	words->address = words->word[-1] & OTP_WALK_ADDRESS;
	words->index = i;
	words->nr_outer = head->frames - i - 1u;
}

#endif
