/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address indexes of open files: requested from the host, one at a time for
 * each file, and kept with the file. Used within symbol/ only; the engine's one
 * thread.
 *
 * At most DEBUG_ASKED_MAX requests are under way; another one is made when its
 * file is used again. A refused request is repeated at growing intervals (debug
 * packages get installed), one that the host had no room for after seconds: names
 * wait for that one too.
 */
#ifndef OTP_SYMBOL_DEBUG_H
#define OTP_SYMBOL_DEBUG_H

#include <stdbool.h>

#include "process/host.h"
#include "symbol/index.h"
#include "symbol/symbol.h"

/* More than the host queues: the host decides who waits, because it knows the owners of files. */
#define DEBUG_ASKED_MAX 128

struct indexed;

struct debug_indexes {
	struct host *host; /* borrowed; NULL: none */
	struct index_options options;
	uint64_t wait_ns;
	void (*settled)(void *ctx);
	void *ctx;
	uint32_t asked; /* requests under way */
	struct indexed *first; /* list of all */
};

void debug_indexes_init(struct debug_indexes *all, const struct symbol_limits *limits);
void debug_indexes_done(struct debug_indexes *all);

bool debug_index_want(struct debug_indexes *all, struct binary *b, const struct symbol_asker *asker);
bool debug_indexes_wait(const struct debug_indexes *all, uint64_t now_ns);
void debug_index_state(const struct debug_indexes *all, const struct binary *b, struct symbol_state *ret);
uint32_t debug_index_made(const struct binary *b); /* indexes received so far; 0: none is in use */
/* As symbol_set_fetch. */
void debug_indexes_set_fetch(struct debug_indexes *all, const uint8_t *htlhash, uint32_t fetch, bool again);

#endif
