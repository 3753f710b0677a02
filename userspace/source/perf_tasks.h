/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs: what a record says of a task and a perf sample does not. A sampler
 * in the kernel reads it from the task; here it comes from the records of
 * process life, in time order with the samples, and from /proc/PID/stat at the
 * first sight of a process that is older.
 *
 * Called by the perf source, one thread. Bounded: beyond TASKS_MAX everything
 * is forgotten and found again. /proc is read at most READS_MAX times between
 * two calls of perf_tasks_tick: what is not known then has start 0.
 *
 * The exec identity keeps the contract's meaning with other numbers: start_ns
 * is the time of the fork as its record tells it (microseconds behind the
 * kernel's own), or the tick that /proc knows; exec_id counts the execs seen,
 * inherited by fork, so a process has another identity after each.
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
	uint64_t cgroup_id; /* of /proc, where perf does not say it; else 0 */
	uint64_t exit_ns;   /* 0: lives */
	uint32_t pid, ppid;
	uint32_t epoch; /* of the losses that it was looked at after */
	bool kthread;
	char comm[OTP_COMM_LEN]; /* of the leader */
};

struct perf_thread {
	uint64_t exit_ns;
	char comm[OTP_COMM_LEN];
};

struct perf_tasks {
	struct map processes; /* pid to struct perf_process */
	struct map threads;   /* tid, of those that are no leader, to struct perf_thread */
	bool read_cgroups;    /* a sample does not carry the id */
	uint32_t epoch, reads;
	uint64_t swept_ns;
};

void perf_tasks_done(struct perf_tasks *t);

/* One record of process life, in time order with the samples. PROC_LOST: all is looked at again. */
void perf_tasks_apply(struct perf_tasks *t, const struct proc_event *ev);
/* Borrowed until the next call; NULL: nothing is known of it, or no memory. */
const struct perf_process *perf_tasks_find(struct perf_tasks *t, uint32_t pid);
/* Name of a thread as the kernel would say it now. */
void perf_tasks_comm(struct perf_tasks *t, const struct perf_process *p, uint32_t tid, char to[OTP_COMM_LEN]);
/* Between two batches: forgets the dead. */
void perf_tasks_tick(struct perf_tasks *t, uint64_t now_ns);

/* Text of /proc/PID/stat; -EBADMSG. */
int perf_stat_parse(const char *text, struct perf_process *ret);

#endif
