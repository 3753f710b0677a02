/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line that sums up what a view holds: value, CPU time, places and times.
 * Called by verbs for the line below a picture's title, one thread.
 */
#ifndef OTP_RENDER_CAPTION_H
#define OTP_RENDER_CAPTION_H

#include "base/buf.h"
#include "recording/view.h"

/* Of the view's value, shown is in the picture: "5 of 12 samples". */
void caption_value(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown);
/* What a picture is compared with: value and time of the view before. */
void caption_before(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown);
/* extra (NULL: none) is the beginning of the line. */
void caption_view(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown, const char *extra);

#endif
