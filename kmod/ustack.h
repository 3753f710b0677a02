/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies user memory of the interrupted task, upward from an address; never
 * sleeps, never faults pages in. Context: the tick.
 */
#ifndef OTPROF_USTACK_H
#define OTPROF_USTACK_H

#include <linux/types.h>

/*
 * Copies up to want bytes; returns the number up to the last readable one, a
 * multiple of 8 where want and addr are. Big arrays leave pages between frames
 * that were never touched: such pages, and the bytes after the last readable
 * one, become zero. A page missing before a readable one sets *ret_holes.
 */
u32 otprof_ustack_copy(void *to, u32 want, u64 addr, bool *ret_holes);

/* Copies all len bytes, a multiple of 8, or returns false: then `to` may hold some of them. */
bool otprof_ustack_read(void *to, u32 len, u64 addr);
/* Whether the word at addr is readable. */
bool otprof_ustack_there(u64 addr);
/* The word there; 0 if it cannot be read. */
u64 otprof_ustack_word(u64 addr);

#endif
