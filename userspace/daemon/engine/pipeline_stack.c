// SPDX-License-Identifier: Apache-2.0
/*
 * The whole stack of one sample: kernel frames, user frames, and a marker
 * where the stack was cut. Interpreted frames stand in place of the native ones
 * of their runtime's loop (merge.h).
 */
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/maker.h"
#include "daemon/engine/pipeline_state.h"

static void stack_add(struct whole_stack *w, const struct frame *f)
{
	w->frames[w->count++] = *f;
	w->named += !!(f->flags & FRAME_NAMED);
}

/* The innermost address was interrupted, all others are return addresses. */
static void stack_add_kernel(struct whole_stack *w, const struct sample *s)
{
	for (uint32_t i = 0; i < MIN(s->nr_kernel, (uint32_t)OTP_KSTACK_MAX); i++)
		stack_add(w, &(struct frame){.kind = KIND_KERNEL, .flags = i ? FRAME_CALLER : 0, .pc = s->kernel[i]});
}

/*
 * Code that was generated at run time is named by its perf map or jitdump, or else by what called it. Such files keep the
 * names of code that is gone: beside a runtime whose own memory is read, they are none of the present.
 */
static void stack_name_generated(struct pipeline *p, const struct attempt *a, uint32_t index, struct frame *f)
{
	if (!f->map || f->map->file->kind != MAPPED_ANON)
		return;
	if (a->jit && !runtimes_read_code(p->runtimes) &&
	    jit_name_frame(a->jit, f->pc - (f->flags & FRAME_CALLER && f->pc > f->map->start), f))
		return;
	/* Code of a runtime is called by code of other functions, whatever made it. */
	if (!runtimes_own_code(p->runtimes))
		maker_name_frame(&p->stack, index, f);
}

static void stack_add_borrowed(struct whole_stack *w, const struct frame *f)
{
	stack_add(w, f);
	str_ref(f->function);
	if (f->file)
		str_ref(f->file);
}

/* Code of a runtime: the functions that a native frame stands for, as far as there is room. */
static bool stack_add_code(struct pipeline *p, uint32_t index)
{
	struct whole_stack *w = &p->whole;
	struct frame frames[RUNTIMES_EXPANDED];
	uint32_t n = runtimes_expand(p->runtimes, &p->stack, index, frames);

	for (uint32_t i = 0; i < n; i++)
		if (!i || w->inlined++ < PROFILE_INLINED_MAX)
			stack_add_borrowed(w, &frames[i]);
	return n;
}

/* A frame of the native user stack, with references of its own if generated code is named. */
static void stack_add_native(struct pipeline *p, const struct attempt *a, uint32_t index)
{
	struct whole_stack *w = &p->whole;
	struct frame *to;

	if (stack_add_code(p, index) || (runtimes_is_loop(p->runtimes, index) && !p->config->runtimes_loops))
		return;
	to = &w->frames[w->count++];
	*to = p->stack.frames[index];
	runtimes_set_original(p->runtimes, index, to);
	stack_name_generated(p, a, index, to);
	w->named += !!(to->flags & FRAME_NAMED);
}

static void stack_add_marker(struct whole_stack *w, uint32_t marker)
{
	stack_add(w, &(struct frame){.kind = KIND_MARKER, .marker = marker});
}

static void stack_add_user(struct pipeline *p, const struct attempt *a)
{
	uint32_t count = MIN(p->stack.count, (uint32_t)UNWIND_FRAMES_MAX);

	for (uint32_t i = 0; i < count; i++)
		stack_add_native(p, a, i);
	if (!unwind_end_is_root(p->stack.end))
		stack_add_marker(&p->whole, p->stack.end);
}

static void stack_add_merged(struct pipeline *p, const struct attempt *a, const struct merge_frame *f)
{
	struct whole_stack *w = &p->whole;

	switch (f->kind) {
	case MERGE_NATIVE:
		stack_add_native(p, a, f->index);
		break;
	case MERGE_CUT:
		stack_add_marker(w, p->stack.end);
		break;
	case MERGE_MISFIT:
		stack_add_marker(w, FRAME_MARKER_MISFIT);
		break;
	case MERGE_SHORT:
		stack_add_marker(w, FRAME_MARKER_SHORT);
		break;
	default:
		stack_add_borrowed(w, &p->interpreted.half[f->kind - MERGE_RUNTIME].frames[f->index]);
	}
}

static void stack_merge(struct pipeline *p, const struct attempt *a)
{
	const struct runtimes_stack *runtimes = &p->interpreted;
	struct merge_in in = {.native = p->loops, .nr_native = MIN(p->stack.count, (uint32_t)UNWIND_FRAMES_MAX),
			      .native_whole = unwind_end_is_root(p->stack.end),
			      .keep_loops = p->config->runtimes_loops};
	bool misfit;
	uint32_t n;

	for (uint32_t i = 0; i < runtimes->nr; i++)
		in.runtime[i] = (struct merge_runtime){.flags = runtimes->half[i].flags, .nr = runtimes->half[i].nr,
						       .whole = runtimes->half[i].whole,
						       .unseen = runtimes->half[i].unseen};
	runtimes_loops(p->runtimes, a->proc, &p->stack, p->loops);
	p->ledger->loop_leaves += in.nr_native && p->loops[0].runtime;
	n = merge(&in, p->merged, &misfit);
	p->ledger->walks_misfit += misfit;
	for (uint32_t i = 0; i < n; i++)
		stack_add_merged(p, a, &p->merged[i]);
}

void pipeline_stack(struct pipeline *p, const struct attempt *a)
{
	struct whole_stack *w = &p->whole;

	w->count = w->named = w->inlined = 0;
	stack_add_kernel(w, a->s);
	if (p->interpreted.nr)
		stack_merge(p, a);
	else
		stack_add_user(p, a);
	if (p->context.creator.pc && p->config->runtimes_creators)
		stack_add(w, &p->context.creator);
}

void pipeline_stack_done(struct pipeline *p)
{
	struct whole_stack *w = &p->whole;

	for (uint32_t i = 0; w->named && i < w->count; i++) {
		if (!(w->frames[i].flags & FRAME_NAMED))
			continue;
		str_put(w->frames[i].function);
		str_put(w->frames[i].file);
		w->named--;
	}
	w->count = 0;
}
