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
 * but the count is a field of the task. It counts this tick as one interrupt.
 *
 * PREEMPT_RT: softirqs run in threads, which are no idle tasks.
 */
#define SOFTIRQ_SERVING  0x100U
#define HARDIRQ_NESTED	 0xe0000U /* two or more of the four bits' 0x10000 */

static __always_inline bool idle_is_interrupted(struct bpf_perf_event_data *ctx)
{
	struct task_struct *idle = current_task();
#if defined(__TARGET_ARCH_x86)
	u64 end = (u64)saved_user_regs(idle) + bpf_core_type_size(struct pt_regs), sp = ctx->regs.sp;

	return sp < (u64)kread(idle, stack) || sp > end;
#else
	(void)ctx;
	return kread(idle, thread_info.preempt.count) & (SOFTIRQ_SERVING | HARDIRQ_NESTED);
#endif
}

/*
 * Tasks that share an mm but never were in user mode: io_uring workers, and
 * user workers such as vhost (6.4: "fork: Add kernel_clone_args flag to ...").
 */
static __always_inline bool is_worker(u32 flags)
{
	if (flags & PF_IO_WORKER)
		return true;
	return bpf_core_field_exists(struct kernel_clone_args, user_worker) && (flags & PF_USER_WORKER);
}

#endif
