/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a capture through the engine's pipeline: no kernel, no root, no other
 * process. Goldens, benchmarks, fuzzers and bug reports use it.
 *
 * Called by main for --replay and by tests, one thread. The file is read
 * twice: once to know all answers, pages and symbols, then in order. A file
 * that lies costs its own samples; memory is bounded by the file's size.
 */
#ifndef OTP_DAEMON_REPLAY_H
#define OTP_DAEMON_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "daemon/config.h"

struct replay_options {
	const struct config *config; /* borrowed */
	uint32_t rounds;             /* how often the samples go through; the first is cold. 0: once */
	/* Every request; NULL: counted only. */
	int (*request)(void *ctx, const void *request, size_t len, uint64_t samples);
	void *ctx;
};

struct replay_result {
	uint64_t samples;     /* of one round */
	uint64_t cold_ns;     /* CPU time of the first round, names and encoding included */
	uint64_t warm_ns;     /* of the last round; 0 with one round */
	uint64_t requests, bytes;
	struct ledger_engine ledger;
};

/* -EBADMSG: no capture; -EIO; -ENOMEM. */
int replay_run(int fd, const struct replay_options *o, struct replay_result *ret); /* fd borrowed */

#endif
