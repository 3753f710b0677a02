// SPDX-License-Identifier: Apache-2.0
/*
 * Out of a trace: it runs in the interpreter's C frame, some bytes lower. The
 * frame of the interpreter comes next, at an address in its code where the unwind
 * table describes it: what was entered there goes on in the trace.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"
#include "runtime/luajit_trace.h"

enum { RCX = 2, RBP = 6, RSP = 7 };

#define LUAJIT_LEA_BYTES 5
#define STATE_BYTES 256	 /* ExitState: 16 registers of each kind (lj_target_x86.h) */
#define ADJUST_MAX  2048 /* 256 spill slots of 4 bytes, and some */
#define C_STACK_MAX (1u << 30) /* of a thread, or a coroutine */

static bool luajit_has(const struct runtime_place *at, unsigned reg)
{
	return at->valid >> reg & 1;
}

static int luajit_enter_vm(const struct runtime_attached *a, uint64_t sp, struct runtime_step *ret)
{
	ret->pc = a->param[LUAJIT_PARAM_VM] + 1; /* it stands for a call before it */
	ret->sp = ret->cfa = sp;
	return 0;
}

static int luajit_leave_trace(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
			      struct runtime_step *ret)
{
	uint64_t adjust = at->exact ? luajit_mcode_adjust(c, at->pc - c->start) : c->word[LUAJIT_WORD_ADJUST];

	if (!luajit_has(at, RSP) || adjust > UINT16_MAX)
		return -ENOENT;
	return luajit_enter_vm(a, at->reg[RSP] + adjust + LUAJIT_C_TRACE, ret);
}

/* A trace may have spilled the lua_State too: beside that of a C frame lies the one before, further out, or 0. */
static int luajit_is_c_frame(const struct runtime_place *at, uint64_t sp, bool *ret)
{
	uint64_t l, prev;

	if (at->load(at->ctx, sp + LUAJIT_C_L, &l) || at->load(at->ctx, sp + LUAJIT_C_PREV, &prev))
		return -EFAULT;
	*ret = l == at->reg[RBP] && (!prev || prev - sp < C_STACK_MAX);
	return 0;
}

/*
 * vm_exit_handler has pushed all registers below the trace's part of the stack. The size of that part is unknown here:
 * the C frame is found by its lua_State, which rbp holds too while it calls C code. Else the stack ends: the table is
 * wrong.
 */
static int luajit_leave_exit(const struct runtime_attached *a, const struct runtime_place *at, struct runtime_step *ret)
{
	uint64_t sp = at->reg[RSP] + STATE_BYTES + LUAJIT_C_TRACE;
	bool found;

	if (at->exact || !luajit_has(at, RSP) || !luajit_has(at, RBP) || !at->reg[RBP])
		return -ENODATA;
	for (uint64_t i = 0; i < ADJUST_MAX; i += 16) {
		if (luajit_is_c_frame(at, sp + i, &found))
			return -EFAULT;
		if (found)
			return luajit_enter_vm(a, sp + i, ret);
	}
	return -ENODATA;
}

/* vm_exit_interp, where a trace goes on in the interpreter: its C frame is in rcx once lea rcx, [rsp+16] has run. */
static int luajit_leave_interp(const struct runtime_attached *a, const struct runtime_place *at, struct runtime_step *ret)
{
	const bool made = at->pc - a->param[LUAJIT_PARAM_VM_EXIT_END] >= LUAJIT_LEA_BYTES;

	if (!at->exact || !luajit_has(at, made ? RCX : RSP))
		return -ENOENT;
	ret->flags = RUNTIME_STEP_INNER;
	return luajit_enter_vm(a, made ? at->reg[RCX] : at->reg[RSP] + LUAJIT_C_TRACE, ret);
}

/* BC_JFUNC, with what a trace takes first. */
static int luajit_leave_jfunc(const struct runtime_attached *a, const struct runtime_place *at, struct runtime_step *ret)
{
	if (!at->exact || !luajit_has(at, RSP))
		return -ENOENT;
	ret->flags = RUNTIME_STEP_INNER;
	return luajit_enter_vm(a, at->reg[RSP] + LUAJIT_C_TRACE, ret);
}

/* Of the interpreter's frame, so much is on the stack below the return address; right below that is rbp. */
static int luajit_leave_partly(const struct runtime_place *at, uint32_t bytes, bool same, struct runtime_step *ret)
{
	uint64_t back = at->reg[RSP] + bytes;

	ret->fp = at->reg[RBP];
	if (at->load(at->ctx, back, &ret->pc) || (bytes && at->load(at->ctx, back - 8, &ret->fp)))
		return -EFAULT;
	ret->sp = ret->cfa = back + 8;
	ret->flags = (same ? RUNTIME_STEP_SAME : 0) | (bytes || luajit_has(at, RBP) ? RUNTIME_STEP_FP : 0);
	return 0;
}

enum { NONE = -1 };

/* Where the frame is made, or given back: where no instruction begins, and where it is whole, the table stands. */
static int luajit_leave_edge(const struct runtime_attached *a, const struct runtime_place *at, struct runtime_step *ret)
{
	static const int8_t made[LUAJIT_ENTER_BYTES] = {0, 8, 16, NONE, 24, NONE, 32, NONE, NONE, NONE};
	static const int8_t left[] = {NONE, NONE, NONE, NONE, 32, NONE, 24, NONE, 16, 8, 0};
	uint64_t into = at->pc - a->param[LUAJIT_PARAM_VM_LEAVE];

	if (!at->exact || !luajit_has(at, RSP))
		return -ENOENT;
	if (a->param[LUAJIT_PARAM_VM_LEAVE] && into < sizeof(left))
		return left[into] == NONE ? -ENOENT : luajit_leave_partly(at, (uint32_t)left[into], !left[into], ret);
	for (uint32_t i = LUAJIT_PARAM_VM_ENTER; i < LUAJIT_PARAM_VM_ENTER + LUAJIT_ENTERS; i++) {
		into = at->pc - a->param[i];
		if (a->param[i] && into < sizeof(made) && made[into] != NONE)
			return luajit_leave_partly(at, (uint32_t)made[into], true, ret);
	}
	return -ENOENT;
}

static int luajit_leave_math(const struct runtime_place *at, struct runtime_step *ret)
{
	if (!at->exact || !luajit_has(at, RSP))
		return -ENOENT;
	if (at->load(at->ctx, at->reg[RSP], &ret->pc))
		return -EFAULT;
	ret->sp = ret->cfa = at->reg[RSP] + 8;
	ret->fp = at->reg[RBP];
	ret->flags = RUNTIME_STEP_SAME | RUNTIME_STEP_INNER | (luajit_has(at, RBP) ? RUNTIME_STEP_FP : 0);
	return 0;
}

static bool luajit_is_in(const struct runtime_attached *a, const struct runtime_place *at, enum luajit_params start)
{
	return at->pc - !at->exact - a->param[start] < a->param[start + 1] - a->param[start];
}

int luajit_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		struct runtime_step *ret)
{
	if (c->kind == LUAJIT_CODE_TRACE)
		return luajit_leave_trace(a, c, at, ret);
	if (luajit_is_in(a, at, LUAJIT_PARAM_VM_EXIT))
		return luajit_leave_exit(a, at, ret);
	if (luajit_is_in(a, at, LUAJIT_PARAM_VM_EXIT_END))
		return luajit_leave_interp(a, at, ret);
	if (luajit_is_in(a, at, LUAJIT_PARAM_VM_JFUNC))
		return luajit_leave_jfunc(a, at, ret);
	return luajit_is_in(a, at, LUAJIT_PARAM_VM_MATH) ? luajit_leave_math(at, ret) : luajit_leave_edge(a, at, ret);
}
