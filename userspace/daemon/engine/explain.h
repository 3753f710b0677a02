/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's view of one process, as JSON: its code mappings by file, how
 * each is unwound, the sources of its names, the plan in force, and how its
 * stacks ended so far. For `otprof explain`.
 *
 * Called by the pipeline for the monitor's EXPLAIN; read-only.
 * Bounds: EXPLAIN_FILES_MAX files; those beyond are only counted.
 */
#ifndef OTP_DAEMON_ENGINE_EXPLAIN_H
#define OTP_DAEMON_ENGINE_EXPLAIN_H

#include "base/buf.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/jit.h"
#include "daemon/engine/runtimes.h"
#include "process/table.h"
#include "symbol/symbol.h"

#define EXPLAIN_FILES_MAX 512

struct explain { /* all borrowed */
	const struct config *config;
	const struct ledger_engine *ledger;
	const struct symbolizer *symbols;
	const struct jit *jit;
	const struct runtimes *runtimes;
	const struct process *process; /* NULL: not in the table */
	uint32_t pid;
};

void explain_json(const struct explain *x, struct buf *to);

#endif
