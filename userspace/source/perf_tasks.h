/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tasks: the fields of a record that a perf sample lacks. A sampler
 * in the kernel reads them from the task; here they are taken from the records
 * of process life, in time order with the samples, and from /proc/PID/stat at
 * the first sample of a process that is older.
 *
 * Called by the perf source, one thread. Bounded: beyond TASKS_MAX the table is
 * emptied and filled again. /proc is read at most READS_MAX times between two
 * calls of perf_tasks_tick; a process that was not read has start 0.
 *
 * start_ns and exec_id identify an exec, as in the contract, but are not the
 * kernel's numbers: start_ns is the time in the record of the fork (microseconds
 * after the kernel's start time), or the start time in /proc, which is in ticks;
 * exec_id is the number of exec records of the process, and a fork inherits it.
 * Each exec changes the identity.
 */
#ifndef OTP_SOURCE_PERF_TASKS_H
#define OTP_SOURCE_PERF_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "kmod/uapi/otprof.h"
#include "process/events.h"

#define TASKS_MAX 65536
#define READS_MAX 512

struct perf_process {
	uint64_t start_ns, exec_id;
	uint64_t cgroup_id; /* from /proc, where perf does not report it; else 0 */
	uint64_t exit_ns;   /* 0: lives */
	uint32_t pid, ppid;
	uint32_t epoch; /* the table's when the process was last read */
	bool kthread;
	char comm[OTP_COMM_LEN]; /* of the leader */
};

struct perf_thread {
	uint64_t exit_ns;
	char comm[OTP_COMM_LEN];
};

struct perf_tasks {
	struct map processes; /* pid to struct perf_process */
	struct map threads;   /* tid of threads that are not leaders to struct perf_thread */
	bool read_cgroups;    /* samples do not hold the id */
	uint32_t epoch;       /* counts losses of records */
	uint32_t reads;       /* of /proc, since perf_tasks_tick */
	uint64_t swept_ns;
};

void perf_tasks_done(struct perf_tasks *t);

/* One record of process life, in time order with the samples. PROC_LOST: all processes are read again when used. */
void perf_tasks_apply(struct perf_tasks *t, const struct proc_event *ev);
/* Borrowed until the next call; NULL: unknown process, or no memory. */
const struct perf_process *perf_tasks_find(struct perf_tasks *t, uint32_t pid);
/* A thread's current name. */
void perf_tasks_comm(struct perf_tasks *t, const struct perf_process *p, uint32_t tid, char to[OTP_COMM_LEN]);
/* Between two batches: frees entries that exited. */
void perf_tasks_tick(struct perf_tasks *t, uint64_t now_ns);

#endif
