/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of server-sent events: what each reader has not read yet, bounded.
 *
 * A reader that lags by more than STREAM_BYTES_MAX loses all that waits, and
 * gets one event, reset, after which it asks for everything again. One that
 * reads nothing for STREAM_STALL_NS is hung up on.
 *
 * Called by the server, one thread. A stream is owned by its connection's response,
 * which ends it; a workload is kept open by the number of its streams.
 */
#ifndef OTP_HUB_STREAM_H
#define OTP_HUB_STREAM_H

#include "base/buf.h"
#include "hub/store.h"

#define STREAMS_MAX	 16
#define STREAM_BYTES_MAX (256u << 10)
#define STREAM_PING_NS	 (15ULL * 1000000000)
#define STREAM_STALL_NS	 (60ULL * 1000000000)

struct MHD_Connection;
struct MHD_Response;

struct stream {
	struct stream *next;
	struct streams *all;		   /* borrowed */
	struct MHD_Connection *connection; /* borrowed: lives longer */
	int fd;				   /* of the connection, borrowed */
	uint64_t workload;		   /* its id; 0: none */
	char type[VIEW_NAME];
	struct buf waiting; /* owned: not read yet */
	size_t read;	    /* of it */
	bool suspended, lagging;
	uint64_t moved_ns; /* when it read last, or had read everything */
	uint64_t ping_ns;  /* the next comment */
};

struct streams {
	struct stream *first;
	uint32_t count;
	struct store *store; /* borrowed */
	bool ending;	     /* readers get an end */
};

/* A response that streams to a connection; NULL: there are as many as there may be, or no memory. */
struct MHD_Response *stream_new(struct streams *all, struct MHD_Connection *c, int fd, struct workload *w,
				const char *type);
/* A change of a slot, to those whom it concerns. */
void streams_changed(struct streams *all, const struct workload *w, enum store_change change);
void streams_workloads(struct streams *all, uint64_t now_ns); /* an interval has arrived */
/* Comments for those that wait, an end for those that stall. */
void streams_run(struct streams *all);
uint64_t streams_next_ns(const struct streams *all); /* boot time; UINT64_MAX: there are none */
void streams_end(struct streams *all); /* before the server stops: nobody stays suspended */

#endif
