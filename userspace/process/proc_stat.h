/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/stat (proc(5)), of a process or a thread.
 *
 * Called by the monitor, the opener and the perf source; any thread. Pure, and
 * one reading of a small file that never blocks on the process. A process
 * chooses its name, which may hold any character, also brackets and spaces:
 * fields are therefore counted from the last bracket on.
 */
#ifndef OTP_PROCESS_PROC_STAT_H
#define OTP_PROCESS_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>

struct proc_stat {
	uint32_t pid, ppid;
	uint32_t flags; /* the kernel's PF_ */
	char state;     /* 'R', 'S', 'Z' ... */
	char comm[64];  /* cut; a worker of the kernel shows more than the 15 bytes of others */
	uint64_t start_ticks;
};

/* -EBADMSG, and ret is untouched: a field is missing or no number, or the start is beyond any clock. */
int proc_stat_parse(const char *text, struct proc_stat *ret);
/* -ESRCH: the process is gone. Else the error of the file, or as above. */
int proc_stat_read(uint32_t pid, struct proc_stat *ret);

/* Since boot; as precise as a tick. */
uint64_t proc_stat_start_ns(const struct proc_stat *s);
/*
 * Whether this is the process that started then, as samplers report it; 0: any is. Stat's start is cut to ticks, and
 * samplers in userspace know the time of the fork's record, which is a little later.
 */
bool proc_stat_started_at(const struct proc_stat *s, uint64_t start_ns);
/* It has ended, and its parent has not read its exit status yet. */
static inline bool proc_stat_is_zombie(const struct proc_stat *s)
{
	return s->state == 'Z' || s->state == 'X';
}

#endif
