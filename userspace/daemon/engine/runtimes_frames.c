// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreted frames of one sample: what the copied words mean, by the
 * runtime; the functions, by its decoder.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/runtimes_state.h"

/*
 * Whose frames a sample holds: the process' own, or, as long as a fork has no entry, by generation its parent's. An older
 * engine may have given a process walks of this number: what is inherited is compared when a decoder attaches.
 */
struct runtime_process *runtimes_of_walk(struct runtimes *r, const struct process *p, uint32_t generation)
{
	struct runtime_process *own = runtimes_find(r, p), *made = map_find_ptr(&r->by_generation, generation);

	if (own)
		return own;
	return made && made->exec_id == p->exec_id && made->start_ns <= p->start_ns ? runtimes_inherit(r, p, made) : NULL;
}

static struct str *runtimes_unknown_name(struct runtimes *r, const struct runtime_ops *ops)
{
	char text[64];

	if (!r->unknown[ops->kind]) {
		snprintf(text, sizeof(text), "[%s function]", ops->label);
		r->unknown[ops->kind] = str_get_c(text);
	}
	return r->unknown[ops->kind];
}

/* The sample at hand. An epoch that is only bounded is not known. */
static struct functions_when runtimes_functions_when(const struct runtimes *r, const struct runtime_slot *s)
{
	return (struct functions_when){.time_ns = r->stack_time_ns, .epoch = s->epoch_is_bound ? 0 : s->epoch,
				       .after_ns = s->functions_after_ns, .ran_ns = runtimes_ran_ns(s),
				       .begins = runtimes_epoch_begins(r, s)};
}

static const struct function *runtimes_function(const struct runtimes *r, const struct runtime_slot *s,
						const struct function_entry *e, const struct runtime_frame *f)
{
	struct functions_when when;

	if (!(f->flags & RUNTIME_HINTED))
		return function_after(e, s->functions_after_ns);
	when = runtimes_functions_when(r, s);
	return function_hinted(e, f, &when);
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

static void runtimes_words(const struct otp_walked *w, uint32_t i, struct runtime_words *ret)
{
	const uint64_t *root = sample_walk_words(w), *at = &root[w->root_words + (size_t)i * w->frame_words];

	ret->address = *at & OTP_WALK_ADDRESS;
	ret->missing = (uint32_t)(*at >> 56);
	ret->count = w->frame_words - 1u;
	ret->word = at + 1;
	ret->root = root;
	ret->nr_root = w->root_words;
	ret->index = i;
	ret->nr_outer = w->frames - i - 1u;
	ret->last = i + 1u == w->frames && w->end == OTP_WALK_END_DONE;
}

/* Reads the words of each frame; returns how many mean one. */
static uint32_t runtimes_read(const struct runtime_slot *s, const struct otp_walked *w, struct runtime_words *with,
			      struct runtime_frame *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MIN((uint32_t)w->frames, (uint32_t)OTP_WALK_FRAMES); i++, n++) {
		runtimes_words(w, i, with);
		to[n] = (struct runtime_frame){0};
		if (s->ops->frame(&s->found->found, with, &to[n]) < 0)
			break;
	}
	return n;
}

static bool runtimes_function_is_pending(const struct runtimes *r, const struct runtime_slot *s, const struct function_entry *e,
					 const struct runtime_frame *f)
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

		if (e ? runtimes_function_is_pending(s->of->all, s, e, &f[i]) : f[i].key && s->decoder && !decoder_is_attached(s->decoder))
			return true;
	}
	return false;
}

static int runtimes_half(struct runtimes *r, struct runtime_slot *s, uint32_t index, const struct otp_walked *w,
			 struct runtime_words *with, bool final, struct runtimes_half *ret)
{
	uint32_t nr = runtimes_read(s, w, with, r->read);
	bool inner = nr && r->read[nr - 1].flags & RUNTIME_INNER;

	runtimes_want(r, s, r->read, nr);
	if (!final && runtimes_is_pending(s, r->read, nr))
		return -EAGAIN;
	*ret = (struct runtimes_half){.frames = r->frames[index], .flags = r->flags[index],
				      .whole = w->end == OTP_WALK_END_DONE && nr == w->frames && !inner};
	/* What a thread has behind its last entry would stand for the loop of the frames that no walk reaches. */
	if (inner && (r->read[nr - 1].flags & (RUNTIME_HIDDEN | RUNTIME_ENTRY)) == RUNTIME_HIDDEN)
		nr--;
	ret->nr = nr;
	for (uint32_t i = 0; i < nr; i++) {
		const struct runtime_frame *f = &r->read[i];

		ret->flags[i] = (uint8_t)(f->flags | (f->key ? 0 : RUNTIME_HIDDEN));
		if (f->key)
			runtimes_name(r, s, functions_find(&s->functions, f), f, &ret->frames[i]);
	}
	return 0;
}

/* room, for struct otp_regs: on the stack, which is left out of core dumps, and as long there as *ret. */
static void runtimes_registers(const struct sample *s, uint64_t room[1 + OTP_REGS_MAX], struct runtime_words *ret)
{
	struct otp_regs *regs = (void *)room;

	ret->arch = s->head.arch;
	if (!s->reg)
		return;
	regs->valid = s->valid;
	memcpy(room + 1, s->reg, (s->head.arch == OTP_ARCH_ARM64 ? OTP_REGS_ARM64 : OTP_REGS_X86_64) * sizeof(uint64_t));
	ret->regs = regs;
}

struct runtime_slot *runtimes_slot(struct runtimes *r, const struct process *p, const struct otp_walked *w, uint32_t plan)
{
	struct runtime_process *of = runtimes_of_walk(r, p, w->generation);

	if (!of || plan >= of->nr || of->slot[plan].state != SLOT_READY)
		return NULL;
	if (plan == OTP_WALK_PLANS - 1 && runtimes_more(of))
		return NULL;
	/* Before this runtime was attached, the place was that of another one's second walk. */
	if (plan && of->generation && w->generation != of->generation && of->slot[0].found &&
	    of->slot[0].found->found.more.start != OTP_WALK_NONE)
		return NULL;
	return &of->slot[plan];
}

int runtimes_frames(struct runtimes *r, const struct process *p, const struct sample *s,
		    const struct unwind_stack *stack, bool final, struct runtimes_stack *ret)
{
	uint64_t room[1 + OTP_REGS_MAX];
	struct runtime_words with = {0};
	int err = 0;

	ret->nr = 0;
	runtimes_trim(r);
	for (uint32_t plan = 0; plan < OTP_WALK_PLANS && p && !err; plan++) {
		const struct otp_walked *w = s->walks[plan];
		struct runtime_slot *slot = w ? runtimes_slot(r, p, w, plan) : NULL;

		ret->half[plan] = (struct runtimes_half){0};
		if (!slot || !slot->ops->frame)
			continue;
		runtimes_registers(s, room, &with);
		with.compiled = runtimes_is_compiled(slot, stack);
		with.position = slot->ops->code ? runtimes_walked_position(r, slot, stack) : 0;
		err = runtimes_half(r, slot, plan, w, &with, final, &ret->half[plan]);
		r->walked |= (uint32_t)(ret->half[plan].nr > 0) << plan;
		ret->nr = plan + 1;
	}
	return err;
}

/*
 * Blocks lie behind each other in memory, but for those of the far part, and each has its address before it in the section.
 * ret has the end of the copy (cut).
 */
static void runtimes_join_blocks(const struct otp_walked *w, uint64_t *to, struct unwind_other *ret)
{
	const uint64_t *block = sample_walk_words(w) + w->root_words;
	uint64_t at;

	ret->addr = *block & OTP_WALK_ADDRESS;
	for (uint32_t i = 0; i < w->frames; i++, block += w->frame_words) {
		memcpy(to + i * OTP_WALK_WORDS, block + 1, OTP_WALK_BLOCK);
		at = *block & OTP_WALK_ADDRESS;
		if (!ret->far_len && at == ret->addr + ret->len) {
			ret->len += OTP_WALK_BLOCK;
			continue;
		}
		if (!ret->far_len)
			ret->far_addr = at;
		ret->far_len += OTP_WALK_BLOCK;
	}
	ret->cut |= ret->far_len;
}

static bool runtimes_is_stack(const struct runtime_slot *slot, const struct otp_walked *w)
{
	return slot && slot->ops->stack && w->step == OTP_WALK_STACK && w->frames && w->root_words &&
	       w->frame_words == OTP_WALK_WORDS + 1 && (uint32_t)w->frames * OTP_WALK_BLOCK <= OTP_WALK_BYTES;
}

bool runtimes_other_stack(struct runtimes *r, const struct process *p, const struct sample *s, struct unwind_other *ret)
{
	struct runtime_stack to;

	r->left_sp = r->left_low = 0;
	r->left_none = false;
	for (uint32_t plan = 0; plan < OTP_WALK_PLANS && p; plan++) {
		const struct otp_walked *w = s->walks[plan];
		struct runtime_slot *slot = w ? runtimes_slot(r, p, w, plan) : NULL;

		if (slot && slot->ops->stack && w->end == OTP_WALK_END_NO_ROOT)
			r->left_none = true;
		if (!w || !runtimes_is_stack(slot, w) ||
		    slot->ops->stack(&slot->found->found, sample_walk_words(w), w->root_words, &to) < 0)
			continue;
		*ret = (struct unwind_other){.bytes = (const uint8_t *)r->blocks, .pc = to.pc, .sp = to.sp, .id = to.id,
					     .stand_in = to.stand_in, .cut = w->end != OTP_WALK_END_DONE};
		runtimes_join_blocks(w, r->blocks, ret);
		r->left_sp = to.sp;
		r->left_low = to.low;
		return true;
	}
	return false;
}
