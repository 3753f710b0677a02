// SPDX-License-Identifier: Apache-2.0
/*
 * Out of a frame of Java to its caller's (OpenJDK, frame_x86.cpp). Compiled code
 * has frames of fixed size; interpreted code a frame pointer, beneath which the
 * method, its bytecode and the caller's stack pointer lie; hand-written code one
 * or the other. On the way in and out of a method its frame is not there.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

/* Words of a frame in the heap, as distances (hotspot_frozen.c). */
#define IN_HEAP(at, word) ((at)->in_heap && (word) < HOTSPOT_FROZEN_MAX)

enum { RAX = 0, RCX = 2, RBX = 3, RBP = 6, RSP = 7, R13 = 13 };

#define KEPT_MAX   256u /* bytes that are taken between copying the stack pointer and pushing the copy */
#define NEAR	   4096u /* of the stack pointer: the frame of a virtual thread's carrier */
#define CODE_MAX   (1u << 16) /* bytes of an interpreted method */
#define LOCALS_MAX (1u << 19) /* of an interpreted method: 65535 words */

static bool hotspot_step_has(const struct runtime_place *at, unsigned reg)
{
	return at->valid >> reg & 1;
}

static bool hotspot_step_is_code(const struct hotspot *h, uint64_t pc)
{
	return pc > h->low && pc < h->high;
}

/* By a frame pointer: the caller's, and above it the return address. */
static int hotspot_step_by_fp(const struct runtime_place *at, uint64_t fp, struct runtime_step *ret)
{
	if (at->load(at->ctx, fp, &ret->fp) || at->load(at->ctx, fp + 8, &ret->pc))
		return -EFAULT;
	if (IN_HEAP(at, ret->fp))
		ret->fp = fp + 8 * ret->fp;
	ret->cfa = ret->sp = fp + 16;
	ret->flags = RUNTIME_STEP_FP;
	return 0;
}

/* The return address lies at depth below the caller's stack pointer sp + depth; the frame pointer is the caller's. */
static int hotspot_step_frameless(const struct runtime_place *at, uint64_t depth, struct runtime_step *ret)
{
	uint64_t sp = at->reg[RSP];

	if (at->load(at->ctx, sp + depth - 8, &ret->pc))
		return -EFAULT;
	ret->cfa = ret->sp = sp + depth;
	ret->fp = at->reg[RBP];
	ret->flags = hotspot_step_has(at, RBP) ? RUNTIME_STEP_FP : 0;
	return 0;
}

/* --- interpreted code --- */

/*
 * The innermost frame's bytecode is in a register, or something else is: it is one of the method that the frame's last one is
 * of. Native methods have none.
 */
static bool hotspot_step_is_bytecode(uint64_t at, uint64_t former)
{
	return former && at - former + CODE_MAX < 2 * CODE_MAX;
}

/* Its function, from the words of its frame; none, if they are not those of a method. */
static int hotspot_step_own(const struct hotspot *h, const struct runtime_place *at, uint64_t fp,
			    struct runtime_step *ret)
{
	const struct hotspot_slots *slots = hotspot_slots(h->version);
	uint64_t method, cache, bcp;

	if (at->load(at->ctx, fp + (uint64_t)(int64_t)slots->method, &method) ||
	    at->load(at->ctx, fp + (uint64_t)(int64_t)slots->cache, &cache) ||
	    at->load(at->ctx, fp + (uint64_t)(int64_t)slots->bcp, &bcp))
		return -EFAULT;
	if (at->exact && hotspot_step_has(at, R13) && hotspot_step_is_bytecode(at->reg[R13], bcp))
		bcp = at->reg[R13];
	if (method && cache)
		ret->own = (struct runtime_frame){.key = method, .cookie = {cache}, .position = (uint32_t)bcp};
	return 0;
}

static int hotspot_step_interpreted(const struct hotspot *h, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t fp = at->reg[RBP], sender;
	int err;

	if (!hotspot_step_has(at, RBP) || fp % 8)
		return -ENOENT;
	err = hotspot_step_own(h, at, fp, ret);
	if (err || at->load(at->ctx, fp + (uint64_t)(int64_t)hotspot_slots(h->version)->sender_sp, &sender))
		return -EFAULT;
	if (IN_HEAP(at, sender))
		sender = fp + 8 * sender;
	err = hotspot_step_by_fp(at, fp, ret);
	/* A compiled caller's stack pointer is the one from before arguments and locals were put beneath it. */
	if (!err && sender > ret->cfa && sender - ret->cfa <= LOCALS_MAX && sender % 8 == 0)
		ret->sp = sender;
	return err;
}

/* --- ways in --- */

/* The caller's stack pointer is in r13 where interpreted code is entered: above all that was pushed since. */
static bool hotspot_step_has_sender(const struct runtime_place *at)
{
	uint64_t sp = at->reg[RSP], sender = at->reg[R13];

	return at->exact && hotspot_step_has(at, R13) && sender % 8 == 0 && sender > sp && sender - sp <= LOCALS_MAX;
}

/* Without words of its own on the stack, the stack pointer is that of the caller once the return address was taken. */
static bool hotspot_step_has_taken(const struct hotspot *h, const struct runtime_place *at)
{
	return at->exact && hotspot_step_has(at, RAX) && hotspot_step_is_code(h, at->reg[RAX]) && hotspot_step_has(at, R13) &&
	       at->reg[R13] == at->reg[RSP];
}

/* The return address is at the top of the stack, or has been taken from there to rax. */
static int hotspot_step_entry(const struct hotspot *h, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t sp = at->reg[RSP], sender = at->reg[R13], top, pc;

	if (at->load(at->ctx, sp, &top))
		return -EFAULT;
	pc = at->reg[RAX];
	if (hotspot_step_is_code(h, top) &&
	    (sender == sp + 8 || !hotspot_step_has(at, RAX) || !hotspot_step_is_code(h, at->reg[RAX])))
		pc = top;
	if (!hotspot_step_is_code(h, pc))
		return -ENOENT;
	*ret = (struct runtime_step){.pc = pc, .sp = sender, .cfa = sender, .fp = at->reg[RBP],
				     .flags = hotspot_step_has(at, RBP) ? RUNTIME_STEP_FP : 0};
	return 0;
}

/*
 * The frame's words below the frame pointer are pushed one by one; the return address is in rax until the method runs. An
 * interpreted caller's frame, which has the same return address if another one called that, is above its stack pointer.
 */
static bool hotspot_step_frame_begun(const struct runtime_place *at)
{
	uint64_t pc, fp = at->reg[RBP];

	return hotspot_step_has(at, RBP) && fp >= at->reg[RSP] && fp < at->reg[R13] && fp - at->reg[RSP] <= 128 &&
	       at->load(at->ctx, fp + 8, &pc) == 0 && pc == at->reg[RAX];
}

/* What is being entered is in rbx; its class is not known beside it. */
static void hotspot_step_own_entered(const struct runtime_place *at, struct runtime_step *ret)
{
	ret->own = (struct runtime_frame){.key = hotspot_step_has(at, RBX) ? at->reg[RBX] : 0};
}

/* The words of a frame are not all pushed yet: those below the stack pointer are of another one. */
static bool hotspot_step_is_half_made(const struct hotspot *h, const struct runtime_place *at)
{
	uint64_t last = at->reg[RBP] + (uint64_t)(int64_t)hotspot_slots(h->version)->bcp;

	return at->exact && hotspot_step_has(at, RBP) && at->reg[RBP] >= at->reg[RSP] && last < at->reg[RSP];
}

/* A method that is being entered; its frame has begun when r13 is a bytecode's address. */
static int hotspot_step_method_entry(const struct hotspot *h, const struct runtime_place *at, struct runtime_step *ret)
{
	bool half = hotspot_step_is_half_made(h, at);
	int err;

	if (!hotspot_step_has_sender(at) && !hotspot_step_has_taken(h, at)) {
		err = hotspot_step_interpreted(h, at, ret);
		if (!err && half)
			hotspot_step_own_entered(at, ret);
		return err;
	}
	err = hotspot_step_frame_begun(at) ? hotspot_step_by_fp(at, at->reg[RBP], ret) : hotspot_step_entry(h, at, ret);
	if (!err && hotspot_step_frame_begun(at))
		ret->sp = at->reg[R13];
	if (!err)
		hotspot_step_own_entered(at, ret);
	return err;
}

/*
 * Where the compiled code that calls has to be mended first, r13 is where the return address lies, while registers are saved
 * and the virtual machine runs (sharedRuntime_x86_64.cpp, patch_callers_callsite).
 */
static int hotspot_step_mended(const struct hotspot *h, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t at_pc = at->reg[R13], pc;

	if (!hotspot_step_has(at, R13) || at_pc % 8 || at_pc < at->reg[RSP] || at_pc - at->reg[RSP] > LOCALS_MAX ||
	    at->load(at->ctx, at_pc, &pc) || !hotspot_step_is_code(h, pc) || (at->exact && pc != at->reg[RAX]))
		return -ENOENT;
	*ret = (struct runtime_step){.pc = pc, .sp = at_pc + 8, .cfa = at_pc + 8, .fp = at->reg[RBP],
				     .flags = hotspot_step_has(at, RBP) ? RUNTIME_STEP_FP : 0};
	return 0;
}

/*
 * On the way in the return address is taken from the top of the stack to rax, the stack pointer from there on is r13, and
 * arguments are moved to where the callee has them. Until then r13 is anything, an address of the stack among others.
 */
static int hotspot_step_adapter(const struct hotspot *h, const struct runtime_place *at, struct runtime_step *ret)
{
	bool taken = hotspot_step_has(at, RAX) && hotspot_step_is_code(h, at->reg[RAX]);
	uint64_t top;

	if (!at->exact)
		return hotspot_step_mended(h, at, ret);
	if (!taken && at->load(at->ctx, at->reg[RSP], &top) == 0 && hotspot_step_is_code(h, top))
		return hotspot_step_frameless(at, 8, ret);
	if (taken && hotspot_step_mended(h, at, ret) == 0)
		return 0;
	if ((hotspot_step_has_sender(at) || hotspot_step_has_taken(h, at)) && hotspot_step_entry(h, at, ret) == 0)
		return 0;
	return hotspot_step_frameless(at, 8, ret);
}

/* --- compiled code --- */

static int hotspot_step_kept_at(const struct runtime_place *at, bool copied, uint64_t *ret)
{
	if (!copied)
		return at->load(at->ctx, at->reg[RSP], ret);
	*ret = at->reg[RCX];
	return at->exact && hotspot_step_has(at, RCX) ? 0 : -ENOENT;
}

/* Bytes from the stack pointer to the caller's, of a frame that begins where the word there says, or a copy. 0: unknown. */
static uint64_t hotspot_step_kept(const struct runtime_place *at, bool copied, uint64_t frame)
{
	uint64_t kept;

	if (!hotspot_step_has(at, RSP) || hotspot_step_kept_at(at, copied, &kept) || kept % 8 || kept < at->reg[RSP] + !copied ||
	    kept - at->reg[RSP] > KEPT_MAX)
		return 0;
	return kept - at->reg[RSP] + frame;
}

/* Bytes from the stack pointer to the caller's; 0: unknown. Whether the caller's frame pointer lies beneath the return address. */
static uint64_t hotspot_step_depth(const struct runtime_code *c, const struct runtime_place *at, bool *ret_saved)
{
	uint64_t offset = at->pc - c->start;
	struct hotspot_range range;
	/* Of a return address: pc is behind the call, and may be the end. */
	int in_range = hotspot_range_at(c, at->more, offset - !at->exact, at->exact, &range);

	*ret_saved = true;
	if (in_range < 0)
		return 0;
	if (in_range && (range.words == HOTSPOT_RANGE_KEPT || range.words == HOTSPOT_RANGE_COPIED))
		return hotspot_step_kept(at, range.words == HOTSPOT_RANGE_COPIED, c->word[HOTSPOT_FRAME]);
	if (in_range) {
		*ret_saved = range.words || (offset == range.from && !range.left);
		return range.words ? c->word[HOTSPOT_FRAME] + 8 * range.words : (*ret_saved ? 16 : 8);
	}
	if (!at->exact)
		return c->word[HOTSPOT_FRAME];
	if (offset >= c->word[HOTSPOT_MADE]) {
		*ret_saved = offset >= c->word[HOTSPOT_SAVED];
		return c->word[HOTSPOT_FRAME];
	}
	*ret_saved = c->word[HOTSPOT_PUSHED] && offset >= c->word[HOTSPOT_PUSHED];
	return *ret_saved ? 16 : 8;
}

/* Where the frame returns to, or did before it was to be given up. */
static int hotspot_step_original(const struct runtime_code *c, const struct runtime_place *at, uint64_t *ret)
{
	const uint32_t handler = runtime_code_half(c, 2 * HOTSPOT_GIVEN_UP);
	const uint64_t kept = at->reg[RSP] + runtime_code_half(c, 2 * HOTSPOT_GIVEN_UP + 1);

	*ret = at->pc;
	if (at->exact || !handler || at->pc - c->start != handler || !hotspot_step_has(at, RSP))
		return 0;
	if (at->load(at->ctx, kept, ret))
		return -EFAULT;
	return *ret > c->start && *ret <= c->end ? 0 : -ENOENT;
}

static int hotspot_step_compiled(const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret)
{
	struct runtime_place original = *at;
	int err = hotspot_step_original(c, at, &original.pc);
	uint64_t depth;
	bool saved;

	if (err)
		return err;
	depth = hotspot_step_depth(c, &original, &saved);
	if (!hotspot_step_has(at, RSP) || depth < 8)
		return -ENOENT;
	if (original.pc != at->pc)
		ret->place = original.pc;
	err = hotspot_step_frameless(at, depth, ret);
	if (err || !saved)
		return err;
	if (depth < 16 || at->load(at->ctx, ret->sp - 16, &ret->fp))
		return -EFAULT;
	if (IN_HEAP(at, ret->fp))
		ret->fp = ret->sp - 16 + 8 * ret->fp;
	ret->flags |= RUNTIME_STEP_FP;
	return 0;
}

/* --- hand-written code --- */

/* The barrier at a method's entry has pushed a word of ones behind the return address. */
#define COOKIE UINT64_MAX

/* Bytes up to the caller's stack pointer, where the return address is at the top of the stack; 0: it is not. */
static uint64_t hotspot_step_at_top(const struct hotspot *h, const struct runtime_place *at)
{
	uint64_t top, next, sp = at->reg[RSP];

	if (!at->exact || !hotspot_step_has(at, RSP) || at->load(at->ctx, sp, &top))
		return 0;
	if (top == COOKIE && at->load(at->ctx, sp + 8, &next) == 0)
		return hotspot_step_is_code(h, next) ? 16 : 0;
	return hotspot_step_is_code(h, top) ? 8 : 0;
}

static bool hotspot_step_is_fp(const struct runtime_place *at, uint64_t fp)
{
	return fp % 8 == 0 && fp >= at->reg[RSP];
}

static bool hotspot_step_has_fp(const struct runtime_place *at)
{
	return hotspot_step_has(at, RBP) && hotspot_step_is_fp(at, at->reg[RBP]);
}

static int hotspot_step_by_kept(const struct runtime_place *at, uint32_t kept, struct runtime_step *ret)
{
	uint64_t fp;

	if (at->load(at->ctx, at->reg[RSP] + kept, &fp))
		return -EFAULT;
	return hotspot_step_is_fp(at, fp) ? hotspot_step_by_fp(at, fp, ret) : -ENOENT;
}

static int hotspot_step_depth_of(const struct hotspot_depth *d, const struct runtime_place *at, struct runtime_step *ret)
{
	if (!hotspot_step_has(at, RSP) || (d->by_fp && !hotspot_step_has_fp(at)))
		return -ENOENT;
	if (d->by_kept)
		return hotspot_step_by_kept(at, d->saved, ret);
	return d->by_fp ? hotspot_step_by_fp(at, at->reg[RBP], ret) : hotspot_step_frameless(at, d->depth, ret);
}

/* By its instructions. Where it was entered otherwise than by a call of its first byte, something else lies there. */
static int hotspot_step_by_depth(const struct hotspot *h, const struct runtime_code *c, const struct runtime_place *at,
				 struct runtime_step *ret)
{
	struct hotspot_depth d;
	int err = hotspot_depth_at(c, at->pc, &d);

	if (!err)
		err = hotspot_step_depth_of(&d, at, ret);
	if (err || hotspot_step_is_code(h, ret->pc) == (c->kind == HOTSPOT_UPCALL))
		return -ENOENT;
	if (!d.by_fp && !d.by_kept && d.saved) {
		ret->flags |= RUNTIME_STEP_FP;
		err = at->load(at->ctx, ret->sp - d.saved, &ret->fp) ? -EFAULT : 0;
		if (!err && IN_HEAP(at, ret->fp))
			ret->fp = ret->sp - d.saved + 8 * ret->fp;
	}
	if (c->kind == HOTSPOT_SUBTYPE)
		ret->sp += 8ULL * HOTSPOT_ARGUMENTS;
	return err;
}

static int hotspot_step_stub(const struct hotspot *h, const struct runtime_code *c, const struct runtime_place *at,
			     struct runtime_step *ret)
{
	uint64_t fp = at->reg[RBP], depth;
	int err = hotspot_step_by_depth(h, c, at, ret);

	if (err != -ENOENT)
		return err;
	*ret = (struct runtime_step){0};
	depth = hotspot_step_at_top(h, at);
	if (depth)
		return hotspot_step_frameless(at, depth, ret);
	if (!hotspot_step_has_fp(at))
		return -ENOENT;
	err = hotspot_step_by_fp(at, fp, ret);
	if (err || ret->pc != COOKIE)
		return err;
	ret->cfa = ret->sp = fp + 24;
	return at->load(at->ctx, fp + 16, &ret->pc) ? -EFAULT : 0;
}

static int hotspot_step_by_kind(const struct hotspot *h, const struct runtime_code *c, const struct runtime_place *at,
				struct runtime_step *ret)
{
	switch (c->kind) {
	case HOTSPOT_COMPILED:
	case HOTSPOT_YIELD:
		return hotspot_step_compiled(c, at, ret);
	case HOTSPOT_INTERPRETER:
		return hotspot_step_interpreted(h, at, ret);
	case HOTSPOT_ENTRY:
		return hotspot_step_method_entry(h, at, ret);
	case HOTSPOT_ADAPTER:
		return hotspot_step_adapter(h, at, ret);
	case HOTSPOT_STUB:
	case HOTSPOT_UPCALL:
	case HOTSPOT_SUBTYPE:
	case HOTSPOT_BARRIER:
		return hotspot_step_stub(h, c, at, ret);
	default:
		return -ENOENT;
	}
}

/* Of frames in the heap, the outermost one's return address is 0. */
static bool hotspot_step_leaves_part(const struct hotspot *h, uint64_t pc)
{
	return !pc || pc == h->barrier;
}

/* Java code is called by Java code or by stubs. Where the caller that was found is neither, the frame was misread. */
static bool hotspot_step_misses(const struct hotspot *h, const struct runtime_code *c, const struct runtime_place *at,
				const struct runtime_step *step)
{
	bool by_any = c->kind == HOTSPOT_STUB || c->kind == HOTSPOT_UPCALL || c->kind == HOTSPOT_BARRIER;

	return !at->in_heap && !by_any && !hotspot_step_is_code(h, step->pc);
}

/*
 * The frame that returns to the barrier has saved what its caller, in the heap, had in the frame pointer's register: in compiled
 * code that is anything. Where it does not lead to the carrier, the barrier is all that is known.
 */
static int hotspot_step_end_at_barrier(const struct runtime_place *at, int err, struct runtime_step *ret)
{
	/* Between the stack pointer and the carrier's frame there is little more than arguments: the copied stack ends there. */
	if (err == -EFAULT && at->reg[RBP] - at->reg[RSP] <= NEAR)
		return err;
	*ret = (struct runtime_step){.flags = RUNTIME_STEP_ROOT | RUNTIME_STEP_LEFT_OUT};
	return 0;
}

int hotspot_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		 struct runtime_step *ret)
{
	const struct hotspot *h = hotspot_of(a);
	int err;

	if (at->leads_to_heap && !at->exact && h->barrier && at->pc == h->barrier) {
		ret->flags = RUNTIME_STEP_FROZEN;
		return 0;
	}
	err = hotspot_step_by_kind(h, c, at, ret);
	if (c->kind == HOTSPOT_BARRIER && !at->exact && (err || !hotspot_step_is_code(h, ret->pc)))
		return hotspot_step_end_at_barrier(at, err, ret);
	if (!err && hotspot_step_misses(h, c, at, ret))
		return -ENOENT;
	if (!err && at->in_heap && hotspot_step_leaves_part(h, ret->pc))
		ret->flags |= RUNTIME_STEP_FROZEN;
	if (!err && c->kind == HOTSPOT_YIELD)
		ret->flags |= RUNTIME_STEP_MOVES;
	if (!err && c->kind == HOTSPOT_BARRIER)
		ret->flags |= RUNTIME_STEP_LEFT_OUT;
	return err;
}

bool hotspot_lacks_fp(const struct runtime_attached *a, uint64_t pc)
{
	const struct hotspot *h = hotspot_of(a);

	return pc >= h->low && pc < h->high;
}
