/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of every destination, for tests of exporters: it holds at every state that anyone can see. */
#ifndef OTP_TESTS_LIB_NET_BOOKS_H
#define OTP_TESTS_LIB_NET_BOOKS_H

#include <check.h>

#include "base/ledger.h"

static inline void net_books_balance(const struct ledger_net *l)
{
	for (uint32_t i = 0; i < l->destinations; i++) {
		const struct ledger_destination *d = &l->dest[i];
		uint64_t sum = d->exported.of[0] + d->unconfirmed.of[0] + d->queued.of[0] + d->sending.of[0] +
			       d->spooled.of[0] + d->earlier.of[0];

		for (int reason = 0; reason < OTP_LOSS_MAX; reason++)
			sum += d->lost[reason].of[0];
		ck_assert_uint_eq(sum, l->received.of[0] + d->restored.of[0]);
	}
}

#endif
