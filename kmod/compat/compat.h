/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where kernels differ. The core calls what is here and asks no version; the
 * probes beside this file say which kernel has what.
 */
#ifndef OTPROF_COMPAT_H
#define OTPROF_COMPAT_H

#include <linux/cgroup.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/ptrace.h>
#ifdef OTPROF_HAVE_SCHED_HEADERS
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#endif
#ifdef OTPROF_HAVE_FSBASE_READ
#include <asm/fsgsbase.h>
#elif defined(CONFIG_X86_64)
#include <asm/msr.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 4, 0)
#error "otprof needs Linux 4.4 or later"
#endif
#if !defined(CONFIG_X86_64) && !defined(CONFIG_ARM64)
#error "otprof knows x86-64 and arm64 only"
#endif
#ifndef CONFIG_HIGH_RES_TIMERS
#error "otprof needs a kernel with CONFIG_HIGH_RES_TIMERS"
#endif
#ifndef OTPROF_HAVE_CPUHP_MULTI
#error "otprof cannot follow CPUs on this kernel yet: it needs cpuhp_state_add_instance (Linux 4.10)"
#endif

#ifdef OTPROF_HAVE_HRTIMER_HARD
#define OTPROF_HRTIMER_MODE HRTIMER_MODE_ABS_PINNED_HARD
#else
#define OTPROF_HRTIMER_MODE HRTIMER_MODE_ABS_PINNED
#endif

static inline void otprof_compat_hrtimer(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *))
{
#ifdef OTPROF_HAVE_HRTIMER_SETUP
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, OTPROF_HRTIMER_MODE);
#else
	hrtimer_init(t, CLOCK_MONOTONIC, OTPROF_HRTIMER_MODE);
	t->function = fn;
#endif
}

static inline void otprof_compat_vm_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#ifdef OTPROF_HAVE_VM_FLAGS_CLEAR
	vm_flags_set(vma, set);
	vm_flags_clear(vma, clear);
#else
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
#endif
}

static inline bool otprof_compat_may_profile(void)
{
#ifdef OTPROF_HAVE_PERFMON_CAPABLE
	return perfmon_capable();
#else
	return capable(CAP_SYS_ADMIN);
#endif
}

static inline u64 otprof_compat_start_ns(const struct task_struct *task)
{
#ifdef OTPROF_HAVE_START_BOOTTIME
	return task->start_boottime;
#else
	return task->real_start_time;
#endif
}

static inline u64 otprof_compat_boot_ns(void)
{
#ifdef OTPROF_HAVE_BOOT_FAST_NS
	return ktime_get_boot_fast_ns();
#else
	return ktime_get_boot_ns();
#endif
}

/* Live: what the thread itself may have written a moment ago. */
static inline u64 otprof_compat_tls_base(void)
{
#if defined(CONFIG_ARM64)
	return read_sysreg(tpidr_el0);
#elif defined(OTPROF_HAVE_FSBASE_READ)
	return x86_fsbase_read_cpu();
#else
	u64 base;

	rdmsrl(MSR_FS_BASE, base);
	return base;
#endif
}

#ifdef CONFIG_CGROUPS
static inline u64 otprof_compat_cgroup_id(struct cgroup *cgroup)
{
#ifdef OTPROF_HAVE_CGROUP_ID
	return cgroup_id(cgroup);
#elif defined(OTPROF_HAVE_KN_ID_UNION)
	return cgroup->kn->id.id;
#else
	return cgroup->kn->ino;
#endif
}
#endif

/* Flags that a kernel does not know are set on no task. */
#ifndef PF_IO_WORKER
#define PF_IO_WORKER 0
#endif
#ifndef PF_USER_WORKER
#define PF_USER_WORKER 0
#endif

#ifndef OTPROF_HAVE_POLL_T
#define __poll_t unsigned int
#define EPOLLIN POLLIN
#define EPOLLRDNORM POLLRDNORM
#endif

#endif
