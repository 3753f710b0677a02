/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to deliver a request: an ops table, implemented once for each scheme
 * of endpoint and protocol. A transport delivers one request at a time and decides nothing:
 * it reports the outcome of the try, the destination does the rest.
 *
 * Called by the destination, one thread. Lifetime: open, any number of send,
 * each followed by its outcome or by abort, close.
 */
#ifndef OTP_EXPORT_TRANSPORT_H
#define OTP_EXPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "export/export.h"
#include "export/response.h"

enum outcome_kind {
	OUTCOME_DELIVERED, /* text: a remark, or "" */
	OUTCOME_PARTIAL,   /* delivered, but some profiles were rejected */
	OUTCOME_REFUSED,   /* final; counted as lost for reason */
	OUTCOME_RETRY,     /* failed, may be tried again */
};

#define OUTCOME_NO_WAIT UINT64_MAX

struct outcome {
	enum outcome_kind kind;
	bool maybe;              /* RETRY, REFUSED: the whole request may have arrived */
	bool coding;             /* REFUSED: perhaps for the coding of the body alone */
	uint32_t reason;         /* REFUSED: enum otp_loss_reason */
	uint64_t rejected;       /* PARTIAL: profiles */
	uint64_t retry_after_ns; /* RETRY: the wait that the server asked for, or OUTCOME_NO_WAIT */
	char text[RESPONSE_TEXT];
};

/* The bytes of one try, borrowed until its outcome. */
struct body {
	uint64_t id;
	const void *data;
	size_t len;
	enum export_coding coding;
};

struct transport;
struct transport_host;
typedef void outcome_fn(void *ctx, const struct outcome *o);

struct transport_ops {
	const char *scheme; /* of the endpoint, with its "://" */
	enum export_protocol protocol; /* that it speaks; where local, any is accepted */
	bool local; /* needs no network: the rest of the endpoint is a directory of this host */
	/* enum otp_loss_reason of a request that was not delivered in time, and of one left when stopping. */
	uint32_t expired, stopped;
	bool compresses; /* can carry compressed bodies */
	bool patient;    /* retries while stopping: a failure may pass within seconds */
	int (*check)(const struct export_config *cfg, char why[EXPORT_WHY]);
	/* cfg, and done's ctx, are borrowed for the life of the transport. */
	int (*open)(const struct export_config *cfg, struct transport_host *host, outcome_fn *done, void *ctx,
		    struct transport **ret);
	/* Whether a transport opened with a, an endpoint of this scheme, serves b as well; else it is opened anew. */
	bool (*same)(const struct export_config *a, const struct export_config *b);
	void (*close)(struct transport *t);
	/* 1: ended, *ret_outcome is set; 0: under way, done will be called; negative errno: not begun. */
	int (*send)(struct transport *t, const struct body *body, struct outcome *ret_outcome);
	/* Ends a try that is under way, without done; true if it may have been delivered. */
	bool (*abort)(struct transport *t);
};

struct transport {
	const struct transport_ops *ops;
};

extern const struct transport_ops transport_http, transport_https, transport_grpc, transport_grpcs, transport_file;

/* By the endpoint's scheme and the protocol; NULL: no transport has both, or there is no endpoint. */
const struct transport_ops *transport_find(const struct export_config *c);

void outcome_retry(struct outcome *o, bool maybe, const char *text);
/* Delivered, or in part: by the message of a successful answer, which is alike for all signals. */
void outcome_answered(struct outcome *o, const void *message, size_t len);

#endif
