// SPDX-License-Identifier: Apache-2.0
/*
 * The walks of a sample: whose they are, and the stacks that some have copied.
 */
#include <string.h>

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

/* The frame records of a block, which begin at its address: each has that of the next one, which is higher. */
static void runtimes_add_records(const uint64_t *block, struct unwind_record *to, uint32_t *nr)
{
	uint64_t at = *block & OTP_WALK_ADDRESS;

	for (uint32_t i = 1; i < OTP_WALK_WORDS && at; i += 2) {
		if (*nr && at <= to[*nr - 1].at)
			return;
		to[(*nr)++] = (struct unwind_record){.at = at, .fp = block[i], .pc = block[i + 1]};
		at = block[i];
	}
}

/*
 * Blocks lie behind each other in memory, but for those of the far part, and each has its address before it in the section;
 * or the last ones hold frame records. ret has the end of the copy (cut).
 */
static void runtimes_join_blocks(const struct otp_walked *w, uint64_t *to, struct unwind_record *records,
				 struct unwind_other *ret)
{
	const uint64_t *block = sample_walk_words(w) + w->root_words;
	uint32_t n = 0;
	uint64_t at;

	ret->addr = *block & OTP_WALK_ADDRESS;
	for (uint32_t i = 0; i < w->frames; i++, block += w->frame_words) {
		if (*block & OTP_WALK_MISSING(0)) {
			runtimes_add_records(block, records, &ret->nr_records);
			continue;
		}
		memcpy(to + n++ * OTP_WALK_WORDS, block + 1, OTP_WALK_BLOCK);
		at = *block & OTP_WALK_ADDRESS;
		if (!ret->far_len && at == ret->addr + ret->len) {
			ret->len += OTP_WALK_BLOCK;
			continue;
		}
		if (!ret->far_len)
			ret->far_addr = at;
		ret->far_len += OTP_WALK_BLOCK;
	}
	ret->records = records;
	ret->cut |= ret->far_len || ret->nr_records;
}

static bool runtimes_is_stack(const struct runtime_slot *slot, const struct otp_walked *w)
{
	return slot && slot->ops->stack && w->step == OTP_WALK_STACK && w->frames && w->root_words &&
	       w->frame_words == OTP_WALK_WORDS + 1 && w->frames <= OTP_WALK_BLOCKS;
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
		runtimes_join_blocks(w, r->blocks, r->records, ret);
		r->left_sp = to.sp;
		r->left_low = to.low;
		return true;
	}
	return false;
}
