// SPDX-License-Identifier: Apache-2.0
/*
 * Names of functions, as LuaJIT's are found (luajit_name.c): by what a function
 * was assigned to where it was made, if the function around it is still there;
 * else, as in Lua's own tracebacks, by what held it where it was called
 * (ldebug.c: getfuncname, funcnamefromcode, getobjname).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

#define WINDOW		64u
#define INSTRUCTIONS	65536u /* of a function that are looked at */
#define PROTOS_MAX	256u
#define CHILDREN_MAX	512u /* of one function */
#define LOCALS_MAX	1024u
#define MOVES_MAX	8u
#define LOCAL_BYTES	16u /* of LocVar: varname, startpc, endpc */
#define NO_INSTRUCTION	UINT32_MAX
#define CONSTANT_BIT	256u /* of an operand of 9 bits: it is a constant's index (BITRK) */
#define JUMP_BIAS	131071 /* of sBx, before 5.4 */
#define JUMP_BIAS_WIDE	16777215 /* of sJ */

struct puclua_naming {
	struct memory *m;
	const struct puclua_proto *p;
	uint32_t window, nr; /* instructions that are read: from window on */
	uint32_t insn[WINDOW];
};

/* --- instructions (lopcodes.h) --- */

/* An instruction by its index; 0, which is MOVE from a register to itself: it is not there. */
static uint32_t puclua_instruction(struct puclua_naming *n, uint32_t i)
{
	if (i >= n->p->sizecode)
		return 0;
	if (i < n->window || i - n->window >= n->nr) {
		n->window = i;
		n->nr = MIN(n->p->sizecode - i, WINDOW);
		if (memory_read(n->m, n->p->code + (uint64_t)PUCLUA_INSTRUCTION * i, n->insn, n->nr * sizeof(uint32_t))) {
			n->nr = 0;
			return 0;
		}
	}
	return n->insn[i - n->window];
}

static bool puclua_is_wide(const struct puclua_naming *n)
{
	return n->p->l->op->is_wide;
}

static uint32_t puclua_number(const struct puclua_naming *n, uint32_t insn)
{
	return insn & (puclua_is_wide(n) ? 0x7f : 0x3f);
}

static bool puclua_is(const struct puclua_naming *n, uint32_t insn, enum puclua_op op)
{
	return puclua_number(n, insn) == n->p->l->op->number[op];
}

static uint32_t puclua_a(const struct puclua_naming *n, uint32_t insn)
{
	return insn >> (puclua_is_wide(n) ? 7 : 6) & 0xff;
}

static uint32_t puclua_b(const struct puclua_naming *n, uint32_t insn)
{
	return puclua_is_wide(n) ? insn >> 16 & 0xff : insn >> 23;
}

static uint32_t puclua_c(const struct puclua_naming *n, uint32_t insn)
{
	return puclua_is_wide(n) ? insn >> 24 : insn >> 14 & 0x1ff;
}

static uint32_t puclua_bx(const struct puclua_naming *n, uint32_t insn)
{
	return puclua_is_wide(n) ? insn >> 15 : insn >> 14;
}

static int64_t puclua_jump(const struct puclua_naming *n, uint32_t insn)
{
	return puclua_is_wide(n) ? (int64_t)(insn >> 7) - JUMP_BIAS_WIDE : (int64_t)(insn >> 14) - JUMP_BIAS;
}

/* --- strings --- */

static int puclua_constant(const struct puclua_naming *n, uint32_t i, char ret[RUNTIME_NAME_MAX])
{
	uint64_t value = n->p->k + (uint64_t)PUCLUA_VALUE * i, string;
	uint8_t tag;

	if (i >= n->p->sizek || memory_u8(n->m, value + PUCLUA_VALUE_TAG, &tag) || (tag & 15) != PUCLUA_STRING ||
	    memory_u64(n->m, value, &string))
		return -ENOENT;
	return puclua_string(n->m, n->p->l, string, ret, RUNTIME_NAME_MAX);
}

/* An operand that is a register or a constant, before 5.4. */
static int puclua_register_or_constant(const struct puclua_naming *n, uint32_t operand, char ret[RUNTIME_NAME_MAX])
{
	return operand & CONSTANT_BIT ? puclua_constant(n, operand & ~CONSTANT_BIT, ret) : -ENOENT;
}

static int puclua_upvalue(const struct puclua_naming *n, uint32_t i, char ret[RUNTIME_NAME_MAX])
{
	uint64_t string;

	if (i >= n->p->sizeupvalues || memory_u64(n->m, n->p->upvalues + (uint64_t)n->p->l->upvalue_bytes * i, &string))
		return -ENOENT;
	return puclua_string(n->m, n->p->l, string, ret, RUNTIME_NAME_MAX);
}

/* The local variable in a register at an instruction (luaF_getlocalname). Those of loops have names in parentheses. */
static int puclua_local(const struct puclua_naming *n, uint32_t pc, uint32_t reg, char ret[RUNTIME_NAME_MAX])
{
	struct { uint64_t name; uint32_t start, end; } v;

	_Static_assert(sizeof(v) == LOCAL_BYTES, "as Lua has it");
	for (uint32_t i = 0; i < MIN(n->p->sizelocvars, LOCALS_MAX); i++) {
		if (memory_read(n->m, n->p->locvars + (uint64_t)LOCAL_BYTES * i, &v, sizeof(v)) || v.start > pc)
			return -ENOENT;
		if (pc >= v.end || reg--)
			continue;
		if (puclua_string(n->m, n->p->l, v.name, ret, RUNTIME_NAME_MAX) || *ret == '(')
			return -ENOENT;
		return 0;
	}
	return -ENOENT;
}

/* --- by the call --- */

static bool puclua_writes(const struct puclua_naming *n, uint32_t insn, uint32_t reg)
{
	uint32_t a = puclua_a(n, insn), b = puclua_b(n, insn), number = puclua_number(n, insn);

	if (puclua_is(n, insn, PUCLUA_LOADNIL)) /* in 5.1 B is the last register, later on their number less one */
		return a <= reg && reg <= (n->p->l->ci_bytes ? b : a + b);
	if (puclua_is(n, insn, PUCLUA_FORCALL))
		return reg >= a + 2;
	if (puclua_is(n, insn, PUCLUA_CALL) || puclua_is(n, insn, PUCLUA_TAILCALL))
		return reg >= a;
	return a == reg && !(n->p->l->op->keep_a[number / 64] >> number % 64 & 1);
}

/*
 * The last instruction before end that writes the register, if nothing jumps over it; NO_INSTRUCTION: there is none,
 * or it is not known which one was executed (findsetreg).
 */
static uint32_t puclua_find_writer(struct puclua_naming *n, uint32_t end, uint32_t reg)
{
	uint32_t found = NO_INSTRUCTION;
	int64_t jumped_to = 0;

	if (end > INSTRUCTIONS)
		return NO_INSTRUCTION;
	for (uint32_t i = 0; i < end; i++) {
		uint32_t insn = puclua_instruction(n, i);
		int64_t to = (int64_t)i + 1 + puclua_jump(n, insn);

		if (puclua_is(n, insn, PUCLUA_JMP) && to > i && to <= end)
			jumped_to = MAX(jumped_to, to);
		else if (puclua_writes(n, insn, reg))
			found = i < jumped_to ? NO_INSTRUCTION : i;
	}
	return found;
}

/* What an instruction takes from a table, an upvalue or a global. */
static int puclua_name_of_taken(const struct puclua_naming *n, uint32_t insn, char ret[RUNTIME_NAME_MAX])
{
	uint32_t c = puclua_c(n, insn);

	if (puclua_is(n, insn, PUCLUA_GETUPVAL))
		return puclua_upvalue(n, puclua_b(n, insn), ret);
	if (puclua_is(n, insn, PUCLUA_GETGLOBAL))
		return puclua_constant(n, puclua_bx(n, insn), ret);
	if (puclua_is(n, insn, PUCLUA_GETFIELD) || (puclua_is_wide(n) && puclua_is(n, insn, PUCLUA_GETTABUP)))
		return puclua_constant(n, c, ret);
	if (puclua_is(n, insn, PUCLUA_SELF) && puclua_is_wide(n))
		return insn >> 15 & 1 ? puclua_constant(n, c, ret) : -ENOENT;
	if (!puclua_is_wide(n) && (puclua_is(n, insn, PUCLUA_GETTABUP) || puclua_is(n, insn, PUCLUA_GETTABLE) ||
				   puclua_is(n, insn, PUCLUA_SELF)))
		return puclua_register_or_constant(n, c, ret);
	return -ENOENT;
}

/* What a register holds at an instruction, by what was written there before (getobjname). */
static int puclua_register_name(struct puclua_naming *n, uint32_t pc, uint32_t reg, char ret[RUNTIME_NAME_MAX])
{
	for (uint32_t moves = 0; moves < MOVES_MAX; moves++) {
		uint32_t insn;

		if (puclua_local(n, pc, reg, ret) == 0)
			return 0;
		pc = puclua_find_writer(n, pc, reg);
		if (pc == NO_INSTRUCTION)
			return -ENOENT;
		insn = puclua_instruction(n, pc);
		if (!puclua_is(n, insn, PUCLUA_MOVE))
			return puclua_name_of_taken(n, insn, ret);
		if (puclua_b(n, insn) >= reg)
			return -ENOENT;
		reg = puclua_b(n, insn);
	}
	return -ENOENT;
}

static int puclua_name_by_call(struct memory *m, const struct puclua_layout *l, const struct runtime_frame *f,
			       char ret[RUNTIME_NAME_MAX])
{
	struct puclua_proto caller;
	struct puclua_naming n = {.m = m, .p = &caller};
	uint64_t call = f->cookie[PUCLUA_COOKIE_CALL], pc = call & ((1ULL << PUCLUA_CALL_BITS) - 1), into;
	uint32_t at, insn;

	if (!pc || puclua_proto_read(m, l, f->cookie[PUCLUA_COOKIE_CALLER], &caller))
		return -ENOENT;
	into = pc - caller.code;
	if (!into || into > (uint64_t)PUCLUA_INSTRUCTION * caller.sizecode || puclua_cookie_call(pc, caller.sizecode) != call)
		return -ENOENT;
	at = (uint32_t)(into / PUCLUA_INSTRUCTION) - 1;
	insn = puclua_instruction(&n, at);
	if (!puclua_is(&n, insn, PUCLUA_CALL) && !puclua_is(&n, insn, PUCLUA_TAILCALL) && !puclua_is(&n, insn, PUCLUA_FORCALL))
		return -ENOENT;
	return puclua_register_name(&n, at, puclua_a(&n, insn), ret);
}

/* --- by the definition --- */

struct puclua_tree { uint64_t proto[PROTOS_MAX]; uint32_t nr; };

/* What the instruction behind CLOSURE does with the function that it has made, in a register. */
static int puclua_name_of_made(struct puclua_naming *n, uint32_t next, uint32_t reg, char ret[RUNTIME_NAME_MAX])
{
	uint32_t insn = puclua_instruction(n, next), a = puclua_a(n, insn), b = puclua_b(n, insn), c = puclua_c(n, insn);
	bool is_value = c == reg && !(puclua_is_wide(n) && insn >> 15 & 1); /* not a constant */

	if (puclua_is(n, insn, PUCLUA_SETGLOBAL) && a == reg)
		return puclua_constant(n, puclua_bx(n, insn), ret);
	if (puclua_is(n, insn, PUCLUA_SETUPVAL) && a == reg)
		return puclua_upvalue(n, b, ret);
	if (puclua_is(n, insn, PUCLUA_SETFIELD) && is_value)
		return puclua_constant(n, b, ret);
	if (puclua_is(n, insn, PUCLUA_SETTABUP) && is_value)
		return puclua_is_wide(n) ? puclua_constant(n, b, ret) : puclua_register_or_constant(n, b, ret);
	if (!puclua_is_wide(n) && puclua_is(n, insn, PUCLUA_SETTABLE) && is_value)
		return puclua_register_or_constant(n, b, ret);
	if (puclua_is(n, insn, PUCLUA_MOVE) && b == reg && a != reg && puclua_local(n, next + 1, a, ret) == 0)
		return 0;
	return puclua_local(n, next, reg, ret);
}

/* child: the function's index among those of the one around it. In 5.1 an instruction for each upvalue follows CLOSURE. */
static int puclua_name_by_maker(struct puclua_naming *n, uint32_t child, uint32_t nups, char ret[RUNTIME_NAME_MAX])
{
	for (uint32_t i = 0; i < MIN(n->p->sizecode, INSTRUCTIONS); i++) {
		uint32_t insn = puclua_instruction(n, i);

		if (puclua_is(n, insn, PUCLUA_CLOSURE) && puclua_bx(n, insn) == child)
			return puclua_name_of_made(n, i + 1 + nups, puclua_a(n, insn), ret);
	}
	return -ENOENT;
}

/* Adds the functions in a function. 1: the one that is sought is among them, and it was looked at. */
static int puclua_tree_grow(struct puclua_tree *t, struct memory *m, const struct puclua_proto *sought, uint64_t at,
			    char ret[RUNTIME_NAME_MAX], int *ret_err)
{
	struct puclua_proto p;
	struct puclua_naming n = {.m = m, .p = &p};
	uint64_t child;

	if (puclua_proto_read(m, sought->l, at, &p))
		return 0;
	for (uint32_t i = 0; i < MIN(p.sizep, CHILDREN_MAX); i++) {
		if (memory_u64(m, p.p + 8ull * i, &child))
			return 0;
		if (child == sought->at) {
			*ret_err = puclua_name_by_maker(&n, i, sought->nups, ret);
			return 1;
		}
		if (t->nr < PROTOS_MAX)
			t->proto[t->nr++] = child;
	}
	return 0;
}

static int puclua_name_by_definition(struct memory *m, const struct puclua_proto *p, uint64_t outermost,
				     char ret[RUNTIME_NAME_MAX])
{
	struct puclua_tree t = {.proto = {outermost}, .nr = !!outermost};
	int err = -ENOENT;

	for (uint32_t i = 0; i < t.nr; i++)
		if (puclua_tree_grow(&t, m, p, t.proto[i], ret, &err))
			break;
	return err;
}

int puclua_name(struct memory *m, const struct puclua_proto *p, const struct runtime_frame *f,
		char ret[RUNTIME_NAME_MAX])
{
	/* That of a whole file. */
	if (!p->linedefined)
		return -ENOENT;
	if (puclua_name_by_definition(m, p, f->cookie[PUCLUA_COOKIE_MAIN], ret) == 0)
		return 0;
	return puclua_name_by_call(m, p->l, f, ret);
}
