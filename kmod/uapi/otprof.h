/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The contract between a sampler and userspace: records, ring, plans, counters
 * and the list of loss reasons. It is the only thing that bpf/, kmod/ and
 * userspace/ share, and it compiles in all three.
 *
 * Who uses it: samplers write records and counters and read plans; the engine
 * reads records; the monitor writes plans and reads counters.
 * Contexts: everything here is plain data. Samplers write it where they cannot
 * sleep (hrtimer, NMI, page fault), so no structure needs more than one pass to
 * fill.
 * Units: times are nanoseconds of CLOCK_BOOTTIME, sizes are bytes.
 * Compatibility: additions are new section types, new record types, new
 * reasons, or reserved fields, which are zero until then. Readers skip unknown
 * types. Any other change of a record or of the ring raises OTP_ABI_VERSION; of
 * plans, rules and counters, which are kept nowhere, OTPROF_DEV_VERSION.
 */
#ifndef OTPROF_UAPI_H
#define OTPROF_UAPI_H

/* bpf/ declares these types itself, without a kernel header. */
#ifndef OTP_NO_LINUX_TYPES
#include <linux/types.h>
#endif

#define OTP_ABI_VERSION 1

#define OTP_COMM_LEN 16

/* comm of a sample without a process: otp_sample.pid */
#define OTP_COMM_INTERRUPTS "interrupts"

/*
 * Ring. Both samplers write the layout of a BPF ring buffer (Linux,
 * kernel/bpf/ringbuf.c): a consumer page that userspace may write, a producer
 * page and the data area, both read-only to userspace, the data area mapped
 * twice in a row so that a record never wraps. Cursors are free-running 64-bit
 * positions. Each record is preceded by 8 bytes: a length whose two highest
 * bits mean busy and discarded, and 4 bytes for the sampler's own use. Records
 * are aligned to 8 bytes.
 */
#define OTP_RING_BUSY    (1U << 31)
#define OTP_RING_DISCARD (1U << 30)
#define OTP_RING_HDR     8

struct otp_ring_hdr {
	__u32 len;
	__u32 owner;
};

/* Every record begins with this. len counts the whole record, this included. */
struct otp_rec {
	__u16 type; /* enum otp_rec_type */
	__u16 flags;
	__u32 len;
};

enum otp_rec_type {
	OTP_REC_SAMPLE = 1, /* struct otp_sample, then sections */
	OTP_REC_CHUNK = 2,  /* struct otp_chunk, then stack bytes */
	OTP_REC_LOSS = 3,   /* struct otp_loss: what this CPU lost since its last record */
	OTP_REC_LIFE = 4,   /* struct otp_life: process life, from a sampler that reports it */
};

/*
 * Origins: the kind of event that a sample stands for. The names are perf's.
 *   X(number, NAME, "name")
 * The number of a retired origin is never reused.
 */
#define OTP_ORIGINS(X)                              \
	X(0, CPU_CLOCK, "cpu-clock")                \
	X(1, PAGE_FAULTS, "page-faults")            \
	X(2, MINOR_FAULTS, "minor-faults")          \
	X(3, MAJOR_FAULTS, "major-faults")          \
	X(4, CONTEXT_SWITCHES, "context-switches")  \
	X(5, CPU_MIGRATIONS, "cpu-migrations")      \
	X(6, ALIGNMENT_FAULTS, "alignment-faults")  \
	X(7, EMULATION_FAULTS, "emulation-faults")  \
	X(8, CYCLES, "cycles")                      \
	X(9, INSTRUCTIONS, "instructions")          \
	X(10, CACHE_REFERENCES, "cache-references") \
	X(11, CACHE_MISSES, "cache-misses")         \
	X(12, BRANCHES, "branches")                 \
	X(13, BRANCH_MISSES, "branch-misses")       \
	X(14, BUS_CYCLES, "bus-cycles")             \
	X(15, REF_CYCLES, "ref-cycles")

enum otp_origin {
#define X(number, NAME, name) OTP_ORIGIN_##NAME = number,
	OTP_ORIGINS(X)
#undef X
	OTP_ORIGIN_NR, /* one more than the last */
};

/*
 * A session samples at most this many origins at once, each in a slot:
 * counters and ledgers are kept by slot. Slot 0 is the CPU clock's, sampled or not.
 */
#define OTP_ORIGINS_MAX 8

/* otp_sample.mode: the interrupted context, and the state of the stack copy. */
#define OTP_MODE_KERNEL   (1U << 0) /* the kernel was interrupted, else user code */
#define OTP_MODE_COMPAT   (1U << 1) /* the user registers are those of 32-bit code */
#define OTP_MODE_KTHREAD  (1U << 2) /* kernel thread: neither user registers nor user stack */
#define OTP_MODE_NO_USER  (1U << 3) /* has an mm but no user registers that fit it: io_uring, vhost, inside exec */
#define OTP_MODE_EXITING  (1U << 4) /* the mm is gone */
#define OTP_MODE_SHORT    (1U << 5) /* fewer stack bytes were readable than the plan asks for */
#define OTP_MODE_CHUNKED  (1U << 6) /* chunks follow: the last one has OTP_CHUNK_LAST */
#define OTP_MODE_THROTTLE (1U << 7) /* stack bytes cut by the bound on bytes per second */
#define OTP_MODE_INHERITED (1U << 8) /* plan_gen is that of the parent's plan */
#define OTP_MODE_HOLES    (1U << 9) /* pages of the stack were not resident (never touched, swapped out): zeros */
#define OTP_MODE_BOUNDED  (1U << 10) /* cut to otp_defaults.tick_bytes; stack_bytes is the size that was left */

enum otp_arch {
	OTP_ARCH_X86_64 = 1,
	OTP_ARCH_ARM64 = 2,
};

/*
 * Head of a sample, identified by (cpu, origin, seq). seq counts the samples of
 * this origin that this CPU has taken since the sampler started, from 1: a gap
 * is a loss. A sample that stands for something other than one tick has a
 * section OTP_SEC_VALUE.
 * (start_ns, exec_id) is the exec identity: a reused pid has another start_ns,
 * an exec changes exec_id.
 */
struct otp_sample {
	struct otp_rec rec;
	__u64 time_ns;
	__u64 seq;
	__u32 cpu;
	/*
	 * Thread group, in the initial pid namespace. 0: the CPU was idle and ran an
	 * interrupt or a softirq. Such a sample is of the kernel and of no process:
	 * mode is KERNEL and KTHREAD, comm is OTP_COMM_INTERRUPTS, and tid, ppid,
	 * start_ns, exec_id, cgroup_id and stack_bytes are 0. It is selected as kernel threads
	 * are; no plan and no rule applies to it.
	 */
	__u32 pid;
	__u32 tid;
	__u32 plan_gen; /* generation of the plan that was applied, 0: the default */
	__u64 start_ns; /* start of the group leader */
	__u64 exec_id;  /* task_struct.self_exec_id */
	__u64 cgroup_id;
	/*
	 * Base of the thread-local storage, 0: unknown. The module reads the
	 * processor's register. eBPF reads what the kernel holds: the value at
	 * the thread's last switch or arch_prctl, which WRFSBASE (x86-64) or a
	 * write of tpidr_el0 (arm64) makes stale until the next switch, and exec
	 * until the new program sets its own. perf does not report it.
	 */
	__u64 tls_base;
	char comm[OTP_COMM_LEN]; /* of the thread */
	__u32 mode;              /* OTP_MODE_* */
	__u32 stack_bytes;       /* user stack that the plan asked for */
	__u32 ppid;              /* thread group of the real parent */
	__u8 arch;               /* enum otp_arch */
	__u8 origin;             /* enum otp_origin */
	__u16 nr_sections;
	/*
	 * Known end (highest address) of this thread's own stack, 0: unknown.
	 * Unknown for the first thread of a process in its parent's memory
	 * (vfork, posix_spawn), and on x86-64 for a thread whose storage base is
	 * not its own first word (otp_copy_thread_end).
	 */
	__u64 stack_end;
};

/* A typed section of a sample; the next one starts at the next multiple of 8. */
struct otp_section {
	__u16 type; /* enum otp_section_type */
	__u16 flags;
	__u32 len; /* payload bytes, without this header and without padding */
};

enum otp_section_type {
	OTP_SEC_REGS = 1,   /* struct otp_regs: user registers */
	OTP_SEC_KSTACK = 2, /* __u64 kernel addresses, innermost first; see below */
	OTP_SEC_USTACK = 3, /* struct otp_ustack, then stack bytes */
	/* 4 is retired; 6 is reserved for interpreters' frames, 7 for the trace context. */
	OTP_SEC_WALK = 5,   /* struct otp_walked, then words: interpreters' frames, a section for each plan (otprof_walk.h) */
	OTP_SEC_UBASE = 8,  /* as USTACK, of the bytes below stack_end: only in captures, which have no chunks */
	OTP_SEC_VALUE = 9,  /* struct otp_value: how much of its origin the sample stands for; without it, one */
};

/*
 * Kernel addresses are absolute. A sampler could subtract the bases of kernel
 * and modules only if it knew all of them at each tick, also those of modules,
 * BPF programs and trampolines loaded a moment ago; and the engine, which names
 * the addresses, holds the kernel's symbol table with these bases anyway. They
 * do not leave the engine.
 */

/*
 * In the unit of the origin: events, nanoseconds, bytes. Later origins may
 * append fields that describe the event.
 */
struct otp_value {
	__u64 value;
};

/*
 * User registers in DWARF numbering, so that call frame information applies
 * without translation. x86-64: 0..15 rax rdx rcx rbx rsi rdi rbp rsp r8..r15,
 * 16 the instruction pointer (System V ABI, AMD64 supplement, figure 3.36).
 * arm64: 0..30 x0..x30, 31 sp, 32 pc (AADWARF64 has no pc; 32 is ELR's place).
 * A register whose bit in valid is clear holds zero and is unknown.
 */
#define OTP_REGS_X86_64 17
#define OTP_REGS_ARM64  33
#define OTP_REGS_MAX    33

struct otp_regs {
	__u64 valid;
	__u64 reg[]; /* OTP_REGS_<ARCH> of them */
};

/*
 * Stack bytes as in memory, from addr upward. addr is the stack pointer minus
 * OTP_RED_ZONE, rounded down to 8; if the mapping begins between the two, the
 * start of the stack pointer's page.
 */
struct otp_ustack {
	__u64 addr;
};

#define OTP_RED_ZONE 128

/*
 * The head record holds up to OTP_HEAD_STACK stack bytes; the rest follows in
 * chunks of up to OTP_CHUNK_STACK. A sampler works in one scratch area of
 * OTP_SCRATCH bytes per CPU: head, sections and a chunk never exceed it.
 */
#define OTP_HEAD_STACK   32768
#define OTP_CHUNK_STACK  32768
#define OTP_SCRATCH      65536
#define OTP_STACK_LIMIT  524288 /* the most stack bytes that a plan may ask for */
#define OTP_BASE_LIMIT   (2 * OTP_CHUNK_STACK)
#define OTP_BASE_UNIT    4096
#define OTP_STACK_FLOOR  4096 /* stack bytes allowed to every sample: the bound on bytes applies above */
#define OTP_BUDGET_LIMIT (1U << 28) /* the highest otp_defaults.stack_budget: more than a CPU copies in its share of 100 ms */
#define OTP_KSTACK_MAX   127

/* otp_rec.flags of a chunk */
#define OTP_CHUNK_LAST  1
#define OTP_CHUNK_SHORT 2 /* memory ended before the bytes asked for; the last chunk of its kind (stack, base) */
#define OTP_CHUNK_HOLES 4 /* as OTP_MODE_HOLES */
#define OTP_CHUNK_BASE  8 /* of the bytes below stack_end; such chunks follow those of the stack */

struct otp_chunk {
	struct otp_rec rec;
	__u64 seq; /* of the sample that it continues */
	__u32 cpu;
	__u32 index; /* 0, 1, ... */
	__u64 addr;  /* of its first byte */
	__u32 len;   /* stack bytes that follow; may be 0 in the last one */
	__u16 origin; /* of the sample */
	__u16 reserved;
};

/*
 * Losses of this CPU and origin since its last record that reached the ring,
 * written before the next sample of that origin: so a capture is complete
 * without the counters.
 */
struct otp_loss {
	struct otp_rec rec;
	__u64 time_ns;
	__u32 cpu;
	__u16 reason; /* enum otp_loss_reason, of the first of them: the counters have each by its own */
	__u16 origin;
	__u64 samples;
	__u64 first_seq; /* of the first of them */
};

/*
 * Process life where perf's side-band is not available. One perf record follows
 * this head (struct perf_event_header: PERF_RECORD_FORK, COMM, EXIT or MMAP2,
 * ending in the sample id of PERF_SAMPLE_TID and PERF_SAMPLE_TIME), so that one
 * parser reads both. Not a sample: it has no sequence number; one for which the
 * ring has no room is counted in life_lost.
 */
struct otp_life {
	struct otp_rec rec;
};

/*
 * Reasons why a sample that was taken does not arrive. Samplers, ledger, metrics
 * and documentation use this list. The number of a retired reason is never
 * reused.
 *   X(number, NAME, "name", PLACE, "what happened")
 * PLACE is where it is counted: SAMPLER, ENGINE or DEST (for each destination).
 */
#define OTP_LOSS_REASONS(X)                                                                        \
	X(0, RING_FULL, "ring_full", SAMPLER, "the ring had no room")                              \
	X(1, SCRATCH, "scratch", SAMPLER, "the sampler had no scratch memory for this CPU")        \
	X(2, BAD_RECORD, "bad_record", ENGINE, "a record broke the contract")                      \
	X(3, ENGINE_DIED, "engine_died", ENGINE, "the engine ended while it held the sample")      \
	X(4, NO_MEMORY, "no_memory", ENGINE, "the interval's profile reached its bound")           \
	X(5, ENCODE, "encode", ENGINE, "the profile could not be encoded")                         \
	X(6, NET_DIED, "net_died", DEST, "the exporter process ended while it held the sample")    \
	X(7, QUEUE_FULL, "queue_full", DEST, "the destination's queue was full")                   \
	X(8, REJECTED, "rejected", DEST, "the destination refused the profile")                    \
	X(9, RETRY_EXPIRED, "retry_expired", DEST, "retries lasted longer than retry_max_elapsed") \
	X(10, WRITE, "write", DEST, "the file could not be written")                               \
	X(11, TOO_LARGE, "too_large", DEST, "one profile exceeds the request limit")               \
	X(12, SHUTDOWN, "shutdown", DEST, "still queued when the time to stop was over")           \
	X(13, NO_EXPORTER, "no_exporter", ENGINE, "no exporter process took the profile in time")  \
	X(14, RING_BUSY, "ring_busy", SAMPLER, "the ring was locked when an NMI took the sample")   \
	X(15, SPOOL_FULL, "spool_full", DEST, "the spool was full, and newer profiles needed the room") \
	X(16, SPOOL_EXPIRED, "spool_expired", DEST, "the profile was on disk for longer than spool_age") \
	X(17, SPOOL_DAMAGED, "spool_damaged", DEST, "what was on disk could not be read back")

enum otp_loss_reason {
#define X(number, NAME, name, place, text) OTP_LOSS_##NAME = number,
	OTP_LOSS_REASONS(X)
#undef X
	OTP_LOSS_NR, /* one more than the last */
	OTP_LOSS_MAX = 32, /* room in shared structures */
};

/*
 * Reasons why a tick is not taken as a sample: by rule, not by failure.
 *   X(number, NAME, "name", "why")
 */
#define OTP_SKIP_REASONS(X)                                                     \
	X(0, IDLE, "idle", "the CPU was idle, and ran no softirq")              \
	X(1, NOT_SELECTED, "not_selected", "plan, cgroup rule or default")      \
	X(2, STOPPED, "stopped", "the sampler was not running yet or any more") \
	X(3, RESTING, "resting", "another tick on this CPU has just ended")

enum otp_skip_reason {
#define X(number, NAME, name, text) OTP_SKIP_##NAME = number,
	OTP_SKIP_REASONS(X)
#undef X
	OTP_SKIP_NR, /* one more than the last */
	OTP_SKIP_MAX = 8,
};

/*
 * Counters of one CPU and one slot of the session's origins; the sampler is
 * the only writer, on that CPU. They are an array: slot 0 by CPU, then slot 1
 * by CPU, and so on. A tick is an event that reached the sampler:
 * ticks == taken + sum(skip); taken == put + sum(lost).
 */
struct otp_cpu_counters {
	__u64 ticks;
	__u64 taken;
	__u64 put;
	__u64 put_bytes;
	__u64 chunks;
	__u64 chunks_lost; /* stacks cut because the ring had no room or was locked: the sample is not lost */
	__u64 short_stacks;
	__u64 value; /* sum of the values of samples taken; the CPU clock leaves it 0 */
	__u64 skip[OTP_SKIP_MAX];
	__u64 lost[OTP_LOSS_MAX];
	__u64 timed_runs; /* samples whose duration was measured: one of OTP_TIMED_EVERY, or all */
	__u64 timed_ns;	  /* sum of the durations, from the tick's entry into the sampler to its end */
	__u64 longest_ns; /* the longest of them */
	__u64 life;	  /* OTP_REC_LIFE written */
	__u64 life_lost;
	__u64 reserved2[11];
};

/* Measuring costs two clock reads, so a sampler may measure one sample of this many. */
#define OTP_TIMED_EVERY 16

/* Selection, in the order plan, cgroup rule, default. UNSET leaves the decision to the next. */
enum otp_select {
	OTP_SELECT_UNSET = 0,
	OTP_SELECT_YES = 1,
	OTP_SELECT_NO = 2,
};

/* otp_plan.flags */
#define OTP_PLAN_SAME_PROGRAM 1 /* forks inherit select until they exec */
#define OTP_PLAN_WALK	      2 /* the process may have walks (struct otp_walks): without it none are looked up */
#define OTP_PLAN_FLAGS	      3 /* all of them */

/*
 * The plan of a process. It applies only to the exec identity that it was made
 * for. A process without a plan inherits select from the nearest ancestor with
 * one, and stack_bytes and base_units from a parent that runs the same program
 * (a fork, and no exec since); from such a parent it also inherits the walks.
 */
struct otp_plan {
	__u32 generation; /* not 0 */
	__u32 stack_bytes; /* 0: the default's */
	__u64 start_ns; /* 0 with any_exec: unknown, any start applies */
	__u64 exec_id;
	__u8 select;  /* enum otp_select */
	__u8 any_exec; /* 1: holds across execs of the process (a selection by pid) */
	__u8 flags;    /* OTP_PLAN_* */
	/*
	 * Base: bytes below stack_end, in units of OTP_BASE_UNIT, copied where the
	 * copy of the stack does not reach them. They hold the callers of code that
	 * switched stacks or has a frame too large to copy. 0: none.
	 */
	__u8 base_units;
	__u32 pid; /* of the process, for the eBPF sampler, whose source sets it; 0 elsewhere */
};

struct otp_cgroup_rule {
	__u8 select; /* enum otp_select; applies to the cgroup and all below it */
	__u8 reserved[7];
};

/*
 * Stack bytes that programs of this name (comm of the process' first thread)
 * needed recently: for a process that has no plan yet. A name is no identity;
 * a wrong hint costs bytes, and never changes a selection.
 */
struct otp_hint {
	__u32 stack_bytes; /* 0: the default's */
	__u32 base_bytes;
};

/* Levels searched for cgroup rules, upward from the task's own cgroup. */
#define OTP_CGROUP_DEPTH 16
/* The maximum of otp_defaults.ancestors. */
#define OTP_ANCESTORS_MAX 16

/*
 * Where there is wake_bytes, a sample wakes the reader too whose process has no
 * plan and is as old as this; at most one sample of all CPUs in OTP_YOUNG_WAKE_NS.
 * Those that are over at once, as most that scripts start, wake nobody.
 */
#define OTP_YOUNG_FROM_NS 20000000ULL
#define OTP_YOUNG_TO_NS	  1000000000ULL
#define OTP_YOUNG_WAKE_NS 50000000ULL

/* Applies where neither plan nor rule decides; may change while sampling. */
struct otp_defaults {
	__u32 running; /* 0: count ticks as stopped */
	__u32 stack_bytes;
	__u32 wake_bytes;   /* wake the reader once when this many bytes are unread, and for the young; 0: never */
	__u8 select;        /* enum otp_select, never UNSET */
	__u8 kthreads;      /* enum otp_select for kernel threads, UNSET: as select */
	__u8 have_rules;    /* 0: skip the search for cgroup rules */
	__u8 ancestors;     /* number of ancestors whose plans are looked up for a process that has none */
	__u32 stack_budget; /* stack bytes above OTP_STACK_FLOOR, per CPU and 100 ms; 0: none above it */
	__u32 base_bytes;   /* as a hint's; used with stack_bytes */
	/*
	 * The most bytes of stack and base that one tick copies of a program for
	 * which neither a plan nor a hint sets a depth: so long a copy holds up
	 * interrupts. At least OTP_STACK_FLOOR; 0: no bound.
	 */
	__u32 tick_bytes;
	__u32 reserved;
};

#define OTP_CHECK(type, size) _Static_assert(sizeof(type) == (size), #type " changed its size")
#define OTP_CHECK_AT(type, field, offset) \
	_Static_assert(__builtin_offsetof(type, field) == (offset), #type "." #field " moved")

OTP_CHECK(struct otp_ring_hdr, 8);
OTP_CHECK(struct otp_rec, 8);
OTP_CHECK(struct otp_sample, 112);
OTP_CHECK_AT(struct otp_sample, time_ns, 8);
OTP_CHECK_AT(struct otp_sample, cpu, 24);
OTP_CHECK_AT(struct otp_sample, start_ns, 40);
OTP_CHECK_AT(struct otp_sample, comm, 72);
OTP_CHECK_AT(struct otp_sample, mode, 88);
OTP_CHECK_AT(struct otp_sample, origin, 101);
OTP_CHECK_AT(struct otp_sample, stack_end, 104);
OTP_CHECK(struct otp_section, 8);
OTP_CHECK(struct otp_regs, 8);
OTP_CHECK(struct otp_ustack, 8);
OTP_CHECK(struct otp_value, 8);
OTP_CHECK(struct otp_chunk, 40);
OTP_CHECK_AT(struct otp_chunk, addr, 24);
OTP_CHECK(struct otp_loss, 40);
OTP_CHECK(struct otp_life, 8);
OTP_CHECK(struct otp_cpu_counters, 512);
OTP_CHECK_AT(struct otp_cpu_counters, skip, 64);
OTP_CHECK_AT(struct otp_cpu_counters, lost, 128);
OTP_CHECK_AT(struct otp_cpu_counters, timed_runs, 384);
OTP_CHECK(struct otp_plan, 32);
OTP_CHECK_AT(struct otp_plan, start_ns, 8);
OTP_CHECK_AT(struct otp_plan, select, 24);
OTP_CHECK(struct otp_cgroup_rule, 8);
OTP_CHECK(struct otp_hint, 8);
OTP_CHECK(struct otp_defaults, 32);
OTP_CHECK_AT(struct otp_defaults, tick_bytes, 24);

#endif /* OTPROF_UAPI_H */
