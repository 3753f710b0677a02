/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line that summarises a view: value, CPU time, services, hosts and times.
 * Called by verbs for the line below a picture's title, one thread.
 */
#ifndef OTP_RENDER_CAPTION_H
#define OTP_RENDER_CAPTION_H

#include "base/buf.h"
#include "recording/view.h"

/* The part of the view's value that the picture shows: "5 of 12 samples". */
void caption_value(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown);
/* The base of a comparison: value and time of the view before. */
void caption_before(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown);
/* extra (NULL: none) is the beginning of the line. */
void caption_view(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown, const char *extra);

#endif
