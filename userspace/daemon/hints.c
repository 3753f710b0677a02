// SPDX-License-Identifier: Apache-2.0
#include "daemon/hints.h"

#include <string.h>

/* The one of this name, else a free one, else the one said longest ago. */
static struct hint *place(struct hints *h, const char comm[OTP_COMM_LEN])
{
	struct hint *best = &h->all[0];

	for (int i = 0; i < HINTS_MAX; i++) {
		struct hint *at = &h->all[i];

		if (at->stack_bytes && memcmp(at->comm, comm, OTP_COMM_LEN) == 0)
			return at;
		if (best->stack_bytes && (!at->stack_bytes || at->said < best->said))
			best = at;
	}
	return best;
}

void hints_learn(struct hints *h, const char comm[OTP_COMM_LEN], uint32_t stack_bytes, uint32_t start_bytes)
{
	struct hint *at = place(h, comm);
	bool same = at->stack_bytes && memcmp(at->comm, comm, OTP_COMM_LEN) == 0;

	if (!same && stack_bytes <= start_bytes)
		return; /* what everybody gets needs no hint */
	if (!same && at->stack_bytes)
		h->tell(h->ctx, at->comm, 0);
	memcpy(at->comm, comm, OTP_COMM_LEN);
	at->stack_bytes = stack_bytes > start_bytes ? stack_bytes : 0;
	at->said = ++h->said;
	h->tell(h->ctx, comm, at->stack_bytes);
}
