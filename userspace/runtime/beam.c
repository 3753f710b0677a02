// SPDX-License-Identifier: Apache-2.0
/*
 * BEAM, and the step out of a function: the next return address is the next
 * word with the tag of one (erts/emulator/beam/erl_term.h; is_CP), but for where
 * a frame begins, whose size the code tells.
 * An emulator that keeps frame pointers for other profilers (+JPperf,
 * ERTS_FRAME_LAYOUT_FP_RA of OTP 25 to 29) has another word with that tag beneath
 * most return addresses: where the caller's such word is. The outermost one is 0.
 */
#include "runtime/beam.h"

#include <errno.h>

#include "base/cleanup.h"

enum { RBP = 6, RSP = 7 };

#define TAG_MASK 3u
#define NEAR_BITS 40 /* of addresses: what differs above them is no code, but a number */
#define LINK_MAX  (8u * (BEAM_SLOTS + 2)) /* bytes from a frame pointer in the stack to the caller's */

static bool beam_is_exit(const struct beam *b, uint64_t pc)
{
	for (uint32_t i = 0; i < BEAM_EXITS; i++)
		if (pc == b->exits[i])
			return true;
	return false;
}

static bool beam_has(const struct runtime_place *at, unsigned reg)
{
	return at->valid >> reg & 1 && at->reg[reg] % 8 == 0;
}

/* The process' stack pointer, where the frame has called C code, which runs on the thread's own stack. */
static bool beam_left_stack(const struct beam *b, const struct runtime_code *c, const struct runtime_place *at,
			    uint64_t *ret)
{
	if (!at->left_sp || c->word[BEAM_CROWDED_WORD] & BEAM_CROWDED_FETCHES)
		return false;
	*ret = at->left_sp;
	if (b->framed || beam_is_fetched(c, at->pc))
		return true;
	/* What the process has is older: the stack may be longer now, and is copied as far down as BEAM_GROWN. */
	*ret = at->reg[RBP];
	return beam_has(at, RBP) && *ret + BEAM_GROWN - at->left_sp < OTP_WALK_BYTES;
}

/* The process' stack pointer. Where a frame has called another one, both stack and frame pointer are that: step says so. */
static bool beam_process_stack(const struct beam *b, const struct runtime_code *c, const struct runtime_place *at,
			       uint64_t *ret)
{
	bool own = beam_has(at, RSP) && (at->exact || (beam_has(at, RBP) && at->reg[RBP] == at->reg[RSP]));

	*ret = at->reg[RSP];
	/* A process whose stack was copied besides is not on it: compiled code runs on the thread's stack around each call. */
	if (own && !(at->exact && at->left_sp))
		return true;
	return beam_left_stack(b, c, at, ret);
}

/* How many words, from *sp on, may be the return address. */
static uint32_t beam_slots(const struct runtime_code *c, const struct runtime_place *at, uint64_t *sp)
{
	int words = beam_frame_words(c, at->pc - !at->exact);

	if (words < 0)
		return words == -E2BIG && at->exact ? 1 : BEAM_SLOTS;
	*sp += 8u * (uint32_t)words;
	return 1;
}

/*
 * Parts of instructions are called without regard to tags where nothing looks at the stack meanwhile (safe_fragment_call of
 * erts/emulator/beam/jit/x86/beam_asm.hpp): the first word is the return address. Where they have left a frame, it is a term:
 * one that is a pointer leads to no code, and then the caller is unknown.
 */
static bool beam_is_return(const struct beam *b, const struct runtime_code *c, uint64_t pc, uint32_t slot, uint64_t word)
{
	if (!(word & TAG_MASK))
		return word;
	return !b->loop && c->kind == BEAM_SHARED && !slot && word >> NEAR_BITS == pc >> NEAR_BITS;
}

static bool beam_is_frame_pointer(const struct beam *b, uint64_t at, uint64_t word, uint64_t next)
{
	return word ? word % 8 == 0 && word > at && word - at <= LINK_MAX : beam_is_exit(b, next);
}

/* The next word of a stack, but for a frame pointer. */
static int beam_load(const struct beam *b, const struct runtime_place *at, uint64_t *sp, uint64_t *ret)
{
	uint64_t next;
	int err = at->load(at->ctx, *sp, ret);

	if (err || !b->framed || at->load(at->ctx, *sp + 8, &next) || !beam_is_frame_pointer(b, *sp, *ret, next))
		return err;
	*sp += 8;
	*ret = next;
	return 0;
}

/*
 * The caller of a function has written its whole frame, so that it is left by tags alone: also where its code is not known by
 * now, as that of modules which come and go. Of what calls shared code, new words of a frame may be old ones, unless that
 * has told the process of its stack: then C code may look at it. With frame pointers, that is always told.
 */
static uint32_t beam_caller_flags(const struct beam *b, const struct runtime_code *c, const struct runtime_place *at)
{
	const bool told = !b->framed && !at->exact && at->left_sp && beam_is_fetched(c, at->pc);

	return RUNTIME_STEP_FP | (b->loop || c->kind == BEAM_FUNCTION || told ? RUNTIME_STEP_DATA : 0);
}

/*
 * A dirty scheduler calls C code for a process, which has told of its stack before it came there: as the caller in compiled
 * code has left it, a return address first. Where there is none, as while garbage is collected, it waits within a function whose
 * place is not known: then there are no callers.
 */
static int beam_dirty_step(const struct beam *b, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t sp = at->left_sp, word;

	if (at->exact || at->left_none || !sp || sp % 8 || beam_load(b, at, &sp, &word) || !word || word & TAG_MASK)
		return -ENOENT;
	*ret = (struct runtime_step){.pc = word, .sp = sp + 8, .fp = sp + 8, .cfa = sp + 8,
				     .flags = beam_is_exit(b, word) ? RUNTIME_STEP_ROOT : RUNTIME_STEP_FP | RUNTIME_STEP_DATA};
	return 0;
}

/*
 * Where a traced function returns to, the frame's first word may be an address of code that has called nothing: also while
 * that code is not known yet. -1: at is not there; -ENOENT: the frame is left somewhere behind its beginning.
 */
static int beam_trace_words(const struct beam *b, const struct runtime_place *at)
{
	const uint64_t below = b->low - at->pc;

	for (uint32_t i = 0; i < BEAM_TRACES; i++)
		if (below <= b->trace[i].code && below > b->trace[i].end)
			return at->exact && below != b->trace[i].code ? -ENOENT : b->trace[i].words;
	return -1;
}

static int beam_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		     struct runtime_step *ret)
{
	const bool loop = beam_of(a)->loop;
	uint64_t sp, word;
	uint32_t slots;
	int trace;

	if (c->kind == BEAM_LOOP)
		return beam_loop_step(beam_of(a), c, at, ret);
	if (c->kind == BEAM_DIRTY)
		return beam_dirty_step(beam_of(a), at, ret);
	if (!at->exact && c->kind == BEAM_SHARED && (at->left_none || beam_is_choice(c, at->pc))) {
		ret->flags = RUNTIME_STEP_ROOT; /* a scheduler between two processes */
		return 0;
	}
	trace = beam_trace_words(beam_of(a), at);
	if (trace == -ENOENT || !beam_process_stack(beam_of(a), c, at, &sp))
		return -ENOENT;
	sp += 8u * (uint32_t)MAX(trace, 0);
	slots = beam_slots(c, at, &sp);
	for (uint32_t i = 0; i < slots; i++, sp += 8) {
		if (beam_load(beam_of(a), at, &sp, &word))
			return -EFAULT;
		if (!beam_is_return(beam_of(a), c, at->pc, i + (trace >= 0), word) || (!i && loop && beam_loop_is_own_word(c, at, word)))
			continue;
		ret->pc = word;
		ret->sp = ret->fp = ret->cfa = sp + 8;
		ret->flags = beam_is_exit(beam_of(a), word) ? RUNTIME_STEP_ROOT : beam_caller_flags(beam_of(a), c, at);
		return 0;
	}
	return -ENOENT;
}

/*
 * The walk keeps the process' saved stack pointer as a word of the root; with an interpreter, the heap's start as another
 * one; perhaps an epoch; and where the copy begins.
 */
static int beam_stack(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root, struct runtime_stack *ret)
{
	const bool loop = beam_of(a)->loop;

	if (nr_root != 2u + loop + (beam_of(a)->epoch_at != 0))
		return -ENOENT;
	*ret = (struct runtime_stack){.sp = root[0], .low = loop ? root[1] : 0};
	return 0;
}

/*
 * Offsets: erts/emulator/beam/erl_process.h; read off processes of OTP 23.2.6, 25.2.3, 27.3.4 and 29.1.2. Those of
 * OTP 28 are between two that are alike. The end of the heap is right before stop in each.
 */
const struct beam_row beam_rows[] = {
	{.erts = 13, .process = 0xa8, .stop = 0x58, .heap = 0x80, .end = 0x88, .reds = 0x118, .md5 = 16,
	 .registered = 0x30, .dictionary = 0x1a0, .initial = 0x1c0},
	{.erts = 11, .process = 0xd8, .stop = 0x58, .heap = 0x60, .end = 0x68, .reds = 0x100, .md5 = 8,
	 .registered = 0x30, .dictionary = 0x190, .initial = 0x1b0},
	{.erts = 15, .process = 0xa8, .stop = 0x58, .heap = 0xc0, .end = 0xc8, .reds = 0x110, .md5 = 16,
	 .registered = 0x20, .dictionary = 0x198, .initial = 0x1b8},
	{.erts = 16, .process = 0xa8, .stop = 0x58, .heap = 0xc0, .end = 0xc8, .reds = 0x110, .md5 = 16,
	 .registered = 0x20, .dictionary = 0x198, .initial = 0x1b8},
	{.erts = 17, .process = 0xa8, .stop = 0x58, .heap = 0xc0, .end = 0xc8, .reds = 0x110, .md5 = 16,
	 .registered = 0x20, .dictionary = 0x198, .initial = 0x1b8},
	{0},
};

/* A function that extensions in C are linked to: OTP 29 exports no other ones. */
static const char *const beam_markers[] = {"enif_make_atom", NULL};

const struct runtime_ops runtime_beam = {
	.name = "beam",
	.label = "BEAM",
	.names_last = true,
	.epoch = beam_epoch,
	.kind = KIND_BEAM,
	.markers = beam_markers,
	.attach = beam_attach,
	.stack = beam_stack,
	.context = beam_context,
	.named = "erlang.process",
	.decode = beam_decode,
	.library = "beam.smp",
	.code = beam_code,
	.step = beam_step,
};
