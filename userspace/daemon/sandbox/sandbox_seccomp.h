/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System call filters. A call on the role's list passes; a call that only an
 * intruder would make ends the process; any other fails with EPERM, because
 * libraries try harmless calls that they can do without.
 *
 * Private to sandbox*.c; last step of a sandbox. 0 or negative errno.
 */
#ifndef OTP_DAEMON_SANDBOX_SANDBOX_SECCOMP_H
#define OTP_DAEMON_SANDBOX_SANDBOX_SECCOMP_H

int seccomp_engine(void);
int seccomp_net(void);
int seccomp_hub(void);
int seccomp_opener(void);
int seccomp_indexer(void);
int seccomp_fetcher(void);
int seccomp_decoder(void);

#endif
