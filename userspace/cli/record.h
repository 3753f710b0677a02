/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of otprof record: record_options.c parses the command line,
 * record.c records. One thread.
 */
#ifndef OTP_CLI_RECORD_H
#define OTP_CLI_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/session.h"

struct record_options {
	struct session_options session;
	const char *output, *title;
	uint64_t duration_ns; /* 0: unlimited */
	bool inverted, quiet;
	char events[1024];    /* of all -e, as a list; "": none */
	uint64_t count;       /* -c, 0: none */
	char *const *command; /* NULL: none */
};

/*
 * -1: *ret is to be recorded. Else the exit status; errors or help are printed.
 * Strings are borrowed from argv.
 */
int record_parse(int argc, char **argv, struct record_options *ret);

#endif
