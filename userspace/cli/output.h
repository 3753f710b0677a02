/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a recording to files.
 *
 * Called by verbs, one thread. The file's name determines the format
 * (render/render.h). In a format that shows one type of sample, each type has
 * a file: x.svg for the first (or the plain one), x.page_faults.svg for another.
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
	const char *type;     /* the only type to write, NULL: all */
	const char *plain;    /* name of the type whose file is path itself; NULL: the first type */
	const char *title;    /* of a flame graph; NULL: a default */
	const char *subtitle; /* before the figures of CPU samples; NULL: none */
	const char *duration; /* of the recording, for the line printed about each file; NULL: none */
	const struct recording *base; /* compared with; NULL: none */
	const struct filter *filter; /* NULL: all is shown */
	bool inverted;        /* flame graph with the root on top */
	bool quiet;           /* prints no such lines */
};

/* 0 or -errno: whether the file can be written, checked before the work. */
int output_check(const char *path);
/* Removes from r the samples that are not written. */
int output_write(struct recording *r, const struct output_options *o);

#endif
