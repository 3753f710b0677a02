// SPDX-License-Identifier: Apache-2.0
/*
 * To the caller by the frame pointer, for code without tables. The frame
 * record, the caller's frame pointer and the return address, is accepted only
 * where everything about it fits: any code may use the register for other
 * values.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/cursor.h"

struct record {
	uint64_t at;
	uint64_t next; /* the caller's frame pointer */
	uint64_t pc;
	bool chained; /* next is a valid frame pointer, or 0, the chain's end */
};

static int fp_record_read(struct cursor *c, struct record *ret)
{
	uint64_t fp = c->reg[c->arch->fp];

	if (!cursor_is_valid(c, c->arch->fp) || fp % 8 || fp < c->low)
		return -ENOENT;
	ret->at = fp;
	if (cursor_load(c, fp, &ret->next) < 0 || cursor_load(c, fp + 8, &ret->pc) < 0)
		return -EFAULT;
	ret->pc &= c->arch->address_mask;
	/* Frame pointers ascend towards the root; zero ends the chain. */
	ret->chained = !ret->next || (ret->next > fp && ret->next % 8 == 0);
	return 0;
}

static bool fp_is_user_code(const struct cursor *c, uint64_t pc)
{
	return pc >= 4096 && pc < c->arch->address_end;
}

static void fp_enter(struct cursor *c, const struct record *r)
{
	uint64_t top = r->at + 16;

	/* The values of the other registers are unknown: the callee may have changed them. */
	c->valid = 0;
	cursor_set(c, c->arch->fp, r->next);
	cursor_set(c, c->arch->pc, r->pc);
	if (c->arch->sp_is_cfa_by_fp)
		cursor_set(c, c->arch->sp, top);
	else
		cursor_set(c, c->arch->ra, r->pc);
	c->low = top - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_BY_FRAME_POINTER;
}

/*
 * A record that lies a little beyond the copy, in a chain that was followed so
 * far or in generated code, where frame pointers are the rule: the copy is too
 * short, the record is not wrong.
 */
static bool fp_record_cut(const struct cursor *c, int err)
{
	return err == -EFAULT && c->fault != UNWIND_UNREADABLE &&
	       (c->guess == FRAME_BY_FRAME_POINTER || mapped_file_is_generated(c->file));
}

/*
 * Generated code is entered from compiled code, which may use the register for
 * other values: the saved one need not be a frame pointer. Then the caller must
 * have a table, and a call before the return address. -EAGAIN: its file is not
 * open yet.
 */
static int fp_entered_from(struct cursor *c, uint64_t pc)
{
	const struct mapping *m = space_find(c->in->space, pc - 1);
	struct code code;
	struct fde f;
	uint64_t at;
	int err;

	if (!m || m->file->kind == MAPPED_ANON || (c->guess != FRAME_BY_FRAME_POINTER && !mapped_file_is_generated(c->file)))
		return -ENOENT;
	err = cursor_wants_file(c, m);
	if (err)
		return err;
	at = mapping_address(m, pc - 1);
	code_read(m->file->binary, at, &code);
	return c->arch->after_call(&code) && cfi_find(m->file->binary, at, &f) == 0 ? 0 : -ENOENT;
}

int step_fp(struct cursor *c)
{
	struct record r;
	struct reach reach = c->reach;
	int err;

	if (cursor_chain_ended(c))
		return cursor_cut(c, UNWIND_ROOT_LISTED);
	err = fp_record_read(c, &r);
	if (fp_record_cut(c, err))
		return cursor_cut(c, c->fault);
	if (err == 0 && !r.pc && c->guess == FRAME_BY_FRAME_POINTER)
		return cursor_cut(c, UNWIND_ROOT_LISTED);
	if (err < 0 || !fp_is_user_code(c, r.pc)) {
		c->reach = reach; /* a stray register must not enlarge the copy */
		return STEP_NOTHING;
	}
	err = r.chained ? 0 : fp_entered_from(c, r.pc);
	if (err < 0) {
		c->reach = reach;
		return err == -EAGAIN ? err : STEP_NOTHING;
	}
	if (!space_find(c->in->space, r.pc - 1)) {
		/* All else fits: most likely code that was mapped since. */
		c->out->fail_pc = r.pc;
		c->reach = reach;
		return c->final ? STEP_NOTHING : -EAGAIN;
	}
	fp_enter(c, &r);
	return 1;
}
