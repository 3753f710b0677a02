/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups (version 2) by their ids: the rule for a cgroup, and the cgroup of a
 * process where perf does not report it (before Linux 5.7).
 *
 * Called by the perf source, one thread, and its table of tasks. Ids are never
 * used again, so a verdict holds until the rules change.
 * Ancestors are found through the id as a file handle of the hierarchy, which
 * needs CAP_DAC_READ_SEARCH; without it, or after the cgroup was removed, only a
 * rule for the cgroup itself applies.
 */
#ifndef OTP_SOURCE_PERF_CGROUP_H
#define OTP_SOURCE_PERF_CGROUP_H

#include <stdint.h>

#include "base/hash.h"

struct perf_cgroups {
	struct map rules;    /* id to enum otp_select */
	struct map verdicts; /* likewise, of any cgroup, ancestors included */
	int mount_fd;	     /* -1: not opened yet, or none; owned */
};

void perf_cgroups_init(struct perf_cgroups *c);
void perf_cgroups_done(struct perf_cgroups *c);
int perf_cgroups_set(struct perf_cgroups *c, uint64_t id, uint8_t select); /* UNSET removes; -E2BIG */
uint8_t perf_cgroups_select(struct perf_cgroups *c, uint64_t id);

uint64_t perf_cgroup_of(uint32_t pid); /* 0: unknown */

#endif
