/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the BPF sampler can run on this host; if not, a text of what is
 * missing. Called by the BPF source, and by tests with texts of other kernels.
 */
#ifndef OTP_SOURCE_BPF_PROBE_H
#define OTP_SOURCE_BPF_PROBE_H

#include "source/source.h"

struct kernel_version {
	unsigned int major, minor, patch;
};

/* From uname's release, or its version text where that is more precise (Debian); or -EINVAL. */
int kernel_version_parse(const char *release, const char *version, struct kernel_version *ret);
bool kernel_version_below(const struct kernel_version *v, unsigned int major, unsigned int minor, unsigned int patch);

/*
 * From 5.19 on, copying user memory from an interrupt could deadlock on a lock
 * that the interrupted code holds; fixed in 6.1.36, 6.3.10, 6.4.
 */
bool kernel_can_freeze(const struct kernel_version *v);

int bpf_probe_host(char why[SOURCE_WHY]);

/*
 * Before 5.11 maps are charged to RLIMIT_MEMLOCK: raises it to need bytes; if it
 * cannot, why contains the figure. Does nothing on later kernels.
 */
int bpf_raise_memlock(uint64_t need, char why[SOURCE_WHY]);

#endif
