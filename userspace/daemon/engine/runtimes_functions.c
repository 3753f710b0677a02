// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of interpreted frames and of regions of code: asked of the decoder,
 * awaited, and named.
 */
#include <errno.h>
#include <stdio.h>

#include "daemon/engine/runtimes_state.h"

static struct str *runtimes_unknown_name(struct runtimes *r, const struct runtime_ops *ops)
{
	char text[64];

	if (!r->unknown[ops->kind]) {
		snprintf(text, sizeof(text), "[%s function]", ops->label);
		r->unknown[ops->kind] = str_get_c(text);
	}
	return r->unknown[ops->kind];
}

/* The sample at hand. */
static struct functions_when runtimes_functions_when(const struct runtimes *r, const struct runtime_slot *s)
{
	return (struct functions_when){.time_ns = r->stack_time_ns, .epoch = s->epoch_is_bound ? 0 : s->epoch,
				       .bound = s->epoch_is_bound ? s->epoch : 0,
				       .after_ns = s->functions_after_ns, .ran_ns = runtimes_ran_ns(s),
				       .begins = runtimes_epoch_begins(r, s)};
}

static const struct function *runtimes_function(const struct runtimes *r, const struct runtime_slot *s,
						const struct function_entry *e, const struct runtime_frame *f)
{
	const struct function *fn;
	struct functions_when when;

	if (!(f->flags & RUNTIME_HINTED)) {
		fn = function_after(e, s->functions_after_ns);
	} else {
		when = runtimes_functions_when(r, s);
		fn = function_hinted(e, f, &when);
	}
	return fn && function_holds(fn, f) ? fn : NULL;
}

static bool runtimes_wants(struct runtimes *r, struct runtime_slot *s, const struct runtime_frame *f,
			   struct runtime_frame *question)
{
	struct functions_when when;

	if (!(f->flags & RUNTIME_HINTED)) {
		*question = *f;
		return functions_want(&s->functions, f, s->functions_after_ns, r->now_ns);
	}
	when = runtimes_functions_when(r, s);
	return functions_want_hinted(&s->functions, f, &when, r->now_ns, question);
}

void runtimes_name(struct runtimes *r, struct runtime_slot *s, const struct function_entry *e,
		   const struct runtime_frame *f, struct frame *to)
{
	const struct function *fn = runtimes_function(r, s, e, f);

	*to = (struct frame){.kind = (uint8_t)s->ops->kind, .flags = FRAME_NAMED,
			     .named_by = fn ? NAME_RUNTIME : NAME_RAW};
	to->function = fn ? fn->name : runtimes_unknown_name(r, s->ops);
	to->file = fn ? fn->file : NULL;
	to->start_line = fn ? fn->start_line : 0;
	/* A line of no file says nothing. */
	if (f->flags & RUNTIME_LINE)
		to->line = to->file ? f->position : 0;
	else if (fn)
		to->line = function_line(fn, f->position, &to->column);
	s->frames++;
	r->cfg.ledger->walk_frames++;
	r->cfg.ledger->walk_frames_unknown += !fn;
	s->frames_unknown += !fn;
}

static bool runtimes_function_is_pending(const struct runtimes *r, const struct runtime_slot *s,
					 const struct function_entry *e, const struct runtime_frame *f)
{
	struct functions_when when;

	if (!(f->flags & RUNTIME_HINTED))
		return function_is_pending(e, s->functions_after_ns);
	when = runtimes_functions_when(r, s);
	return function_hinted_is_pending(e, f, &when);
}

bool runtimes_is_pending(const struct runtime_slot *s, const struct runtime_frame *f, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct function_entry *e = f[i].key ? functions_find(&s->functions, &f[i]) : NULL;

		if (e && runtimes_function_is_pending(s->of->all, s, e, &f[i]))
			return true;
		if (!e && f[i].key && s->decoder && !decoder_is_attached(s->decoder))
			return true;
	}
	return false;
}

/* What the decoder's queue has no room for is asked with a later sample. */
static void runtimes_forget(struct runtime_slot *s, const struct runtime_frame *f, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct function_entry *e = functions_find(&s->functions, &f[i]);

		if (e && e->state == FUNCTION_ASKED)
			functions_settle(&s->functions, e, -EBUSY, NULL, 0);
	}
}

/* A table that is full begins anew. */
static void runtimes_keep_bounds(struct runtime_slot *s, uint32_t nr)
{
	if (s->functions.count + nr > FUNCTIONS_MAX)
		functions_done(&s->functions);
}

void runtimes_want(struct runtimes *r, struct runtime_slot *s, const struct runtime_frame *f, uint32_t nr)
{
	uint32_t taken;

	runtimes_keep_bounds(s, nr);
	if (!runtimes_decoder(s) || !decoder_is_attached(s->decoder))
		return;
	r->nr_wanted = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (f[i].key && runtimes_wants(r, s, &f[i], &r->wanted[r->nr_wanted]))
			r->nr_wanted++;
	taken = (uint32_t)decoders_decode(s->decoder, r->wanted, r->nr_wanted);
	runtimes_forget(s, &r->wanted[taken], r->nr_wanted - taken);
}
