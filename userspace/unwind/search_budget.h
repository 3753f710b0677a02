/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work that searches of stacks may make (search.c), over all stacks: a single
 * one may take SEARCH_WORK, and where caches are empty many may. But a process whose
 * every stack takes all of it, as hostile libraries with large symbol tables can,
 * gets a share: what it does not get leaves its stacks cut, and what it took, those
 * of others too, for as long as it goes on.
 *
 * Called by unwind.c for each stack, one thread. Units as SEARCH_WORK (cursor.h). No
 * errors. Cost: an addition.
 */
#ifndef OTP_UNWIND_SEARCH_BUDGET_H
#define OTP_UNWIND_SEARCH_BUDGET_H

#include <stdint.h>

#include "base/cleanup.h"
#include "unwind/cursor.h"

#define SEARCH_BUDGET_SHARE 8  /* of stacks that may take all their work, when it goes on */
#define SEARCH_BUDGET_SAVED 64 /* stacks that may take it one behind the other */

struct search_budget {
	uint32_t spent; /* of what may be saved */
};

/* What a stack may take. */
static inline uint32_t search_budget_take(const struct search_budget *b)
{
	return MIN((uint32_t)SEARCH_BUDGET_SAVED * SEARCH_WORK - b->spent, (uint32_t)SEARCH_WORK);
}

/* What it was given, and what of that it has left. */
static inline void search_budget_settle(struct search_budget *b, uint32_t given, uint32_t left)
{
	b->spent += given - left;
	b->spent -= MIN(b->spent, (uint32_t)SEARCH_WORK / SEARCH_BUDGET_SHARE);
}

#endif
