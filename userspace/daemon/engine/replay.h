/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a capture through the engine's pipeline: no kernel, no root, no other
 * process. Goldens, benchmarks, fuzzers and bug reports use it.
 *
 * Called by main for --replay and by tests, one thread. The file is read
 * twice: once to index all answers, pages and symbols, then in order. A malformed
 * file loses its own samples; memory is bounded by the file's size.
 */
#ifndef OTP_DAEMON_ENGINE_REPLAY_H
#define OTP_DAEMON_ENGINE_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "profile/profile.h"
#include "daemon/config/config.h"

struct replay_options {
	const struct config *config; /* borrowed */
	uint32_t rounds;             /* how often the samples are replayed, first with cold caches. 0: once */
	/*
	 * Samples a second, as a live sampler would deliver them: for pace_ns, from
	 * the beginning again as often as needed; intervals end by the clock.
	 * 0: as fast as possible, intervals as captured.
	 */
	uint32_t pace_hz;
	uint64_t pace_ns;
	/* Called with every request; NULL: requests are only counted. */
	profile_out_fn *request;
	void *ctx;
};

struct replay_result {
	uint64_t samples;     /* of one round */
	uint64_t cold_ns;     /* CPU time of the first round, with names and encoding */
	uint64_t warm_ns;     /* of the last round; 0 with one round */
	uint64_t requests, bytes;
	uint64_t late_ns;      /* paced: the longest delay of a drain */
	uint64_t record_bytes; /* paced: of all samples, as records of a ring */
	struct ledger_engine ledger;
};

/* -EBADMSG: no capture; -EIO; -ENOMEM. */
int replay_run(int fd, const struct replay_options *o, struct replay_result *ret); /* fd borrowed */

#endif
