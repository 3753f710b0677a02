// SPDX-License-Identifier: Apache-2.0
/*
 * Out of a frame of JavaScript, or of what V8 brings along, to its caller's: by
 * the frame pointer, but for the innermost frame while its own is not made yet,
 * or taken down already (V8, frame-constants.h).
 */
#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runtime/v8.h"

#define PUSHES_MAX 48u /* bytes of the instructions that push a frame's words */

enum { RDI = 5, RBP = 6, RSP = 7, R9 = 9, R12 = 12 };

/* Slots of a frame of JavaScript, from the frame pointer. */
#define SLOT_TYPE      (-8) /* a context; of other frames, a small number */
#define SLOT_FUNCTION  (-16)
#define SLOT_BYTECODES (-32)
#define SLOT_OFFSET    (-40)

static bool v8_step_has(const struct runtime_place *at, unsigned reg)
{
	return at->valid >> reg & 1;
}

static int v8_step_word(const struct runtime_place *at, uint64_t fp, int slot, uint64_t *ret)
{
	return at->load(at->ctx, fp + (uint64_t)(int64_t)slot, ret);
}

static int v8_step_by_fp(const struct runtime_place *at, uint64_t fp, struct runtime_step *ret)
{
	if (at->load(at->ctx, fp, &ret->fp) || at->load(at->ctx, fp + 8, &ret->pc))
		return -EFAULT;
	ret->cfa = ret->sp = fp + 16;
	ret->flags = RUNTIME_STEP_FP;
	return 0;
}

/* --- what runs in it --- */

/* The offset counts from the array's begin, as a tagged address does. */
static uint32_t v8_step_position(const struct v8 *v, uint64_t offset)
{
	return offset >= v->bytecode_data - 1u && offset < INT32_MAX ? V8_AT(offset - (v->bytecode_data - 1u)) : 0;
}

/* Of a frame with function, bytecodes and, while it is interpreted, their offset. */
static int v8_step_own(const struct v8 *v, const struct runtime_place *at, uint64_t fp, struct runtime_step *ret)
{
	uint64_t type, function, bytecodes, offset;

	if (v8_step_word(at, fp, SLOT_TYPE, &type) || v8_step_word(at, fp, SLOT_FUNCTION, &function) ||
	    v8_step_word(at, fp, SLOT_BYTECODES, &bytecodes) || v8_step_word(at, fp, SLOT_OFFSET, &offset))
		return -EFAULT;
	if (!v8_is_object(type) || !v8_is_object(function) || !v8_is_object(bytecodes))
		return 0;
	ret->own = (struct runtime_frame){.key = bytecodes, .flags = RUNTIME_HINTED,
					  .cookie = {[1] = V8_BY_BYTECODES, [RUNTIME_COOKIE_HINT] = function}};
	if (!(uint32_t)offset)
		ret->own.position = v8_step_position(v, offset >> 32);
	return 0;
}

/* Where the first frame begins; UINT32_MAX: there is none. */
static uint32_t v8_step_frame_begins(const struct runtime_code *c, const struct runtime_place *at)
{
	for (uint32_t i = 0; i < c->nr_more; i++)
		if ((at->more[i] & 0xff) == V8_FRAMED)
			return at->more[i] >> 8;
	return UINT32_MAX;
}

/* While its frame is made. Where it is taken down, the register has the function that was called last. */
static bool v8_step_is_entering(const struct runtime_code *c, const struct runtime_place *at)
{
	const uint32_t begins = v8_step_frame_begins(c, at);

	return begins == UINT32_MAX || c->kind == V8_PROLOGUE || at->pc - c->start < begins + PUSHES_MAX;
}

/* Of the innermost frame, while its words are not all there: the function is in the register in which it is passed. */
static void v8_step_own_entered(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	if (v8_step_is_entering(c, at) && v8_step_has(at, RDI) && v8_is_object(at->reg[RDI]))
		ret->own = (struct runtime_frame){.key = at->reg[RDI], .flags = RUNTIME_MOVED};
}

/* --- frames --- */

static uint32_t v8_step_state(const struct runtime_code *c, const struct runtime_place *at)
{
	const uint64_t offset = at->pc - c->start;
	const uint32_t n = ARRAY_COUNT_WHILE(c->nr_more, i, at->more[i] >> 8 <= offset);

	return n ? at->more[n - 1] & 0xff : 1;
}

/* The innermost frame, with the return address at a depth or in a register. */
static int v8_step_frameless(const struct runtime_place *at, uint32_t state, struct runtime_step *ret)
{
	uint64_t sp = at->reg[RSP];

	if (state == V8_UNTOLD)
		return -ENODATA;
	if (!v8_step_has(at, RSP))
		return -ENOENT;
	*ret = (struct runtime_step){.fp = at->reg[RBP], .flags = v8_step_has(at, RBP) ? RUNTIME_STEP_FP : 0};
	ret->cfa = ret->sp = sp;
	if (state >= V8_IN_REG) {
		if (!v8_step_has(at, state & 31))
			return -ENOENT;
		ret->pc = at->reg[state & 31];
		return 0;
	}
	ret->cfa = ret->sp = sp + 8 * state;
	/* The caller's frame pointer was pushed last. */
	if (state == 2 && at->load(at->ctx, sp, &ret->fp))
		return -EFAULT;
	return at->load(at->ctx, sp + 8 * state - 8, &ret->pc);
}

/*
 * Whether the frame pointer is that of JavaScript, which has a context where the frame of a stub has a small number; a
 * frame that was made this moment has neither yet.
 */
static bool v8_step_fp_is_javascript(const struct runtime_place *at)
{
	uint64_t fp = at->reg[RBP], word;

	return at->exact && v8_step_has(at, RBP) && v8_step_has(at, RSP) && fp % 8 == 0 && fp >= at->reg[RSP] + 8 &&
	       v8_step_word(at, fp, SLOT_TYPE, &word) == 0 && v8_is_object(word);
}

static bool v8_step_is_framed(const struct runtime_code *c, const struct runtime_place *at)
{
	return !at->exact || v8_step_state(c, at) == V8_FRAMED;
}

static int v8_step_framed(const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t fp = at->reg[RBP];

	if (!v8_step_has(at, RBP) || fp % 8 || (v8_step_has(at, RSP) && fp < at->reg[RSP]))
		return -ENOENT;
	return v8_step_by_fp(at, fp, ret);
}

static int v8_step_plain(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	if (v8_step_is_framed(c, at))
		return v8_step_framed(at, ret);
	return v8_step_frameless(at, v8_step_state(c, at), ret);
}

/* The frame's own words are there from a stack pointer on that lies beneath them. */
static bool v8_step_is_whole(const struct runtime_place *at)
{
	return !at->exact || !v8_step_has(at, RSP) || at->reg[RSP] <= at->reg[RBP] + (uint64_t)(int64_t)SLOT_OFFSET;
}

/* Interpreted and baseline code: what the frame's words say runs in it. */
static int v8_step_interpreted(const struct v8 *v, const struct runtime_code *c, const struct runtime_place *at,
			       struct runtime_step *ret)
{
	uint64_t fp = at->reg[RBP];
	int err = v8_step_plain(c, at, ret);

	if (err)
		return err;
	if (!v8_step_is_framed(c, at) || !v8_step_is_whole(at)) {
		v8_step_own_entered(c, at, ret);
		return 0;
	}
	return v8_step_own(v, at, fp, ret);
}

/* The function is in the frame from a stack pointer on that lies beneath; before the frame begins, in its register. */
static int v8_step_without_data(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	const uint64_t fp = at->reg[RBP], sp = at->reg[RSP];
	const uint32_t begins = v8_step_frame_begins(c, at);
	uint64_t type = 0, function = 0;
	int err = v8_step_plain(c, at, ret);

	if (err)
		return err;
	if (!v8_step_is_framed(c, at)) {
		if (begins != UINT32_MAX && at->pc - c->start < begins)
			v8_step_own_entered(c, at, ret);
		return 0;
	}
	if (at->exact && (!v8_step_has(at, RSP) || sp > fp + (uint64_t)(int64_t)SLOT_FUNCTION))
		return 0;
	if (v8_step_word(at, fp, SLOT_TYPE, &type) || v8_step_word(at, fp, SLOT_FUNCTION, &function))
		return -EFAULT;
	if (v8_is_object(type) && v8_is_object(function))
		ret->own = (struct runtime_frame){.key = function, .flags = RUNTIME_MOVED};
	return 0;
}

/* While the frame of baseline code is not made, the code's own return address lies above the caller's. */
static int v8_step_prologue(const struct v8 *v, const struct runtime_code *c, const struct runtime_place *at,
			    struct runtime_step *ret)
{
	uint64_t sp = at->reg[RSP];

	if (v8_step_is_framed(c, at) || v8_step_state(c, at) != 2 ||
	    c->nr_more < 2 || at->pc - c->start >= at->more[1] >> 8)
		return v8_step_interpreted(v, c, at, ret);
	if (!v8_step_has(at, RSP) || at->load(at->ctx, sp + 8, &ret->pc))
		return -EFAULT;
	ret->cfa = ret->sp = sp + 16;
	ret->fp = at->reg[RBP];
	ret->flags = v8_step_has(at, RBP) ? RUNTIME_STEP_FP : 0;
	v8_step_own_entered(c, at, ret);
	return 0;
}

/* Builtins run where they lie in the file, or in a second mapping near compiled code. */
static bool v8_step_is_trampoline(const struct v8 *v, const struct runtime_place *at, uint64_t pc)
{
	return (pc > v->trampoline && pc <= v->trampoline_end) ||
	       (pc > v->trampoline + at->moved && pc <= v->trampoline_end + at->moved);
}

/* A bytecode that is run is in r12 and r9; the frame's words have it only where the bytecode calls. */
static void v8_step_running(const struct v8 *v, const struct runtime_place *at, struct runtime_step *ret)
{
	if (at->exact && v8_step_has(at, R12) && v8_step_has(at, R9) && at->reg[R12] == ret->own.key &&
	    (uint32_t)at->reg[R9] == at->reg[R9])
		ret->own.position = v8_step_position(v, at->reg[R9]);
}

/* Instructions tell where a stub's frame is made, not always where they go on without: its caller's context does. */
static int v8_step_stub(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	if (v8_step_is_framed(c, at) && v8_step_fp_is_javascript(at))
		return v8_step_frameless(at, 1, ret);
	return v8_step_plain(c, at, ret);
}

/* Whether a frame has saved the frame pointer of JavaScript. */
static bool v8_step_saves_javascript(const struct runtime_place *at, uint64_t fp)
{
	uint64_t saved, word;

	return v8_step_word(at, fp, 0, &saved) == 0 && saved % 8 == 0 && saved > fp &&
	       v8_step_word(at, saved, SLOT_TYPE, &word) == 0 && v8_is_object(word);
}

/*
 * Whether the frame pointer is that of the handler's own frame, which it makes to call. Its instructions do not tell: they go
 * on behind the end of such a frame, with or without one. It returns to what enters bytecodes, or to a copy of that.
 */
static bool v8_step_fp_is_handlers(const struct v8 *v, const struct runtime_place *at)
{
	const uint64_t fp = at->reg[RBP];
	uint64_t pc;

	return at->exact && v8_step_has(at, RBP) && fp % 8 == 0 && v8_step_word(at, fp, 8, &pc) == 0 &&
	       (v8_step_is_trampoline(v, at, pc) || v8_step_saves_javascript(at, fp));
}

/* It was called by interpreted code, with whose frame it is one. */
static int v8_step_handler(const struct v8 *v, const struct runtime_code *c, const struct runtime_place *at,
			   struct runtime_step *ret)
{
	uint64_t fp = at->reg[RBP];
	int err = 0;

	if (!v8_step_fp_is_javascript(at)) {
		err = v8_step_fp_is_handlers(v, at) ? v8_step_framed(at, ret) : v8_step_plain(c, at, ret);
		if (err || !v8_step_is_trampoline(v, at, ret->pc) || !(ret->flags & RUNTIME_STEP_FP))
			return err;
		fp = ret->fp;
		if (fp < ret->sp || fp % 8)
			return -ENOENT;
	}
	err = v8_step_by_fp(at, fp, ret);
	if (!err)
		err = v8_step_own(v, at, fp, ret);
	if (!err)
		v8_step_running(v, at, ret);
	return err;
}

int v8_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
	    struct runtime_step *ret)
{
	const struct v8 *v = v8_of(a);
	struct runtime_place copied = *at;

	if (c->copy_of)
		copied.moved = c->start - c->copy_of;
	switch (c->kind) {
	case V8_HANDLER:
		return v8_step_handler(v, c, &copied, ret);
	case V8_STUB:
	case V8_WASM:
		return v8_step_stub(c, at, ret);
	case V8_PROLOGUE:
		return v8_step_prologue(v, c, at, ret);
	case V8_WITHOUT_DATA:
		return v8_step_without_data(c, at, ret);
	case V8_TRAMPOLINE:
	case V8_BASELINE:
		return v8_step_interpreted(v, c, at, ret);
	default:
		return v8_step_plain(c, at, ret);
	}
}
