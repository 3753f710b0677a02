/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * /dev/otprof: how the module is driven. What it samples is in otprof.h.
 *
 * Who uses it: the monitor, through userspace/source; nobody else may open it.
 * Every open is a sampler of its own: its ring, plans and counters are seen
 * through it and through views of it, and end with it. A view is a descriptor
 * that can be mapped and polled and nothing else; it is what the engine gets.
 * Order: CONFIG once, then the rest. START and STOP as often as wanted.
 * Errors: the usual ones; EINVAL also for any reserved field that is not zero;
 * E2BIG where ring and tables would exceed the module's parameter memory_max.
 * Compatibility: INFO first. version changes when a caller must change,
 * features say what this module can; new calls have new numbers.
 */
#ifndef OTPROF_DEV_UAPI_H
#define OTPROF_DEV_UAPI_H

#include <linux/ioctl.h>

#include "kmod/uapi/otprof.h"

#define OTPROF_DEV_PATH    "/dev/otprof"
#define OTPROF_DEV_VERSION 2
#define OTPROF_CPUS_MAX    8192

#define OTPROF_RATE_MAX  10000 /* Hz */
#define OTPROF_RING_MAX  (1U << 30)
#define OTPROF_PLANS_MAX (1U << 20)

/* otprof_info.features: what this module can on this kernel. */
#define OTPROF_FEATURE_PERIOD   (1ULL << 0) /* OTPROF_IOC_PERIOD */
#define OTPROF_FEATURE_HARDWARE (1ULL << 1) /* OTPROF_CONFIG_HARDWARE, where the CPU has a counter too */
#define OTPROF_FEATURE_LIFE   (1ULL << 2) /* OTPROF_CONFIG_LIFE */

/*
 * otprof_config.flags.
 *
 * HARDWARE: ticks come from the CPU's counter of cycles, at the rate that the
 * period says, instead of a timer; so code that runs with interrupts off is
 * seen, and an idle CPU is left alone. UNTESTED UNTIL RUN ON SUCH HARDWARE.
 * CONFIG fails with ENOENT or EOPNOTSUPP where no such counter is to be had.
 * A CPU that comes is taken in by the next OTPROF_IOC_CPUS.
 *
 * LIFE: the ring also gets process life, as OTP_REC_LIFE: FORK, COMM and
 * EXIT as perf's side-band has them, and at an exec, behind its COMM, an MMAP2
 * for each executable mapping that the new program begins with (itself, its
 * loader, the vDSO). Mappings made later are not reported: the kernel lets no
 * module see them at a bearable cost, so whoever meets an address that nothing
 * covers reads /proc/PID/maps. The same holds for those of an exec on a
 * PREEMPT_RT kernel, where they cannot be looked at without sleeping.
 */
#define OTPROF_CONFIG_HARDWARE (1ULL << 0)
#define OTPROF_CONFIG_LIFE   (1ULL << 1)

struct otprof_info {
	__u32 abi_version; /* OTP_ABI_VERSION */
	__u32 dev_version;
	__u64 features;
	__u32 cpus_nr; /* one more than the highest CPU there may be */
	__u32 page_bytes;
	/* Of the view of the ring, in bytes from its beginning; the data area appears twice in a row. */
	__u64 consumer_offset;
	__u64 producer_offset;
	__u64 data_offset;
	__u64 counters_stride; /* in the view of the counters */
	__u64 reserved[4];
};

struct otprof_config {
	__u64 period_ns;
	__u32 ring_bytes; /* power of two, at least a page */
	__u32 plans_max;
	__u32 hints_max;
	__u32 rules_max;
	struct otp_defaults defaults; /* running is the module's own: 0 */
	__u64 flags; /* OTPROF_CONFIG_* */
	__u64 reserved[3];
	__u64 cpus[OTPROF_CPUS_MAX / 64]; /* those to sample */
};

enum otprof_op {
	OTPROF_SET = 1,
	OTPROF_REMOVE = 2, /* of what is not there: no error */
};

struct otprof_set_plan {
	__u32 op; /* enum otprof_op */
	__u32 pid;
	struct otp_plan plan;
};

struct otprof_set_hint {
	__u32 op;
	__u32 reserved;
	char comm[OTP_COMM_LEN];
	struct otp_hint hint;
};

struct otprof_set_rule {
	__u32 op;
	__u32 reserved;
	__u64 cgroup_id;
	struct otp_cgroup_rule rule;
};

/* What the counters do not say. */
struct otprof_times {
	__u64 expected_ticks; /* that the running time should have brought */
	__u64 run_ns;         /* inside the sampler, timer not included, ticks that are no sample too */
	__u64 runs;
	__u64 longest_ns;     /* the longest of them, with interrupts off */
	__u64 memory_bytes;   /* beside ring and counters */
	__u64 reserved[4];
};

struct otprof_cpus {
	__u32 changed; /* that went or came since the last call */
	__u32 running;
};

enum otprof_view {
	OTPROF_VIEW_RING = 1,
	OTPROF_VIEW_COUNTERS = 2,
};

#define OTPROF_IOC_MAGIC    0xb9
#define OTPROF_IOC_INFO     _IOR(OTPROF_IOC_MAGIC, 1, struct otprof_info)
#define OTPROF_IOC_CONFIG   _IOW(OTPROF_IOC_MAGIC, 2, struct otprof_config)
#define OTPROF_IOC_START    _IO(OTPROF_IOC_MAGIC, 3)
#define OTPROF_IOC_STOP     _IO(OTPROF_IOC_MAGIC, 4)
#define OTPROF_IOC_DEFAULTS _IOW(OTPROF_IOC_MAGIC, 5, struct otp_defaults)
#define OTPROF_IOC_PLAN     _IOW(OTPROF_IOC_MAGIC, 6, struct otprof_set_plan)
#define OTPROF_IOC_HINT     _IOW(OTPROF_IOC_MAGIC, 7, struct otprof_set_hint)
#define OTPROF_IOC_RULE     _IOW(OTPROF_IOC_MAGIC, 8, struct otprof_set_rule)
#define OTPROF_IOC_TIMES    _IOR(OTPROF_IOC_MAGIC, 9, struct otprof_times)
#define OTPROF_IOC_VIEW     _IO(OTPROF_IOC_MAGIC, 10) /* argument: enum otprof_view; returns a descriptor */
#define OTPROF_IOC_CPUS     _IOR(OTPROF_IOC_MAGIC, 11, struct otprof_cpus)
#define OTPROF_IOC_PERIOD   _IOW(OTPROF_IOC_MAGIC, 12, __u64) /* another period_ns, running or not */

OTP_CHECK(struct otprof_info, 88);
OTP_CHECK_AT(struct otprof_info, consumer_offset, 24);
OTP_CHECK(struct otprof_config, 1104);
OTP_CHECK_AT(struct otprof_config, defaults, 24);
OTP_CHECK_AT(struct otprof_config, flags, 48);
OTP_CHECK_AT(struct otprof_config, cpus, 80);
OTP_CHECK(struct otprof_set_plan, 40);
OTP_CHECK(struct otprof_set_hint, 32);
OTP_CHECK(struct otprof_set_rule, 24);
OTP_CHECK(struct otprof_times, 72);
OTP_CHECK(struct otprof_cpus, 8);

#endif
