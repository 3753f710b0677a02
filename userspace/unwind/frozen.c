// SPDX-License-Identifier: Apache-2.0
/*
 * Frames that lie in the heap as long as their thread does not return to them,
 * between two frames of its stack. The frame that leads there stands for them
 * where they cannot be followed, and is not shown where they can.
 */
#include "base/cleanup.h"
#include "unwind/cursor.h"

bool frozen_is_frame(const struct cursor *c)
{
	return c->part && c->part <= c->in->frozen->nr;
}

bool frozen_may_begin(const struct cursor *c)
{
	const struct unwind_frozen *f = c->in->frozen;
	uint64_t sp = c->reg[c->arch->sp];

	return f && f->nr && !c->part && !c->exact && cursor_is_valid(c, c->arch->sp) && sp >= f->low && sp <= f->high;
}

const struct unwind_part *frozen_part(const struct cursor *c, uint64_t addr)
{
	const struct unwind_frozen *f = c->in->frozen;

	for (uint32_t i = 0; f && i < f->nr; i++) {
		const struct unwind_part *p = &f->part[i];

		if (p->len >= 8 && addr >= p->addr && addr - p->addr <= p->len - 8)
			return p;
	}
	return NULL;
}

void frozen_ignore(struct cursor *c)
{
	if (c->in->frozen && !c->part)
		c->part = c->in->frozen->nr + 1;
}

/* A frame whose registers are these alone. */
static int frozen_enter(struct cursor *c, uint64_t pc, uint64_t sp, uint64_t low)
{
	c->valid = 0;
	cursor_set(c, c->arch->pc, pc);
	cursor_set(c, c->arch->sp, sp);
	c->low = low;
	c->exact = false;
	c->guess = FRAME_SURE;
	return 1;
}

/* The frame that leads there is shown by those that it leads to. */
static void frozen_begin(struct cursor *c)
{
	c->home.valid = c->valid;
	c->home.pc = c->reg[c->arch->pc];
	c->home.sp = c->reg[c->arch->sp];
	c->home.fp = c->reg[c->arch->fp];
	c->home.low = c->low;
	c->out->count--;
	c->out->guessed[c->guess]--;
}

int step_frozen(struct cursor *c)
{
	const struct unwind_frozen *f = c->in->frozen;
	const struct unwind_part *p;

	if (!f || c->part > f->nr)
		return cursor_cut(c, UNWIND_SWITCHED);
	if (!c->part)
		frozen_begin(c);
	if (c->part == f->nr) {
		if (!f->back_pc || f->back_sp < c->home.sp)
			return cursor_cut(c, UNWIND_SWITCHED);
		c->part++;
		c->out->heap_followed = true;
		return frozen_enter(c, f->back_pc, f->back_sp, c->home.low);
	}
	p = &f->part[c->part++];
	frozen_enter(c, p->pc, p->sp, p->sp - c->arch->leaf_slack);
	if (p->fp)
		cursor_set(c, c->arch->fp, p->fp);
	return 1;
}

void frozen_give_up(struct cursor *c)
{
	c->part = c->in->frozen->nr + 1;
	frozen_enter(c, c->home.pc, c->home.sp, c->home.low);
	c->valid = c->home.valid;
	c->reg[c->arch->fp] = c->home.fp;
}
