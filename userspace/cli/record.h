/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What otprof record was asked for. record_options.c reads the command line,
 * record.c does it. One thread.
 */
#ifndef OTP_CLI_RECORD_H
#define OTP_CLI_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

struct record_options {
	struct session_options session;
	const char *output, *title;
	uint64_t duration_ns; /* 0: no end of its own */
	bool inverted, quiet;
	char events[1024];    /* of all -e, as a list; "": none */
	uint64_t count;       /* -c, 0: none */
	char *const *command; /* NULL: none */
};

/* -1 when there is something to record; else the exit status, all that is to be said having been said. Strings are argv's. */
int record_parse(int argc, char **argv, struct record_options *ret);

#endif
