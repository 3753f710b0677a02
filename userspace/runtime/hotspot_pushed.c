// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot_pushed.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/x86_scan.h"

/* Where the code begins behind its prologue, with what is known of jumps. */
static void pushed_restart(struct hotspot_pushed *p)
{
	p->made->code.nr_more = p->nr_before;
	p->now = (struct hotspot_way){0};
	p->from = p->end = 0;
	p->frame_pointer = false;
	p->reached = true;
	p->ways.grew = false;
}

void hotspot_pushed_begin(struct hotspot_pushed *p, struct runtime_code_made *made)
{
	p->made = made;
	p->size = (uint32_t)MIN(made->code.end - made->code.start, (uint64_t)PUSHED_BYTES);
	p->nr_before = made->code.nr_more;
	p->takes = p->full = false;
	hotspot_ways_begin(&p->ways, p->size);
	pushed_restart(p);
}

static void pushed_keep(const struct hotspot_pushed *p, uint32_t end)
{
	const bool left = p->now.words == WAYS_LEFT;

	hotspot_range_add(p->made, &(struct hotspot_range){.from = p->from, .end = end, .words = left ? 0 : p->now.words,
							   .arguments = p->now.by_push && p->now.words <= HOTSPOT_RANGE_WORDS,
							   .left = left});
}

/* From an offset on there are so many. */
static void pushed_change(struct hotspot_pushed *p, uint32_t words, uint32_t at)
{
	if (p->now.words && at > p->from)
		pushed_keep(p, at);
	p->now.words = words;
	p->now.by_push &= words && words <= HOTSPOT_RANGE_WORDS;
	p->takes |= words != 0;
	p->from = at;
}

/* It is not known how many, but where the frame begins may be. */
static void pushed_lose(struct hotspot_pushed *p, uint32_t at)
{
	pushed_change(p, p->now.copied ? HOTSPOT_RANGE_COPIED : HOTSPOT_RANGE_UNKNOWN, at);
}

/* What was taken for words is the frame itself. */
static void pushed_is_frame(struct hotspot_pushed *p, uint32_t at)
{
	p->now.words = 0;
	pushed_change(p, 0, at);
}

/* --- jumps --- */

/* What nothing leads to, and takes no words, leads nowhere: it may be the rest of an instruction, or never run. */
static bool pushed_counts(const struct hotspot_pushed *p)
{
	return p->reached || p->now.words;
}

static void pushed_aim(struct hotspot_pushed *p, int64_t to)
{
	if (pushed_counts(p) && to >= 0 && to < p->size && hotspot_ways_add(&p->ways, (uint32_t)to, &p->now))
		p->full = true;
}

/* The register is another value from there on, or may be. */
static void pushed_forget(struct hotspot_pushed *p, uint32_t at)
{
	p->now.copied = false;
	if (p->now.words == HOTSPOT_RANGE_COPIED)
		pushed_change(p, HOTSPOT_RANGE_UNKNOWN, at);
}

/* Where an instruction begins: control may get there by jumps, too. */
static void pushed_arrive(struct hotspot_pushed *p, uint32_t at)
{
	struct hotspot_way way;

	if (!hotspot_ways_at(&p->ways, at, &way))
		return;
	if (pushed_counts(p))
		way = hotspot_ways_met(&p->now, &way);
	if (way.words != p->now.words || way.by_push != p->now.by_push)
		pushed_change(p, way.words, at);
	p->now = way;
	p->reached = true;
}

/* The last one before what is reached otherwise: what lies behind the jump of a switch are its cases. */
static void pushed_leave(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	pushed_change(p, 0, end);
	p->now.copied = false;
	p->reached = i->kind == INSN_END && i->n != INSN_TRAP;
}

static bool pushed_is_last(const struct x86_insn *i)
{
	return i->kind == INSN_JUMP || i->kind == INSN_RET || i->kind == INSN_END;
}

/* --- instructions --- */

/* Code that is entered in a loop has a second prologue there: the frame pointer is pushed, and the frame made. */
static bool pushed_is_prologue(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	uint64_t frame = p->made->code.word[HOTSPOT_FRAME], bytes = (uint64_t)-i->n;

	if (i->kind == INSN_PUSH)
		return i->reg == X86_BP && !p->now.words && frame == 16;
	return p->frame_pointer && bytes + 16 == frame;
}

/* Or the frame is made, and the frame pointer stored in it. */
static bool pushed_is_stored(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	const uint64_t frame = p->made->code.word[HOTSPOT_FRAME];

	return p->now.words && 8ULL * p->now.words + 8 == frame && i->kind == INSN_STORE && i->reg == X86_BP && i->base == X86_SP &&
	       (uint64_t)i->n + 16 == frame;
}

/* So many more or fewer. What is given back beyond what was taken is the frame itself, as is what is put where it was. */
static void pushed_add(struct hotspot_pushed *p, int64_t words, uint32_t end)
{
	int64_t sum = (int64_t)p->now.words + words;

	if (p->now.words == HOTSPOT_RANGE_UNKNOWN || p->now.words == HOTSPOT_RANGE_COPIED)
		return;
	if (p->now.words == WAYS_LEFT || sum < 0)
		sum = 0;
	if (p->now.words == HOTSPOT_RANGE_KEPT || sum > HOTSPOT_RANGE_WORDS)
		pushed_lose(p, end);
	else
		pushed_change(p, (uint32_t)sum, end);
}

static void pushed_push(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (pushed_is_prologue(p, i))
		return;
	if (i->reg == X86_CX && p->now.copied) {
		pushed_change(p, HOTSPOT_RANGE_KEPT, end);
		return;
	}
	p->now.by_push |= !p->now.words;
	pushed_add(p, 1, end);
}

static void pushed_move(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (i->n < 0 && pushed_is_prologue(p, i))
		pushed_is_frame(p, end);
	else if (i->n % 8)
		pushed_lose(p, end);
	else
		pushed_add(p, -i->n / 8, end);
}

/* Frames of compiled code are aligned (StackAlignmentInBytes), and those that it enters by an adapter. */
#define ALIGNMENT 16

/* Whether what aligns the stack leaves it where it is. */
static bool pushed_is_aligned(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	const uint64_t words = p->now.words, frame = p->made->code.word[HOTSPOT_FRAME];

	return i->n == -ALIGNMENT && words <= HOTSPOT_RANGE_WORDS && (frame + 8 * words) % ALIGNMENT == 0;
}

static void pushed_apply(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	switch (i->kind) {
	case INSN_PUSH:
		pushed_push(p, i, end);
		break;
	case INSN_POP:
		if (i->reg == X86_SP)
			pushed_change(p, 0, end);
		else
			pushed_add(p, -1, end);
		break;
	case INSN_SP_ADD:
		pushed_move(p, i, end);
		break;
	case INSN_JUMP:
	case INSN_BRANCH:
		pushed_aim(p, (int64_t)end + i->n);
		break;
	case INSN_SP_SET: /* as it was before it was aligned */
	case INSN_SP_LOAD:
		pushed_change(p, 0, end);
		break;
	case INSN_SP_LOST: /* or what is left of an instruction that C1 has put a jump in place of (PatchingStub) */
		if ((p->reached || i->n) && !pushed_is_aligned(p, i))
			pushed_lose(p, end);
		break;
	case INSN_LEAVE:
		pushed_change(p, WAYS_LEFT, end);
		break;
	default:
		break;
	}
}

static void pushed_copy(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (i->kind == INSN_SP_COPY && i->reg == X86_CX && !i->n && !p->now.words)
		p->now.copied = true;
	else if (i->kind == INSN_CALL || i->writes >> X86_CX & 1)
		pushed_forget(p, end);
}

void hotspot_pushed_take(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	pushed_arrive(p, end - i->len);
	if (pushed_is_stored(p, i))
		pushed_is_frame(p, end);
	pushed_apply(p, i, end);
	pushed_copy(p, i, end);
	if (pushed_is_last(i))
		pushed_leave(p, i, end);
	p->end = end;
	if (i->kind != INSN_SP_COPY)
		p->frame_pointer = i->kind == INSN_PUSH && i->reg == X86_BP && p->now.words == 1;
}

static bool pushed_see(void *ctx, const struct x86_insn *i, uint32_t end)
{
	hotspot_pushed_take(ctx, i, end);
	return true;
}

/* From the last instruction on. */
static int pushed_scan(struct hotspot_pushed *p, struct memory *m)
{
	const struct runtime_code *c = &p->made->code;
	const uint32_t from = MAX(p->end, (uint32_t)MIN(c->word[HOTSPOT_MADE], (uint64_t)p->size));
	const int err = x86_scan(m, c->start, from, p->size, pushed_see, p);

	pushed_change(p, 0, p->end);
	return err;
}

static void pushed_give_up(struct hotspot_pushed *p)
{
	p->made->code.nr_more = p->nr_before;
	hotspot_range_untold(&p->made->code, (uint32_t)p->made->code.word[HOTSPOT_MADE], false);
}

void hotspot_pushed_read(struct hotspot_pushed *p, struct memory *m)
{
	int err = pushed_scan(p, m);

	for (int i = 1; !err && p->takes && p->ways.grew && i < PUSHED_PASSES; i++) {
		pushed_restart(p);
		err = pushed_scan(p, m);
	}
	if (p->full || (!err && p->takes && p->ways.grew))
		pushed_give_up(p);
	if (err)
		hotspot_range_untold(&p->made->code, p->end, false);
	else if (p->made->code.end - p->made->code.start > p->size)
		hotspot_range_untold(&p->made->code, p->size, false);
}
