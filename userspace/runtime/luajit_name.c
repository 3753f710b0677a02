// SPDX-License-Identifier: Apache-2.0
/*
 * Names of functions. Lua's functions are values without names; a function is
 * called by what it was assigned to where it was made, if the function around it
 * is still there: that of a script is. Else, as in Lua's own tracebacks, by what
 * held it where it was called (lj_debug.c: lj_debug_funcname).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"

/* Instructions of every version 2.1, up to the first one that moved: lj_bc.h. */
enum {
	BC_ISTC = 12, BC_ISFC = 13,
	BC_MOV = 18, BC_CAT = 38, BC_KPRI = 43, BC_KNIL = 44,
	BC_UGET = 45, BC_USETV = 46, BC_FNEW = 51, BC_TDUP = 53, BC_GGET = 54, BC_GSET = 55,
	BC_TGETV = 56, BC_TGETS = 57, BC_TGETR = 59, BC_TSETS = 61, BC_TSETM = 63,
	BC_CALLM = 65, BC_ITERC = 69, BC_ITERN = 70, BC_ISNEXT = 72, BC_FORI = 77, BC_JITERL = 84,
};

#define OP(ins) ((ins) & 0xff)
#define A(ins)	((ins) >> 8 & 0xff)
#define C(ins)	((ins) >> 16 & 0xff)
#define D(ins)	((ins) >> 16)

#define BACK_MAX	4096u /* instructions before a call that are looked at */
#define WINDOW		64u
#define PROTOS_MAX	256u
#define CONSTANTS_MAX	512u  /* of one prototype */
#define INFO_MAX	8192u /* bytes of names */
#define ITERATOR_SLOTS	3u

struct luajit_naming {
	struct memory *m;
	const struct luajit_proto *p;
	uint32_t window, nr; /* instructions that are read: from window on */
	uint32_t ins[WINDOW];
};

/* An instruction by its index; 0, which is no call and no copy: it is not there. Reads go backward and forward in steps. */
static uint32_t luajit_instruction(struct luajit_naming *n, uint32_t i)
{
	if (i >= n->p->sizebc)
		return 0;
	if (i < n->window || i - n->window >= n->nr) {
		n->window = i > WINDOW / 2 ? i - WINDOW / 2 : 0;
		n->nr = MIN(n->p->sizebc - n->window, WINDOW);
		if (memory_read(n->m, luajit_bytecode(n->p) + (uint64_t)LUAJIT_BC_BYTES * n->window, n->ins, n->nr * sizeof(uint32_t))) {
			n->nr = 0;
			return 0;
		}
	}
	return n->ins[i - n->window];
}

/* --- strings --- */

static uint64_t luajit_constant(const struct luajit_naming *n, uint32_t i)
{
	uint64_t object;

	if (i >= n->p->sizekgc || memory_u64(n->m, n->p->k - 8 * ((uint64_t)i + 1), &object))
		return 0;
	return object;
}

static int luajit_constant_name(const struct luajit_naming *n, uint32_t i, char ret[RUNTIME_NAME_MAX])
{
	uint64_t s = luajit_constant(n, i);

	if (!s || !luajit_is_string(n->m, s) ||
	    memory_string(n->m, s + LUAJIT_STR_BYTES, ret, RUNTIME_NAME_MAX) || !*ret)
		return -ENOENT;
	return 0;
}

/* --- names of variables --- */

struct luajit_info { const uint8_t *at, *end; };

static int luajit_read_info(const struct luajit_naming *n, uint64_t from, uint8_t bytes[INFO_MAX], struct luajit_info *ret)
{
	uint32_t size, len;

	if (!from || memory_u32(n->m, n->p->at + LUAJIT_PT_SIZEKGC + 8, &size) || from < n->p->at || from - n->p->at >= size)
		return -ENOENT;
	len = (uint32_t)MIN((uint64_t)size - (from - n->p->at), (uint64_t)INFO_MAX);
	if (memory_read(n->m, from, bytes, len))
		return -ENOENT;
	*ret = (struct luajit_info){bytes, bytes + len};
	return 0;
}

static bool luajit_skip_string(struct luajit_info *i)
{
	const uint8_t *end = memchr(i->at, '\0', (size_t)(i->end - i->at));

	if (end)
		i->at = end + 1;
	return end;
}

static bool luajit_uleb(struct luajit_info *i, uint32_t *ret)
{
	uint32_t v = 0, shift = 0;

	for (; i->at < i->end && shift < 32; shift += 7) {
		uint8_t byte = *i->at++;

		v |= (uint32_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = v;
			return true;
		}
	}
	return false;
}

#define VARNAME_MAX 7 /* less: a number of a loop's own variable; 0: the end (lj_debug.h) */

/* The local variable in a slot at an instruction (debug_varname). */
static int luajit_local(const struct luajit_naming *n, uint32_t pc, uint32_t slot, char ret[RUNTIME_NAME_MAX])
{
	uint8_t bytes[INFO_MAX];
	struct luajit_info i;
	uint32_t start = 0, delta, len;

	if (luajit_read_info(n, n->p->varinfo, bytes, &i))
		return -ENOENT;
	while (i.at < i.end && *i.at) {
		const uint8_t *name = i.at;

		if (*name < VARNAME_MAX)
			i.at++;
		else if (!luajit_skip_string(&i))
			return -ENOENT;
		if (!luajit_uleb(&i, &delta) || !luajit_uleb(&i, &len))
			return -ENOENT;
		start += delta;
		if (start > pc)
			return -ENOENT;
		if (pc - start >= len || slot--)
			continue;
		if (*name < VARNAME_MAX)
			return -ENOENT;
		snprintf(ret, RUNTIME_NAME_MAX, "%s", (const char *)name);
		return 0;
	}
	return -ENOENT;
}

static int luajit_upvalue(const struct luajit_naming *n, uint32_t index, char ret[RUNTIME_NAME_MAX])
{
	uint8_t bytes[INFO_MAX];
	struct luajit_info i;

	if (index >= n->p->sizeuv || luajit_read_info(n, n->p->uvinfo, bytes, &i))
		return -ENOENT;
	while (index--)
		if (!luajit_skip_string(&i))
			return -ENOENT;
	if (!memchr(i.at, '\0', (size_t)(i.end - i.at)) || !*i.at)
		return -ENOENT;
	snprintf(ret, RUNTIME_NAME_MAX, "%s", (const char *)i.at);
	return 0;
}

/* --- by the call --- */

/* Whether the instruction writes a row of slots from A on; KNIL's ends at D. */
static bool luajit_writes_from(uint32_t ins, uint32_t slot)
{
	uint32_t op = OP(ins);
	bool row = op == BC_KNIL || op == BC_TSETM || (op >= BC_CALLM && op <= BC_ISNEXT) || (op >= BC_FORI && op <= BC_JITERL);

	return row && slot >= A(ins) && (op != BC_KNIL || slot <= D(ins));
}

static bool luajit_writes(uint32_t ins, uint32_t slot)
{
	uint32_t op = OP(ins);

	return A(ins) == slot && (op == BC_ISTC || op == BC_ISFC || (op >= BC_MOV && op <= BC_KPRI) || op == BC_UGET ||
				  (op >= BC_FNEW && op <= BC_GGET) || (op >= BC_TGETV && op <= BC_TGETR));
}

/* What a slot holds at an instruction, by what was written there before (lj_debug_slotname). */
static int luajit_slot_name(struct luajit_naming *n, uint32_t pc, uint32_t slot, char ret[RUNTIME_NAME_MAX])
{
	if (luajit_local(n, pc, slot, ret) == 0)
		return 0;
	for (uint32_t seen = 0; pc-- > 1 && seen < BACK_MAX; seen++) {
		uint32_t ins = luajit_instruction(n, pc);

		if (luajit_writes_from(ins, slot))
			return -ENOENT;
		if (!luajit_writes(ins, slot))
			continue;
		switch (OP(ins)) {
		case BC_MOV:
			slot = D(ins);
			if (luajit_local(n, pc, slot, ret) == 0)
				return 0;
			break;
		case BC_GGET:
			return luajit_constant_name(n, D(ins), ret);
		case BC_TGETS:
			return luajit_constant_name(n, C(ins), ret);
		case BC_UGET:
			return luajit_upvalue(n, D(ins), ret);
		default:
			return -ENOENT;
		}
	}
	return -ENOENT;
}

static int luajit_name_by_call(struct memory *m, const struct runtime_frame *f, char ret[RUNTIME_NAME_MAX])
{
	struct luajit_proto caller;
	struct luajit_naming n = {.m = m, .p = &caller};
	uint64_t call = f->cookie[LUAJIT_COOKIE_CALL], pc = call & ((1ULL << LUAJIT_CALL_BITS) - 1);
	uint32_t at, ins, slot;

	if (!pc || luajit_proto_read(m, f->cookie[LUAJIT_COOKIE_CALLER], &caller) || !luajit_proto_has(&caller, pc - 1) ||
	    luajit_cookie_call(pc, caller.sizebc) != call)
		return -ENOENT;
	at = (uint32_t)((pc - luajit_bytecode(&caller)) / LUAJIT_BC_BYTES) - 1;
	ins = luajit_instruction(&n, at);
	if (OP(ins) < BC_CALLM || OP(ins) > BC_ITERN)
		return -ENOENT;
	slot = A(ins);
	if (OP(ins) >= BC_ITERC) {
		if (slot < ITERATOR_SLOTS)
			return -ENOENT;
		slot -= ITERATOR_SLOTS;
	}
	return luajit_slot_name(&n, at, slot, ret);
}

/* --- by the definition --- */

struct luajit_tree { uint64_t proto[PROTOS_MAX]; uint32_t nr; };

/* What the instruction behind FNEW does with the function that it has made. */
static int luajit_name_of_made(struct luajit_naming *n, uint32_t made, char ret[RUNTIME_NAME_MAX])
{
	uint32_t slot = A(luajit_instruction(n, made)), next = luajit_instruction(n, made + 1);

	switch (OP(next)) {
	case BC_GSET:
		return A(next) == slot ? luajit_constant_name(n, D(next), ret) : -ENOENT;
	case BC_TSETS:
		return A(next) == slot ? luajit_constant_name(n, C(next), ret) : -ENOENT;
	case BC_USETV:
		return D(next) == slot ? luajit_upvalue(n, A(next), ret) : -ENOENT;
	case BC_MOV:
		if (D(next) == slot && luajit_local(n, made + 2, A(next), ret) == 0)
			return 0;
	}
	return luajit_local(n, made + 1, slot, ret);
}

/* constant: the index of the function's prototype among those of the one around it. */
static int luajit_name_by_maker(struct luajit_naming *n, uint32_t constant, char ret[RUNTIME_NAME_MAX])
{
	for (uint32_t i = 1; i < MIN(n->p->sizebc, 65536u); i++) {
		uint32_t ins = luajit_instruction(n, i);

		if (OP(ins) == BC_FNEW && D(ins) == constant)
			return luajit_name_of_made(n, i, ret);
	}
	return -ENOENT;
}

/* Adds the prototypes in a function. 1: the one that is sought is among them, and it was looked at. */
static int luajit_tree_grow(struct luajit_tree *t, struct memory *m, uint64_t sought, uint64_t at, char ret[RUNTIME_NAME_MAX],
			    int *ret_err)
{
	struct luajit_proto p;
	struct luajit_naming n = {.m = m, .p = &p};
	uint8_t type;

	if (luajit_proto_read(m, at, &p))
		return 0;
	for (uint32_t i = 0; i < MIN(p.sizekgc, CONSTANTS_MAX); i++) {
		uint64_t object = luajit_constant(&n, i);

		if (object && object == sought) {
			*ret_err = luajit_name_by_maker(&n, i, ret);
			return 1;
		}
		if (object && t->nr < PROTOS_MAX && memory_u8(m, object + LUAJIT_GCT, &type) == 0 && type == LUAJIT_PROTO)
			t->proto[t->nr++] = object;
	}
	return 0;
}

static int luajit_name_by_definition(struct memory *m, const struct luajit_proto *p, uint64_t outermost,
				     char ret[RUNTIME_NAME_MAX])
{
	struct luajit_tree t = {.proto = {outermost}, .nr = !!outermost};
	int err = -ENOENT;

	for (uint32_t i = 0; i < t.nr; i++)
		if (luajit_tree_grow(&t, m, p->at, t.proto[i], ret, &err))
			break;
	return err;
}

int luajit_name(struct memory *m, const struct luajit_proto *p, const struct runtime_frame *f, char ret[RUNTIME_NAME_MAX])
{
	/* That of a whole file. */
	if (!p->firstline)
		return -ENOENT;
	if (luajit_name_by_definition(m, p, f->cookie[LUAJIT_COOKIE_MAIN], ret) == 0)
		return 0;
	return luajit_name_by_call(m, f, ret);
}
