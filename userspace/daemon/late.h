/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples whose files will have names soon: unwound and counted, apart from
 * the others, until their names are there or have been waited for long enough.
 * They leave in a request of their own, with the time in which they were taken.
 *
 * Called by the pipeline, one thread. Bounded like any interval's profile.
 */
#ifndef OTP_DAEMON_LATE_H
#define OTP_DAEMON_LATE_H

#include "profile/profile.h"

struct late {
	struct profile_builder *profile; /* owned by the pipeline */
	uint64_t start_unix_ns, end_unix_ns; /* of the intervals that its samples are of; 0: none ended yet */
	uint64_t counted; /* samples at the end of the last one */
};

int late_add(struct late *l, const struct profile_sample *s);
/* An interval ends: it is one of theirs if a sample came in it. */
void late_interval(struct late *l, uint64_t start_unix_ns, uint64_t end_unix_ns);
/* As profile_encode; nothing where there is nothing. */
int late_encode(struct late *l, profile_out_fn *out, void *ctx, uint64_t *ret_lost);

#endif
