// SPDX-License-Identifier: Apache-2.0
#include "render/caption.h"

#include <string.h>

#include "base/format.h"

#define DOT " \xc2\xb7 "

bool caption_is_cpu(const struct recording *r, const struct rec_view *v)
{
	return strcmp(recording_str(r, v->unit), "count") == 0 &&
	       strcmp(recording_str(r, v->period_type), "cpu") == 0 &&
	       strcmp(recording_str(r, v->period_unit), "nanoseconds") == 0 && v->period > 0;
}

const char *caption_unit(const struct recording *r, const struct rec_view *v)
{
	const char *unit = recording_str(r, v->unit), *type = recording_str(r, v->type);

	if (*unit && strcmp(unit, "count") != 0)
		return unit;
	return *type ? type : "samples";
}

static void add_cpu_time(struct buf *out, const struct rec_view *v)
{
	char text[48];
	uint64_t ns;

	if (v->period_mixed || __builtin_mul_overflow(v->samples, (uint64_t)v->period, &ns))
		return;
	buf_printf(out, DOT "%s of CPU", format_duration(text, sizeof(text), ns));
}

static void add_places(struct buf *out, const struct rec_view *v)
{
	if (v->services > 1)
		buf_printf(out, DOT "%u services", v->services);
	if (v->host)
		buf_printf(out, DOT "host %s", v->host);
	else if (v->hosts > 1)
		buf_printf(out, DOT "%u hosts", v->hosts);
}

static void add_times(struct buf *out, const struct rec_view *v)
{
	char text[64];

	if (!v->start_ns)
		return;
	buf_printf(out, DOT "%s", format_time(text, sizeof(text), v->start_ns));
	if (v->end_ns > v->start_ns)
		buf_printf(out, ", %s", format_duration(text, sizeof(text), v->end_ns - v->start_ns));
}

void caption_view(struct buf *out, const struct recording *r, const struct rec_view *v, const char *extra)
{
	char text[32];

	if (extra)
		buf_printf(out, "%s" DOT, extra);
	buf_printf(out, "%s %s", format_count(text, sizeof(text), v->samples), caption_unit(r, v));
	if (caption_is_cpu(r, v))
		add_cpu_time(out, v);
	add_places(out, v);
	add_times(out, v);
	if (v->other)
		buf_printf(out, DOT "%s of other types left out", format_count(text, sizeof(text), v->other));
}
