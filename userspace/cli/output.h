/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as a file.
 *
 * Called by the verbs that write one, one thread. The format follows from the
 * file's name (render/render.h). The file is replaced in one step: it is
 * whole, or what it was before.
 * Errors: negative errno; output_write prints them.
 */
#ifndef OTP_CLI_OUTPUT_H
#define OTP_CLI_OUTPUT_H

#include <stdbool.h>

#include "recording/recording.h"

struct output_options {
	const char *title;    /* of a flame graph; NULL: a default */
	const char *subtitle; /* before the figures; NULL: none */
	bool inverted;        /* flame graph with the root on top */
};

/* Whether the file can be written there, to be known before the work is done. */
int output_check(const char *path);
int output_write(const char *path, struct recording *r, const struct output_options *o);

#endif
