// SPDX-License-Identifier: Apache-2.0
#include "unwind/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "unwind/cfi.h"
#include "unwind/dwarf.h"
#include "unwind/go.h"
#include "unwind/roots.h"

#define RULES_DEFAULT 32768
#define RULES_MIN 64
#define SET 4
#define WIDE 64
#define HUGE_PAGE (2U << 20)

struct wide {
	uint64_t vaddr;
	uint32_t binary; /* 0: empty */
	struct row row;
};

struct rules {
	struct packed *at; /* owned; sets of SET neighbours */
	uint32_t mask;
	struct packed passing; /* an answer that must not be remembered */
	struct wide wide[WIDE];
};

/* Lookups hit all of it at random: on one huge page they do not miss the TLB as well. */
static struct packed *table_new(size_t bytes)
{
	struct packed *t = aligned_alloc(bytes % HUGE_PAGE ? 64 : HUGE_PAGE, bytes);

	if (!t)
		return NULL;
	if (bytes % HUGE_PAGE == 0)
		(void)madvise(t, bytes, MADV_HUGEPAGE);
	memset(t, 0, bytes);
	return t;
}

int rules_new(uint32_t limit, struct rules **ret)
{
	struct rules *r = calloc(1, sizeof(*r));
	uint32_t cap = RULES_MIN;

	if (!r)
		return -ENOMEM;
	limit = limit ? limit : RULES_DEFAULT;
	while (cap <= limit / 2 && cap < 1U << 24)
		cap *= 2;
	r->mask = cap - 1;
	r->at = table_new(cap * sizeof(*r->at));
	if (!r->at)
		return rules_free(r), -ENOMEM;
	*ret = r;
	return 0;
}

struct rules *rules_free(struct rules *r)
{
	if (r)
		free(r->at);
	free(r);
	return NULL;
}

static uint32_t home(uint32_t binary, uint64_t vaddr)
{
	return (uint32_t)hash_u64(vaddr ^ ((uint64_t)binary << 40) ^ hash_seed);
}

/* --- packing --- */

static bool eighths(int64_t n, int16_t *ret)
{
	if (n % 8 || n / 8 < INT16_MIN || n / 8 > INT16_MAX)
		return false;
	*ret = (int16_t)(n / 8);
	return true;
}

static bool pack_ra(const struct arch *arch, const struct row *row, struct packed *p)
{
	const struct rule *ra = &row->reg[row->ra];

	p->ra_kind = ra->kind;
	if (ra->kind == RULE_UNDEFINED)
		return true;
	if (ra->kind == RULE_UNSPECIFIED || ra->kind == RULE_SAME) {
		p->ra_kind = RULE_UNSPECIFIED;
		return row->ra != arch->pc;
	}
	return ra->kind == RULE_OFFSET && eighths(ra->n, &p->ra_n);
}

static bool pack_register(const struct arch *arch, const struct row *row, unsigned reg, struct packed *p)
{
	const struct rule *rule = &row->reg[reg];

	if (rule->kind == RULE_UNSPECIFIED || reg == row->ra)
		return true;
	if (rule->kind == RULE_SAME && (arch->survive >> reg & 1))
		return true;
	if (rule->kind != RULE_OFFSET || p->nr == PACKED_RULES || reg == arch->sp || !eighths(rule->n, &p->n[p->nr]))
		return false;
	p->reg[p->nr++] = (uint8_t)reg;
	return true;
}

/* breg N n; deref */
static bool pack_deref(struct cfi_reader *r, struct packed *p)
{
	uint64_t op = reader_uint(r, 1);
	int64_t n = reader_sleb(r);

	if (op < OP_BREG0 || op > OP_BREG31 || n < INT32_MIN || n > INT32_MAX)
		return false;
	if (reader_uint(r, 1) != OP_DEREF || r->error || r->pos != r->end)
		return false;
	p->cfa_kind = PACKED_CFA_DEREF;
	p->cfa_reg = (uint8_t)(op - OP_BREG0);
	p->cfa_n = (int32_t)n;
	return true;
}

/* breg7 8; breg16 0; lit15; and; lit N; ge; lit3; shl; plus: GNU ld's description of .plt */
static bool pack_plt(struct cfi_reader *r, struct packed *p)
{
	static const uint8_t head[] = {0x77, 8, 0x80, 0, 0x3f, OP_AND}, tail[] = {OP_GE, 0x33, OP_SHL, OP_PLUS};
	uint64_t lit;

	for (size_t i = 0; i < sizeof(head); i++)
		if (reader_uint(r, 1) != head[i])
			return false;
	lit = reader_uint(r, 1);
	for (size_t i = 0; i < sizeof(tail); i++)
		if (reader_uint(r, 1) != tail[i])
			return false;
	if (r->error || r->pos != r->end || lit < OP_LIT0 || lit > OP_LIT31)
		return false;
	p->cfa_kind = PACKED_CFA_PLT;
	p->cfa_n = (int32_t)(lit - OP_LIT0);
	return true;
}

static bool pack_cfa(const struct arch *arch, struct binary *b, const struct row *row, struct packed *p)
{
	uint64_t at = (uint64_t)row->cfa_n;
	struct cfi_reader r;

	if (row->cfa_kind == CFA_REG) {
		p->cfa_kind = PACKED_CFA_REG;
		p->cfa_reg = row->cfa_reg;
		p->cfa_n = (int32_t)row->cfa_n;
		return p->cfa_n == row->cfa_n;
	}
	if (row->cfa_kind == CFA_DEREF) {
		p->cfa_kind = PACKED_CFA_DEREF;
		p->cfa_reg = row->cfa_reg;
		p->cfa_n = (int32_t)row->cfa_n;
		return eighths(row->cfa_add, &p->cfa_add);
	}
	reader_init(&r, b, row->flags & ROW_BY_OFFSET, at, at + row->cfa_len);
	if (pack_deref(&r, p))
		return p->cfa_reg < arch->nr_regs;
	reader_init(&r, b, row->flags & ROW_BY_OFFSET, at, at + row->cfa_len);
	return arch->machine == arch_x86_64.machine && pack_plt(&r, p);
}

static bool pack(const struct arch *arch, struct binary *b, const struct row *row, struct packed *p)
{
	p->nr = 0;
	p->flags = (uint8_t)row->flags;
	p->more = (uint8_t)(row->flags >> 8);
	if (row->flags & ROW_SIGNAL || !pack_ra(arch, row, p) || !pack_cfa(arch, b, row, p))
		return false;
	/* Another column than the usual one is somebody else's convention. */
	if (p->ra_kind == RULE_UNSPECIFIED && row->ra != arch->ra)
		return false;
	for (unsigned i = 0; i < arch->nr_regs; i++)
		if (!pack_register(arch, row, i, p))
			return false;
	return true;
}

/* --- computing --- */

void code_read(struct binary *b, uint64_t vaddr, struct code *ret)
{
	memset(ret, 0, sizeof(*ret));
	/* In two parts: either side of a segment's edge may be missing. */
	if (vaddr >= CODE_AT)
		(void)binary_read_vaddr(b, vaddr - CODE_AT, ret->bytes, CODE_AT);
	(void)binary_read_vaddr(b, vaddr, ret->bytes + CODE_AT, sizeof(ret->bytes) - CODE_AT);
}

/*
 * Whether a row's return address lies beneath the red zone of what it leads to, where no call puts it: a frame that was made
 * for code that was interrupted (dotnet/runtime, src/coreclr/pal/src/arch/amd64/callsignalhandlerwrapper.S).
 */
static bool is_injected(const struct arch *arch, const struct row *row)
{
	const struct rule *ra = &row->reg[row->ra];

	return arch->red_zone && ra->kind == RULE_OFFSET && ra->n < -(int64_t)arch->red_zone;
}

static int compute_by_table(const struct arch *arch, struct binary *b, uint64_t vaddr, struct row *row)
{
	int err = cfi_row(b, arch->nr_regs, vaddr, row);

	if (!err && is_injected(arch, row))
		row->flags |= ROW_INJECTED;
	return err;
}

/* 0: *row is filled. -ENOENT: no table and not known. -ENODATA: a listed root. */
static int compute(const struct arch *arch, struct binary *b, uint64_t vaddr, struct row *row)
{
	struct code code;
	bool called;
	int err;

	if (arch->misled(b, vaddr, row))
		return 0;
	/* Before .debug_frame, which has the same of it, but packed and without what a function does to stacks. */
	if (go_row(arch, b, vaddr, row) == 0)
		return 0;
	err = compute_by_table(arch, b, vaddr, row);
	if (err != -ENOENT)
		return err;
	code_read(b, vaddr, &code);
	if (arch->known(b, vaddr, &code, row))
		return 0;
	if (root_is_listed(arch, b, vaddr, &code))
		return -ENODATA;
	/* A caller is named by the last byte of its call: what follows is where it goes on. */
	called = arch->after_call(&code);
	err = arch->returns(b, vaddr + called, called, row);
	if (!err && arch->after_clone(&code))
		row->flags |= ROW_CLONE;
	return err;
}

static struct wide *wide_slot(struct rules *r, uint32_t binary, uint64_t vaddr)
{
	return &r->wide[home(binary, vaddr) % WIDE];
}

static void wide_put(struct rules *r, const struct packed *p, const struct row *row)
{
	struct wide *w = wide_slot(r, p->binary, p->vaddr);

	w->vaddr = p->vaddr;
	w->binary = p->binary;
	w->row = *row;
}

static enum packed_state state_of(int err)
{
	switch (err) {
	case -ENODATA:
		return PACKED_ROOT;
	case -ENOENT:
		return PACKED_NONE;
	default:
		return PACKED_BAD;
	}
}

/* false: for want of memory only; the next time may go better. */
static bool fill(struct rules *r, const struct arch *arch, struct binary *b, uint64_t vaddr, struct packed *p)
{
	struct row row;
	int err = compute(arch, b, vaddr, &row);

	*p = (struct packed){.binary = b->id, .vaddr = vaddr, .hot = 1};
	if (err < 0) {
		p->state = state_of(err);
		return err != -ENOMEM;
	}
	p->state = PACKED_ROW;
	if (!pack(arch, b, &row, p)) {
		p->state = PACKED_WIDE;
		wide_put(r, p, &row);
	}
	return true;
}

/* --- looking up --- */

static struct packed *set_find(struct packed *set, uint32_t binary, uint64_t vaddr)
{
	for (unsigned i = 0; i < SET; i++)
		if (set[i].vaddr == vaddr && set[i].binary == binary && set[i].state != PACKED_EMPTY)
			return &set[i];
	return NULL;
}

/* A clock per set: who was used since last time stays, once. */
static struct packed *set_victim(struct packed *set)
{
	struct packed *cold = NULL;

	for (unsigned i = 0; i < SET; i++) {
		if (set[i].state == PACKED_EMPTY)
			return &set[i];
		if (!set[i].hot)
			cold = &set[i];
		set[i].hot = 0;
	}
	return cold ? cold : &set[0];
}

static struct found found_wide(struct rules *r, const struct arch *arch, struct binary *b, const struct packed *p)
{
	struct wide *w = wide_slot(r, p->binary, p->vaddr);
	struct row row;

	if (w->binary != p->binary || w->vaddr != p->vaddr) {
		/* Pushed out by another; if the file changed under us, it is as good as broken. */
		if (compute(arch, b, p->vaddr, &row) < 0) {
			r->passing = *p;
			r->passing.state = PACKED_BAD;
			return (struct found){.packed = &r->passing};
		}
		wide_put(r, p, &row);
	}
	return (struct found){.packed = p, .wide = &w->row};
}

struct found rules_find(struct rules *r, const struct arch *arch, struct binary *b, uint64_t vaddr, bool *ret_hit)
{
	struct packed *set = &r->at[home(b->id, vaddr) & r->mask & ~(SET - 1U)];
	struct packed *p = set_find(set, b->id, vaddr);

	*ret_hit = p != NULL;
	if (p) {
		p->hot = 1;
	} else if (fill(r, arch, b, vaddr, &r->passing)) {
		p = set_victim(set);
		*p = r->passing;
	} else {
		p = &r->passing;
	}
	if (p->state == PACKED_WIDE)
		return found_wide(r, arch, b, p);
	return (struct found){.packed = p};
}
