// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sampler: programs that run on every CPU, at each tick of its clock and at
 * each sampled event. They select, copy and write the record; they never sleep,
 * never unwind user code, and wake the reader at most once per fill of the ring.
 *
 * Ticks run with interrupts off, some events (page faults) with interrupts on.
 * State and counters of a CPU are safe all the same: the kernel runs one program
 * of perf events at a time on a CPU, and skips one that would interrupt another
 * (bpf_prog_active). A tick skipped so is missed, by the time that its event was
 * enabled; a skipped event is not counted.
 *
 * A program cannot find out which of a CPU's events runs it, so each slot of an
 * event has a program of a few instructions, which notes the slot and calls the
 * one that samples. Ticks have a program of their own: slot 0 is a constant
 * there, at no cost.
 */
#include "kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define OTP_NO_LINUX_TYPES
#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_copy.h"

#include "fixes.h"
#include "regs.h"

/* The walker that the module shares. */
#define OTP_WALK_READ(to, len, from) bpf_probe_read_user(to, len, (const void *)(from))
#define OTP_WALK_OPAQUE(value)	     opaque(value)
#include "kmod/uapi/otprof_walk.h"

#include "maps.h"
#include "filter.h"
#include "stack.h"
#include "section.h"
#include "walk.h"
#include "sample.h"
#include "put.h"
#include "direct.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline int count_skip(struct otp_cpu_counters *c, enum otp_skip_reason reason)
{
	c->ticks++;
	c->skip[reason]++;
	return 0;
}

static __always_inline int count_loss(struct otp_cpu_counters *c, enum otp_loss_reason reason)
{
	c->ticks++;
	c->taken++;
	c->lost[reason]++;
	return 0;
}

/* enum otp_origin of each slot; set before the programs are loaded. */
const volatile __u8 slot_origin[OTP_ORIGINS_MAX];

static __always_inline int take_sample(struct bpf_perf_event_data *ctx, struct otp_cpu_counters *c,
				       const struct otp_defaults *d, struct subject *who, struct choice *choice,
				       u64 slot)
{
	u32 nr = bpf_get_smp_processor_id(), mode;
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);
	u64 len;

	if (slot)
		c->value += ctx->sample_period;
	if (!cpu || !s)
		return count_loss(c, OTP_LOSS_SCRATCH);
	cpu->slot = slot;
	cpu->time_ns = bpf_ktime_get_boot_ns();
	cpu->seq = c->taken + 1;
	cpu->origin = slot ? slot_origin[slot] : OTP_ORIGIN_CPU_CLOCK;
	settle(choice, who, d);
	mode = task_mode(ctx, who->task);
	if (!slot && !mode && !choice->walk && put_direct(ctx, who, choice, cpu, c, d))
		return 0;
	len = sample_fill(ctx, s->byte, who, choice, cpu, mode, d->stack_budget, slot);
	put_sample(s->byte, len, cpu, c, d, slot);
	return 0;
}

/* Only one sample of OTP_TIMED_EVERY is measured: two clock reads of 20 ns are a visible part of some 1500 ns. */
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

static __always_inline int sample_event(struct bpf_perf_event_data *ctx, struct otp_cpu_counters *c, u64 slot)
{
	u32 zero = 0;
	struct otp_defaults *d = bpf_map_lookup_elem(&defaults, &zero);
	u64 pid_tgid = bpf_get_current_pid_tgid();
	struct choice choice = {};
	struct subject who;
	u64 began;

	if (!c || !d)
		return 0;
	if (!d->running)
		return count_skip(c, OTP_SKIP_STOPPED);
	if (!pid_tgid && !idle_is_interrupted(ctx))
		return count_skip(c, OTP_SKIP_IDLE);
	began = time_begin(c);
	subject_fill(&who, pid_tgid);
	if (!choose(&choice, &who, d))
		return count_skip(c, OTP_SKIP_NOT_SELECTED);
	take_sample(ctx, c, d, &who, &choice, slot);
	time_end(c, began);
	return 0;
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	return sample_event(ctx, counters_of(0), 0);
}

SEC("perf_event")
int on_event(struct bpf_perf_event_data *ctx)
{
	u32 nr = bpf_get_smp_processor_id();
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);
	u64 slot;

	if (!cpu)
		return 0;
	slot = cpu->slot;
	opaque(slot);
	if (!slot || slot >= OTP_ORIGINS_MAX)
		return 0;
	return sample_event(ctx, counters_of(slot), slot);
}

/* No other program of a perf event runs on this CPU meanwhile, so slot is unchanged when on_event reads it. */
static __always_inline int enter_event(struct bpf_perf_event_data *ctx, u32 slot)
{
	u32 nr = bpf_get_smp_processor_id();
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);

	if (!cpu)
		return 0;
	cpu->slot = slot;
	bpf_tail_call(ctx, &event_programs, 0);
	return 0;
}

#define ON_EVENT(slot)                                         \
	SEC("perf_event")                                      \
	int on_event_##slot(struct bpf_perf_event_data *ctx)   \
	{                                                      \
		return enter_event(ctx, slot);                 \
	}

ON_EVENT(1)
ON_EVENT(2)
ON_EVENT(3)
ON_EVENT(4)
ON_EVENT(5)
ON_EVENT(6)
ON_EVENT(7)
_Static_assert(OTP_ORIGINS_MAX == 8, "each slot but the clock's has its program");
