// SPDX-License-Identifier: Apache-2.0
#include "daemon/late.h"

int late_add(struct late *l, const struct profile_sample *s)
{
	return profile_add(l->profile, s);
}

void late_interval(struct late *l, uint64_t start_unix_ns, uint64_t end_unix_ns)
{
	uint64_t have = profile_samples(l->profile);

	if (have == l->counted)
		return;
	l->counted = have;
	if (!l->start_unix_ns)
		l->start_unix_ns = start_unix_ns;
	l->end_unix_ns = end_unix_ns;
}

int late_encode(struct late *l, profile_out_fn *out, void *ctx, uint64_t *ret_lost)
{
	int r;

	if (!profile_samples(l->profile))
		return 0;
	r = profile_encode(l->profile, l->start_unix_ns, l->end_unix_ns, out, ctx, ret_lost);
	l->start_unix_ns = l->end_unix_ns = l->counted = 0;
	return r;
}
