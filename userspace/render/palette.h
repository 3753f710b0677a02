/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours of frames: the kind gives the hue, the name shades it. The same
 * name has the same colour in every graph on every machine. In a comparison
 * the colour is that of the change: orange for more, blue for less, grey for
 * neither; people with colour vision deficiency can distinguish these.
 *
 * Called by renderers, any thread. Pure functions; colours are 0xRRGGBB.
 */
#ifndef OTP_RENDER_PALETTE_H
#define OTP_RENDER_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame_kind.h"

uint32_t palette_color(enum frame_kind kind, const char *name, bool inlined);
uint32_t palette_base(enum frame_kind kind); /* the middle of the kind's shades, for a legend */
uint32_t palette_change(double change); /* -1 to 1, 0: none */

#endif
