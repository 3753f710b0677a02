/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that the sampler reads, declared here so that it builds
 * without BTF; CO-RE relocates their fields when the program is loaded. Only
 * fields that are read are declared. pt_regs is the exception: its layout is
 * ABI and is not relocated.
 */
#ifndef OTP_BPF_KERNEL_TYPES_H
#define OTP_BPF_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;

#define NULL  ((void *)0)
#define true  1
#define false 0

/* Linux, include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_F_MMAPABLE = 1 << 10,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};
enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* Linux, include/linux/sched.h */
#define PF_IO_WORKER   0x00000010 /* from 5.10 on; PF_VCPU before */
#define PF_USER_WORKER 0x00004000 /* from 6.4 on; another meaning before */
#define PF_FORKNOEXEC  0x00000040
#define PF_KTHREAD     0x00200000

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	u64 sample_period;
	u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
};

/* Linux, arch/arm64/include/asm/thread_info.h: the lower half of preempt_count */
struct thread_info {
	struct {
		u32 count;
	} preempt;
};
#endif

/* If io_thread exists, PF_IO_WORKER has its meaning; if user_worker exists, PF_USER_WORKER has. */
struct kernel_clone_args {
	u32 io_thread : 1;
	u32 user_worker : 1;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct mm_struct {
	unsigned long start_stack;
	unsigned long end_code;
};

struct pid;

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#elif defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct task_struct {
#if defined(__TARGET_ARCH_arm64)
	struct thread_info thread_info;
#endif
	void *stack;
	unsigned int flags;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_boottime;
	u64 self_exec_id;
	unsigned int in_execve : 1;
	struct pid *thread_pid;
	struct css_set *cgroups;
	char comm[16];
	struct thread_struct thread;
};

#pragma clang attribute pop

/* Only the names matter: whether they exist is checked when the program is loaded. */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_task_pt_regs = 175,
};

#endif
