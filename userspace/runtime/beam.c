// SPDX-License-Identifier: Apache-2.0
/*
 * The JIT compiled BEAM, and the step out of a function: frames have no size
 * that code tells, but the next return address is the next word with the tag of
 * one (erts/emulator/beam/erl_term.h; is_CP).
 */
#include "runtime/beam.h"

#include <errno.h>

#include "base/cleanup.h"

enum { RBP = 6, RSP = 7 };

#define TAG_MASK 3u

static bool beam_is_exit(const struct beam *b, uint64_t pc)
{
	for (uint32_t i = 0; i < BEAM_EXITS; i++)
		if (pc == b->exits[i])
			return true;
	return false;
}

/*
 * The process' stack pointer. While C code runs it is in rbp, which step also sets for the callers of a frame: there
 * it is the stack pointer, as nothing else lies between them.
 */
static bool beam_stack(const struct runtime_place *at, uint64_t *ret)
{
	unsigned reg = at->exact ? RSP : RBP;

	*ret = at->reg[reg];
	return at->valid >> reg & 1 && *ret % 8 == 0;
}

static int beam_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		     struct runtime_step *ret)
{
	uint64_t sp, word;

	if (!beam_stack(at, &sp))
		return -ENOENT;
	for (uint32_t i = 0; i < BEAM_SLOTS; i++, sp += 8) {
		if (at->load(at->ctx, sp, &word))
			return -EFAULT;
		if (word & TAG_MASK || !word)
			continue;
		ret->pc = word;
		ret->sp = ret->fp = ret->cfa = sp + 8;
		ret->flags = beam_is_exit(beam_of(a), word) ? RUNTIME_STEP_ROOT : RUNTIME_STEP_FP;
		return 0;
	}
	return -ENOENT;
}

/* What modules in C are linked to. Programs without other symbols, as of OTP 29, are told of in words. */
static const char *const beam_markers[] = {"enif_make_atom", NULL};

const struct runtime_ops runtime_beam = {
	.name = "beam",
	.label = "BEAM",
	.kind = KIND_BEAM,
	.markers = beam_markers,
	.attach = beam_attach,
	.decode = beam_decode,
	.library = "beam.smp",
	.code = beam_code,
	.step = beam_step,
};
