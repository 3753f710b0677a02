// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sampler: one program, run on every CPU at each tick of a perf event
 * with interrupts off. It decides, copies and puts; it never sleeps, never
 * unwinds user code, and wakes the reader at most once per fill of the ring.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define OTP_NO_LINUX_TYPES
#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_copy.h"

#include "fixes.h"
#include "regs.h"
#include "maps.h"
#include "filter.h"
#include "stack.h"
#include "sample.h"
#include "put.h"
#include "direct.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline int skip(struct otp_cpu_counters *c, enum otp_skip_reason reason)
{
	c->ticks++;
	c->skip[reason]++;
	return 0;
}

static __always_inline int lose(struct otp_cpu_counters *c, enum otp_loss_reason reason)
{
	c->ticks++;
	c->taken++;
	c->lost[reason]++;
	return 0;
}

static __always_inline int take(struct bpf_perf_event_data *ctx, struct otp_cpu_counters *c,
				const struct otp_defaults *d, struct subject *who, struct choice *choice)
{
	u32 nr = bpf_get_smp_processor_id(), mode;
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);
	u64 len;

	if (!cpu || !s)
		return lose(c, OTP_LOSS_SCRATCH);
	cpu->time_ns = bpf_ktime_get_boot_ns();
	cpu->seq = c->taken + 1;
	settle(choice, who, d);
	mode = task_mode(ctx, who->task);
	if (!mode && put_direct(ctx, who, choice, cpu, c, d))
		return 0;
	len = sample_fill(ctx, s->byte, who, choice, cpu, mode, d->stack_budget);
	put_sample(s->byte, len, cpu, c, d);
	return 0;
}

/* The clock is read for one sample in so many: twice 20 ns of some 1500 would show, a sixteenth of it does not. */
static __always_inline u64 time_begin(const struct otp_cpu_counters *c)
{
	return c->taken % OTP_TIMED_EVERY ? 0 : bpf_ktime_get_ns();
}

static __always_inline void time_end(struct otp_cpu_counters *c, u64 began)
{
	u64 ns;

	if (!began)
		return;
	ns = bpf_ktime_get_ns() - began;
	c->timed_ns += ns;
	c->timed_runs++;
	if (ns > c->longest_ns)
		c->longest_ns = ns;
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	u32 zero = 0, nr = bpf_get_smp_processor_id();
	struct otp_cpu_counters *c = bpf_map_lookup_elem(&counters, &nr);
	struct otp_defaults *d = bpf_map_lookup_elem(&defaults, &zero);
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct choice choice = {};
	struct subject who;
	u64 began;

	if (!c || !d)
		return 0;
	if (!d->running)
		return skip(c, OTP_SKIP_STOPPED);
	if (!pid_tgid)
		return skip(c, OTP_SKIP_IDLE);
	began = time_begin(c);
	subject_fill(&who, pid_tgid);
	if (!choose(&choice, &who, d))
		return skip(c, OTP_SKIP_NOT_SELECTED);
	take(ctx, c, d, &who, &choice);
	time_end(c, began);
	return 0;
}
