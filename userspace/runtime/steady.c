// SPDX-License-Identifier: Apache-2.0
#include "runtime/steady.h"

#include <errno.h>
#include <string.h>

int steady_read(const struct steady *s)
{
	for (int i = 0; i < STEADY_TRIES; i++) {
		uint64_t before[STEADY_COUNTERS] = {0}, after[STEADY_COUNTERS] = {0};
		int answer, err = s->count(s->ctx, before);

		if (err)
			return err;
		answer = s->read(s->ctx);
		err = s->count(s->ctx, after);
		if (err)
			return err;
		if (!memcmp(before, after, sizeof(before)))
			return answer;
	}
	return -ESTALE;
}
