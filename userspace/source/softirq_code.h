/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a kernel stack runs softirqs: by the address of the kernel's function
 * that runs them. A sample of perf has neither the count of preemptions nor the
 * kernel's stack pointer, which tell a sampler in the kernel whether an idle CPU
 * ran a softirq or the idle loop.
 *
 * Called by the perf source, one thread. Where kernel addresses are hidden no
 * stack is recognised. Read before the engine starts, which may share the
 * position of the kernel's symbols (base/kallsyms_open.h). Cost: reading takes some 100 ms, once; a stack one
 * comparison for each frame.
 */
#ifndef OTP_SOURCE_SOFTIRQ_CODE_H
#define OTP_SOURCE_SOFTIRQ_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* __do_softirq; since Linux 6.9 handle_softirqs, which both __do_softirq and ksoftirqd call (kernel/softirq.c). */
#define SOFTIRQ_FUNCTIONS 2

struct softirq_code {
	uint64_t start[SOFTIRQ_FUNCTIONS], end[SOFTIRQ_FUNCTIONS]; /* end 0: unknown */
};

void softirq_code_parse(FILE *kallsyms, struct softirq_code *ret);
void softirq_code_read(struct softirq_code *ret);
bool softirq_code_has(const struct softirq_code *c, const uint64_t *ips, uint32_t nr);

#endif
