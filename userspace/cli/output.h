/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as files.
 *
 * Called by the verbs that write one, one thread. The format follows from the
 * file's name (render/render.h). A format that shows one type of sample makes
 * a file for each: x.svg for the first type, x.page_faults.svg
 * for another one.
 * A file is replaced in one step: it is whole, or what it was before.
 * Errors: negative errno; output_write prints them.
 */
#ifndef OTP_CLI_OUTPUT_H
#define OTP_CLI_OUTPUT_H

#include <stdbool.h>

#include "graph/filter.h"
#include "recording/view.h"

/* All borrowed. */
struct output_options {
	const char *path;
	const char *type;     /* the one type that is wanted, NULL: all */
	const char *title;    /* of a flame graph; NULL: a default */
	const char *subtitle; /* before the figures of CPU samples; NULL: none */
	const char *duration; /* of the recording, in the lines on what was written; NULL: none */
	const struct recording *base; /* what a graph is compared with; NULL: nothing */
	const struct filter *filter; /* NULL: all is shown */
	bool inverted;        /* flame graph with the root on top */
	bool quiet;           /* no such lines */
};

/* Whether the file can be written there, to be known before the work is done. */
int output_check(const char *path);
/* Takes out of r what is not written. */
int output_write(struct recording *r, const struct output_options *o);

#endif
