/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON straight into a buffer. Answers of the hub have columns of a hundred
 * thousand numbers, for which a library that builds a tree of values first
 * needs ten times as long; JSON of others is read by jansson.
 *
 * Called by the hub, one thread per writer. Begin with {.to = buffer}; a failed
 * append is noted in the buffer (base/buf.h), which the caller checks once.
 * Names are literals of ours, texts are clean (base/utf8.h); quotation marks and
 * backslashes in them are escaped.
 */
#ifndef OTP_HUB_JSONW_H
#define OTP_HUB_JSONW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct jsonw {
	struct buf *to; /* borrowed */
	bool comma;	/* something stands before the next value */
};

/* name NULL: an element of a list, or the outermost. */
void jsonw_open(struct jsonw *w, const char *name);
void jsonw_close(struct jsonw *w);
void jsonw_open_list(struct jsonw *w, const char *name);
void jsonw_close_list(struct jsonw *w);
void jsonw_number(struct jsonw *w, const char *name, uint64_t n);
void jsonw_signed(struct jsonw *w, const char *name, int64_t n);
void jsonw_real(struct jsonw *w, const char *name, double n); /* finite; four digits after the point */
void jsonw_text(struct jsonw *w, const char *name, const char *s);
void jsonw_bool(struct jsonw *w, const char *name, bool b);
void jsonw_null(struct jsonw *w, const char *name);
/* A text, or null where it is empty. */
void jsonw_text_or_null(struct jsonw *w, const char *name, const char *s);

#endif
