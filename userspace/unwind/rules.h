/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by (binary, address), cached. Call sites repeat, so nearly every step
 * of a profile finds its row here.
 *
 * Called by unwind.c, one thread. A packed row is one cache line; rows that do
 * not fit one (signal trampolines, odd expressions) lie in a small table of
 * their own. An address without a row is cached too.
 * Bounds: fixed at creation; a full set evicts an entry that was not used since
 * the clock's hand last passed.
 */
#ifndef OTP_UNWIND_RULES_H
#define OTP_UNWIND_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "process/binary.h"
#include "unwind/arch.h"
#include "unwind/row.h"

enum packed_state {
	PACKED_EMPTY,
	PACKED_ROW,
	PACKED_WIDE, /* the row is in the other table */
	PACKED_NONE, /* no table covers it */
	PACKED_ROOT, /* likewise, and it has no caller (a listed root) */
	PACKED_BAD,  /* the table is broken */
};

/* The CFA: register + n, and the two expressions that linkers and compilers use for it. */
enum packed_cfa {
	PACKED_CFA_REG,   /* register + n */
	PACKED_CFA_DEREF, /* what lies at register + n, and 8 * cfa_add: realigned stacks */
	PACKED_CFA_PLT,   /* sp + 8, and 8 more from the n-th byte of a 16-byte entry on */
};

#define PACKED_RULES 12

struct packed {
	uint64_t vaddr;
	uint32_t binary;
	uint8_t state; /* enum packed_state */
	uint8_t hot;   /* used since the clock's hand passed */
	uint8_t flags; /* enum row_flags, the lower ones */
	uint8_t nr;
	int32_t cfa_n;
	uint8_t cfa_kind; /* enum packed_cfa */
	uint8_t cfa_reg;
	int16_t ra_n;            /* return address at CFA + 8 * ra_n */
	int16_t n[PACKED_RULES]; /* register at CFA + 8 * n */
	uint8_t reg[PACKED_RULES];
	uint8_t ra_kind; /* enum rule_kind: OFFSET, UNDEFINED, or UNSPECIFIED: in its register */
	uint8_t more; /* enum row_flags, the higher ones: packed_has */
	int16_t cfa_add;
};
_Static_assert(sizeof(struct packed) == 64, "a packed row is one cache line");

static inline bool packed_has(const struct packed *p, unsigned flags)
{
	return ((unsigned)p->more << 8 | p->flags) & flags;
}

struct found {
	const struct packed *packed;
	const struct row *wide; /* PACKED_WIDE; both borrowed until the next rules_find */
};

/* The code around vaddr; zeros where it cannot be read. */
void code_read(struct binary *b, uint64_t vaddr, struct code *ret);

struct rules;
int rules_new(uint32_t limit, struct rules **ret);
struct rules *rules_free(struct rules *r); /* NULL */
/* Always returns an entry, see enum packed_state. *ret_hit: it was cached. */
struct found rules_find(struct rules *r, const struct arch *arch, struct binary *b, uint64_t vaddr, bool *ret_hit);

#endif
