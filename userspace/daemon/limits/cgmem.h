/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory limit and use of our control group: of the group itself and of
 * those above it, the one that is nearest to its limit. Both cgroup versions.
 *
 * Called by the monitor and by doctor; reads a few files, blocks as /sys does.
 * root is "" or, in tests, the directory that stands for "/". A missing file
 * counts as no limit.
 */
#ifndef OTP_DAEMON_LIMITS_CGMEM_H
#define OTP_DAEMON_LIMITS_CGMEM_H

#include <stdbool.h>
#include <stdint.h>

struct cgmem {
	uint64_t limit; /* the lesser of memory.max and memory.high; 0: none */
	uint64_t used;	/* without file pages that the kernel can drop */
	int version;	/* of the cgroup hierarchy with the memory controller; 0: none */
};

/* false: there is no memory controller. */
bool cgmem_read(const char *root, struct cgmem *ret);

#endif
