/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the kernel's capabilities, whatever the age of the headers
 * that otprof is built with: CAP_PERFMON and CAP_BPF are of Linux 5.8,
 * CAP_CHECKPOINT_RESTORE of 5.9. Numbers only; whether the running kernel
 * knows a capability is asked by PR_CAPBSET_READ.
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
