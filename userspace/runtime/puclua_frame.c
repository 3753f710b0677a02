// SPDX-License-Identifier: Apache-2.0
/*
 * What the words of a walked CallInfo mean, next to the frames within and
 * without. A function's place is savedpc, which its loop writes before it calls;
 * while the loop of 5.1 and 5.4 runs the innermost function, in a register.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

/* A frame's words, as the plan keeps them. */
struct puclua_words {
	const struct puclua_layout *l;
	const struct runtime_words *w;
	uint16_t keep[PUCLUA_ROWS];
	uint32_t first[PUCLUA_ROWS], count;
};

static void puclua_words_init(struct puclua_words *p, const struct puclua_layout *l, const struct runtime_words *w)
{
	*p = (struct puclua_words){.l = l, .w = w};
	puclua_keep(l, p->keep);
	for (uint32_t row = 0; row < PUCLUA_ROWS; row++) {
		p->first[row] = p->count;
		p->count += otp_walk_count(p->keep[row]);
	}
}

/* A word of the i-th frame, by its offset in what a row is read of. */
static uint64_t puclua_word(const struct puclua_words *p, int64_t i, enum puclua_rows row, uint32_t offset)
{
	uint32_t before = otp_walk_count((uint16_t)(p->keep[row] & ((1u << offset / 8) - 1)));
	const uint64_t *frame = p->w->word + (i - (int64_t)p->w->index) * (int64_t)(p->w->count + 1);

	return frame[p->first[row] + before] >> 8 * (offset % 8);
}

static bool puclua_misses(const struct puclua_words *p, int64_t i, enum puclua_rows row)
{
	return p->w->word[(i - (int64_t)p->w->index) * (int64_t)(p->w->count + 1) - 1] & OTP_WALK_MISSING(row - 1);
}

static int64_t puclua_frames(const struct puclua_words *p)
{
	return (int64_t)p->w->index + 1 + p->w->nr_outer;
}

/* --- one frame --- */

static uint64_t puclua_status(const struct puclua_words *p, int64_t i)
{
	return puclua_word(p, i, PUCLUA_ROW_CI, p->l->ci_status) >> p->l->status_shift;
}

static bool puclua_is_lua(const struct puclua_words *p, int64_t i)
{
	const struct puclua_layout *l = p->l;

	if (l->status_lua && !(l->status_lua >> (puclua_status(p, i) & 15) & 1))
		return false;
	if (puclua_misses(p, i, PUCLUA_ROW_VALUE) || puclua_misses(p, i, PUCLUA_ROW_CLOSURE) ||
	    puclua_misses(p, i, PUCLUA_ROW_PROTO) ||
	    (puclua_word(p, i, PUCLUA_ROW_VALUE, PUCLUA_VALUE_TAG) & 0xff) != l->tag_lua)
		return false;
	return !l->closure_is_c || !(puclua_word(p, i, PUCLUA_ROW_CLOSURE, l->closure_is_c) & 0xff);
}

/* What a state begins with, for the C code that calls it. */
static bool puclua_is_base(const struct puclua_words *p, int64_t i)
{
	if (!p->l->ci_bytes)
		return !puclua_word(p, i, PUCLUA_ROW_CI, p->l->ci_previous);
	return !puclua_misses(p, i, PUCLUA_ROW_VALUE) && !(puclua_word(p, i, PUCLUA_ROW_VALUE, PUCLUA_VALUE_TAG) & 0xff);
}

/*
 * Whether it is the main thread's first one: global_State, which all states share, lies behind that thread (lstate.c,
 * struct LG). 5.1 has an array of its own.
 */
static bool puclua_is_of_main(const struct puclua_words *p)
{
	return !p->l->ci_bytes && p->w->nr_root && p->w->root[0] - p->w->address <= PUCLUA_BASE_BYTES;
}

/* The frame that a state begins with, or one of C, which is on the native stack. */
static uint32_t puclua_flags_of_c(const struct puclua_words *p)
{
	if (!puclua_is_base(p, p->w->index))
		return RUNTIME_HIDDEN;
	return RUNTIME_HIDDEN | RUNTIME_STACK | (puclua_is_of_main(p) ? RUNTIME_MAIN : 0);
}

static uint64_t puclua_proto(const struct puclua_words *p, int64_t i)
{
	return puclua_word(p, i, PUCLUA_ROW_CLOSURE, p->l->closure_p);
}

static uint32_t puclua_sizecode(const struct puclua_words *p, int64_t i)
{
	return (uint32_t)puclua_word(p, i, PUCLUA_ROW_PROTO, p->l->pt.sizecode);
}

static uint64_t puclua_savedpc(const struct puclua_words *p, int64_t i)
{
	return puclua_word(p, i, PUCLUA_ROW_CI, p->l->ci_savedpc);
}

/* Whether a place, which is behind an instruction, is in the function. */
static bool puclua_is_within(const struct puclua_words *p, int64_t i, uint64_t pc)
{
	uint64_t into = pc - puclua_word(p, i, PUCLUA_ROW_PROTO, p->l->pt.code);
	uint32_t size = puclua_sizecode(p, i);

	return size <= PUCLUA_CODE_MAX && into % PUCLUA_INSTRUCTION == 0 && into <= (uint64_t)PUCLUA_INSTRUCTION * size;
}

/* --- its place --- */

/*
 * What the loop's register holds, also while it is in a function that it called: one that uses the register for itself has
 * something else there, which is no place in this function. 0: not known.
 */
static uint64_t puclua_place_in_register(const struct puclua_words *p, uint64_t register_and_1)
{
	const struct otp_regs *regs = p->w->regs;

	if (!register_and_1 || register_and_1 > OTP_REGS_X86_64 || !regs || p->w->arch != OTP_ARCH_X86_64 ||
	    !(regs->valid >> (register_and_1 - 1) & 1))
		return 0;
	return regs->reg[register_and_1 - 1];
}

static uint64_t puclua_place(const struct puclua_words *p, const struct runtime_attached *a)
{
	if (!p->w->index && p->l->saves_pc)
		return puclua_place_in_register(p, a->param[PUCLUA_PARAM_PLACE]);
	return puclua_savedpc(p, p->w->index);
}

/* The index of the instruction before its place; UINT32_MAX: it is not known. */
static uint32_t puclua_index(const struct puclua_words *p, const struct runtime_attached *a)
{
	uint64_t pc = puclua_place(p, a);
	uint64_t into = pc - puclua_word(p, p->w->index, PUCLUA_ROW_PROTO, p->l->pt.code);

	if (!pc || !puclua_is_within(p, p->w->index, pc))
		return UINT32_MAX;
	return into ? (uint32_t)(into / PUCLUA_INSTRUCTION - 1) : 0;
}

/* --- who called it --- */

static bool puclua_is_tail(const struct puclua_words *p, int64_t i)
{
	uint64_t status = puclua_status(p, i);

	return p->l->status_tail ? status >> p->l->status_tail & 1 : (uint32_t)status != 0;
}

/* Whether the caller, a function of Lua, is at an instruction that calls, by the plan's copy of it. */
static bool puclua_is_at_call(const struct puclua_words *p, int64_t caller)
{
	uint32_t insn = (uint32_t)(puclua_word(p, caller, PUCLUA_ROW_LAST, 0) >> 32);

	return !puclua_misses(p, caller, PUCLUA_ROW_LAST) && (insn & 63) == p->l->op->number[PUCLUA_CALL];
}

/* A loop of its own runs it: it was called from C, or by an instruction that calls as C does. */
static bool puclua_is_entry(const struct puclua_words *p, int64_t i)
{
	bool bit = puclua_status(p, i) >> p->l->status_entry & 1;

	switch ((enum puclua_entry)p->l->entry) {
	case PUCLUA_ENTRY_IF:
		return bit;
	case PUCLUA_ENTRY_UNLESS:
		return !bit;
	case PUCLUA_ENTRY_EACH:
		return true;
	case PUCLUA_ENTRY_BY_CALL:
		break;
	}
	return i + 1 >= puclua_frames(p) || !puclua_is_lua(p, i + 1) || !puclua_is_at_call(p, i + 1);
}

static void puclua_called(const struct puclua_words *p, struct runtime_frame *ret)
{
	int64_t i = p->w->index, outermost = puclua_frames(p) - 1;
	uint64_t pc;

	while (outermost > i && !puclua_is_lua(p, outermost))
		outermost--;
	ret->cookie[PUCLUA_COOKIE_MAIN] = puclua_proto(p, outermost);
	if (i + 1 >= puclua_frames(p) || !puclua_is_lua(p, i + 1) || puclua_is_tail(p, i))
		return;
	pc = puclua_savedpc(p, i + 1);
	if (!puclua_is_within(p, i + 1, pc))
		return;
	ret->cookie[PUCLUA_COOKIE_CALL] = puclua_cookie_call(pc, puclua_sizecode(p, i + 1));
	ret->cookie[PUCLUA_COOKIE_CALLER] = puclua_proto(p, i + 1);
}

/* --- all --- */

static uint64_t puclua_frame_source(const struct puclua_words *p, int64_t i)
{
	uint64_t told;

	if (puclua_row_last_is_code(p->l))
		told = puclua_word(p, i, PUCLUA_ROW_PROTO, p->l->pt.k);
	else
		told = puclua_misses(p, i, PUCLUA_ROW_LAST) ? 0 : puclua_word(p, i, PUCLUA_ROW_LAST, 0) >> 32;
	return puclua_cookie_source(puclua_word(p, i, PUCLUA_ROW_PROTO, p->l->pt.source),
				    puclua_word(p, i, PUCLUA_ROW_PROTO, p->l->pt.lineinfo), told);
}

int puclua_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	const struct puclua_layout *l = puclua_layout_at(a->param[PUCLUA_PARAM_LAYOUT]);
	struct puclua_words p;

	if (!l)
		return -EBADMSG;
	puclua_words_init(&p, l, w);
	if (w->count != p.count)
		return -EBADMSG;
	if (!puclua_is_lua(&p, w->index)) {
		ret->flags = puclua_flags_of_c(&p);
		return 0;
	}
	ret->flags = puclua_is_entry(&p, w->index) ? RUNTIME_ENTRY : 0;
	ret->key = puclua_proto(&p, w->index);
	ret->cookie[PUCLUA_COOKIE_SIZE] = puclua_cookie_size(
		puclua_sizecode(&p, w->index), (uint32_t)puclua_word(&p, w->index, PUCLUA_ROW_PROTO, l->pt.linedefined));
	ret->cookie[PUCLUA_COOKIE_SOURCE] = puclua_frame_source(&p, w->index);
	puclua_called(&p, ret);
	ret->position = puclua_index(&p, a);
	return 0;
}
