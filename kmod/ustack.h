/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User memory of the interrupted task, upward from an address: never sleeping,
 * never faulting in. What is not readable at this moment ends the copy.
 * Context: the tick.
 */
#ifndef OTPROF_USTACK_H
#define OTPROF_USTACK_H

#include <linux/types.h>

#define OTPROF_WALK_PAIRS 256

/* Bytes copied, a multiple of 8 where want and addr are. */
u32 otprof_ustack_copy(void *to, u32 want, u64 addr);

/*
 * Pairs of frame pointer and return address, innermost first; ends where the
 * frame pointer does not rise or cannot be read. Returns the bytes written.
 */
u32 otprof_ustack_walk(u64 *to, u64 fp);

#endif
