/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pids, which samplers report as the host's first pid namespace has them.
 *
 * Called by the sources, the daemon and the command line tool; any thread.
 */
#ifndef OTP_SOURCE_PIDS_H
#define OTP_SOURCE_PIDS_H

#include <stdbool.h>
#include <stdint.h>

/* Inode of the first pid namespace (Linux 3.8 and later, include/linux/proc_ns.h: PROC_PID_INIT_INO). */
#define PIDS_HOST_NAMESPACE 0xEFFFFFFCU

/* Whether this process is in that namespace; in another one it would name the wrong processes. */
bool pids_are_the_hosts(void); /* true too where /proc is missing: errors there have names of their own */
bool pid_is_gone(uint32_t pid); /* false for a zombie */

#endif
