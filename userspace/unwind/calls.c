// SPDX-License-Identifier: Apache-2.0
#include "unwind/calls.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"

#define TAIL_INSNS  512	  /* of a function that is looked at for jumps, */
#define STUB_INSNS  3	  /* fewer before its jump: a stub of a linkage table */
#define TAIL_WORK   4	  /* so many of them cost 1 */
#define TAIL_CALLS  2	  /* last calls of functions that were themselves a last call; C++ templates and PyPy make such chains */
#define WORK_FIND   4	  /* of a function that is sought */
#define WORK_RULE   16	  /* of a row, which may have to be computed */
#define CALLS_BYTES 16384 /* and for calls */
#define WORK_BYTES  32	  /* so many of code that is looked at cost 1 */
#define CHUNK	    4096  /* of a file that is looked through for an address; pieces overlap by what has one */
#define OVERLAP	    8
#define RELOCATIONS_MAX (32u << 20) /* bytes; libtensorflow_cc has 18 MiB */
#define POINTER_READ_MAX   (1ULL << 30) /* bytes of files that are read for questions about pointers, */
#define POINTER_READ_STACK (256u << 10) /* of which each stack gives so many back: 0.1 ms on average */

bool calls_spend(struct cursor *c, uint32_t work)
{
	c->search_left = work < c->search_left ? c->search_left - work : 0;
	return c->search_left;
}

/* --- answers that are kept --- */

struct question {
	enum calls_question what;
	uint32_t from, of;
	uint64_t from_at, of_at;
};

static size_t calls_slot(const struct question *q)
{
	uint64_t h = (q->from_at * 0x9e3779b97f4a7c15u) ^ (q->of_at + q->from) * 0xc2b2ae3d27d4eb4fu;

	return (size_t)((h >> 32) + q->of * 31u + (unsigned)q->what) % CALLS_ANSWERS;
}

static bool calls_answered(const struct calls *k, const struct question *q, bool *ret)
{
	const size_t i = calls_slot(q);

	if (k->answers[i].of != q->of || k->answers[i].from != q->from || k->answers[i].question != q->what ||
	    k->answers[i].from_at != q->from_at || k->answers[i].of_at != q->of_at)
		return false;
	*ret = k->answers[i].answer;
	return true;
}

static void calls_keep(struct calls *k, const struct question *q, bool answer)
{
	const size_t i = calls_slot(q);

	k->answers[i].of = q->of;
	k->answers[i].from = q->from;
	k->answers[i].question = (uint8_t)q->what;
	k->answers[i].from_at = q->from_at;
	k->answers[i].of_at = q->of_at;
	k->answers[i].answer = answer;
}

/* --- functions and calls --- */

bool calls_function(struct calls *k, const struct mapping *m, uint64_t pc, struct code_range *ret)
{
	const uint64_t at = mapping_address(m, pc);
	const uint32_t id = m->file->binary->id;
	const size_t i = (size_t)(((at * 0x9e3779b97f4a7c15u) >> 32) + id * 31u) % CALLS_FUNCTIONS;
	struct fde f;

	if (k->functions[i].file != id || k->functions[i].at != at) {
		if (cfi_find(m->file->binary, at, &f) < 0)
			return false;
		k->functions[i].file = id;
		k->functions[i].at = at;
		k->functions[i].start = f.start;
		k->functions[i].end = f.end;
	}
	*ret = (struct code_range){pc - (at - k->functions[i].start), pc + (k->functions[i].end - at), m};
	return true;
}

enum arch_call calls_kind(const struct cursor *c, const struct mapping *m, uint64_t pc, uint64_t *target)
{
	uint64_t at = mapping_address(m, pc - 1);
	enum arch_call call;
	struct code code;

	code_read(m->file->binary, at, &code);
	call = c->arch->call_kind(&code, at + 1, target);
	*target += pc - 1 - at;
	return call;
}

static struct binary *calls_binary(const struct mapping *m)
{
	return m && m->file->state == MAPPED_READY ? m->file->binary : NULL;
}

/* --- jumps out of a function --- */

/* The instructions of the function that begins at target. */
struct walk {
	const struct mapping *map;
	uint64_t at, end;
	unsigned count;
	struct insn insn; /* which ends at at */
};

static bool walk_begin(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t target, struct walk *ret)
{
	struct code_range f = {target, target + 32, m};

	if (!calls_binary(m) || !calls_spend(c, WORK_FIND))
		return false;
	calls_function(k, m, target, &f);
	*ret = (struct walk){.map = m, .at = target, .end = f.end};
	return true;
}

static bool walk_next(struct walk *w, struct cursor *c)
{
	uint8_t code[64];
	ssize_t len;

	if (w->count == TAIL_INSNS || w->at >= w->end || (w->count % TAIL_WORK == 0 && !calls_spend(c, 1)))
		return false;
	len = binary_read_vaddr(w->map->file->binary, mapping_address(w->map, w->at), code, sizeof(code));
	if (len <= 0 || c->arch->decode(code, (size_t)len, &w->insn) < 0)
		return false;
	w->at += w->insn.len;
	w->count++;
	return true;
}

/* A stub of a linkage table, in m: it leads to other files, and to functions of its own that have names for these. */
static bool calls_stub_leads_to(struct calls *k, struct cursor *c, const struct mapping *m,
				const struct code_range *callee)
{
	const struct mapping *to = callee->map;

	return m->file->binary != to->file->binary ||
	       imports_is_exported(&k->imports, to->file->binary, mapping_address(to, callee->start), &c->search_left);
}

/* Whether a stub lies at target, in m, and may lead to the callee. */
static bool calls_is_stub_to(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t target,
			     const struct code_range *callee)
{
	struct walk w;

	if (!walk_begin(k, c, m, target, &w))
		return false;
	while (w.count < STUB_INSNS && walk_next(&w, c))
		if (w.insn.kind == INSN_END)
			return w.insn.n == INSN_BY_VARIABLE && calls_stub_leads_to(k, c, m, callee);
	return false;
}

/* By addresses in the file: answers hold for all processes, wherever each has mapped it, and how often. */
static bool calls_is_in(const struct mapping *m, uint64_t to, const struct code_range *callee)
{
	return m->file->binary == callee->map->file->binary &&
	       mapping_address(m, to) - mapping_address(callee->map, callee->start) < callee->end - callee->start;
}

/* to: where code of m jumps to, out of its function if leaves. */
static bool calls_jump_leads_to(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t to, bool leaves,
				const struct code_range *callee)
{
	return calls_is_in(m, to, callee) || (leaves && calls_is_stub_to(k, c, m, to, callee));
}

/* Directly, or by up to calls other functions that are jumped to as last calls. */
static bool calls_look_for_jump(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t target,
				unsigned calls, const struct code_range *callee)
{
	struct walk w;

	if (calls_is_stub_to(k, c, m, target, callee))
		return true;
	if (!walk_begin(k, c, m, target, &w))
		return false;
	while (walk_next(&w, c)) {
		const uint64_t to = w.at + (uint64_t)w.insn.n;
		const bool leaves = !(to >= target && to < w.end);

		if (w.insn.kind != INSN_JUMP && w.insn.kind != INSN_BRANCH)
			continue;
		if (calls_jump_leads_to(k, c, m, to, leaves, callee))
			return true;
		if (calls && leaves && w.insn.kind == INSN_JUMP && calls_look_for_jump(k, c, m, to, calls - 1, callee))
			return true;
	}
	return false;
}

/* Whether the code from target on may jump to the callee: as its last call, to its rarer part, or as a stub. */
static bool calls_jump_to(struct calls *k, struct cursor *c, uint64_t target, const struct code_range *callee)
{
	const struct mapping *m = space_find(c->in->space, target);
	struct question q = {.what = CALLS_JUMPS};
	bool answer;

	if (!calls_binary(m))
		return false;
	q.from = m->file->binary->id;
	q.from_at = mapping_address(m, target);
	q.of = callee->map->file->binary->id;
	q.of_at = mapping_address(callee->map, callee->start);
	if (calls_answered(k, &q, &answer))
		return answer;
	answer = calls_look_for_jump(k, c, m, target, TAIL_CALLS, callee);
	if (c->search_left)
		calls_keep(k, &q, answer);
	return answer;
}

/* Through a register, or a variable, if it is no stub of a linkage table. */
static bool walk_is_jump_away(const struct walk *w)
{
	if (w->insn.kind != INSN_END)
		return false;
	return w->insn.n == INSN_BY_REGISTER || (w->insn.n == INSN_BY_VARIABLE && w->count > STUB_INSNS);
}

/* The stack pointer before the instruction that ends at w->at is that of the function's first. */
static bool walk_has_left_frame(const struct walk *w, struct calls *k, struct cursor *c)
{
	const int32_t entry = c->arch->ra == c->arch->pc ? 8 : 0;
	const struct packed *p;
	bool hit;

	if (!calls_spend(c, WORK_RULE))
		return false;
	p = rules_find(k->rules, c->arch, w->map->file->binary, mapping_address(w->map, w->at - w->insn.len), &hit).packed;
	return p->state == PACKED_ROW && p->cfa_kind == PACKED_CFA_REG && p->cfa_reg == c->arch->sp && p->cfa_n == entry;
}

static bool calls_look_for_jump_away(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t target)
{
	struct walk w;

	if (!walk_begin(k, c, m, target, &w))
		return false;
	while (walk_next(&w, c))
		if (walk_is_jump_away(&w) && walk_has_left_frame(&w, k, c))
			return true;
	return false;
}

bool calls_jump_away(struct calls *k, struct cursor *c, uint64_t target)
{
	const struct mapping *m = space_find(c->in->space, target);
	struct question q = {.what = CALLS_JUMPS_AWAY};
	bool answer;

	if (!calls_binary(m))
		return false;
	q.of = m->file->binary->id;
	q.of_at = mapping_address(m, target);
	if (calls_answered(k, &q, &answer))
		return answer;
	answer = calls_look_for_jump_away(k, c, m, target);
	if (c->search_left)
		calls_keep(k, &q, answer);
	return answer;
}

/* --- calls by address --- */

static bool calls_look_for_call(struct cursor *c, const struct code_range *f, const struct code_range *callee)
{
	struct binary *b = f->map->file->binary;
	uint8_t code[1024];

	/* The pieces overlap by the length of a call. */
	for (uint64_t at = f->start; at < f->end && at - f->start < CALLS_BYTES; at += sizeof(code) - OVERLAP) {
		const size_t want = (size_t)MIN(f->end - at, (uint64_t)sizeof(code));
		const ssize_t len = binary_read_vaddr(b, mapping_address(f->map, at), code, want);

		if (len <= 0 || !calls_spend(c, sizeof(code) / WORK_BYTES))
			return false;
		if (c->arch->has_call(code, (size_t)len, mapping_address(f->map, at),
				      mapping_address(callee->map, callee->start)))
			return true;
	}
	return false;
}

/* Whether the function around pc, in m, calls the callee by its address somewhere, or its file does by name. */
static bool calls_by_address(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t pc,
			     const struct code_range *callee)
{
	struct binary *from = m->file->binary, *of = callee->map->file->binary;
	struct question q = {.what = CALLS_CALLS, .from = from->id, .of = of->id};
	struct code_range f;
	bool answer;

	q.of_at = mapping_address(callee->map, callee->start);
	if (from != of)
		return imports_function(&k->imports, from, of, q.of_at, &c->search_left);
	if (!calls_function(k, m, pc - 1, &f))
		return false;
	q.from_at = mapping_address(m, f.start);
	if (calls_answered(k, &q, &answer))
		return answer;
	answer = calls_look_for_call(c, &f, callee);
	if (c->search_left)
		calls_keep(k, &q, answer);
	return answer;
}

/* --- functions whose address nobody takes --- */

/* What the file holds of a function's addresses. */
struct mentions {
	struct binary *b;
	uint64_t start, end; /* of the function, in the file */
	bool called;
	bool taken; /* or jumped to, or it cannot be told */
};

static bool mentions_words(const struct mentions *s, const uint8_t *bytes, size_t len)
{
	uint64_t word;

	for (size_t i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		if (word >= s->start && word < s->end)
			return true;
	}
	return false;
}

/* In length bytes of the file from offset on, which lie at vaddr. */
static void mentions_look(struct mentions *s, const struct cursor *c, uint64_t vaddr, uint64_t offset, uint64_t length,
			  bool code)
{
	uint8_t bytes[CHUNK];

	for (uint64_t done = 0; done < length && !s->taken; done += CHUNK - OVERLAP) {
		const uint64_t at = vaddr + done;
		const size_t want = (size_t)MIN(length - done, (uint64_t)CHUNK);
		const ssize_t len = binary_read(s->b, offset + done, bytes, want);

		if (len < (ssize_t)want || at % 8)
			s->taken = true;
		else if (code)
			s->taken = c->arch->mentions(bytes, want, at, s->start, s->end, &s->called);
		s->taken = s->taken || mentions_words(s, bytes, want);
	}
}

static void mentions_look_in_segment(struct mentions *s, const struct cursor *c, const struct binary_segment *g)
{
	mentions_look(s, c, g->vaddr, g->offset, MIN(g->filesz, (uint64_t)UINT32_MAX), g->flags & PF_X);
}

/* In the code around the function: as much of a file as a search may look through. */
static void mentions_look_nearby(struct mentions *s, const struct cursor *c)
{
	const uint64_t low = s->start - MIN(s->start, (uint64_t)SEARCH_SCAN / 2), high = low + SEARCH_SCAN;
	uint64_t left = SEARCH_SCAN; /* segments may overlap */

	for (uint32_t i = 0; i < s->b->nr_segments && !s->taken && left; i++) {
		const struct binary_segment *g = &s->b->segments[i];
		const uint64_t from = MAX(low, g->vaddr) & ~7ULL, to = MIN(high, g->vaddr + g->filesz);
		const uint64_t length = from >= g->vaddr && from < to ? MIN(to - from, left) : 0;

		if (!length || !(g->flags & PF_X))
			continue;
		mentions_look(s, c, from, g->offset + (from - g->vaddr), length, true);
		left -= length;
	}
}

/* By what the loader is to store; in a form that is not read, anything may be. */
static void mentions_look_in_relocations(struct mentions *s, const struct cursor *c)
{
	const struct binary_section *rela = binary_section(s->b, ".rela.dyn");

	if (!rela || rela->type != SHT_RELA || rela->size > RELOCATIONS_MAX || binary_section(s->b, ".relr.dyn"))
		s->taken = true;
	else
		mentions_look(s, c, rela->addr, rela->offset, rela->size, false);
}

static uint64_t mentions_bytes(const struct binary *b)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < b->nr_segments; i++)
		bytes += MIN(b->segments[i].filesz, (uint64_t)UINT32_MAX);
	return bytes;
}

static bool mentions_afford(const struct mentions *s, struct cursor *c)
{
	const uint64_t bytes = mentions_bytes(s->b);

	if (bytes > c->scan_left)
		return false;
	c->scan_left -= (uint32_t)bytes;
	return true;
}

/* A file that no stack's search may look through: none of its functions is known to be called by address only. */
static bool mentions_are_beyond(const struct binary *b, const struct cursor *c)
{
	return b->type != ET_DYN || !c->arch->mentions || !b->is_64 || mentions_bytes(b) > SEARCH_SCAN;
}

static bool calls_look_for_address(struct calls *k, struct cursor *c, struct binary *b, uint64_t start, uint64_t end,
				   bool *known)
{
	struct mentions s = {.b = b, .start = start, .end = end};

	*known = true;
	if (mentions_are_beyond(b, c) || imports_is_exported(&k->imports, b, start, &c->search_left) || !c->search_left)
		return false;
	*known = mentions_afford(&s, c);
	for (uint32_t i = 0; *known && i < b->nr_segments && !s.taken; i++)
		mentions_look_in_segment(&s, c, &b->segments[i]);
	return s.called && !s.taken;
}

/*
 * Whether each call of the function is one by address: it is called so, its address stands nowhere else in its file,
 * and it has no name for others. A call through a register leads elsewhere then.
 */
static bool calls_is_by_address_only(struct calls *k, struct cursor *c, const struct code_range *f)
{
	struct binary *b = f->map->file->binary;
	struct question q = {.what = CALLS_BY_ADDRESS_ONLY, .of = b->id, .of_at = mapping_address(f->map, f->start)};
	bool answer, known;

	if (calls_answered(k, &q, &answer))
		return answer;
	answer = calls_look_for_address(k, c, b, q.of_at, q.of_at + (f->end - f->start), &known);
	if (known && c->search_left)
		calls_keep(k, &q, answer);
	return answer;
}

static uint64_t pointer_bytes(const struct binary *b)
{
	const struct binary_section *names = binary_section(b, ".dynsym"), *rela = binary_section(b, ".rela.dyn");

	return SEARCH_SCAN + (names ? MIN(names->size, (uint64_t)POINTER_READ_MAX) : 0) +
	       (rela ? MIN(rela->size, (uint64_t)POINTER_READ_MAX) : 0);
}

static bool calls_may_read(struct calls *k, uint64_t bytes)
{
	if (k->pointer_read + bytes > POINTER_READ_MAX)
		return false;
	k->pointer_read += bytes;
	return true;
}

void calls_begin(struct calls *k)
{
	k->pointer_read -= MIN(k->pointer_read, (uint64_t)POINTER_READ_STACK);
}

static bool calls_look_for_pointer(struct calls *k, struct cursor *c, struct binary *b, uint64_t start, uint64_t end,
				   bool *known)
{
	struct mentions s = {.b = b, .start = start, .end = end};
	uint32_t left = SEARCH_WORK; /* of its own: what is not found out is not held against the trial */

	*known = true;
	if (b->type != ET_DYN || !c->arch->mentions || !b->is_64 || mentions_bytes(b) <= SEARCH_SCAN)
		return true;
	*known = c->scan_left == SEARCH_SCAN && calls_may_read(k, pointer_bytes(b));
	if (!*known)
		return true;
	c->scan_left = 0;
	mentions_look_nearby(&s, c);
	if (!s.taken && !imports_is_exported(&k->imports, b, start, &left) && left)
		mentions_look_in_relocations(&s, c);
	else
		s.taken = true;
	return s.taken;
}

/*
 * Whether a call through a pointer may lead to the function, of a file that is too large to be looked through: code near
 * it takes its address or jumps to it, a relocation has its address, or it has a name for others.
 */
static bool calls_is_pointed_to(struct calls *k, struct cursor *c, const struct code_range *f)
{
	struct binary *b = f->map->file->binary;
	struct question q = {.what = CALLS_POINTED_TO, .of = b->id, .of_at = mapping_address(f->map, f->start)};
	bool answer, known;

	if (calls_answered(k, &q, &answer))
		return answer;
	answer = calls_look_for_pointer(k, c, b, q.of_at, q.of_at + (f->end - f->start), &known);
	if (known)
		calls_keep(k, &q, answer);
	return answer;
}

/* --- where a call leads --- */

/*
 * A call through a register leads anywhere, but not to a function that its caller calls by address: that is a former
 * call, and its return address was replaced by that of the generated code. Nor to one that is always called so.
 */
static bool calls_pointer_leads_to(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t pc,
				   const struct code_range *callee)
{
	return !calls_by_address(k, c, m, pc, callee) && !calls_is_by_address_only(k, c, callee);
}

bool calls_lead_to(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t pc,
		   const struct code_range *callee, bool first)
{
	uint64_t target = 0;

	switch (calls_kind(c, m, pc, &target)) {
	case CALL_SLOT:
		if (m->file->binary != callee->map->file->binary)
			return true;
		return calls_pointer_leads_to(k, c, m, pc, callee);
	case CALL_INDIRECT:
		return calls_pointer_leads_to(k, c, m, pc, callee) && (!first || calls_is_pointed_to(k, c, callee));
	case CALL_DIRECT:
		return code_range_contains(callee, target) || calls_jump_to(k, c, target, callee) ||
		       (calls_jump_away(k, c, target) && calls_pointer_leads_to(k, c, m, pc, callee));
	default:
		return false;
	}
}
