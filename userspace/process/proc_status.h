/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/status (proc(5)): whose process it is, and its pid in
 * its own namespace.
 *
 * Called by the opener, by the monitor for [targets], and by otprof to check a
 * target; any thread. Pure: nothing is allocated or read. A process chooses its
 * name, in which the kernel escapes line ends, so a line that begins with a key
 * is the kernel's.
 */
#ifndef OTP_PROCESS_PROC_STATUS_H
#define OTP_PROCESS_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct proc_status {
	uint32_t uid, gid;  /* effective, as the reader's user namespace has them */
	uint32_t real_uid;
	uint32_t inner_pid; /* 0: kernels before 4.1 do not have it */
	const char *groups; /* the supplementary ones: the rest of their line; borrowed, of the text */
};

/* -EBADMSG, and ret is untouched: a user or a group is missing, or no number. */
int proc_status_parse(const char *text, struct proc_status *ret);

/* Whether gid is its group or one of the supplementary ones. */
bool proc_status_has_group(const struct proc_status *s, uint32_t gid);

#endif
