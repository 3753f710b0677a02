/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens /proc/kallsyms, the kernel's symbols as text.
 *
 * The kernel shows addresses to a descriptor that was opened with CAP_SYSLOG,
 * whoever reads it later. So a service manager that opens the file as standard
 * input (StandardInput= of systemd) saves otprofd that capability, and the path
 * may be hidden from it. Elsewhere the file is opened by its path.
 *
 * Called by the monitor, any number of times; no state. Each reading returns the
 * present symbols. Descriptors of standard input share one position: read them
 * by pread, or rewind them before others have one.
 */
#ifndef OTP_BASE_KALLSYMS_OPEN_H
#define OTP_BASE_KALLSYMS_OPEN_H

/* A descriptor, owned by the caller, closed on exec; or negative errno. */
int kallsyms_open(void);

#endif
