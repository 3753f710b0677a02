/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * /dev/otprof: the control interface of the module. Its records are in otprof.h.
 *
 * Who uses it: the monitor, through userspace/source.
 * Every open is a sampler of its own: its ring, plans and counters are
 * accessible only through it and its views; sampling ends when it is closed. A
 * view is a descriptor that can only be mapped and polled; the engine gets one.
 * Order: CONFIG once, then the rest. START and STOP any number of times.
 * Errors: the usual ones; EINVAL also for any reserved field that is not zero;
 * E2BIG where ring and tables would exceed the module's parameter memory_max.
 * open: EPERM without the right to profile; EBUSY beyond sessions_max;
 * EOPNOTSUPP where the kernel is locked down to confidentiality, which grants
 * nobody what samples hold (Linux 5.4 and later).
 * Compatibility: INFO first. dev_version changes when a caller must change;
 * features lists what this module supports; new calls have new numbers.
 */
#ifndef OTPROF_DEV_UAPI_H
#define OTPROF_DEV_UAPI_H

#include <linux/ioctl.h>

#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"

#define OTPROF_DEV_PATH    "/dev/otprof"
#define OTPROF_DEV_VERSION 8
#define OTPROF_CPUS_MAX    8192

#define OTPROF_RATE_MAX  10000 /* Hz */
#define OTPROF_RING_MAX  (1U << 30)
#define OTPROF_PLANS_MAX (1U << 20)

/* otprof_info.features: what this module supports on this kernel. */
#define OTPROF_FEATURE_PERIOD   (1ULL << 0) /* OTPROF_IOC_PERIOD */
#define OTPROF_FEATURE_HARDWARE (1ULL << 1) /* OTPROF_CONFIG_HARDWARE, if the CPU has a counter too */
#define OTPROF_FEATURE_LIFE     (1ULL << 2) /* OTPROF_CONFIG_LIFE */

/*
 * otprof_config.flags.
 *
 * HARDWARE: the CPU's counter of cycles makes the ticks, at the rate of the
 * period, instead of a timer: code that runs with interrupts off is sampled,
 * and an idle CPU is not interrupted. UNTESTED UNTIL RUN ON SUCH HARDWARE.
 * CONFIG fails with ENOENT or EOPNOTSUPP where there is no such counter, with
 * EBUSY where others hold all of them. A CPU that goes online is sampled from
 * the next OTPROF_IOC_CPUS on. A counter that others take while it samples stops
 * its CPU's ticks: OTPROF_IOC_CPUS reports the change, does not count the CPU as
 * running, and tries to get the counter back.
 *
 * LIFE: process life is also written into the ring, as OTP_REC_LIFE: FORK, COMM
 * and EXIT as in perf's side-band; at an exec, after its COMM, an MMAP2 for each
 * executable mapping of the new program (itself, its loader, the vDSO).
 * Mappings made later are not reported, because a module cannot observe them at
 * an acceptable cost: the reader resolves an address that no mapping covers by
 * /proc/PID/maps. On a PREEMPT_RT kernel the mappings of an exec are not
 * reported either, because they cannot be read without sleeping.
 */
#define OTPROF_CONFIG_HARDWARE (1ULL << 0)
#define OTPROF_CONFIG_LIFE     (1ULL << 1)

struct otprof_info {
	__u32 abi_version; /* OTP_ABI_VERSION */
	__u32 dev_version;
	__u64 features;
	__u32 cpus_nr; /* one more than the highest possible CPU */
	__u32 page_bytes;
	/* Offsets in the view of the ring, in bytes; the data area is mapped twice in a row. */
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
	struct otp_defaults defaults; /* running: 0, the module sets it */
	__u64 flags; /* OTPROF_CONFIG_* */
	__u32 walks_max;
	__u32 reserved[3];
	__u64 cpus[OTPROF_CPUS_MAX / 64]; /* a bit for each CPU to sample */
};

enum otprof_op {
	OTPROF_SET = 1,
	OTPROF_REMOVE = 2, /* an entry that does not exist is no error */
};

struct otprof_set_plan {
	__u32 op; /* enum otprof_op */
	__u32 pid;
	struct otp_plan plan;
};

struct otprof_set_walks {
	__u32 op;
	__u32 pid;
	struct otp_walks walks;
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

/* Times and totals that the counters do not hold. */
struct otprof_times {
	__u64 expected_ticks; /* due in the time that sampling ran; 0 with HARDWARE */
	__u64 run_ns;         /* inside the sampler, without the timer; includes ticks that are no sample */
	__u64 runs;
	__u64 longest_ns;     /* the longest of them, with interrupts off */
	__u64 memory_bytes;   /* besides ring and counters */
	__u64 reserved[4];
};

struct otprof_cpus {
	__u32 changed; /* gone online or offline, or their counter taken or returned, since the last call */
	__u32 running; /* CPUs sampled now */
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
#define OTPROF_IOC_WALKS    _IOW(OTPROF_IOC_MAGIC, 13, struct otprof_set_walks)

OTP_CHECK(struct otprof_info, 88);
OTP_CHECK_AT(struct otprof_info, consumer_offset, 24);
OTP_CHECK(struct otprof_config, 1104);
OTP_CHECK_AT(struct otprof_config, defaults, 24);
OTP_CHECK_AT(struct otprof_config, flags, 56);
OTP_CHECK_AT(struct otprof_config, cpus, 80);
OTP_CHECK(struct otprof_set_plan, 40);
OTP_CHECK(struct otprof_set_walks, 352);
OTP_CHECK(struct otprof_set_hint, 32);
OTP_CHECK(struct otprof_set_rule, 24);
OTP_CHECK(struct otprof_times, 72);
OTP_CHECK(struct otprof_cpus, 8);

#endif
