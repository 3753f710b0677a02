/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes whose generated code has names: their perf maps and jitdumps,
 * asked of the host when such code is first met, read again as they grow.
 *
 * Called by the pipeline, one thread; bounded by JIT_PROCESSES, the ones met
 * longest ago go first.
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
	void (*settled)(void *ctx);
	void *ctx;
	struct jit_process *first; /* met last */
	uint32_t count;
};

void jit_done(struct jit *j);
/* What is known of this process' code, asked for when it is not. True in wait: it may come. NULL: nothing. */
struct jit_process *jit_get(struct jit *j, const struct process *p, uint64_t now_ns, bool *ret_wait);
/* What this process says of its code: functions, by enum jit_kind; false: it was never met. */
bool jit_says(const struct jit *j, const struct process *p, uint32_t ret[2]);
/*
 * Turns a native frame into one that names itself, with references of its own
 * to function and file. False: nobody named the code at pc; the frame is as it was.
 */
bool jit_name_frame(struct jit_process *e, uint64_t pc, struct frame *f);

#endif
