/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub's API below /api/v1 (openapi.yaml): a request as plain data becomes a
 * reply as plain data. Server-sent events are the server's (stream.h).
 *
 * Called by the server, one thread; unit tests and fuzzers call it without one.
 * Ownership: the call is borrowed, the reply is the caller's: api_reply_done.
 * Errors are replies with a status, a reason and the field that is at fault.
 */
#ifndef OTP_HUB_API_H
#define OTP_HUB_API_H

#include "base/buf.h"
#include "hub/store.h"
#include "process/selection.h"

#define API_PREFIX     "/api/v1"
#define API_PARAMS_MAX 64
#define API_BODY_MAX   4096 /* of a request: limits or a selection are all that is sent */

struct api {
	struct store *store; /* borrowed */
	const char *version; /* static */
	uint64_t started_ns; /* Unix */
	uint64_t interval_ns;
	bool token, sampler, receiver; /* as /status tells */
	/* What is sampled for a while; all borrowed, and may change; NULL: nothing is known of it. */
	const struct selection_shown *shown;
	const char *refused;	    /* why the last request was; "": it was not */
	const uint32_t *may_select; /* whether select may be called */
	/* Asks for a selection, NULL: for its end. -EINVAL with why: it is malformed. NULL: none is possible. */
	int (*select)(void *ctx, const struct selection *s, char why[SELECTION_WHY]);
	void *select_ctx;
};

struct api_call {
	const char *method, *path; /* path: decoded, with the prefix */
	struct {
		const char *name, *value;
	} params[API_PARAMS_MAX];
	uint32_t nr_params;
	const void *body;
	size_t body_len;
	const char *content_type, *if_none_match; /* NULL: none */
	uint64_t now_ns;			  /* Unix */
};

struct api_reply {
	unsigned int status;
	const char *type; /* of the body; static */
	struct buf body;
	char etag[64];	   /* "": none */
	char file[128];	   /* name for an attachment; "": none */
	const char *allow; /* static; NULL: none */
};

void api_serve(const struct api *api, const struct api_call *call, struct api_reply *ret);
void api_reply_done(struct api_reply *r);
/* An error of the server itself, in the API's form. field NULL: none. */
void api_fail(struct api_reply *r, unsigned int status, const char *reason, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Whether a Content-Type, NULL: there is none, is of that type, whatever its parameters. */
bool api_type_is(const char *type, const char *want);

/*
 * The workload of a request for /events, NULL: it is of none. False: it was
 * refused. The type is that of the request, borrowed, or "".
 */
bool api_events(const struct api *api, const struct api_call *call, struct workload **ret, const char **ret_type,
		struct api_reply *refusal);

/* What arrived after a seq in a slot, as a Tree on one line, for events. -ENOENT: no such type; -ENOMEM. */
int api_increment(const struct workload *w, const char *type, uint64_t after, struct buf *out);

#endif
