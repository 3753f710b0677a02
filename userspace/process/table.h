/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process table: the processes that run, their mappings and identities.
 * Fed by the perf side-band in time order and by the host's answers; looked up
 * once per sample.
 *
 * Called by the engine, one thread. Bounded (struct process_limits): the
 * longest-dead entries go first, then the least recently sampled.
 * Ownership: table_find's result is borrowed until the next call that changes
 * the table; take references to space and workload to keep them.
 * Callbacks may run within table_find, table_uncovered, table_want_file and
 * table_tick, if the host answers at once. A callback may call table_peek and
 * table_want_file, nothing that adds or removes entries.
 * Time is that of samples, records and table_tick: no clock is read here.
 * Cost: table_find is one hash lookup.
 *
 * Pid 0 stands for interrupts on idle CPUs (otp_sample.pid): nothing is
 * requested for it.
 *
 * A process that ended before its identity was read is named after its
 * executable (or script) in the side-band, with the cgroup of another process
 * of the same cgroup id, else its parent's, and with its parent's OTEL_
 * variables, which exec mostly keeps.
 */
#ifndef OTP_PROCESS_TABLE_H
#define OTP_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"
#include "process/events.h"
#include "process/frame.h"
#include "process/host.h"
#include "process/space.h"
#include "process/workload.h"

struct process_limits {
	uint32_t processes;   /* default 16384 */
	uint32_t exited_keep_ms; /* how long an entry outlives its EXIT, default 10000 */
	uint32_t rescans_per_second; /* bound of maps read again, default 50 */
	uint32_t files;    /* open files, default 1024 */
	uint32_t mappings; /* over all processes, default 262144 */
};

#define PROCESS_ENDS_MAX 24

struct process_stacks {
	uint32_t by_end[PROCESS_ENDS_MAX]; /* how its stacks ended, by enum unwind_end */
	uint32_t guessed[FRAME_GUESS_NR];  /* its frames, by how they were found */
};

struct process {
	uint32_t pid, ppid;
	uint64_t start_ns; /* 0 until the first sample */
	uint64_t exec_id;
	uint64_t exec_time_ns; /* last EXEC seen */
	uint64_t exit_time_ns; /* 0: lives */
	uint64_t cgroup_id;
	struct str *comm; /* of the leader; owned */
	struct str *exe;  /* base name that it was started under; owned, NULL: unknown */
	struct space *space;       /* owned, never NULL */
	struct workload *workload; /* owned, never NULL: a preliminary one until the identity is known */
	bool maps_known;     /* side-band from birth or exec on, or /proc was read */
	bool identity_known;
	bool maps_pending;     /* requested: process_settled follows */
	bool identity_pending; /* likewise */
	bool kernel;           /* a kernel thread */
	/* The engine's own, zero at birth; exec keeps only stack_samples, stack_backoff and stack_shrunk. */
	uint32_t stack_bytes;   /* of the plan in force, 0: not decided yet */
	uint32_t stack_needed;  /* most that unwinding used in this window */
	uint32_t stack_samples; /* stacks in this window */
	uint32_t plan_gen;
	uint64_t stack_seen_ns; /* beginning of the window */
	uint8_t stack_backoff;  /* windows are 2^n times longer */
	bool stack_shrunk;      /* the last change made the copy smaller */
	uint32_t walks;         /* generation of the walks that its plans go with, 0: none */
	uint32_t base_bytes;    /* of the plan: wanted below the stack's end */
	uint32_t base_needed;   /* most of it that unwinding used in this window */
	struct process_stacks *stacks; /* of this exec; owned (malloc), NULL: none yet */
};

struct process_stats {
	uint64_t processes, mappings, rescans_denied, sideband_lost, evicted;
};

struct process_table;

struct process_table_config {
	struct process_limits limits;
	struct host *host;              /* borrowed for the table's life */
	const struct attribute *resource; /* attributes of every workload: host.name, os.type, [resource]; borrowed */
	size_t nr_resource;
	/* Called whenever a mapped file became READY or FAILED. */
	void (*file_settled)(void *ctx, struct mapped_file *f);
	/* Called whenever a request for a process' maps or identity ended, also if it failed; may be NULL. */
	void (*process_settled)(void *ctx, struct process *p);
	void *ctx;
	struct binary *vdso; /* borrowed: of a capture; NULL: this process' own */
};

int table_new(const struct process_table_config *cfg, struct process_table **ret);
struct process_table *table_free(struct process_table *t); /* NULL */

/* Replaces resource, borrowed likewise; every process gets another workload. */
int table_set_resource(struct process_table *t, const struct attribute *resource, size_t nr_resource);

/* Requests a scan of /proc; side-band records since the request take precedence over its answers. */
int table_scan(struct process_table *t);
/*
 * The same for a few processes at a time, in turn, where the kernel's records
 * of process life are not available. Call it once a second.
 */
int table_scan_some(struct process_table *t);
/* One side-band record, in time order with the samples. */
void table_apply(struct process_table *t, const struct proc_event *ev);
/*
 * The process of this sample; created if unknown, and its maps and identity
 * requested. A sample whose (start_ns, exec_id) does not match the entry
 * replaces it (pid reuse, lost EXEC). NULL only without memory.
 */
struct process *table_find(struct process_table *t, const struct otp_sample *s);
struct process *table_peek(struct process_table *t, uint32_t pid); /* NULL if unknown; requests nothing */
/*
 * No mapping covers pc at the time of this sample, or the unwinder contradicts
 * the one that does: maps are read again, at most rescans_per_second and less
 * often for a process where that did not help. true: the answer is pending, and
 * the sample may wait for process_settled; or, with maps_pending false, it has
 * arrived and p->space has changed. false: it may have changed as well. Before
 * the call, take a reference to a space that is in use.
 */
bool table_uncovered(struct process_table *t, struct process *p, uint64_t pc, uint64_t time_ns);
/* Requests the file unless that was done. false: it is READY or FAILED; true: file_settled follows. */
bool table_want_file(struct process_table *t, struct process *p, const struct mapping *m);
/* Housekeeping, in every turn of the main loop: sends delayed requests, frees entries that exited. */
void table_tick(struct process_table *t, uint64_t now_ns);
void table_stats(const struct process_table *t, struct process_stats *ret);

#endif
