/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders: processes that read the memory of one process each. The engine asks
 * for one by the process, its start and the ticket of a file that it runs. It
 * gets a socket to a new decoder; an opener sends that decoder the memory, if the
 * file is mapped executable in the process. Memory and file pass through neither
 * the monitor nor, the memory, the engine.
 *
 * Called by the monitor's loop, one thread; nothing waits. Bounds: DECODERS
 * processes, fewer where memory is limited, each for DECODER_LIFE_NS at most; DECODER_QUEUE questions wait. The
 * engine takes turns between the owners of processes (engine/decoders.h), and
 * says when it has no use for a decoder any more: that one is killed at once. A
 * decoder may ask for BESIDE_FILES_MAX files beside those that its process has
 * mapped (process/beside.h), which an opener sends it, too. One that no signal ends
 * is left in the kernel, and the process' memory is banned.
 */
#ifndef OTP_DAEMON_MONITOR_DECODER_JOBS_H
#define OTP_DAEMON_MONITOR_DECODER_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "daemon/monitor/vouched.h"
#include "daemon/monitor/workers.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/ticket.h"

#define DECODER_QUEUE	8
#define DECODER_SHARE	(64ull << 20) /* of the memory limit, for each that runs */
#define DECODER_LIFE_NS (30 * NSEC_PER_SEC)

struct ipc_message;
struct monitor;

/* A question of the engine. */
struct decoder_job {
	uint64_t tag;
	uint32_t pid;
	uint64_t pid_start_ns, start, end;
	struct ticket file;
};

struct decoder_slot {
	struct decoder_job job;
	uint64_t id; /* as the engine knows it; 0: none runs here */
	bool answered;
	uint32_t files; /* that it asked for */
	uint64_t deadline_ns;
};

struct decoder_jobs {
	struct decoder_job queue[DECODER_QUEUE];
	uint32_t waiting;
	struct decoder_slot slot[DECODERS];
	uint64_t last_id;
	struct sandbox_user user; /* of each; found once: a lookup reads files, and may load libraries */
	struct vouched vouched; /* walks that decoders made */
	uint64_t started, refused, overdue, abandoned; /* for status */
};

void decoder_jobs_ask(struct monitor *m, const struct ipc_message *msg); /* HOST_OPEN_DECODER of the engine */
void decoder_jobs_end(struct monitor *m, const struct ipc_message *msg); /* DECODER_END */
void decoder_jobs_engine_died(struct monitor *m);

bool decoder_jobs_wait(const struct monitor *m); /* a decoder is needed */
void decoder_jobs_cannot_start(struct monitor *m); /* no process can be made: the first question is not repeated */
void decoder_jobs_close(struct monitor *m);
int decoder_jobs_hand_over(struct monitor *m, int i);
void decoder_jobs_from(struct monitor *m, int i, const struct ipc_message *msg);
void decoder_jobs_hangs(struct monitor *m, int i, uint64_t now); /* before it is given up */
void decoder_jobs_ended(struct monitor *m, int i);
void decoder_jobs_run(struct monitor *m, uint64_t now);
uint64_t decoder_jobs_next_ns(const struct monitor *m);

#endif
