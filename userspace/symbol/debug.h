/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address indexes of the files that are open: asked of the host, one at a
 * time for each file, kept with the file. Used within symbol/ only; the
 * engine's one thread.
 *
 * A few questions are under way at once; the others wait until their file is
 * met again. A refusal is tried again after a while (debug packages get
 * installed), at growing intervals.
 */
#ifndef OTP_SYMBOL_DEBUG_H
#define OTP_SYMBOL_DEBUG_H

#include <stdbool.h>

#include "process/host.h"
#include "symbol/index.h"
#include "symbol/symbol.h"

#define DEBUG_ASKED_MAX 8

struct indexed;

struct debug_indexes {
	struct host *host; /* borrowed; NULL: none */
	struct index_options options;
	uint64_t wait_ns;
	void (*settled)(void *ctx);
	void *ctx;
	uint32_t asked; /* questions under way */
	struct indexed *first; /* all that there are */
};

void debug_indexes_init(struct debug_indexes *all, const struct symbol_limits *limits);
void debug_indexes_done(struct debug_indexes *all);

bool debug_index_want(struct debug_indexes *all, struct binary *b, const struct symbol_asker *asker);
bool debug_indexes_wait(const struct debug_indexes *all, uint64_t now_ns);
void debug_index_state(const struct debug_indexes *all, const struct binary *b, struct symbol_state *ret);
uint32_t debug_index_made(const struct binary *b); /* how often, 0: there is none */
/* What the host says of a file's debug information (its own number), and whether an index made now would say more. NULL: of all. */
void debug_indexes_told(struct debug_indexes *all, const uint8_t *htlhash, uint32_t fetch, bool again);

#endif
