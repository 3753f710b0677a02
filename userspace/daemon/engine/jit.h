/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of generated code: the perf maps and jitdumps of processes, opened by
 * the host when such code is first sampled, and read again as they grow.
 *
 * Called by the pipeline, one thread; bounded by JIT_PROCESSES, the least
 * recently used is dropped.
 */
#ifndef OTP_DAEMON_ENGINE_JIT_H
#define OTP_DAEMON_ENGINE_JIT_H

#include "process/frame.h"
#include "process/host.h"
#include "process/table.h"
#include "symbol/jit.h"

#define JIT_PROCESSES 64

struct jit_process;

struct jit {
	struct host *host; /* borrowed */
	void (*settled)(void *ctx); /* an answer has arrived; NULL: not needed */
	void *ctx;
	struct jit_process *first; /* the most recently used; owned, with those behind it */
	uint32_t count;
};

void jit_done(struct jit *j);
/* The maps of this process, requested if missing; borrowed until the next call; NULL: none. ret_wait: may arrive. */
struct jit_process *jit_get(struct jit *j, const struct process *p, uint64_t now_ns, bool *ret_wait);
/* The number of functions in this process' maps, by enum jit_kind; false: its code was never sampled. */
bool jit_functions(const struct jit *j, const struct process *p, uint32_t ret[JIT_KIND_NR]);
/*
 * Turns a native frame into one that names itself, and that owns references to
 * function and file. false: no map has the code at pc; the frame is unchanged.
 */
bool jit_name_frame(struct jit_process *e, uint64_t pc, struct frame *f);

#endif
