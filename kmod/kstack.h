/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel stack of the interrupted task, from where it was interrupted:
 * neither the timer's frames nor ours are on it. Context: the tick.
 */
#ifndef OTPROF_KSTACK_H
#define OTPROF_KSTACK_H

#include <linux/types.h>

struct pt_regs;

/* Addresses written, innermost first, at most max (not 0). */
u32 otprof_kstack(u64 *to, u32 max, struct pt_regs *regs);

#endif
