// SPDX-License-Identifier: Apache-2.0
/*
 * Which trace's machine code is at an address, and which functions run where in
 * it: from one snapshot's place to the next, those of its frames. The outermost
 * one is that of the frame where the trace was entered, which is written to
 * memory and walked: of it, the place counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/luajit.h"
#include "runtime/luajit_trace.h"

#define JIT_BYTES	16384u /* of GG_State, in which jit_State is: up to the dispatch table */
#define TRACES_MAX	65536u
#define TRACES_SEEN	16u  /* of which one is looked at */
#define TRACES_READ	512u /* pointers at a time */
#define SNAPS_MAX	RUNTIME_CODE_ROWS
#define CONSTANTS_MAX	8192u
#define PROTOS_MAX	64u
#define ENTRIES_MAX	256u /* of a snapshot */

#define REF_BIAS 0x8000u /* lj_ir.h */
#define REF_TRUE (REF_BIAS - 3)
enum { IR_KGC = 24, IR_KPTR = 25, IR_KKPTR = 26, IR_KNUM = 28, IR_KINT64 = 29 };
enum { IRT_PROTO = 7, IRT_FUNC = 8 };
#define IRT_TYPE 0x1f

#define SNAP_FRAME 0x010000u /* lj_jit.h */
#define SNAP_REF(e)  ((e) & 0xffff)
#define SNAP_SLOT(e) ((e) >> 24)
#define HEAD_SLOTS 2 /* of the frame where the trace was entered: its function and link */

struct luajit_snap { uint32_t mapofs; uint16_t ref, mcofs; uint8_t nslots, topslot, nent, count; };
_Static_assert(sizeof(struct luajit_snap) == 12, "SnapShot of lj_jit.h");

struct luajit_tracing {
	struct memory *m;
	struct luajit_trace t;
	uint64_t constants[CONSTANTS_MAX]; /* IR constants from nk on */
	uint32_t nr_constants;
	struct luajit_proto protos[PROTOS_MAX]; /* that its frames may be of */
	uint32_t nr_protos;
	struct luajit_snap snaps[SNAPS_MAX];
	struct runtime_code_made *to;
};

/* --- which trace --- */

static int luajit_trace_read(struct memory *m, uint64_t at, struct luajit_trace *ret)
{
	uint8_t type;

	if (memory_read(m, at, ret, sizeof(*ret)))
		return -EFAULT;
	memcpy(&type, (uint8_t *)ret + LUAJIT_GCT, 1);
	return type == LUAJIT_TRACE ? 0 : -ENOENT;
}

/* The trace that is being recorded has a number, and lies in jit_State without a head (LuaJIT, lj_trace.c, trace_start). */
static bool luajit_is_recorded(const struct runtime_attached *a, uint64_t trace)
{
	return trace - a->param[LUAJIT_PARAM_GLOBAL] < a->param[LUAJIT_PARAM_DISPATCH];
}

/* J->trace: an array in which each trace has its own number, followed by a number below the array's size, and that. */
static bool luajit_is_array(const struct runtime_attached *a, struct memory *m, uint64_t array, uint64_t numbers)
{
	uint32_t free_trace = (uint32_t)numbers, size = (uint32_t)(numbers >> 32);
	uint64_t at[TRACES_SEEN];
	struct luajit_trace t;

	if (!array || array % 8 || size < 2 || size > TRACES_MAX || free_trace > size ||
	    memory_read(m, array, at, 8ull * MIN(size, TRACES_SEEN)) || at[0])
		return false;
	for (uint32_t i = 1; i < MIN(size, TRACES_SEEN); i++)
		if (at[i] && !luajit_is_recorded(a, at[i]))
			return luajit_trace_read(m, at[i], &t) == 0 && t.traceno == i;
	return false;
}

/* Where J->trace is in jit_State is the same as long as the process lives: the search is long, and made once. */
static int luajit_find_member(const struct runtime_attached *a, struct memory *m, uint64_t *ret)
{
	uint64_t words[JIT_BYTES / 8], len = MIN(a->param[LUAJIT_PARAM_DISPATCH], (uint64_t)JIT_BYTES) & ~7ull;

	if (memory_read(m, a->param[LUAJIT_PARAM_GLOBAL], words, len))
		return -EFAULT;
	for (uint32_t i = 0; i + 1 < len / 8; i++)
		if (luajit_is_array(a, m, words[i], words[i + 1])) {
			*ret = a->param[LUAJIT_PARAM_GLOBAL] + 8ull * i;
			return 0;
		}
	return -ENOENT;
}

static int luajit_find_array(const struct runtime_attached *a, struct memory *m, uint64_t *ret, uint32_t *ret_size)
{
	static uint64_t known_of, known; /* a decoder is of one process; a replay has several */
	uint64_t member[2];

	if (known_of != a->param[LUAJIT_PARAM_GLOBAL] || memory_read(m, known, member, sizeof(member)) ||
	    !luajit_is_array(a, m, member[0], member[1])) {
		known_of = 0;
		if (luajit_find_member(a, m, &known) || memory_read(m, known, member, sizeof(member)))
			return -ENOENT;
		known_of = a->param[LUAJIT_PARAM_GLOBAL];
	}
	*ret = member[0];
	*ret_size = (uint32_t)(member[1] >> 32);
	return 0;
}

static bool luajit_trace_covers(const struct luajit_trace *t, uint64_t pc)
{
	return pc - t->mcode < t->szmcode;
}

static int luajit_find_trace(struct memory *m, uint64_t array, uint32_t size, uint64_t pc, struct luajit_trace *ret)
{
	uint64_t at[TRACES_READ];

	for (uint32_t i = 0; i < size; i += TRACES_READ) {
		uint32_t n = MIN(size - i, TRACES_READ);

		if (memory_read(m, array + 8ull * i, at, 8ull * n))
			return -EFAULT;
		for (uint32_t k = 0; k < n; k++)
			if (at[k] && luajit_trace_read(m, at[k], ret) == 0 && luajit_trace_covers(ret, pc))
				return 0;
	}
	return -ENOENT;
}

/* --- prototypes --- */

static void luajit_add_proto(struct luajit_tracing *l, uint64_t at)
{
	for (uint32_t i = 0; i < l->nr_protos; i++)
		if (l->protos[i].at == at)
			return;
	if (l->nr_protos < PROTOS_MAX && luajit_proto_read(l->m, at, &l->protos[l->nr_protos]) == 0)
		l->nr_protos++;
}

static const struct luajit_proto *luajit_proto_around(const struct luajit_tracing *l, uint64_t pc)
{
	for (uint32_t i = 0; i < l->nr_protos; i++)
		if (luajit_proto_has(&l->protos[i], pc))
			return &l->protos[i];
	return NULL;
}

static void luajit_add_function(struct luajit_tracing *l, uint64_t fn)
{
	uint64_t head, pc;

	if (memory_u64(l->m, fn + LUAJIT_FN_HEAD, &head) || (head >> 8 & 0xff) != LUAJIT_FUNCTION || head >> 16 & 0xff ||
	    memory_u64(l->m, fn + LUAJIT_FN_PC, &pc))
		return;
	luajit_add_proto(l, pc - LUAJIT_PT_BYTES);
}

/* Constants of 64 bits take two places, the value is in the second one. */
static bool luajit_is_wide(uint32_t op)
{
	return op == IR_KGC || op == IR_KPTR || op == IR_KKPTR || op == IR_KNUM || op == IR_KINT64;
}

/* A short trace may have none: then nk is where it was when recording began (lj_trace.c, trace_start). */
static int luajit_read_constants(struct luajit_tracing *l)
{
	if (l->t.nk > REF_TRUE || REF_TRUE - l->t.nk > CONSTANTS_MAX)
		return -E2BIG;
	l->nr_constants = REF_TRUE - l->t.nk;
	if (memory_read(l->m, l->t.ir + 8ull * l->t.nk, l->constants, 8ull * l->nr_constants))
		return -EFAULT;
	for (uint32_t i = 0; i + 1 < l->nr_constants; i++) {
		uint32_t type = l->constants[i] >> 32 & IRT_TYPE, op = l->constants[i] >> 40 & 0xff;

		if (op == IR_KGC && type == IRT_FUNC)
			luajit_add_function(l, l->constants[i + 1]);
		else if (op == IR_KGC && type == IRT_PROTO)
			luajit_add_proto(l, l->constants[i + 1]);
		i += luajit_is_wide(op);
	}
	return 0;
}

/* --- frames of a snapshot --- */

/* What the snapshot has in a slot of a frame's head. 0: nothing that is constant. */
static uint64_t luajit_snap_slot(const struct luajit_tracing *l, const uint32_t *entry, uint32_t nr, uint32_t slot)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t ref = SNAP_REF(entry[i]), at = ref - l->t.nk;

		if (SNAP_SLOT(entry[i]) != slot || !(entry[i] & SNAP_FRAME) || ref < l->t.nk || at + 1 >= l->nr_constants)
			continue;
		return luajit_is_wide(l->constants[at] >> 40 & 0xff) ? l->constants[at + 1] : 0;
	}
	return 0;
}

struct luajit_chain {
	struct { uint64_t pc, call; bool caller; } frame[RUNTIME_CODE_DEPTH]; /* innermost first */
	uint32_t nr;
	bool whole; /* the last one is the frame where the trace was entered */
};

static void luajit_chain_add(struct luajit_chain *c, uint64_t pc, bool caller)
{
	c->frame[c->nr].pc = pc;
	c->frame[c->nr].call = 0;
	c->frame[c->nr++].caller = caller;
}

/* From the frame with that base outwards, by links as on the stack. */
static void luajit_follow(struct luajit_tracing *l, const uint32_t *entry, uint32_t nr, uint32_t base, struct luajit_chain *c)
{
	while (base > HEAD_SLOTS && c->nr < RUNTIME_CODE_DEPTH) {
		uint64_t link = luajit_snap_slot(l, entry, nr, base - 1);
		uint32_t down = (uint32_t)(link >> 3);
		uint8_t slots;

		if (!link)
			return;
		if (!(link & OTP_WALK_SLOT_TYPE)) {
			if (memory_u8(l->m, link - 3, &slots))
				return;
			down = HEAD_SLOTS + slots;
			c->frame[c->nr - 1].call = link;
			luajit_chain_add(c, link, true);
		}
		if (!down || down > base - HEAD_SLOTS)
			return;
		base -= down;
	}
	c->whole = base == HEAD_SLOTS;
}

/* --- rows --- */

static int luajit_add_frame(struct luajit_tracing *l, const struct luajit_chain *c, uint32_t i, int outer)
{
	const struct luajit_proto *p = luajit_proto_around(l, c->frame[i].pc - c->frame[i].caller), *caller = NULL;
	struct runtime_frame f = {0};
	int function;

	if (!p)
		return -ENOENT;
	f.key = p->at;
	f.cookie[LUAJIT_COOKIE_SIZE] = luajit_cookie_size(p->sizebc, p->firstline);
	f.cookie[LUAJIT_COOKIE_CHUNK] = luajit_cookie_chunk(p->chunkname, p->chunk_head);
	if (c->frame[i].call)
		caller = luajit_proto_around(l, c->frame[i].call - 1);
	if (caller) {
		f.cookie[LUAJIT_COOKIE_CALL] = luajit_cookie_call(c->frame[i].call, caller->sizebc);
		f.cookie[LUAJIT_COOKIE_CALLER] = caller->at;
	}
	if (c->whole && i + 1 == c->nr)
		f.flags = RUNTIME_WALKED;
	function = runtime_code_add_function(l->to, &f);
	return function < 0 ? function :
			      runtime_code_add_node(l->to, (uint32_t)function, (uint32_t)outer,
						    (uint32_t)((c->frame[i].pc - luajit_bytecode(p)) / LUAJIT_BC_BYTES) -
							    c->frame[i].caller);
}

/* The innermost node; RUNTIME_NO_NODE: a function of a frame is not known. */
static uint32_t luajit_add_chain(struct luajit_tracing *l, const struct luajit_chain *c)
{
	int node = 0;

	for (uint32_t i = c->nr; i-- > 0;) {
		node = luajit_add_frame(l, c, i, node);
		if (node < 0)
			return RUNTIME_NO_NODE;
		node++;
	}
	return (uint32_t)node - 1;
}

static uint32_t luajit_snap_node(struct luajit_tracing *l, const struct luajit_snap *s)
{
	uint32_t entry[ENTRIES_MAX + 2];
	struct luajit_chain c = {0};
	uint64_t place;

	if (s->mapofs > l->t.nsnapmap || l->t.nsnapmap - s->mapofs < s->nent + 2u ||
	    memory_read(l->m, l->t.snapmap + 4ull * s->mapofs, entry, 4 * (s->nent + 2u)))
		return RUNTIME_NO_NODE;
	memcpy(&place, entry + s->nent, sizeof(place));
	luajit_chain_add(&c, place >> 8, false);
	luajit_follow(l, entry, s->nent, (uint32_t)(place & 0xff) + HEAD_SLOTS, &c);
	return luajit_add_chain(l, &c);
}

static int luajit_add_rows(struct luajit_tracing *l)
{
	uint32_t last = 0;

	if (!l->t.nsnap || l->t.nsnap > SNAPS_MAX || memory_read(l->m, l->t.snap, l->snaps, l->t.nsnap * sizeof(l->snaps[0])))
		return -EBADMSG;
	for (uint32_t i = 0; i < l->t.nsnap; i++) {
		uint32_t offset = l->snaps[i].mcofs;

		if (offset < last || offset >= l->t.szmcode)
			continue;
		/* Of several snapshots at one place, the last one is what runs there. */
		if (i + 1 < l->t.nsnap && l->snaps[i + 1].mcofs == offset)
			continue;
		if (runtime_code_add_row(l->to, offset, luajit_snap_node(l, &l->snaps[i])) < 0)
			return 0;
		last = offset;
	}
	return 0;
}

/* --- all --- */

/* What does not change while the trace is there. */
static void luajit_identify(const struct luajit_trace *t, struct runtime_code *c)
{
	const uint64_t words[] = {t->ir, t->snap, t->snapmap, t->startpt, t->startpc, t->startins, t->nins, t->nk, t->nsnapmap};

	c->identity[0] = t->mcode;
	c->identity[1] = (uint64_t)t->traceno << 32 | t->szmcode;
	c->identity[2] = hash_content(words, sizeof(words), 0);
}

static int luajit_describe(struct luajit_tracing *l, uint64_t array)
{
	struct runtime_code *c = &l->to->code;
	struct luajit_trace root;
	uint64_t at;
	int err;

	luajit_add_proto(l, l->t.startpt);
	if (l->t.root && memory_u64(l->m, array + 8ull * l->t.root, &at) == 0 && luajit_trace_read(l->m, at, &root) == 0)
		luajit_add_proto(l, root.startpt);
	snprintf(c->name, sizeof(c->name), "[trace %u]", l->t.traceno);
	c->word[LUAJIT_WORD_ADJUST] = l->t.spadjust;
	luajit_mcode_read(l->m, l->t.mcode, l->t.szmcode, c);
	err = luajit_read_constants(l);
	return err ? err : luajit_add_rows(l);
}

static int luajit_vm_code(const struct runtime_attached *a, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;

	c->start = a->code_start;
	c->end = a->code_end;
	c->kind = LUAJIT_CODE_VM;
	c->identity[0] = c->start;
	return memcmp(ret->known, c->identity, sizeof(c->identity)) ? 0 : -EALREADY;
}

static int luajit_trace_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	static struct luajit_tracing l; /* too large for a stack; a decoder has one thread */
	struct runtime_code *c = &ret->code;
	uint64_t array;
	uint32_t size;
	int err;

	l.m = m;
	l.to = ret;
	l.nr_protos = l.nr_constants = 0;
	err = luajit_find_array(a, m, &array, &size);
	if (!err)
		err = luajit_find_trace(m, array, size, pc, &l.t);
	if (err)
		return err;
	c->start = l.t.mcode;
	c->end = l.t.mcode + l.t.szmcode;
	c->kind = LUAJIT_CODE_TRACE;
	luajit_identify(&l.t, c);
	if (!memcmp(ret->known, c->identity, sizeof(c->identity)))
		return -EALREADY;
	return luajit_describe(&l, array);
}

int luajit_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	uint64_t stamp;
	int err;

	if (pc - a->code_start < a->code_end - a->code_start)
		return luajit_vm_code(a, ret);
	stamp = ret->code.stamp = luajit_stamp_now(a, m);
	err = luajit_trace_code(a, m, pc, ret);
	if (luajit_stamp_now(a, m) != stamp)
		ret->code.stamp = 0;
	return err;
}
