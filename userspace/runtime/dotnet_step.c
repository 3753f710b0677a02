// SPDX-License-Identifier: Apache-2.0
/*
 * Out of a frame of a method to its caller's: what the prologue has done so far
 * is undone in reverse, or, where the frame is being taken down already, what is
 * left of it.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

enum { RBP = 6, RSP = 7 };

/* The caller's registers, while a frame is undone. */
struct dotnet_undone { uint64_t sp, fp; bool has_sp, has_fp; };

static bool dotnet_step_has(const struct runtime_place *at, unsigned reg)
{
	return at->valid >> reg & 1;
}

static int dotnet_step_return(const struct runtime_place *at, const struct dotnet_undone *u, struct runtime_step *ret)
{
	if (!u->has_sp || at->load(at->ctx, u->sp, &ret->pc))
		return -EFAULT;
	ret->cfa = ret->sp = u->sp + 8;
	ret->fp = u->fp;
	ret->flags = u->has_fp ? RUNTIME_STEP_FP : 0;
	return 0;
}

static int dotnet_undo_rbp(const struct runtime_place *at, struct dotnet_undone *u, uint64_t from)
{
	u->has_fp = true;
	return at->load(at->ctx, from, &u->fp);
}

/* --- epilogues --- */

/* How many pops are done at an offset, and whether it is in the epilogue at all. */
static bool dotnet_step_popped(uint64_t epilogue, uint64_t offset, uint32_t *ret)
{
	uint64_t at = epilogue >> 32;
	uint32_t pops = epilogue & 0xf;

	for (*ret = 0; at < offset && *ret < pops; (*ret)++)
		at += 1 + (epilogue >> (8 + *ret) & 1);
	return epilogue && at == offset;
}

static bool dotnet_step_in_epilogue(const struct runtime_code *c, uint64_t offset, uint64_t *ret, uint32_t *ret_popped)
{
	for (uint32_t i = DOTNET_EPILOGUES; i < RUNTIME_CODE_WORDS; i++) {
		*ret = c->word[i];
		if (dotnet_step_popped(*ret, offset, ret_popped))
			return true;
	}
	return false;
}

static int dotnet_step_epilogue(const struct runtime_place *at, uint64_t epilogue, uint32_t popped, struct runtime_step *ret)
{
	uint32_t pops = epilogue & 0xf, rbp = epilogue >> 4 & 0xf;
	uint64_t sp = at->reg[RSP];
	struct dotnet_undone u = {.sp = sp + 8ULL * (pops - popped), .fp = at->reg[RBP],
				  .has_sp = dotnet_step_has(at, RSP), .has_fp = dotnet_step_has(at, RBP)};

	if (rbp > popped && dotnet_undo_rbp(at, &u, sp + 8ULL * (rbp - 1 - popped)))
		return -EFAULT;
	return dotnet_step_return(at, &u, ret);
}

/* --- prologues and what is between --- */

static int dotnet_undo(const struct runtime_place *at, uint32_t code, uint64_t frame, struct dotnet_undone *u)
{
	uint64_t bytes = 8ULL * (code >> 12);

	switch (code >> 8 & 0xf) {
	case DOTNET_PUSHED_RBP:
		if (!u->has_sp || dotnet_undo_rbp(at, u, u->sp))
			return -EFAULT;
		u->sp += 8;
		return 0;
	case DOTNET_PUSHED:
		u->sp += 8;
		return 0;
	case DOTNET_ALLOCATED:
		u->sp += bytes;
		return 0;
	case DOTNET_FRAMED:
		if (!dotnet_step_has(at, RBP))
			return -EFAULT;
		u->sp = frame;
		u->has_sp = true;
		return 0;
	case DOTNET_SAVED_RBP:
		return dotnet_undo_rbp(at, u, frame + bytes);
	default:
		return -ENOENT;
	}
}

static uint32_t dotnet_step_code(const struct runtime_code *c, uint32_t i)
{
	return runtime_code_half(c, 2 * DOTNET_CODES + i);
}

/* Whether the instruction has run. A prologue calls where the frame is large (JIT_StackProbe), before it takes the room. */
static bool dotnet_step_is_done(const struct runtime_code *c, uint32_t code, uint64_t offset)
{
	return offset >= (c->word[DOTNET_HEAD] >> 8 & 0xff) || (code & 0xff) <= offset;
}

/* The frame's end: the stack pointer once the prologue was through, where rbp tells it. */
static uint64_t dotnet_step_frame(const struct runtime_code *c, const struct runtime_place *at, uint64_t offset, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t code = dotnet_step_code(c, i);

		if ((code >> 8 & 0xf) == DOTNET_FRAMED && dotnet_step_is_done(c, code, offset))
			return at->reg[RBP] - 8ULL * (code >> 12);
	}
	return at->reg[RSP];
}

static int dotnet_step_method(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t offset = at->pc - c->start + (c->word[DOTNET_HEAD] >> 32), epilogue, frame;
	uint32_t nr = MIN((uint32_t)(c->word[DOTNET_HEAD] & 0xff), (uint32_t)DOTNET_CODES_MAX), popped;
	struct dotnet_undone u = {.sp = at->reg[RSP], .fp = at->reg[RBP], .has_sp = dotnet_step_has(at, RSP),
				  .has_fp = dotnet_step_has(at, RBP)};

	if (at->exact && dotnet_step_in_epilogue(c, offset, &epilogue, &popped))
		return dotnet_step_epilogue(at, epilogue, popped, ret);
	frame = dotnet_step_frame(c, at, offset, nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t code = dotnet_step_code(c, i);

		if (dotnet_step_is_done(c, code, offset) && dotnet_undo(at, code, frame, &u))
			return -EFAULT;
	}
	return dotnet_step_return(at, &u, ret);
}

static int dotnet_step_stub(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	const struct dotnet_undone u = {.sp = at->reg[RSP] + 8 * (c->word[0] & 0xff), .fp = at->reg[RBP], .has_sp = dotnet_step_has(at, RSP),
					.has_fp = dotnet_step_has(at, RBP)};

	return at->exact ? dotnet_step_return(at, &u, ret) : -ENOENT;
}

/* --- the stub that stops threads --- */

/* Until its worker writes the return address, the room for it has what it pushed last too: rax, where the method's value is. */
static int dotnet_step_hijack(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	const bool begins = at->exact && at->pc - c->start < (c->word[DOTNET_HEAD] >> 8 & 0xff);
	uint64_t rax, first = at->reg[RSP] + 8ULL * (dotnet_step_code(c, 0) >> 12);
	int err = begins ? -ENODATA : dotnet_step_method(c, at, ret);

	if (err || at->exact)
		return err;
	if (at->load(at->ctx, first, &rax))
		return -EFAULT;
	return ret->pc == rax ? -ENODATA : 0;
}

int dotnet_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		struct runtime_step *ret)
{
	(void)a;
	switch (c->kind) {
	case DOTNET_METHOD:
		return dotnet_step_method(c, at, ret);
	case DOTNET_STUB:
		return dotnet_step_stub(c, at, ret);
	case DOTNET_HIJACKED:
		return at->exact ? -ENOENT : -ENODATA;
	case DOTNET_HIJACK:
		return dotnet_step_hijack(c, at, ret);
	default:
		return -ENOENT;
	}
}
