/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf sample (Linux, include/uapi/linux/perf_event.h, PERF_RECORD_SAMPLE)
 * as the contract's record.
 *
 * Called by the perf source, one thread. Pure: no system call, no state. Others
 * control only the stack in a sample, and that is copied, never parsed; lengths
 * are the kernel's, and checked all the same.
 *
 * Unlike a sampler in the kernel, perf begins its copy at the stack pointer, not
 * below it: the red zone is missing, which otp_ustack.addr shows. The base of
 * the thread's storage is not among perf's registers (tls_base is 0: unknown).
 * For a thread inside a system call, x86 reports -1 for registers that the
 * kernel did not save: they are not valid.
 */
#ifndef OTP_SOURCE_PERF_SAMPLE_H
#define OTP_SOURCE_PERF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

/* The fields of a sample besides thread, time, CPU, user registers and user stack. */
struct perf_format {
	bool period;    /* events since the sample before; for events by frequency */
	bool callchain; /* of the kernel */
	bool cgroup;
};

struct perf_sample {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	bool kernel; /* it interrupted the kernel */
	bool compat;
	uint64_t valid;
	uint64_t reg[OTP_REGS_MAX]; /* DWARF order */
	const uint64_t *kstack;	    /* borrowed from the record; without perf's context marks */
	uint32_t nr_kstack;
	uint64_t stack_addr;
	const uint8_t *stack; /* likewise */
	uint32_t stack_len;
	bool stack_whole; /* all that the event asks for was readable */
	uint64_t cgroup_id;
	uint64_t value; /* events of its origin that it stands for; 1 where the format has no period */
};

/* The fields of the record that come from the source and not from perf. */
struct perf_subject {
	uint64_t start_ns, exec_id, cgroup_id;
	uint32_t ppid, plan_gen, mode; /* OTP_MODE_* besides those of the sample */
	uint8_t origin; /* enum otp_origin */
	uint32_t stack_bytes; /* asked for by the plan */
	uint32_t stack_take;  /* of these, within the bound on bytes */
	char comm[OTP_COMM_LEN];
};

/* Bits of perf_event_attr.sample_regs_user that the contract's registers come from. */
uint64_t perf_sample_regs(void);

/* -EBADMSG where the record cannot be one of this format. */
int perf_sample_decode(const void *record, size_t len, const struct perf_format *f, struct perf_sample *ret);

/* The most that perf_sample_write needs for it. */
size_t perf_sample_bound(const struct perf_sample *s);
/* Writes one OTP_REC_SAMPLE; returns its length. to is 8-aligned. */
uint32_t perf_sample_write(void *to, const struct perf_sample *s, const struct perf_subject *who, uint64_t seq);

#endif
