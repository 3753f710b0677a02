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
#define DECODE_FILE_PATIENCE 1000 /* ms; the engine waits for a function's lines for twice as long */

struct decode_serve {
	int sock;	/* to the engine; borrowed */
	int memory_fd;	/* borrowed */
	int monitor;	/* socket that hears of the plan, before the engine does, and of files; borrowed, -1: none */
	uint32_t files; /* that were asked for */
	bool files_late; /* one did not come in time: no more are asked for */
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
/*
 * Likewise, with what a former decoder of the process has found. By its walks nobody may walk: the engine, which says so, may
 * be taken over.
 */
int decode_serve_attach_found(struct decode_serve *s, int err, const struct decode_mapping *at,
			      const struct runtime_attached *found);
/* A later message. 0; -EBADMSG; -EPIPE: the engine is gone, or does not read. */
int decode_serve_take(struct decode_serve *s, const struct ipc_message *m);

/* A READ, if the engine wants those: len bytes that were read at addr. */
void decode_serve_report(struct decode_serve *s, enum decode_source source, uint64_t addr, const void *bytes,
			 size_t len);
/* decode_beside.c: memory_beside of s->memory, by the monitor and an opener. */
int decode_beside(struct memory *m, uint64_t addr, const char *name, int *ret_fd);

#endif
