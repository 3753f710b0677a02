/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where kernels differ. The core calls what is here and asks no version; the
 * probes beside this file say which kernel has what.
 */
#ifndef OTPROF_COMPAT_H
#define OTPROF_COMPAT_H

#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/preempt.h>
#include <linux/security.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/ptrace.h>
#ifdef OTPROF_HAVE_SCHED_HEADERS
#include <linux/sched/clock.h>
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
#if defined(CONFIG_PREEMPT_RT) || defined(CONFIG_PREEMPT_RT_FULL)
#define OTPROF_RT
#endif

#ifdef OTPROF_HAVE_HRTIMER_HARD
#define OTPROF_HRTIMER_MODE HRTIMER_MODE_ABS_PINNED_HARD
#elif defined(OTPROF_RT)
#error "otprof needs timers that expire in hard interrupts, which this -rt kernel is too old for"
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

/* 5.8: marks what races by design, for the kernel's own detector. */
#ifndef data_race
#define data_race(expr) (expr) /* nothing to mark */
#endif

/* 4.5: memory of the kernel is charged to a cgroup only where asked for. */
#ifndef GFP_KERNEL_ACCOUNT
#define GFP_KERNEL_ACCOUNT GFP_KERNEL
#endif

/*
 * Pages that a process will map. They are charged like all other memory, except
 * where the charge is written into the page's count of mappings (PageKmemcg,
 * 4.8 to 5.10): such a page cannot be mapped. From 5.1 on vm_insert_page
 * refuses it (mm/memory.c, page_has_type); before, the mapping damages both the
 * count and the charge. There these pages are not charged: memory_max and
 * sessions_max are their bound.
 */
#ifdef OTPROF_HAVE_PAGE_KMEMCG
#define OTPROF_GFP_MAPPED GFP_KERNEL
#else
#define OTPROF_GFP_MAPPED GFP_KERNEL_ACCOUNT
#endif

/* Zeroed; the caller says what no memory means, the kernel need not warn of it. */
static inline void *otprof_compat_vzalloc(unsigned long bytes)
{
	gfp_t how = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

#ifdef OTPROF_HAVE_VMALLOC_PLAIN
	return __vmalloc(bytes, how);
#else
	return __vmalloc(bytes, how, PAGE_KERNEL);
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

/*
 * What the kernel's lockdown answers: 0, or that it keeps its memory from
 * everybody, root included (confidentiality). Samples hold what it keeps then:
 * names, numbers and return addresses out of the kernel's memory. The reason
 * that is given is perf's, which all these kernels have; BPF's was renamed
 * (BPF_READ, BPF_READ_KERNEL). Kernels before 5.4 have no such question: what
 * some distributions called lockdown there is not asked.
 */
static inline int otprof_compat_locked_down(void)
{
#ifdef OTPROF_HAVE_LOCKED_DOWN
	return security_locked_down(LOCKDOWN_PERF);
#else
	return 0;
#endif
}

static inline u64 otprof_compat_start_ns(const struct task_struct *task)
{
#ifdef OTPROF_HAVE_START_BOOTTIME
	return READ_ONCE(task->start_boottime);
#else
	return READ_ONCE(task->real_start_time);
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
	u64 base;

	asm volatile("mrs %0, tpidr_el0" : "=r" (base));
	return base;
#elif defined(OTPROF_HAVE_FSBASE_READ)
	return x86_fsbase_read_cpu();
#else
	u64 base;

	rdmsrl(MSR_FS_BASE, base);
	return base;
#endif
}

#ifdef CONFIG_CGROUPS
/* What stat says of its directory: that is how userspace knows it. Only from 5.5 on it is the whole of the id. */
static inline u64 otprof_compat_cgroup_id(struct cgroup *cgroup)
{
#ifdef OTPROF_HAVE_CGROUP_ID
	return cgroup_id(cgroup);
#elif defined(OTPROF_HAVE_KN_ID_UNION)
	return cgroup->kn->id.ino;
#else
	return cgroup->kn->ino;
#endif
}
#endif

/*
 * Whether the task is between the call of execve and the new program's first
 * instruction. in_execve exists up to 7.2 at least; without it, a new program's
 * memory lacks the bounds of its code until load_elf_binary is almost done
 * (Linux, fs/binfmt_elf.c), which is known of the current task only.
 */
static inline bool otprof_compat_in_exec(const struct task_struct *task)
{
#ifdef OTPROF_HAVE_IN_EXECVE
	return data_race((bool)task->in_execve); /* a bit, set by the task itself */
#else
	return task == current && task->mm && !READ_ONCE(task->mm->end_code);
#endif
}

#ifdef TASK_SIZE_MAX
#define OTPROF_USER_END TASK_SIZE_MAX
#else
#define OTPROF_USER_END TASK_SIZE
#endif

/*
 * Bytes that could not be copied of n at from, which ends below OTPROF_USER_END;
 * in a hard interrupt or an NMI, never faulting in, keeping what was readable
 * up to the last byte. The bare copy it is: others also look up where they
 * copy to, and for memory of vmap some do that with a lock that the
 * interrupted code may hold (5.18 to 5.19 with HARDENED_USERCOPY). In an NMI the
 * interrupted code may be about to change address spaces, and copy_from_user_nmi
 * knows; it cannot be used where it has that flaw.
 */
static inline unsigned long otprof_compat_copy_user(void *to, const void __user *from, unsigned long n)
{
	unsigned long left;

#if defined(CONFIG_X86_64) && defined(OTPROF_HAVE_RAW_COPY)
	if (in_nmi())
		return copy_from_user_nmi(to, from, n);
#elif defined(CONFIG_X86_64)
	return copy_from_user_nmi(to, from, n);
#endif
	pagefault_disable();
#ifdef OTPROF_HAVE_RAW_COPY
	left = raw_copy_from_user(to, from, n);
#else
	left = __copy_from_user_inatomic(to, from, n);
#endif
	pagefault_enable();
	return left;
}

/* What a counter's NMI needs: a clock without a lock, and a copy without one. */
#if defined(OTPROF_HAVE_BOOT_FAST_NS) && \
	!(defined(CONFIG_HARDENED_USERCOPY) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0) && \
	  LINUX_VERSION_CODE < KERNEL_VERSION(6, 0, 0))
#define OTPROF_NMI_IS_SAFE
#endif

static inline bool otprof_compat_mm_trylock(struct mm_struct *mm)
{
#ifdef OTPROF_HAVE_MMAP_LOCK
	return mmap_read_trylock(mm);
#else
	return down_read_trylock(&mm->mmap_sem);
#endif
}

static inline void otprof_compat_mm_unlock(struct mm_struct *mm)
{
#ifdef OTPROF_HAVE_MMAP_LOCK
	mmap_read_unlock(mm);
#else
	up_read(&mm->mmap_sem);
#endif
}

/* Of an overlay's file, what /proc/PID/maps shows. */
static inline const struct inode *otprof_compat_file_inode(struct file *file)
{
#ifdef OTPROF_HAVE_FILE_USER_INODE
	return file_user_inode(file);
#else
	return file_inode(file);
#endif
}

static inline const struct path *otprof_compat_file_path(struct file *file)
{
#ifdef OTPROF_HAVE_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

/*
 * Flags that a kernel does not know are set on no task. The bits are those of
 * the kernel's own headers: PF_IO_WORKER is another one before 5.10, where
 * 0x10, its bit today, is PF_VCPU, and its bearers are kernel threads before 5.12.
 */
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
