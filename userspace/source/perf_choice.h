/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection and plans for the perf sampler: the contract's order plan, cgroup
 * rule, default, over what a sampler in the kernel keeps in maps. Here selection
 * comes after the copy: a sample that is not selected has cost a tick, but never
 * reaches the ring.
 *
 * Called by the perf source, one thread. Bounded by plans_max and HINTS_MAX.
 */
#ifndef OTP_SOURCE_PERF_CHOICE_H
#define OTP_SOURCE_PERF_CHOICE_H

#include "source/perf_cgroup.h"
#include "source/perf_sample.h"
#include "source/perf_tasks.h"

#define HINTS_MAX 1024

struct perf_choice {
	struct map plans; /* pid to struct otp_plan */
	struct map hints; /* hash of a name to stack bytes */
	struct perf_cgroups cgroups;
	struct otp_defaults defaults;
	uint32_t plans_max;
	uint64_t swept_ns;
};

void perf_choice_init(struct perf_choice *c, const struct otp_defaults *d, uint32_t plans_max);
void perf_choice_done(struct perf_choice *c);

int perf_choice_set_plan(struct perf_choice *c, uint32_t pid, const struct otp_plan *p); /* NULL removes; -E2BIG */
int perf_choice_set_hint(struct perf_choice *c, const char comm[OTP_COMM_LEN], uint32_t stack_bytes); /* 0 removes; -E2BIG */

/*
 * Whether this sample is selected; if so, who is filled for its record, with
 * stack_take still to be bounded by the caller.
 */
bool perf_choice_make(struct perf_choice *c, struct perf_tasks *tasks, const struct perf_sample *s,
		      struct perf_subject *who);

/* The deepest copy that any plan, hint or default asks for, bytes. */
uint32_t perf_choice_deepest(const struct perf_choice *c);

#endif
