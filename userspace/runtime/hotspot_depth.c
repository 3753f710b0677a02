// SPDX-License-Identifier: Apache-2.0
/*
 * How deep the stack is at each instruction of hand-written code, which begins
 * with the return address at the top, and where it keeps the caller's frame
 * pointer. Instructions are followed from the first one straight on, and to where
 * jumps lead forward; then once more, with what jumps lead back with to code that
 * is reached so alone. What nothing known leads to stays unknown. Stubs of C1 have
 * no frame, but push what they use (OpenJDK, c1_Runtime1_x86.cpp,
 * slow_subtype_check); others make one behind that, or align the stack in it, and
 * may keep the frame pointer there to use its register (macroAssembler_x86_sha.cpp,
 * sha512_AVX2).
 * The unwinder's own (unwind/epilogue.c, unwind/prologue.c) answer for one pc of a
 * file, and guess; here the entry is known, and the answers of a whole region are
 * kept with it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"
#include "unwind/x86_insn.h"

#define CODE_MAX   4096u
#define AIMS	   32
#define EVENTS	   (2 * RUNTIME_CODE_WORDS)
#define UNITS_MAX  1023u /* of 8 bytes; as depth: it is not told by the stack pointer, but by the frame pointer */
#define UNITS_KEPT 1022u /* as depth: by the frame pointer, which was kept where saved says */
#define UNITS_BITS 10

/* Bytes below the caller's stack pointer. A depth of 0: nothing is known. */
struct depth {
	uint32_t depth;
	uint32_t saved; /* where the caller's frame pointer was put; 0: it is in its register */
	uint32_t fp;	/* where the frame pointer leads; 0: it is not of this frame */
	bool by_fp;	/* the stack pointer may be anywhere below */
	uint32_t kept;	/* then, where above the stack pointer the frame pointer was put, too; 0: nowhere */
	bool by_kept;	/* it is there only */
};

static const struct depth unknown;

struct aims {
	uint32_t nr;
	struct { uint32_t at; struct depth depth; } aim[AIMS];
};

struct follow {
	struct runtime_code *code;
	struct depth now;
	bool goes_on; /* control gets here from the instruction before */
	bool reached; /* and to that one, as far as is known */
	bool brief;   /* there is not room for all: frames with a frame pointer are left by that */
	bool full;    /* there was no room */
	uint32_t nr_events;
	struct aims ahead; /* of this pass */
	struct aims back;  /* of the one before */
};

static bool depth_is_same(const struct depth *a, const struct depth *b)
{
	return a->depth == b->depth && a->saved == b->saved && a->fp == b->fp && a->by_fp == b->by_fp && a->kept == b->kept &&
	       a->by_kept == b->by_kept;
}

static void depth_meet(struct depth *to, const struct depth *from)
{
	if (!depth_is_same(to, from))
		*to = unknown;
}

static void aims_add(struct aims *a, uint32_t at, const struct depth *d)
{
	for (uint32_t i = 0; i < a->nr; i++)
		if (a->aim[i].at == at) {
			depth_meet(&a->aim[i].depth, d);
			return;
		}
	if (a->nr == AIMS)
		return;
	a->aim[a->nr].at = at;
	a->aim[a->nr++].depth = *d;
}

static bool aims_take(struct aims *a, uint32_t at, struct depth *ret)
{
	for (uint32_t i = 0; i < a->nr; i++) {
		if (a->aim[i].at != at)
			continue;
		*ret = a->aim[i].depth;
		a->aim[i] = a->aim[--a->nr];
		return true;
	}
	return false;
}

/* What is known where an instruction begins: from the one before, and from jumps to it. */
static void follow_join(struct follow *f, uint32_t at)
{
	struct depth aimed;

	f->reached &= f->goes_on;
	f->goes_on = true;
	if (aims_take(&f->ahead, at, &aimed)) {
		if (f->reached)
			depth_meet(&f->now, &aimed);
		else
			f->now = aimed;
		f->reached = true;
	} else if (!f->reached) {
		f->now = unknown;
		f->reached = aims_take(&f->back, at, &f->now);
	}
}

/* --- the frame pointer of an aligned frame, kept in it --- */

/* What lies there by now is something else. */
static void depth_overwrite(struct depth *d)
{
	if (d->by_kept)
		*d = unknown;
	d->kept = 0;
}

static void depth_keep(struct depth *d, const struct x86_insn *i)
{
	if (!d->by_fp || i->base != X86_SP)
		return;
	if (i->reg == X86_BP && !d->by_kept && i->n > 0 && i->n % 8 == 0 && i->n / 8 < UNITS_KEPT)
		d->kept = (uint32_t)i->n;
	else if (d->kept && i->n > (int64_t)d->kept - 8 && i->n < (int64_t)d->kept + 8)
		depth_overwrite(d);
}

/* The stack pointer falls by so many bytes. */
static void depth_kept_moves(struct depth *d, int64_t n)
{
	int64_t kept = (int64_t)d->kept + n;

	if (!d->kept)
		return;
	if (n % 8 == 0 && kept > 0 && kept / 8 < UNITS_KEPT)
		d->kept = (uint32_t)kept;
	else if (d->by_kept)
		*d = unknown;
	else
		d->kept = 0;
}

/* Whether its register gets a value; from where it was kept, it is the frame pointer again. */
static bool depth_uses_kept(struct depth *d, const struct x86_insn *i)
{
	bool loads = i->kind == INSN_LOAD && i->reg == X86_BP;

	if (!d->kept || !(loads || i->writes & 1u << X86_BP) || i->kind == INSN_POP || i->kind == INSN_LEAVE)
		return false;
	d->by_kept = !loads || i->base != X86_SP || i->n != (int64_t)d->kept;
	return true;
}

/* --- what an instruction does --- */

/* The frame pointer is taken back from where it was put, or is anything. */
static void depth_take_back(struct depth *d, uint32_t from)
{
	if (d->by_fp || !d->saved || d->saved != from)
		*d = unknown;
	d->saved = d->fp = 0;
}

/* From elsewhere it is a value of its own. */
static void depth_load(struct depth *d, uint32_t from)
{
	if (d->saved && !d->by_fp && d->saved != from)
		d->fp = 0;
	else
		depth_take_back(d, from);
}

static void depth_push(struct depth *d, const struct x86_insn *i)
{
	d->depth += (uint32_t)i->n;
	if (i->reg == X86_BP && !d->saved)
		d->saved = d->depth;
}

static void depth_pop(struct depth *d, const struct x86_insn *i)
{
	if (i->reg == X86_BP)
		depth_take_back(d, d->depth);
	d->depth -= (uint32_t)i->n;
}

/* Of a frame that begins with the caller's frame pointer, the stack pointer need not be known. */
static void depth_lose(struct depth *d)
{
	if (d->by_kept || d->fp != 16 || d->saved != 16)
		*d = unknown;
	d->by_fp = d->fp;
	d->kept = 0;
}

static void depth_set(struct depth *d, const struct x86_insn *i)
{
	if (i->reg != X86_BP || !d->fp || d->by_kept) {
		depth_lose(d);
		return;
	}
	d->depth = d->fp - (uint32_t)i->n;
	d->by_fp = false;
	d->kept = 0;
}

static void depth_copy(struct depth *d, const struct x86_insn *i)
{
	if (i->reg != X86_BP)
		return;
	if (d->saved && !d->by_fp)
		d->fp = d->depth - (uint32_t)i->n;
	else
		*d = unknown;
}

static void depth_leave(struct depth *d)
{
	if (!d->fp || d->by_kept) {
		*d = unknown;
		return;
	}
	d->depth = d->fp;
	d->by_fp = false;
	d->kept = 0;
	depth_take_back(d, d->depth);
	d->depth -= 8;
}

/* The frame pointer's register may get a value of its own; where a vector's instruction is all that is known, as a rule not. */
static void depth_use_fp(struct depth *d, const struct x86_insn *i)
{
	if (!(i->writes & 1u << X86_BP))
		return;
	if (d->by_fp || (!d->saved && i->writes != X86_WRITES_ALL))
		*d = unknown;
	if (i->writes != X86_WRITES_ALL)
		d->fp = 0;
}

static void depth_apply(struct depth *d, const struct x86_insn *i)
{
	if (depth_uses_kept(d, i))
		return;
	switch (i->kind) {
	case INSN_PUSH:
		depth_kept_moves(d, i->n);
		depth_push(d, i);
		break;
	case INSN_POP:
		depth_kept_moves(d, -i->n);
		depth_pop(d, i);
		break;
	case INSN_SP_ADD:
		depth_kept_moves(d, -i->n);
		d->depth -= (uint32_t)i->n;
		break;
	case INSN_STORE:
		depth_keep(d, i);
		break;
	case INSN_SP_SET:
		depth_set(d, i);
		break;
	case INSN_SP_COPY:
		depth_copy(d, i);
		break;
	case INSN_SP_LOST:
	case INSN_SP_LOAD:
		depth_lose(d);
		break;
	case INSN_LEAVE:
		depth_leave(d);
		break;
	case INSN_LOAD:
		if (i->reg == X86_BP)
			depth_load(d, i->base == X86_SP ? d->depth - (uint32_t)i->n : 0);
		break;
	default:
		depth_use_fp(d, i);
		break;
	}
	if (!d->by_fp && (d->depth < 8 || d->depth % 8 || d->depth >= 8 * UNITS_KEPT))
		*d = unknown;
}

static void follow_jump(struct follow *f, int64_t to, uint32_t end, uint32_t len)
{
	if (to >= end && to < len)
		aims_add(&f->ahead, (uint32_t)to, &f->now);
	else if (to >= 0 && to < end)
		aims_add(&f->back, (uint32_t)to, &f->now);
}

static void follow_apply(struct follow *f, const struct x86_insn *i, uint32_t end, uint32_t len)
{
	if (f->now.depth)
		depth_apply(&f->now, i);
	if ((i->kind == INSN_JUMP || i->kind == INSN_BRANCH) && f->reached)
		follow_jump(f, (int64_t)end + i->n, end, len);
	f->goes_on = i->kind != INSN_JUMP && i->kind != INSN_RET && i->kind != INSN_END;
}

/* --- events: offset << 20 | depth << 10 | saved, in units of 8 bytes; two in a word --- */

static uint32_t event_of(uint32_t at, const struct depth *d, bool brief)
{
	bool by_fp = d->by_fp || (brief && d->fp == 16 && d->saved == 16);
	uint32_t units = d->by_kept ? UNITS_KEPT : (by_fp ? UNITS_MAX : d->depth / 8);
	uint32_t saved = d->by_kept ? d->kept : d->saved;

	return at << 2 * UNITS_BITS | units << UNITS_BITS | (units ? saved / 8 : 0);
}

static bool event_says(uint32_t event, uint32_t other)
{
	return !((event ^ other) & ((1u << 2 * UNITS_BITS) - 1));
}

/* From the last one that there is room for on, nothing is known. */
static void follow_note(struct follow *f, uint32_t at)
{
	uint32_t n = f->nr_events;
	uint32_t event = event_of(at, n == EVENTS - 1 ? &unknown : &f->now, f->brief);

	f->full |= n == EVENTS;
	if (n == EVENTS || (n && event_says(runtime_code_half(f->code, n - 1), event)))
		return;
	runtime_code_set_half(f->code, n, event);
	f->nr_events++;
}

static void follow_all(struct follow *f, const uint8_t *code, uint32_t len)
{
	struct x86_insn insn;

	for (uint32_t at = 0; at < len; at += insn.len) {
		bool whole = x86_decode(code + at, len - at, &insn) == 0 && insn.len;

		follow_join(f, at);
		if (!whole)
			f->now = unknown;
		follow_note(f, at);
		if (!whole)
			return;
		follow_apply(f, &insn, at + insn.len, len);
	}
	f->now = unknown;
	follow_note(f, len);
}

/* One pass. *back: what jumps that lead back tell, of the pass before, then of this one. Whether there was room. */
static bool follow_pass(struct runtime_code *c, const uint8_t *code, uint32_t len, bool brief, struct aims *back)
{
	struct follow f = {.code = c, .now = {.depth = 8}, .goes_on = true, .reached = true, .brief = brief, .back = *back};

	memset(c->word, 0, sizeof(c->word));
	follow_all(&f, code, len);
	*back = f.back;
	return !f.full;
}

void hotspot_depth_read(struct memory *m, struct runtime_code *c)
{
	uint32_t len = (uint32_t)MIN(c->end - c->start, (uint64_t)(CODE_MAX - 1));
	struct aims back = {0}, again;
	uint8_t code[CODE_MAX];

	if (memory_read(m, c->start, code, len))
		return;
	follow_pass(c, code, len, false, &back);
	again = back;
	if (!follow_pass(c, code, len, false, &back))
		follow_pass(c, code, len, true, &again);
}

/* Its offset has 12 bits. */
_Static_assert(CODE_MAX - 1 <= UINT32_MAX >> 2 * UNITS_BITS, "an event holds any offset");

int hotspot_depth_at(const struct runtime_code *c, uint64_t pc, struct hotspot_depth *ret)
{
	uint32_t last = 0, units;

	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t event = runtime_code_half(c, i);

		if ((i && !event) || event >> 2 * UNITS_BITS > pc - c->start)
			break;
		last = event;
	}
	units = last >> UNITS_BITS & UNITS_MAX;
	*ret = (struct hotspot_depth){.depth = 8 * units, .saved = 8 * (last & UNITS_MAX), .by_fp = units == UNITS_MAX,
				      .by_kept = units == UNITS_KEPT};
	return units ? 0 : -ENOENT;
}
