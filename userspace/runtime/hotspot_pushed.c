// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot_pushed.h"

#include "base/cleanup.h"
#include "runtime/hotspot.h"

void hotspot_pushed_begin(struct hotspot_pushed *p, struct runtime_code *c)
{
	*p = (struct hotspot_pushed){.code = c};
}

static void pushed_forget(struct hotspot_pushed *p)
{
	p->words = p->nr = 0;
	p->by_push = false;
}

/* All was given back. What the region has no more words for stays unknown. */
static void pushed_keep(struct hotspot_pushed *p)
{
	uint32_t at = HOTSPOT_RANGES;

	while (at < RUNTIME_CODE_WORDS && p->code->word[at])
		at++;
	for (uint32_t i = 0; i < p->nr && at < RUNTIME_CODE_WORDS; i++)
		p->code->word[at++] = p->range[i] | (p->by_push ? HOTSPOT_RANGE_ARGUMENTS : 0);
	pushed_forget(p);
}

/* From the end of an instruction on there are so many. */
static void pushed_change(struct hotspot_pushed *p, uint32_t words, uint32_t end)
{
	if (p->words && p->nr == PUSHED_MAX)
		pushed_forget(p);
	else if (p->words)
		p->range[p->nr++] = HOTSPOT_RANGE(p->from, end, p->words);
	p->words = words;
	p->from = end;
	if (words > HOTSPOT_RANGE_WORDS)
		pushed_forget(p);
	else if (!words)
		pushed_keep(p);
}

/* Code that is entered in a loop has a second prologue there: the frame pointer is pushed, or not, and the frame made. */
static bool pushed_is_prologue(const struct hotspot_pushed *p, const struct x86_insn *i)
{
	uint64_t frame = p->code->word[HOTSPOT_FRAME], bytes = (uint64_t)-i->n;

	if (i->kind == INSN_PUSH)
		return i->reg == X86_BP && !p->words && frame == 16;
	return (p->frame_pointer && bytes + 16 == frame) || (!p->words && bytes + 8 == frame);
}

static void pushed_push(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	if (pushed_is_prologue(p, i))
		return;
	p->by_push |= !p->words;
	pushed_change(p, p->words + 1, end);
}

/* What is given back beyond what was taken is the frame itself. */
static void pushed_move(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	uint64_t taken = (uint64_t)-i->n / 8, given = (uint64_t)i->n / 8;

	if (i->n % 8 || (i->n < 0 && pushed_is_prologue(p, i)) || (i->n > 0 && given > p->words))
		pushed_forget(p);
	else if (i->n < 0)
		pushed_change(p, p->words + (uint32_t)MIN(taken, (uint64_t)HOTSPOT_RANGE_WORDS + 1), end);
	else if (p->words)
		pushed_change(p, p->words - (uint32_t)given, end);
}

void hotspot_pushed_take(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end)
{
	switch (i->kind) {
	case INSN_PUSH:
		pushed_push(p, i, end);
		break;
	case INSN_POP:
		if (p->words)
			pushed_change(p, p->words - 1, end);
		break;
	case INSN_SP_ADD:
		pushed_move(p, i, end);
		break;
	case INSN_JUMP:
	case INSN_RET:
	case INSN_END:
	case INSN_SP_SET:
	case INSN_SP_LOAD:
	case INSN_SP_LOST:
	case INSN_LEAVE:
		pushed_forget(p);
		break;
	default:
		break;
	}
	if (i->kind != INSN_SP_COPY)
		p->frame_pointer = i->kind == INSN_PUSH && i->reg == X86_BP && p->words == 1;
}
