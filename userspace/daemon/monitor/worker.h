/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker process, as the monitor sees it: its pid, its socket, and how it
 * has done so far.
 *
 * Called by the monitor, one thread. A worker is this program executed again
 * with its role; it is handed what it needs by messages, and ended by signal.
 * Nothing here waits, but worker_send_patiently, a second at most. The socket
 * and the process are the struct's; workers.c decides when one starts, and
 * what its end means.
 */
#ifndef OTP_DAEMON_MONITOR_WORKER_H
#define OTP_DAEMON_MONITOR_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/ipc.h"

enum worker_kind { WORKER_ENGINE, WORKER_NET, WORKER_OPENER, WORKER_INDEXER, WORKER_FETCHER };

struct worker {
	enum worker_kind kind;
	pid_t pid; /* 0: not running */
	int sock;  /* -1: not running */
	bool ready;
	bool asked;	       /* to stop */
	bool exited;	       /* ended when it was asked to */
	uint32_t last_starts;  /* since the stop began */
	uint64_t started_ns;
	uint64_t heard_ns;     /* its last sign of life */
	uint64_t next_start_ns;
	uint64_t back_off_ns;  /* the last pause; 0: none yet */
	uint32_t restarts;
	uint64_t past_cpu_ns;  /* of its predecessors */
};

void worker_init(struct worker *w, enum worker_kind kind);
const char *worker_name(const struct worker *w);
/* Made for one question or one file; one that ends is no accident. */
bool worker_is_disposable(const struct worker *w);

int worker_start(struct worker *w); /* the process and its socket; nothing is handed over yet */
void worker_kill(struct worker *w); /* its end is dealt with when the kernel reports it */
/* No sign of life for longer than it may be silent. */
bool worker_hangs(const struct worker *w, uint64_t now);
/* What wait4 reported, in words. */
void worker_how_ended(int status, char to[64]);
/* Before the next start: what dies at once waits ever longer. */
void worker_pause(struct worker *w, uint64_t now);

/* -EPIPE also where it does not run; fd is borrowed, -1: none. */
int worker_send(struct worker *w, uint32_t type, uint64_t tag, const void *data, size_t len, int fd);
/* Waits for room: at start more is sent than one socket buffer takes on a host of many CPUs. */
int worker_send_patiently(struct worker *w, uint32_t type, const void *data, size_t len, int fd);

#endif
