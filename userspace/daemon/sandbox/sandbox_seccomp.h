/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System call filters. What is on a role's list passes; what only an intruder
 * would call ends the process; all else fails with EPERM, because libraries
 * try harmless things that they can do without.
 *
 * Private to sandbox*.c; last step of a sandbox.
 */
#ifndef OTP_DAEMON_SANDBOX_SANDBOX_SECCOMP_H
#define OTP_DAEMON_SANDBOX_SANDBOX_SECCOMP_H

int seccomp_engine(void);
int seccomp_net(void);
int seccomp_opener(void);
int seccomp_indexer(void);
int seccomp_fetcher(void);

#endif
