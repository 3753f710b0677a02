/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of debuginfod, for one file (debuginfod(8) of elfutils:
 * GET URL/buildid/ID/debuginfo).
 * Called by the fetcher, once in its life; blocks.
 */
#ifndef OTP_DAEMON_DISPOSABLE_FETCH_HTTP_H
#define OTP_DAEMON_DISPOSABLE_FETCH_HTTP_H

#include <stdint.h>

#include "daemon/fetch.h"

struct fetch_request { /* all borrowed */
	const char *urls; /* of servers, separated by spaces; queried in turn */
	const char *id;
	uint64_t timeout_ns; /* of one server */
	uint64_t max_bytes;
	int fd; /* of an empty file, to write */
};

struct fetch_report {
	uint32_t requests;
	uint64_t bytes; /* of the file, FETCHED */
	char text[160]; /* the error, in the words of the server or library */
};

/* FETCHED: the file is whole, and claims this build-id. */
enum fetch_state fetch_http(const struct fetch_request *r, struct fetch_report *ret);

#endif
