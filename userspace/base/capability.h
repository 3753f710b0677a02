/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the kernel's capabilities, whatever the age of the headers
 * that otprof is built with: CAP_PERFMON and CAP_BPF exist since Linux 5.8,
 * CAP_CHECKPOINT_RESTORE since 5.9. Whether the running kernel has a
 * capability is found out by PR_CAPBSET_READ.
 *
 * Included by the sandbox, the sampler's probes and doctor.
 */
#ifndef OTP_BASE_CAPABILITY_H
#define OTP_BASE_CAPABILITY_H

#include <linux/capability.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#endif
