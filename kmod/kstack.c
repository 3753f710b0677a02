// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/kstack.h"

#include <linux/sched.h>
#include <linux/stacktrace.h>

#include "kmod/compat/compat.h"

#if defined(OTPROF_HAVE_UNWIND_START)
#include <asm/unwind.h>

u32 otprof_kstack(u64 *to, u32 max, struct pt_regs *regs)
{
	struct unwind_state state;
	u32 n = 0;

	to[n++] = instruction_pointer(regs);
	unwind_start(&state, current, regs, NULL);
	while (n < max && !unwind_done(&state)) {
		unsigned long addr = unwind_get_return_address(&state);

		if (!addr)
			break;
		to[n++] = addr;
		unwind_next_frame(&state);
	}
	return n;
}

#elif !defined(OTPROF_HAVE_STACK_TRACE_SAVE) && defined(CONFIG_FRAME_POINTER)
#include <linux/uaccess.h>

#include "kmod/regs.h"

static bool is_kernel(unsigned long addr)
{
	return (long)addr < 0;
}

/*
 * Before the unwinder, save_stack_trace begins here and steps over the
 * interruption without a word, so the chain of frames is followed from the
 * registers. It leads from one stack to the next by itself, upward or not, and
 * ends with the user's frame pointer; whatever it is, no read can fault.
 */
u32 otprof_kstack(u64 *to, u32 max, struct pt_regs *regs)
{
	unsigned long fp = otprof_regs_fp(regs), frame[2];
	u32 n = 0;

	to[n++] = instruction_pointer(regs);
	while (n < max && is_kernel(fp) && !(fp & 7) && !probe_kernel_read(frame, (const void *)fp, sizeof(frame))) {
		if (!is_kernel(frame[1]) || frame[0] == fp)
			break;
		to[n++] = frame[1];
		fp = frame[0];
	}
	return n;
}

#else

#ifdef OTPROF_HAVE_STACK_TRACE_SAVE
static u32 whole_stack(unsigned long *to, u32 max)
{
	return stack_trace_save(to, max, 0);
}
#else
static u32 whole_stack(unsigned long *to, u32 max)
{
	struct stack_trace trace = { .entries = to, .max_entries = max };

	save_stack_trace(&trace);
	if (trace.nr_entries && to[trace.nr_entries - 1] == ULONG_MAX)
		trace.nr_entries--;
	return trace.nr_entries;
}
#endif

/* The unwinder is not for modules: take the stack from here, and drop what lies above the interruption. */
u32 otprof_kstack(u64 *to, u32 max, struct pt_regs *regs)
{
	unsigned long *at = (unsigned long *)to;
	u32 all = whole_stack(at, max), first = 0, i;

	while (first < all && at[first] != instruction_pointer(regs))
		first++;
	to[0] = instruction_pointer(regs);
	for (i = 1; first + i < all; i++)
		to[i] = to[first + i];
	return i;
}

#endif
