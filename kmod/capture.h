/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One tick: selection, record, ring. It writes and counts the same as
 * bpf/sampler.bpf.c does, so that readers need not distinguish the samplers.
 *
 * Context: the timer's interrupt or the counter's NMI, on c's CPU. No lock, no
 * allocation, no page fault; every loop has a bound.
 */
#ifndef OTPROF_CAPTURE_H
#define OTPROF_CAPTURE_H

#include <linux/types.h>

struct otprof_cpu;
struct pt_regs;

/* regs: of the interrupted code. True: a sample was taken, whether it reached the ring or was lost. */
bool otprof_capture_tick(struct otprof_cpu *c, struct pt_regs *regs);
/* Counts a tick that is skipped, because its CPU rests. */
void otprof_capture_rest(struct otprof_cpu *c);
/* Counts the duration of the tick just captured. */
void otprof_capture_timed(struct otprof_cpu *c, u64 ns);

#endif
