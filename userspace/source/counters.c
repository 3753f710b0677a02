// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "source/source.h"

/* A tick changes its counters within nanoseconds, but its CPU may be taken from it meanwhile (virtual machines). */
#define TRIES 1000

static uint64_t sum(const __u64 *v, size_t n)
{
	uint64_t total = 0;

	while (n--)
		total += v[n];
	return total;
}

bool counters_balanced(const struct otp_cpu_counters *c)
{
	return c->ticks == c->taken + sum(c->skip, OTP_SKIP_MAX) && c->taken == c->put + sum(c->lost, OTP_LOSS_MAX);
}

bool counters_read(const volatile struct otp_cpu_counters *from, struct otp_cpu_counters *ret)
{
	for (int i = 0; i < TRIES; i++) {
		memcpy(ret, (const void *)(uintptr_t)from, sizeof(*ret));
		if (counters_balanced(ret))
			return true;
	}
	return false;
}

void counters_add_time(const struct otp_cpu_counters *c, struct counters_time *to)
{
	uint64_t runs = c->timed_runs;

	if (!runs)
		return;
	to->ns += (uint64_t)((unsigned __int128)c->timed_ns * MAX(c->taken, runs) / runs);
	to->runs += MAX(c->taken, runs);
	to->longest_ns = MAX(to->longest_ns, c->longest_ns);
}
