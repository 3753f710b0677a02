/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps. The daemon sets the sizes of those that depend on the machine
 * before it loads the program; every map is allocated whole at that moment,
 * so that a tick never allocates.
 */
#ifndef OTP_BPF_MAPS_H
#define OTP_BPF_MAPS_H

#define SHORT_TIDS 32

/* Samples that a full ring lost, until a record reports them. */
struct loss {
	u64 samples;
	u64 first_seq;
};

/* Private to the sampler: what one CPU remembers from tick to tick. */
struct cpu_state {
	u64 budget_ns;   /* when budget_left was right */
	u64 budget_left; /* stack bytes above the default that may be copied now */
	u64 time_ns; /* the sample under way: */
	u64 seq;
	u32 slot;   /* of its origin; set by the event's own program */
	u32 origin; /* enum otp_origin */
	u64 stack_left; /* stack bytes that are wanted beyond the head */
	u64 stack_next; /* and where they begin */
	u64 stack_known; /* 1: all of it lies below the stack's known end, so what is missing is a hole */
	u64 base_left;	/* the same of the bytes below the stack's end */
	u64 base_next;
	u32 short_tid[SHORT_TIDS]; /* threads whose stack lately ended early, by tid modulo their number */
	struct loss loss[OTP_ORIGINS_MAX]; /* by slot */
};

struct scratch {
	u8 byte[OTP_SCRATCH];
};

/*
 * A value per CPU in plain arrays: per-CPU maps end at 32 KiB and cannot be
 * mapped. Counters are those of slot 0 by CPU, then those of slot 1, and so on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct otp_cpu_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

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

/* The program that samples an event, entered from the programs of each slot. */
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
