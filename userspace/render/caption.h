/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written beside a picture of a view: the name of its unit, and one
 * line that sums up what the view holds.
 *
 * Called by verbs and renderers, one thread. Texts are borrowed from the
 * recording.
 */
#ifndef OTP_RENDER_CAPTION_H
#define OTP_RENDER_CAPTION_H

#include "base/buf.h"
#include "recording/recording.h"

/* What one value counts: "samples", or the unit, such as "nanoseconds". */
const char *caption_unit(const struct recording *r, const struct rec_view *v);
bool caption_is_cpu(const struct recording *r, const struct rec_view *v); /* samples of period nanoseconds each */
/* One line about all that is in the view; extra (NULL: none) is its beginning. */
void caption_view(struct buf *out, const struct recording *r, const struct rec_view *v, const char *extra);

#endif
