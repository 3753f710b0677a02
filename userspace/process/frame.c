// SPDX-License-Identifier: Apache-2.0
#include "process/frame.h"

#include <stddef.h>

#include "base/cleanup.h"

static const char *const guess_names[FRAME_GUESS_NR] = {
#define X(NAME, name) [FRAME_BY_##NAME] = name,
	FRAME_GUESSES(X)
#undef X
};

const char *frame_guess_name(uint32_t guess)
{
	return guess < ARRAY_SIZE(guess_names) ? guess_names[guess] : NULL;
}
