/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One tick: selection, record, ring. What it writes and counts is what
 * bpf/sampler.bpf.c writes and counts, so that nobody can tell them apart.
 *
 * Context: the timer's interrupt or the counter's NMI, on c's CPU. No lock, no
 * allocation, no page fault; every loop has a bound.
 */
#ifndef OTPROF_CAPTURE_H
#define OTPROF_CAPTURE_H

#include <linux/types.h>

struct otprof_cpu;
struct pt_regs;

/* regs: what the tick interrupted. Whether it was taken as a sample, arrived or lost. */
bool otprof_capture_tick(struct otprof_cpu *c, struct pt_regs *regs);
/* How long that took. */
void otprof_capture_timed(struct otprof_cpu *c, u64 ns);

#endif
