/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on the bytes of the names of an interval, divided among workloads:
 * names come from hostile files and processes, and those of one tenant must
 * leave room for the others'.
 *
 * Called by the builder and by the names of a request; used within profile/
 * only. A workload never holds more than is left for all: alone it gets half,
 * the next one half of the rest. A string is counted once, for the workload
 * that brought it, and held until share_done.
 */
#ifndef OTP_PROFILE_SHARE_H
#define OTP_PROFILE_SHARE_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/strpool.h"

struct share {
	size_t max, used;   /* bytes */
	struct map strings; /* counted: struct str *, one reference each */
	size_t *of;         /* bytes by the builder's number of the workload; owned */
	uint32_t cap;
};

/* Whether s is counted; NULL always is. false: it does not fit, or there is no memory; nothing changed. */
bool share_take(struct share *sh, uint32_t workload, struct str *s);
void share_done(struct share *sh); /* empty afterwards; max stays */
size_t share_memory(const struct share *sh); /* bytes held, with the strings */

#endif
