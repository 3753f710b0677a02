/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's side of daemon/decode.h: one file, the memory of one process,
 * and the questions of the engine about them.
 *
 * Called by the decoder, and by tests with memory of their own; one thread.
 * Answers wait for room in the socket, DECODE_PATIENCE at most. Reads block for
 * as long as the memory does: the monitor ends a decoder that hangs.
 */
#ifndef OTP_DAEMON_DISPOSABLE_DECODE_SERVE_H
#define OTP_DAEMON_DISPOSABLE_DECODE_SERVE_H

#include <stdbool.h>

#include "daemon/decode.h"

#define DECODE_PATIENCE 10000 /* ms */

struct decode_serve {
	int sock;	/* to the engine; borrowed */
	int memory_fd;	/* borrowed */
	int monitor;	/* socket that hears of the plan, before the engine does; borrowed, -1: none */
	struct memory memory; /* reads memory_fd, and reports what it has read */
	struct runtime_file file; /* binary: borrowed */
	bool reports;	/* the engine wants READs */
	bool attached;
	bool ended;	/* the process has: there is no memory any more */
	int failed;	/* a READ could not be sent */
	struct runtime_attached as;
	struct runtime_function function;
	struct runtime_code_made code;
	uint8_t out[IPC_DATA_MAX] __attribute__((aligned(8)));
};

/* Of a large struct, which the caller has zeroed. */
void decode_serve_init(struct decode_serve *s, int sock);
/* ATTACH, when file and memory are there; err: they could not be had, and are not looked at. 0; -EPIPE. */
int decode_serve_attach(struct decode_serve *s, int err, const struct decode_mapping *at, bool reports);
/* A later message. 0; -EBADMSG; -EPIPE: the engine is gone, or does not read. */
int decode_serve_take(struct decode_serve *s, const struct ipc_message *m);

#endif
