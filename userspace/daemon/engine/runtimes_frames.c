// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreted frames of one sample: what the copied words mean, by the
 * runtime; the functions, by its decoder.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/runtimes_state.h"

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

static int runtimes_half(struct runtimes *r, struct runtime_slot *s, uint32_t index, const struct otp_walked *w,
			 struct runtime_words *with, bool final, struct runtimes_half *ret)
{
	uint32_t nr = runtimes_read(s, w, with, r->read);
	bool inner = nr && r->read[nr - 1].flags & RUNTIME_INNER;

	runtimes_want(r, s, r->read, nr);
	if (!final && runtimes_is_pending(s, r->read, nr))
		return -EAGAIN;
	*ret = (struct runtimes_half){.frames = r->frames[index], .flags = r->flags[index],
				      .whole = w->end == OTP_WALK_END_DONE && nr == w->frames && !inner,
				      .unseen = s->found->found.unseen};
	/* What a thread has behind its last entry would stand for the loop of the frames that no walk reaches. */
	if (inner && (r->read[nr - 1].flags & (RUNTIME_HIDDEN | RUNTIME_ENTRY)) == RUNTIME_HIDDEN)
		nr--;
	ret->nr = nr;
	for (uint32_t i = 0; i < nr; i++) {
		const struct runtime_frame *f = &r->read[i];

		ret->flags[i] = (uint16_t)(f->flags | (f->key ? 0 : RUNTIME_HIDDEN));
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
