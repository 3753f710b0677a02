/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share: store.c keeps workloads and slots,
 * store_take.c fills them. Not for others.
 */
#ifndef OTP_HUB_STORE_INTERNAL_H
#define OTP_HUB_STORE_INTERNAL_H

#include "base/utf8.h"
#include "hub/store.h"

/* NULL: there are as many as there may be, or no memory. */
struct workload *store_find_or_add(struct store *s, const struct workload_identity *from, uint64_t now_ns);
void store_changed(struct store *s, struct workload *w, enum store_change change);

#endif
