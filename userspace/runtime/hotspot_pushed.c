// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot_pushed.h"

#include "base/cleanup.h"
#include "runtime/x86_scan.h"

void hotspot_pushed_begin(struct hotspot_pushed *p, struct runtime_code_made *made)
{
	*p = (struct hotspot_pushed){.made = made, .reached = true};
}

static void pushed_keep(const struct hotspot_pushed *p, uint32_t end)
{
	const bool left = p->words == PUSHED_LEFT, unknown = !left && p->words > HOTSPOT_RANGE_WORDS;
	const uint32_t words = unknown ? HOTSPOT_RANGE_UNKNOWN : p->words;

	hotspot_range_add(p->made, &(struct hotspot_range){.from = p->from, .end = end, .words = left ? 0 : words,
							   .arguments = p->by_push && !left && !unknown, .left = left});
}

/* From an offset on there are so many. */
static void pushed_change(struct hotspot_pushed *p, uint32_t words, uint32_t at)
{
	if (p->words && at > p->from)
		pushed_keep(p, at);
	p->words = words;
	p->by_push &= p->words != 0;
	p->from = at;
}

/* What was taken for words is the frame itself. */
static void pushed_is_frame(struct hotspot_pushed *p, uint32_t at)
{
	p->words = 0;
	pushed_change(p, 0, at);
}

/* --- jumps --- */

/* Where a jump leads to; those that lie behind are done with. */
static void pushed_aim(struct hotspot_pushed *p, uint32_t end, uint32_t to)
{
	uint32_t nr = 0;

	if (!p->words)
		return;
	for (uint32_t i = 0; i < p->nr_aims; i++)
		if (p->aim[i].at >= end)
			p->aim[nr++] = p->aim[i];
	p->nr_aims = nr;
	if (nr == PUSHED_AIMS) {
		hotspot_range_untold(&p->made->code, to, false);
		return;
	}
	p->aim[nr].at = to;
	p->aim[nr].words = p->words;
	p->aim[nr].by_push = p->by_push;
	p->nr_aims++;
}

/* Where an instruction begins that control does not get to from the one before. */
static void pushed_arrive(struct hotspot_pushed *p, uint32_t at)
{
	for (uint32_t i = 0; i < p->nr_aims && !p->reached; i++) {
		if (p->aim[i].at != at)
			continue;
		pushed_change(p, p->aim[i].words, at);
		p->by_push = p->aim[i].by_push;
		p->reached = true;
	}
}

/* The last one before what is reached otherwise. */
static void pushed_leave(struct hotspot_pushed *p, uint32_t end)
{
	pushed_change(p, 0, end);
	p->reached = false;
}

/* --- instructions --- */

/* Code that is entered in a loop has a second prologue there: the frame pointer is pushed, and the frame made. */
static bool pushed_is_prologue(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	uint64_t frame = p->made->code.word[HOTSPOT_FRAME], bytes = (uint64_t)-i->n;

	if (i->kind == INSN_PUSH)
		return i->reg == X86_BP && !p->words && frame == 16;
	return p->frame_pointer && bytes + 16 == frame;
}

/* Or the frame is made, and the frame pointer stored in it. */
static bool pushed_is_stored(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	const uint64_t frame = p->made->code.word[HOTSPOT_FRAME];

	return p->words && 8ULL * p->words + 8 == frame && i->kind == INSN_STORE && i->reg == X86_BP && i->base == X86_SP &&
	       (uint64_t)i->n + 16 == frame;
}

/* So many more or fewer. What is given back beyond what was taken is the frame itself, as is what is put where it was. */
static void pushed_add(struct hotspot_pushed *p, int64_t words, uint32_t end)
{
	int64_t sum = (int64_t)p->words + words;

	if (p->words == PUSHED_UNKNOWN)
		return;
	if (p->words == PUSHED_LEFT || sum < 0)
		sum = 0;
	pushed_change(p, (uint32_t)MIN(sum, (int64_t)PUSHED_UNKNOWN), end);
}

static void pushed_push(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (pushed_is_prologue(p, i))
		return;
	p->by_push |= !p->words;
	pushed_add(p, 1, end);
}

static void pushed_move(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (i->n < 0 && pushed_is_prologue(p, i))
		pushed_is_frame(p, end);
	else if (i->n % 8)
		pushed_change(p, PUSHED_UNKNOWN, end);
	else
		pushed_add(p, -i->n / 8, end);
}

static void pushed_apply(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	switch (i->kind) {
	case INSN_PUSH:
		pushed_push(p, i, end);
		break;
	case INSN_POP:
		pushed_add(p, -1, end);
		break;
	case INSN_SP_ADD:
		pushed_move(p, i, end);
		break;
	case INSN_JUMP:
	case INSN_BRANCH:
		if (i->n >= 0 && i->n < PUSHED_BYTES)
			pushed_aim(p, end, end + (uint32_t)i->n);
		break;
	case INSN_SP_SET: /* as it was before it was aligned */
	case INSN_SP_LOAD:
		pushed_change(p, 0, end);
		break;
	case INSN_SP_LOST:
		pushed_change(p, PUSHED_UNKNOWN, end);
		break;
	case INSN_LEAVE:
		pushed_change(p, PUSHED_LEFT, end);
		break;
	default:
		break;
	}
}

void hotspot_pushed_take(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	pushed_arrive(p, end - i->len);
	if (pushed_is_stored(p, i))
		pushed_is_frame(p, end);
	pushed_apply(p, i, end);
	if (i->kind == INSN_JUMP || i->kind == INSN_RET || i->kind == INSN_END)
		pushed_leave(p, end);
	p->end = end;
	if (i->kind != INSN_SP_COPY)
		p->frame_pointer = i->kind == INSN_PUSH && i->reg == X86_BP && p->words == 1;
}

static bool pushed_see(void *ctx, const struct x86_insn *i, uint32_t end)
{
	hotspot_pushed_take(ctx, i, end);
	return true;
}

void hotspot_pushed_read(struct hotspot_pushed *p, struct memory *m)
{
	const struct runtime_code *c = &p->made->code;
	const uint32_t size = (uint32_t)MIN(c->end - c->start, (uint64_t)PUSHED_BYTES);
	const uint32_t from = MAX(p->end, (uint32_t)MIN(c->word[HOTSPOT_MADE], (uint64_t)size));

	if (x86_scan(m, c->start, from, size, pushed_see, p))
		hotspot_range_untold(&p->made->code, p->end, false);
	else if (c->end - c->start > size)
		hotspot_range_untold(&p->made->code, size, false);
}
