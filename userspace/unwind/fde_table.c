// SPDX-License-Identifier: Apache-2.0
/*
 * A lookup table of the FDEs in a section of call frame information, for files whose
 * linker made no table or a wrong one. Built by one pass over the section.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "unwind/cfi.h"

#define TABLE_FIRST 1024
/* Entries that a pass reads: a section may be a terabyte of holes, and all terminators. */
#define ENTRIES_MAX (2 * CFI_TABLE_MAX)

static size_t budget_used; /* bytes of all tables and unpacked sections; one thread */

int cfi_budget_take(size_t bytes)
{
	if (bytes > CFI_BUDGET - budget_used)
		return -ENOSPC;
	budget_used += bytes;
	return 0;
}

void cfi_budget_return(size_t bytes)
{
	budget_used -= bytes;
}

static uint64_t fde_table_base(const struct binary *b)
{
	uint64_t low = UINT64_MAX;

	for (unsigned i = 0; i < b->nr_segments; i++)
		low = MIN(low, b->segments[i].vaddr);
	return low == UINT64_MAX ? 0 : low;
}

static int fde_table_grow(struct fde_table *x, uint32_t *cap)
{
	uint32_t next = *cap ? *cap * 2 : TABLE_FIRST;
	size_t more = (next - *cap) * sizeof(*x->at);
	void *at;

	if (next > CFI_TABLE_MAX || cfi_budget_take(more) < 0)
		return -ENOSPC;
	at = realloc(x->at, next * sizeof(*x->at));
	if (!at) {
		cfi_budget_return(more);
		return -ENOMEM;
	}
	x->at = at;
	*cap = next;
	return 0;
}

static int fde_table_add(struct fde_table *x, uint32_t *cap, const struct fde *f, uint64_t offset)
{
	int err;

	/* Address 0 belongs to a function that the linker dropped. */
	if (!f->start || f->end == f->start || f->start < x->base || f->start - x->base > UINT32_MAX ||
	    offset > UINT32_MAX)
		return 0;
	if (x->count == *cap) {
		err = fde_table_grow(x, cap);
		if (err < 0)
			return err;
	}
	x->at[x->count].start = (uint32_t)(f->start - x->base);
	x->at[x->count++].fde = (uint32_t)offset;
	return 0;
}

static int fde_table_by_start(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void fde_table_finish(struct fde_table *x, uint32_t cap)
{
	void *at;

	if (!x->count) {
		cfi_budget_return(cap * sizeof(*x->at));
		free(x->at);
		x->at = NULL;
		return;
	}
	qsort(x->at, x->count, sizeof(*x->at), fde_table_by_start);
	at = realloc(x->at, x->count * sizeof(*x->at));
	if (at)
		x->at = at;
	cfi_budget_return((cap - x->count) * sizeof(*x->at));
}

int fde_table_build(struct binary *b, const struct cfi_section *s, struct fde_table *ret)
{
	struct fde_table x = {.base = fde_table_base(b)};
	struct cie_memo memo = {0};
	uint32_t cap = 0, entries = 0;
	struct fde f;
	int err;

	for (uint64_t at = s->start, next; at < s->end; at = next) {
		if (entries++ == ENTRIES_MAX) {
			x.cut = true;
			break;
		}
		next = s->end; /* an invalid length ends the pass */
		if (fde_parse(b, s, at, &memo, &f, &next) < 0)
			continue;
		err = fde_table_add(&x, &cap, &f, at - s->start);
		if (err < 0) {
			x.cut = true;
			break;
		}
	}
	fde_table_finish(&x, cap);
	*ret = x;
	return 0;
}

int fde_table_find(const struct fde_table *x, struct binary *b, const struct cfi_section *s, uint64_t vaddr,
		   struct fde *ret)
{
	struct fde f;
	uint32_t n;
	int err;

	if (vaddr < x->base)
		return -ENOENT;
	n = ARRAY_COUNT_WHILE(x->count, i, x->at[i].start <= vaddr - x->base);
	if (!n)
		return -ENOENT;
	err = fde_parse(b, s, s->start + x->at[n - 1].fde, NULL, &f, NULL);
	if (err < 0)
		return err;
	if (vaddr < f.start || vaddr >= f.end)
		return -ENOENT;
	*ret = f;
	return 0;
}

void fde_table_done(struct fde_table *x)
{
	cfi_budget_return(x->count * sizeof(*x->at));
	free(x->at);
	*x = (struct fde_table){0};
}
