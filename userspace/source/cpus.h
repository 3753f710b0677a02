/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of CPUs, in the notation of the kernel ("0-3,8").
 * Called by sources and the side-band. Plain values, nothing to free.
 */
#ifndef OTP_SOURCE_CPUS_H
#define OTP_SOURCE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#define CPUS_MAX 8192

struct cpus {
	uint64_t word[CPUS_MAX / 64];
};

int cpus_parse(const char *text, struct cpus *ret); /* -EINVAL, -ERANGE beyond CPUS_MAX */
int cpus_online(struct cpus *ret);
/* One more than the highest possible CPU: the size of an array indexed by CPU. */
int cpus_possible(uint32_t *ret_nr);

static inline bool cpus_has(const struct cpus *c, uint32_t cpu)
{
	return cpu < CPUS_MAX && (c->word[cpu / 64] >> cpu % 64 & 1);
}

#endif
