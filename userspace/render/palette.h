/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours of frames: the kind gives the hue, the name shades it. The same
 * name has the same colour in every graph on every machine. Pure functions.
 */
#ifndef OTP_RENDER_PALETTE_H
#define OTP_RENDER_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame_kind.h"

/* 0xRRGGBB. */
uint32_t palette_color(enum frame_kind kind, const char *name, bool inlined);
uint32_t palette_base(enum frame_kind kind); /* the middle of the kind's shades, for a legend */

#endif
