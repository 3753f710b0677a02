/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otprof-worker, the program of the workers without a network.
 *
 * Called by the monitor, once, at its start: an upgrade of the package must not
 * give a running monitor workers of another version.
 */
#ifndef OTP_DAEMON_MONITOR_WORKER_PROGRAM_H
#define OTP_DAEMON_MONITOR_WORKER_PROGRAM_H

/*
 * A descriptor to execute it by, owned by the caller and never ROLE_SOCKET; or a negative errno, which was logged. It
 * is looked for where this program is: in the same directory (built), else in ../libexec/otprof (installed).
 */
int worker_program_open(void);

#endif
