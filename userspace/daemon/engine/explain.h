/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine knows of one process, as JSON: its code mappings by file,
 * how each is unwound, where its names come from, the plan in force, and how
 * its stacks ended so far. For `otprof explain`.
 *
 * Called by the pipeline when the monitor asks; looks, and changes nothing.
 * Bounds: EXPLAIN_FILES_MAX files, what exceeds them is a number.
 */
#ifndef OTP_DAEMON_ENGINE_EXPLAIN_H
#define OTP_DAEMON_ENGINE_EXPLAIN_H

#include "base/buf.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/jit.h"
#include "process/table.h"
#include "symbol/symbol.h"

#define EXPLAIN_FILES_MAX 512

struct explain { /* all borrowed */
	const struct config *config;
	const struct ledger_engine *ledger;
	const struct symbolizer *symbols;
	const struct jit *jit;
	const struct process *process; /* NULL: not known */
	uint32_t pid;
};

void explain_json(const struct explain *x, struct buf *to);

#endif
