// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/calls.h"
#include "unwind/go.h"
#include "unwind/search_budget.h"

struct unwinder {
	struct rules *rules; /* owned */
	struct unwind_stats stats;
	struct calls calls;
	struct search_budget searches;
};

int unwinder_new(const struct unwind_limits *limits, struct unwinder **ret)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	err = rules_new(limits ? limits->rules : 0, &u->rules);
	if (err < 0) {
		free(u);
		return err;
	}
	u->calls.rules = u->rules;
	*ret = u;
	return 0;
}

struct unwinder *unwinder_free(struct unwinder *u)
{
	if (u)
		rules_free(u->rules);
	free(u);
	return NULL;
}

void unwinder_stats(const struct unwinder *u, struct unwind_stats *ret)
{
	*ret = u->stats;
}

static void unwind_add_frame(struct cursor *c, uint64_t pc, const struct mapping *map)
{
	c->out->frames[c->out->count++] = (struct frame){.kind = KIND_NATIVE,
							 .flags = c->exact ? 0 : FRAME_CALLER,
							 .guess = (uint8_t)c->guess,
							 .pc = pc,
							 .map = map};
	c->out->guessed[c->guess]++;
}

/* The last frame added is a signal trampoline: its own pc is looked up, not the call before it. */
static void unwind_mark_signal(struct cursor *c)
{
	struct frame *f = &c->out->frames[c->out->count - 1];

	f->flags = (uint8_t)((f->flags & ~FRAME_CALLER) | FRAME_SIGNAL);
}

static const struct mapping *unwind_find_mapping(const struct cursor *c, uint64_t addr)
{
	/* Neighbours in a stack mostly belong to one file. */
	if (c->map && addr >= c->map->start && addr < c->map->end)
		return c->map;
	return space_find(c->in->space, addr);
}

/*
 * A private calling convention, one that preserves registers which the ABI does
 * not, holds within one file only: in another file, such registers are unknown.
 */
static void unwind_cross_files(struct cursor *c, const struct mapped_file *file)
{
	if (!c->exact && (file != c->file || file->kind == MAPPED_ANON))
		c->valid &= c->arch->survive;
	c->file = file;
}

static int unwind_step_frameless(struct cursor *c)
{
	struct row row;

	c->arch->frameless(&row);
	return step_row(c, NULL, &row);
}

/* A call through a null pointer: only the call has run. */
static bool unwind_called_null(const struct cursor *c, uint64_t pc)
{
	return c->exact && pc < 4096;
}

static int unwind_uncovered(struct cursor *c, uint64_t pc)
{
	if (unwind_called_null(c, pc)) {
		unwind_add_frame(c, pc, NULL);
		return unwind_step_frameless(c);
	}
	if (pc < 4096 || pc >= c->arch->address_end)
		return cursor_cut(c, UNWIND_UNMAPPED); /* not code at all: not shown as a frame */
	if (!c->final) {
		c->out->fail_pc = pc;
		return -EAGAIN;
	}
	unwind_add_frame(c, pc, NULL);
	return cursor_cut(c, UNWIND_UNMAPPED);
}

static int unwind_by_fp_or(struct cursor *c, enum unwind_end otherwise)
{
	int step = step_fp(c);

	if (step == STEP_NOTHING && otherwise == UNWIND_NO_RULE)
		step = step_scan(c);
	return step == STEP_NOTHING ? cursor_cut(c, otherwise) : step;
}

/* Whether the guess leads to code of an open file, right after a call. -EAGAIN: its file is not open yet. */
static int unwind_guess_holds(struct cursor *c)
{
	const struct mapping *m = space_find(c->in->space, c->reg[c->arch->pc] - 1);
	struct code code;
	int err;

	if (!m)
		return -ENOENT;
	if (mapped_file_is_generated(m->file) && !m->file->binary)
		return 0; /* accepted: generated code makes calls too, but cannot be read */
	err = cursor_wants_file(c, m);
	if (err)
		return err;
	code_read(m->file->binary, mapping_address(m, c->reg[c->arch->pc] - 1), &code);
	return c->arch->after_call(&code) ? 0 : -ENOENT;
}

/* By the code's instructions; if they lead nowhere, by the frame pointer. */
static int unwind_by_guess(struct cursor *c, const struct found *f)
{
	const struct cursor before = *c;
	int step = f->wide ? step_row(c, NULL, f->wide) : step_packed(c, f->packed), err = -ENOENT;
	uint64_t missing = 0;

	if (step > 0)
		err = unwind_guess_holds(c);
	if (err == -EAGAIN)
		return err;
	if (err == 0) {
		c->guess = FRAME_BY_EPILOGUE;
		return step;
	}
	/* A copy that is too short does not disprove the guess. */
	if (!step && c->out->end == UNWIND_SHORT)
		return 0;
	if (!step && c->out->end == UNWIND_UNREADABLE)
		missing = c->out->fail_addr;
	*c = before;
	step = unwind_by_fp_or(c, UNWIND_NO_RULE);
	/* Most likely bytes of another stack that the thread switched from: they can be copied too. */
	if (!step && c->out->end == UNWIND_NO_RULE && missing) {
		c->fault_addr = missing;
		return cursor_cut(c, UNWIND_UNREADABLE);
	}
	return step;
}

/* A thread that has not run yet, or only up to the test for being the new one: its stack is empty. */
static bool unwind_has_just_begun(const struct cursor *c, const struct packed *p)
{
	return p->flags & ROW_CLONE && c->exact && cursor_is_valid(c, c->arch->result) && !c->reg[c->arch->result];
}

/* Words of a frame, and of one that it called, in which the id of the former stack may be. */
#define PROOF_WORDS 8
#define PROOF_WORDS_BELOW 64

static bool unwind_keeps(struct cursor *c, uint64_t from, uint64_t to, uint64_t id)
{
	uint64_t word;

	for (uint64_t at = from; at < to; at += 8)
		if (cursor_load(c, at, &word) == 0 && word == id)
			return true;
	return false;
}

static bool unwind_proves(struct cursor *c, const struct packed *p, uint64_t id)
{
	const uint64_t sp = c->reg[c->arch->sp];

	if (c->exact)
		return false;
	if (packed_has(p, ROW_PROVES_BELOW))
		return c->callee_sp < sp && unwind_keeps(c, MAX(c->callee_sp, sp - 8 * PROOF_WORDS_BELOW), sp, id);
	return unwind_keeps(c, sp, sp + 8 * PROOF_WORDS, id);
}

/* What is saved as the place where the other stack goes on stands for the function that left it: by its file's table too. */
static bool unwind_stands_in(const struct cursor *c, struct binary *b)
{
	const struct unwind_other *o = c->in->other;

	return o->stand_in || (o->pc >= c->map->start && o->pc < c->map->end &&
			       go_stands_in(b, mapping_address(c->map, c->reg[c->arch->pc] - 1), mapping_address(c->map, o->pc)));
}

/* Whether the function of this row left the stack whose copy there is. */
static bool unwind_left_other(struct cursor *c, struct binary *b, const struct packed *p)
{
	const struct unwind_other *o = c->in->other;

	if (!o || !o->pc || c->left || !cursor_in_other(c, o->sp))
		return false;
	if (packed_has(p, ROW_PROVES | ROW_PROVES_BELOW))
		return unwind_proves(c, p, o->id);
	return packed_has(p, ROW_SWITCHED) && unwind_stands_in(c, b);
}

/* The registers of the stack that was left. What stands there for the function that left it is passed over. */
static int unwind_enter_other(struct unwinder *u, struct cursor *c, struct binary *b)
{
	const struct unwind_other *o = c->in->other;
	const bool stands_in = unwind_stands_in(c, b);
	struct found f;
	bool hit;

	c->left = true;
	c->valid = 0;
	cursor_set(c, c->arch->pc, o->pc);
	cursor_set(c, c->arch->sp, o->sp);
	c->low = o->sp - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_SURE;
	if (!stands_in)
		return 1;
	/* It is in the file of the function that left, or is that one itself: there the row is that of its former stack. */
	f = rules_find(u->rules, c->arch, b, mapping_address(c->map, o->pc), &hit);
	if (f.packed->state != PACKED_ROW || f.packed->flags & ~(ROW_SWITCHED | ROW_GUESS))
		return cursor_cut(c, UNWIND_SWITCHED);
	return step_packed(c, f.packed);
}

static bool unwind_goes_before_tables(const struct unwind_code *code, uint64_t pc)
{
	for (uint32_t i = 0; i < code->nr_over; i++)
		if (pc >= code->over[i].start && pc < code->over[i].end)
			return true;
	return false;
}

static bool unwind_lacks_table(const struct found *f)
{
	bool rows = f->packed->state == PACKED_ROW || f->packed->state == PACKED_WIDE;

	return f->packed->state == PACKED_NONE || (rows && f->packed->flags & ROW_GUESS);
}

/* Code of a file that has no table for it, or a wrong one: as its runtime says, if it brings it along. */
static int unwind_brought(struct cursor *c, const struct found *f)
{
	bool none = unwind_lacks_table(f);

	if (!c->in->code || !(none || unwind_goes_before_tables(c->in->code, c->reg[c->arch->pc])))
		return STEP_NOTHING;
	return step_code(c);
}

static int unwind_by_row(struct unwinder *u, struct cursor *c, struct binary *b, const struct found *f)
{
	uint8_t flags = f->packed->flags;
	int step;

	if (unwind_has_just_begun(c, f->packed))
		return cursor_cut(c, UNWIND_ROOT_LISTED);
	if (packed_has(f->packed, ROW_SWITCHED | ROW_PROVES | ROW_PROVES_BELOW) && unwind_left_other(c, b, f->packed))
		return unwind_enter_other(u, c, b);
	if (flags & ROW_SWITCHED)
		return cursor_cut(c, UNWIND_SWITCHED);
	if (f->packed->flags & ROW_GUESS)
		return unwind_by_guess(c, f);

	if (f->packed->flags & ROW_SIGNAL)
		unwind_mark_signal(c);
	step = f->wide ? step_row(c, b, f->wide) : step_packed(c, f->packed);
	c->exact |= step == 1 && packed_has(f->packed, ROW_INJECTED);
	if (!step && flags & ROW_RETURNS && !unwind_end_is_root(c->out->end))
		return cursor_cut(c, UNWIND_SWITCHED);
	/* After a frame pointer's step only the frame pointer is known, and it leads to the next frame. */
	if (!step && c->out->end == UNWIND_REGISTER && c->guess == FRAME_BY_FRAME_POINTER)
		return unwind_by_fp_or(c, UNWIND_REGISTER);
	return step;
}

static int unwind_by_binary(struct unwinder *u, struct cursor *c, struct binary *b, uint64_t vaddr)
{
	struct found f;
	bool hit;
	int step;

	f = rules_find(u->rules, c->arch, b, vaddr, &hit);
	if (hit)
		u->stats.cache_hits++;
	else
		u->stats.cache_misses++;
	step = unwind_brought(c, &f);
	if (step == STEP_NOTHING && unwind_lacks_table(&f))
		step = step_stg(c);
	if (step != STEP_NOTHING)
		return step;
	switch (f.packed->state) {
	case PACKED_ROW:
	case PACKED_WIDE:
		return unwind_by_row(u, c, b, &f);
	case PACKED_ROOT:
		return cursor_cut(c, UNWIND_ROOT_LISTED);
	case PACKED_NONE:
		return unwind_by_fp_or(c, UNWIND_NO_RULE);
	default:
		return cursor_cut(c, UNWIND_BAD_CFI);
	}
}

/*
 * Code that was made at run time: as its runtime says, else through the function that enters it. What may be a
 * runtime's all the same is left by the frame pointer; what is nobody's, by that or a search for the caller.
 */
static int unwind_generated(struct unwinder *u, struct cursor *c)
{
	int step = c->in->code ? step_code(c) : STEP_NOTHING;

	if (step == STEP_NOTHING && frozen_is_frame(c)) /* nothing is guessed there */
		return cursor_cut(c, UNWIND_NO_RULE);
	if (step == STEP_NOTHING)
		step = step_gate(u->rules, c);
	if (step != STEP_NOTHING)
		return step;
	if ((c->in->code && c->in->code->owns) || gate_leads_here(c))
		return unwind_by_fp_or(c, UNWIND_NO_RULE);
	step = step_search(u->rules, &u->calls, c);
	return step == STEP_NOTHING ? cursor_cut(c, UNWIND_NO_RULE) : step;
}

/* The file cannot be opened, but a runtime may know the code that was mapped from it. */
static int unwind_unreadable(struct cursor *c)
{
	int step = c->in->code ? step_code(c) : STEP_NOTHING;

	return step == STEP_NOTHING ? cursor_cut(c, UNWIND_NO_FILE) : step;
}

static int unwind_by_file(struct unwinder *u, struct cursor *c, uint64_t addr, const struct mapping **ret_wait)
{
	struct mapped_file *file = c->map->file;
	const bool generated = mapping_is_generated(c->map, addr);

	if (frozen_is_frame(c) && !generated)
		return cursor_cut(c, UNWIND_NO_RULE);
	if (file->kind == MAPPED_VSYSCALL)
		return unwind_step_frameless(c);
	if (generated)
		return unwind_generated(u, c);
	if (file->state == MAPPED_FAILED)
		return unwind_unreadable(c);
	if (file->state != MAPPED_READY || !file->binary) {
		if (c->final)
			return cursor_cut(c, UNWIND_NO_FILE);
		*ret_wait = c->map;
		return -EAGAIN;
	}
	if (!file->binary->is_64)
		return cursor_cut(c, UNWIND_COMPAT);
	if (file->binary->machine != c->arch->machine)
		return unwind_by_fp_or(c, UNWIND_NO_RULE);
	return unwind_by_binary(u, c, file->binary, mapping_address(c->map, addr));
}

/* A frame of code that is interpreted. */
static int unwind_data(struct cursor *c, uint64_t pc)
{
	int step;

	unwind_add_frame(c, pc, NULL);
	step = step_code(c);
	return step == STEP_NOTHING ? cursor_cut(c, UNWIND_NO_RULE) : step;
}

/* The current frame, and the step to its caller. */
static int unwind_frame(struct unwinder *u, struct cursor *c, const struct mapping **ret_wait)
{
	uint64_t pc = c->reg[c->arch->pc], addr = pc - !c->exact;

	if (c->out->count == UNWIND_FRAMES_MAX)
		return cursor_cut(c, UNWIND_DEPTH);
	if (c->data)
		return unwind_data(c, pc);
	c->map = unwind_find_mapping(c, addr);
	if (!c->map)
		return unwind_uncovered(c, pc);
	unwind_add_frame(c, pc, c->map);
	unwind_cross_files(c, c->map->file);
	return unwind_by_file(u, c, addr, ret_wait);
}

void unwind_stack_clear(struct unwind_stack *out, enum unwind_end end)
{
	out->count = 0;
	out->end = end;
	out->stack_used = out->stack_read = out->base_used = 0;
	out->fail_pc = out->fail_addr = 0;
	out->fail_in_other = false;
	out->code_pending = out->heap_followed = out->heap_left_out = false;
	memset(out->guessed, 0, sizeof(out->guessed));
}

static void cursor_init(struct cursor *c, struct unwinder *u, const struct unwind_input *in, bool final,
			struct unwind_stack *out)
{
	c->in = in;
	c->out = out;
	c->arch = arch_find(in->arch);
	c->stats = &u->stats;
	c->reach = (struct reach){.base_low = UINT64_MAX};
	c->map = NULL;
	c->file = NULL;
	c->wait = NULL;
	c->exact = true;
	c->guess = FRAME_SURE;
	c->final = final;
	c->signals = c->searches = 0;
	c->search_left = search_budget_take(&u->searches);
	c->scan_left = SEARCH_SCAN;
	c->fault = UNWIND_UNREADABLE;
	c->fault_addr = 0;
	c->based = c->left = c->data = false;
	c->callee_sp = 0;
	c->part = 0;
	c->valid = in->valid;
	for (unsigned i = 0; c->arch && i < c->arch->nr_regs; i++)
		c->reg[i] = in->reg[i];
	unwind_stack_clear(out, UNWIND_NO_RULE);
}

static int unwind_all(struct unwinder *u, struct cursor *c, const struct mapping **ret_wait)
{
	int step;

	if (!c->arch)
		return 0;
	if (!cursor_is_valid(c, c->arch->pc) || !cursor_is_valid(c, c->arch->sp))
		return cursor_cut(c, UNWIND_REGISTER);
	c->low = c->reg[c->arch->sp] - c->arch->leaf_slack;
	do {
		const uint64_t sp = c->reg[c->arch->sp];

		step = unwind_frame(u, c, ret_wait);
		c->callee_sp = sp;
		if (!step && frozen_is_frame(c)) {
			frozen_give_up(c);
			step = 1;
		}
	} while (step > 0);
	return step;
}

int unwind_user(struct unwinder *u, const struct unwind_input *in, bool final, struct unwind_stack *out,
		const struct mapping **ret_wait)
{
	struct cursor c;
	uint32_t work;
	int err;

	*ret_wait = NULL;
	cursor_init(&c, u, in, final, out);
	work = c.search_left;
	err = unwind_all(u, &c, ret_wait);
	search_budget_settle(&u->searches, work, c.search_left);
	cursor_report_used(&c);
	if (c.wait)
		*ret_wait = c.wait;
	if (!err)
		u->stats.ends[out->end]++;
	return err;
}
