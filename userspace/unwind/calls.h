/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code of files says of a call: which function it leads to, or that it
 * cannot have led to one. A search of the stack (search.c) tells calls that are
 * under way from former ones by it.
 *
 * Called by search.c, one thread; answers are cached by files and addresses in
 * them, for all processes. Bounds: what has to be read costs work of the
 * stack's searches (cursor.h); where that is used up, the answer is "no" and is
 * not cached. A file is looked through for an address only as far as SEARCH_SCAN
 * lasts: else nothing is known to be called by address only. A question about a
 * pointer to a function of a larger file reads SEARCH_SCAN of its code, its symbols
 * and its relocations, some 10 ms for the largest: one in a stack at most, and as
 * many as a budget in bytes allows, which each stack refills by a little. Until it is
 * answered, a pointer may lead there.
 */
#ifndef OTP_UNWIND_CALLS_H
#define OTP_UNWIND_CALLS_H

#include "unwind/cursor.h"
#include "unwind/imports.h"

#define CALLS_FUNCTIONS 1024
#define CALLS_ANSWERS	1024

/* Addresses of a function or a region in the process. */
struct code_range {
	uint64_t start, end;
	const struct mapping *map;
};

enum calls_question {
	CALLS_CALLS = 1,       /* by address, the function "of" */
	CALLS_JUMPS,           /* to the function "of" */
	CALLS_JUMPS_AWAY,      /* as its last call, through a register */
	CALLS_BY_ADDRESS_ONLY, /* is "of" called */
	CALLS_POINTED_TO,      /* may "of" be */
};

struct calls {
	struct rules *rules; /* borrowed */
	struct imports imports;
	uint64_t pointer_read; /* bytes that were read for questions about pointers, less what stacks have given back */
	struct {
		uint32_t file;
		uint64_t at, start, end; /* in the file */
	} functions[CALLS_FUNCTIONS];
	struct {
		uint32_t from, of; /* ids of files; of 0: the entry is unused */
		uint64_t from_at, of_at;
		uint8_t question;
		bool answer;
	} answers[CALLS_ANSWERS];
};

static inline bool code_range_contains(const struct code_range *r, uint64_t addr)
{
	return addr >= r->start && addr < r->end;
}

/* Whether so much of the stack's work is left; it is then spent. */
bool calls_spend(struct cursor *c, uint32_t work);

/* The function around an address of m, by the tables. */
bool calls_function(struct calls *k, const struct mapping *m, uint64_t pc, struct code_range *ret);

/* A stack is searched. */
void calls_begin(struct calls *k);
/* The call before a return address in m; *target: of a direct one, in the process. */
enum arch_call calls_kind(const struct cursor *c, const struct mapping *m, uint64_t pc, uint64_t *target);

/*
 * Whether pc, in m, is a return address of a call that led to the function callee. first: as the first of a trial, where a
 * former call and its caller fit best; a pointer to the callee is looked for then.
 */
bool calls_lead_to(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t pc,
		   const struct code_range *callee, bool first);

/* Whether the function that is called at target may leave by a jump through a register: to anywhere, with its caller. */
bool calls_jump_away(struct calls *k, struct cursor *c, uint64_t target);

#endif
