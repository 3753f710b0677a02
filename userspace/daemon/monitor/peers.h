/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket between engine and net. net is sent its end first; the engine's
 * end waits here until an engine runs, and none is started before net has read
 * all that a dead engine had sent (ipc.h).
 *
 * Called by the monitor where a worker starts, ends, or answers; one thread.
 * Nothing waits: a net that does not drain its socket in time is killed.
 */
#ifndef OTP_DAEMON_MONITOR_PEERS_H
#define OTP_DAEMON_MONITOR_PEERS_H

#include "daemon/monitor/books.h"
#include "daemon/monitor/workers.h"

struct peers {
	struct workers *workers; /* borrowed */
	struct books *books;	 /* borrowed */
	int fd;		  /* the engine's end of the pair whose other end net has; -1 */
	uint32_t drains;  /* PEERs that net has not answered by DRAINED */
	bool gap_pending; /* the engine died; the last DRAINED ends what net received of it */
	uint64_t gap_deadline_ns;
};

void peers_init(struct peers *p, struct workers *workers, struct books *books);
void peers_net_started(struct peers *p);
void peers_engine_started(struct peers *p);
void peers_engine_died(struct peers *p);
void peers_net_died(struct peers *p);
void peers_drained(struct peers *p); /* DRAINED */
/* Whether an engine may start. */
bool peers_allow_engine(const struct peers *p);
void peers_run(struct peers *p, uint64_t now);
/* The last engine has exited: net reads the socket to its end. */
void peers_close(struct peers *p);

#endif
