/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps. The loader (userspace/source) sets the sizes that depend on the
 * machine before it loads the program; every map is allocated whole at that
 * moment, so that a tick never allocates.
 */
#ifndef OTP_BPF_MAPS_H
#define OTP_BPF_MAPS_H

#define SHORT_TIDS 32

/* Samples that the ring did not take, not yet reported by a record. */
struct loss {
	u64 samples;
	u64 first_seq;
	u64 reason; /* of the first */
};

/* Stack bytes above OTP_STACK_FLOOR that could be copied at that time. */
struct budget {
	u64 time_ns;
	u64 left;
};

/* Private to the sampler: state of one CPU between ticks. */
struct cpu_state {
	struct budget ticks, events; /* apart: an event that fires often must not cut the stacks of ticks */
	/* Of the sample under way: */
	u64 time_ns;
	u64 seq;
	u32 slot;   /* of its origin */
	u32 origin; /* enum otp_origin */
	u64 stack_left; /* stack bytes still to copy, in chunks */
	u64 stack_next; /* from this address */
	u64 stack_known; /* 1: the copy lies below stack_end: missing pages are holes */
	u64 base_left;	/* as stack_left, of the base: bytes below stack_end */
	u64 base_next;
	u32 short_tid[SHORT_TIDS]; /* threads whose stack lately ended early, by tid modulo SHORT_TIDS */
	struct loss loss[OTP_ORIGINS_MAX]; /* by slot */
};

struct scratch {
	u8 byte[OTP_SCRATCH];
};

/*
 * One value per CPU, in plain arrays: values of per-CPU maps are limited to
 * 32 KiB and cannot be mapped. Counters: slot 0 by CPU, then slot 1 by CPU, and
 * so on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct otp_cpu_counters);
} counters SEC(".maps");

const volatile __u32 cpus_nr = 1; /* possible CPUs; set before the programs are loaded */

static __always_inline struct otp_cpu_counters *counters_of(u64 slot)
{
	u32 index = slot * cpus_nr + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&counters, &index);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

static __always_inline struct budget *budget_of(struct cpu_state *cpu)
{
	return cpu->slot ? &cpu->events : &cpu->ticks;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct otp_defaults);
} defaults SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32); /* thread group, initial pid namespace */
	__type(value, struct otp_plan);
} plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* thread group, initial pid namespace */
	__type(value, struct otp_walks_ready);
} walks SEC(".maps");

/* Between the steps of a walk; by CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct otp_walker);
} walkers SEC(".maps");

struct comm {
	char name[OTP_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct comm);
	__type(value, struct otp_hint);
} hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64); /* cgroup id */
	__type(value, struct otp_cgroup_rule);
} cgroup_rules SEC(".maps");

/* The program that samples an event, called by the programs of each slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} event_programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

#endif
