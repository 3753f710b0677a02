// SPDX-License-Identifier: GPL-2.0-only
/* 4.9, x86: the unwinder itself. */
#include <linux/sched.h>
#include <asm/unwind.h>
void probe(struct unwind_state *s, struct pt_regs *r);
void probe(struct unwind_state *s, struct pt_regs *r) { unwind_start(s, current, r, NULL); }
