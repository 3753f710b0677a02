/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gRPC call adds to HTTP/2: the prefix of a message, and the fields of
 * its status. Pure functions; called by the gRPC transport, on a receiver's
 * answer, which may be hostile: all of them read what they are given once.
 */
#ifndef OTP_EXPORT_GRPC_H
#define OTP_EXPORT_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/response.h"

/*
 * The codes of gRPC, and what OTLP makes of each.
 *   X(number, NAME, again)  again: a request may be sent again after it
 */
#define GRPC_CODES(X)                                                      \
	X(0, OK, GRPC_NEVER)                                               \
	X(1, CANCELLED, GRPC_ALWAYS)                                       \
	X(2, UNKNOWN, GRPC_NEVER)                                          \
	X(3, INVALID_ARGUMENT, GRPC_NEVER)                                 \
	X(4, DEADLINE_EXCEEDED, GRPC_ALWAYS)                               \
	X(5, NOT_FOUND, GRPC_NEVER)                                        \
	X(6, ALREADY_EXISTS, GRPC_NEVER)                                   \
	X(7, PERMISSION_DENIED, GRPC_NEVER)                                \
	X(8, RESOURCE_EXHAUSTED, GRPC_IF_ASKED) /* by a RetryInfo */       \
	X(9, FAILED_PRECONDITION, GRPC_NEVER)                              \
	X(10, ABORTED, GRPC_ALWAYS)                                        \
	X(11, OUT_OF_RANGE, GRPC_ALWAYS)                                   \
	X(12, UNIMPLEMENTED, GRPC_NEVER)                                   \
	X(13, INTERNAL, GRPC_NEVER)                                        \
	X(14, UNAVAILABLE, GRPC_ALWAYS)                                    \
	X(15, DATA_LOSS, GRPC_ALWAYS)                                      \
	X(16, UNAUTHENTICATED, GRPC_NEVER)

enum grpc_code {
#define X(number, NAME, again) GRPC_##NAME = (number),
	GRPC_CODES(X)
#undef X
	GRPC_CODE_NR
};

/* The value of grpc-status; UNKNOWN for what is no code. */
enum grpc_code grpc_code_parse(const char *value);
/* asked: the status contains a RetryInfo. */
bool grpc_code_retries(enum grpc_code code, bool asked);
/* Codes that a call can end with although the receiver has done all of it. */
bool grpc_code_leaves_doubt(enum grpc_code code);
/* "gRPC UNAVAILABLE: message"; message: the value of grpc-message, percent-encoded. */
void grpc_describe(enum grpc_code code, const char *message, char ret_text[RESPONSE_TEXT]);

/*
 * The wait that the value of grpc-status-details-bin asks for, at most
 * RETRY_AFTER_MAX_NS; 0 where it names none, or one below 0. -ENOENT: it has no
 * RetryInfo; -EBADMSG: it is not such a value.
 */
int grpc_retry_info(const char *details, uint64_t *ret_ns);

/* Before each message: whether it is compressed, and its length. */
#define GRPC_PREFIX 5
void grpc_prefix(bool compressed, uint32_t len, uint8_t to[GRPC_PREFIX]);

struct grpc_message {
	const void *data; /* borrowed: from the answer, or from where it was expanded to */
	size_t len;
};
struct buf;
/*
 * The only message of an answer. encoding: the value of grpc-encoding, or NULL.
 * A message that is compressed is expanded into *expanded, up to its bound.
 * -EBADMSG: none, several, or cut; -ENOTSUP: compressed by other means than
 * gzip; -EFBIG, -ENOMEM.
 */
int grpc_message(const void *answer, size_t len, const char *encoding, struct buf *expanded, struct grpc_message *ret);

#endif
