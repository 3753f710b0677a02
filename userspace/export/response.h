/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a receiver's answer: the response message of a success, the
 * google.rpc.Status of a refusal. Field numbers of OTLP 1.11.
 *
 * Called by the HTTP transport. Bodies are hostile; the texts returned are
 * printable.
 */
#ifndef OTP_EXPORT_RESPONSE_H
#define OTP_EXPORT_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#define RESPONSE_BYTES_MAX (4u << 20) /* OTLP: an answer above it need not be read */
#define RESPONSE_TEXT      96

struct response {
	uint64_t rejected; /* profiles */
	char message[RESPONSE_TEXT]; /* "" where none */
};

/* ExportProfilesServiceResponse; an empty body is a full success. -EBADMSG: not such a message. */
int response_parse(const void *body, size_t len, struct response *ret);
/* The message of a Status, or the start of a body that is plain text; "" where there is neither. */
void response_refusal(const char *content_type, const void *body, size_t len, char ret_text[RESPONSE_TEXT]);
/* Copies what is printable ASCII, up to the first line's end; the rest becomes '?'. */
void response_text(const void *from, size_t len, char ret_text[RESPONSE_TEXT]);

#endif
