// SPDX-License-Identifier: Apache-2.0
#include "render/palette.h"

#include <math.h>

#include "base/cleanup.h"

struct shade {
	uint16_t hue;
	uint8_t spread, saturation, lightness;
};

static const struct shade shades[] = {
#define X(NAME, type, label, hue, spread, saturation, lightness) {hue, spread, saturation, lightness},
	FRAME_KINDS(X)
#undef X
};

/* One channel of HSL in RGB: n is 0 for red, 8 for green, 4 for blue (CSS Color 4, section 7.1). */
static uint32_t palette_channel(double n, double hue, double s, double l)
{
	double k = fmod(n + hue / 30, 12), a = s * fmin(l, 1 - l);
	double v = l - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));

	return (uint32_t)lround(255 * fmin(fmax(v, 0), 1));
}

static uint32_t palette_hsl(double hue, double s, double l)
{
	hue = fmod(hue + 360, 360);
	return palette_channel(0, hue, s, l) << 16 | palette_channel(8, hue, s, l) << 8 | palette_channel(4, hue, s, l);
}

/* FNV-1a: the tables' hash has another seed in every process. */
static uint32_t palette_hash(const char *name)
{
	uint32_t h = 0x811c9dc5;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x01000193;
	return h ^ h >> 15;
}

uint32_t palette_color(enum frame_kind kind, const char *name, bool inlined)
{
	const struct shade *s = &shades[kind];
	uint32_t h = palette_hash(name);
	double hue = s->hue + s->spread * ((h & 0xff) / 255.0 - 0.5);
	double lightness = s->lightness + (s->spread ? 6 * ((h >> 8 & 0xff) / 255.0 - 0.5) : 0);

	if (inlined)
		lightness += 5;
	return palette_hsl(hue, s->saturation / 100.0, fmin(lightness, 92) / 100.0);
}

uint32_t palette_base(enum frame_kind kind)
{
	const struct shade *s = &shades[kind];

	return palette_hsl(s->hue, s->saturation / 100.0, s->lightness / 100.0);
}

/* Most changes are small, so the colour changes most near zero. */
uint32_t palette_change(double change)
{
	double strength = sqrt(fmin(fabs(change), 1));

	return palette_hsl(change < 0 ? 210 : 30, strength * 0.85, 0.88 - 0.24 * strength);
}
