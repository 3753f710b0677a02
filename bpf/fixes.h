/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, and help for the verifier. Every choice is made
 * when the program is loaded, by the features of the kernel, never by its
 * version: distributions backport.
 */
#ifndef OTP_BPF_FIXES_H
#define OTP_BPF_FIXES_H

/*
 * The compiler drops bound checks that it can prove, but the verifier needs
 * them: opaque() hides the value from the compiler before each check. Sizes are
 * u64: checks on 32-bit halves lose the bound of the whole (clang 14).
 */
#define opaque(value) asm volatile("" : "+r"(value))

/*
 * Kernel memory is read by plain loads where the kernel provides a typed
 * pointer to the task (5.11): a few instructions, each covered by an exception
 * entry. Older kernels need a helper call per field.
 */
static __always_inline bool typed_tasks(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

static __always_inline struct task_struct *current_task(void)
{
	if (typed_tasks())
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/* One field of a structure reached from current_task(). The branch is removed when the program is loaded. */
#define kread(from, field)                                    \
	({                                                    \
		__auto_type _from = (from);                   \
		typeof(_from->field) _value;              \
		if (typed_tasks())                            \
			_value = _from->field;                \
		else                                          \
			_value = BPF_CORE_READ(_from, field); \
		_value;                                       \
	})

/* THREAD_SIZE without KASAN and with pages of 4 KiB. */
#define THREAD_SIZE 16384

/*
 * The user registers that the kernel saved on entry. bpf_task_pt_regs (5.15)
 * finds them also where the stack has padding at its top (CONFIG_X86_FRED,
 * 6.9); older kernels have no such padding.
 */
static __always_inline const void *saved_user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (const u8 *)kread(task, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
}

/*
 * Whether an idle CPU ran a softirq, or an interrupt that lets others
 * interrupt it, rather than the idle loop.
 *
 * x86-64: both run on a stack of their own, on all kernels: softirqs after an
 * interrupt stay on its stack or switch to it (irq_exit, do_softirq_own_stack;
 * Linux, arch/x86/include/asm/irq_stack.h, before 5.12 arch/x86/entry/entry_64.S),
 * and the idle loop runs them by do_softirq. The count of preemptions, which
 * would say it too, is a variable per CPU whose name changed in 6.2 and 6.15,
 * and that BTF made by pahole 1.18 to 1.21 lacks.
 *
 * arm64: softirqs run on the idle task's stack from 5.16 to 6.0 ("irq: remove
 * handle_domain_{irq,nmi}()" until "arm64: run softirqs on the per-CPU IRQ stack"),
 * but the count of preemptions is a field of the task. Interrupts do not nest
 * there.
 *
 * PREEMPT_RT: softirqs run in threads, which are no idle tasks.
 */
#define SOFTIRQ_SERVING 0x100U /* of the count, on all kernels */

static __always_inline bool idle_is_interrupted(struct bpf_perf_event_data *ctx)
{
	struct task_struct *idle = current_task();
#if defined(__TARGET_ARCH_x86)
	u64 end = (u64)saved_user_regs(idle) + bpf_core_type_size(struct pt_regs), sp = ctx->regs.sp;

	return sp < (u64)kread(idle, stack) || sp > end;
#else
	(void)ctx;
	return kread(idle, thread_info.preempt.count) & SOFTIRQ_SERVING;
#endif
}

/*
 * Tasks that share an mm but never were in user mode: io_uring workers, and
 * user workers such as vhost (6.4: "fork: Add kernel_clone_args flag to ...").
 * Workers of io_uring are such tasks since 5.12 ("kernel: provide
 * create_io_thread() helper"), and kernel threads before. Their bit was PF_VCPU
 * (guest time of KVM) up to 5.9 ("sched: Bring the PF_IO_WORKER and PF_WQ_WORKER
 * bits closer together"), which kernels with a backported ring buffer may have.
 */
static __always_inline bool is_worker(u32 flags)
{
	if (bpf_core_field_exists(struct kernel_clone_args, io_thread) && (flags & PF_IO_WORKER))
		return true;
	return bpf_core_field_exists(struct kernel_clone_args, user_worker) && (flags & PF_USER_WORKER);
}

/*
 * Between the call of execve and the new program's first instruction: from
 * exec_mmap until start_thread the saved registers are the old program's and
 * the memory is the new one's. in_execve exists up to 7.2 at least, where only
 * TOMOYO reads it; without it, a new program's memory lacks the bounds of its
 * code until load_elf_binary is almost done (Linux, fs/binfmt_elf.c).
 */
static __always_inline bool in_exec(struct task_struct *task)
{
	struct mm_struct *mm;

	if (bpf_core_field_exists(task->in_execve)) {
		if (typed_tasks())
			return BPF_CORE_READ_BITFIELD(task, in_execve);
		return BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	}
	mm = kread(task, mm);
	return mm && !kread(mm, end_code);
}

/*
 * A task may be reaped while it runs its last instructions. Its parent and its
 * leader may be freed by then, and newer kernels (6.3) read what these pointers
 * lead to without an exception entry: they are not followed.
 */
static __always_inline bool is_alive(struct task_struct *task)
{
	return kread(task, thread_pid);
}

#endif
