/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User memory of the interrupted task, upward from an address: never sleeping,
 * never faulting in. Context: the tick.
 */
#ifndef OTPROF_USTACK_H
#define OTPROF_USTACK_H

#include <linux/types.h>

/*
 * Copies want bytes, or as many as there are; returns the bytes up to the last
 * one that was there, a multiple of 8 where want and addr are. Big arrays leave
 * pages between frames that nobody has touched yet: in their place, and behind
 * the last byte, are zeroes, and ret_holes becomes true where it matters.
 */
u32 otprof_ustack_copy(void *to, u32 want, u64 addr, bool *ret_holes);

/* Whether the word there is. */
bool otprof_ustack_there(u64 addr);

#endif
