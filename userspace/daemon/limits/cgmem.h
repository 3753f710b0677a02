/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that our control group may take, and takes: of the group itself
 * and of those above it, the one that is nearest to its limit. Both versions.
 *
 * Called by the monitor and by doctor. root is "" or, in tests, the directory
 * that stands for "/". Files that are missing are no limit.
 */
#ifndef OTP_DAEMON_LIMITS_CGMEM_H
#define OTP_DAEMON_LIMITS_CGMEM_H

#include <stdbool.h>
#include <stdint.h>

struct cgmem {
	uint64_t limit; /* memory.max or memory.high, what is less; 0: none */
	uint64_t used;	/* without file pages that the kernel can drop */
	int version;	/* of the hierarchy that has the memory controller; 0: none */
};

/* false: there is no memory controller. */
bool cgmem_read(const char *root, struct cgmem *ret);

#endif
