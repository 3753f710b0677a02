// SPDX-License-Identifier: Apache-2.0
/*
 * The whole stack of one sample: kernel frames, user frames, and a marker
 * where the stack was cut. Frames of a runtime will be placed among the user
 * frames here.
 */
#include <string.h>

#include "base/cleanup.h"
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

/* Code that was generated at run time is named by its perf map or jitdump, if there is one. */
static void stack_name_generated(const struct attempt *a, struct frame *f)
{
	if (!f->map || f->map->file->kind != MAPPED_ANON)
		return;
	jit_name_frame(a->jit, f->pc - (f->flags & FRAME_CALLER && f->pc > f->map->start), f);
}

static void stack_add_user(struct whole_stack *w, const struct attempt *a, const struct unwind_stack *user)
{
	uint32_t count = MIN(user->count, (uint32_t)UNWIND_FRAMES_MAX);
	struct frame *to = &w->frames[w->count];

	memcpy(to, user->frames, count * sizeof(*to));
	w->count += count;
	for (uint32_t i = 0; a->jit && i < count; i++) {
		stack_name_generated(a, &to[i]);
		w->named += !!(to[i].flags & FRAME_NAMED);
	}
}

void pipeline_stack(struct pipeline *p, const struct attempt *a)
{
	struct whole_stack *w = &p->whole;

	w->count = w->named = 0;
	stack_add_kernel(w, a->s);
	stack_add_user(w, a, &p->stack);
	if (!unwind_end_is_root(p->stack.end))
		stack_add(w, &(struct frame){.kind = KIND_MARKER, .marker = p->stack.end});
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
