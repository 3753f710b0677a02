/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker process in the monitor: its pid, its socket, and the history of
 * its starts.
 *
 * Called by the monitor, one thread. A worker is a program executed with its
 * role: this one again, where it has a network, else otprof-worker. It receives
 * its descriptors by messages, and is ended by signal.
 * Nothing here waits, but worker_send_patiently, a second at most. The struct
 * owns the socket and the process; workers.c decides when one starts, and what
 * follows from its end.
 */
#ifndef OTP_DAEMON_MONITOR_WORKER_H
#define OTP_DAEMON_MONITOR_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/ipc.h"

enum worker_kind { WORKER_ENGINE, WORKER_NET, WORKER_OPENER, WORKER_INDEXER, WORKER_FETCHER, WORKER_DECODER,
		   WORKER_HUB };

struct worker {
	enum worker_kind kind;
	pid_t pid; /* 0: not running */
	int sock;  /* -1: not running, or hung up */
	bool ready;
	bool asked;	       /* to stop */
	bool exited;	       /* has exited after that */
	uint32_t last_starts;  /* since the stop began */
	uint64_t started_ns;
	uint64_t heard_ns;     /* its last sign of life */
	uint64_t next_start_ns;
	uint64_t killed_ns;    /* 0: not killed */
	uint64_t looked_ns, looked_ran_ns; /* worker_is_stuck's last look */
	uint32_t stuck;	       /* how often it or a predecessor was found so */
	uint64_t back_off_ns;  /* the last pause; 0: none yet */
	uint32_t restarts;
	uint64_t past_cpu_ns;  /* of its predecessors in this struct */
};

void worker_init(struct worker *w, enum worker_kind kind);
const char *worker_name(const struct worker *w);
/* Started for one question, file or process: its end is expected. */
bool worker_is_disposable(const struct worker *w);

/* Makes process and socket; sends nothing yet. program: borrowed, by worker_program_open. */
int worker_start(struct worker *w, int program);
void worker_kill(struct worker *w); /* workers_reap handles its end */
/*
 * Closes the socket: nothing more is sent or read. One whose process closed its
 * end would be readable in every turn until the process has ended.
 */
void worker_hang_up(struct worker *w);
/* Whether it was silent for longer than it may be. */
bool worker_hangs(const struct worker *w, uint64_t now);
/*
 * Whether it waits for something that does not come, as for a file server that
 * does not answer: it is silent, though it should beat or has a file to index,
 * and used no CPU time between two looks. Looks twice a second at most.
 */
bool worker_is_stuck(struct worker *w, uint64_t now);
/* Whether it was killed some time ago, and has not ended. */
bool worker_outlives(const struct worker *w, uint64_t now);
/* When to ask these two again; UINT64_MAX: there is no hurry. */
uint64_t worker_look_ns(const struct worker *w, uint64_t now);
/* The status of wait4, in words. */
void worker_how_ended(int status, char to[64]);
/* Sets the next start: after each early death the pause is longer. */
void worker_pause(struct worker *w, uint64_t now);

/* As ipc_send, also -EPIPE where it does not run; fd is borrowed, -1: none. */
int worker_send(struct worker *w, uint32_t type, uint64_t tag, const void *data, size_t len, int fd);
/* Waits for room: on a host of many CPUs the start sends more than a socket buffer takes. */
int worker_send_patiently(struct worker *w, uint32_t type, const void *data, size_t len, int fd);

#endif
