/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel stack of the interrupted task, from the interrupted instruction:
 * without the frames of the timer and of this module. Context: the tick.
 */
#ifndef OTPROF_KSTACK_H
#define OTPROF_KSTACK_H

#include <linux/types.h>

struct pt_regs;

/* Writes at most max (not 0) addresses, innermost first; returns their number. */
u32 otprof_kstack(u64 *to, u32 max, struct pt_regs *regs);

#endif
