// SPDX-License-Identifier: Apache-2.0
#include "render/caption.h"

#include "base/format.h"

#define DOT " \xc2\xb7 "

static void caption_add_cpu_time(struct buf *out, const struct rec_view *v, uint64_t shown)
{
	char text[48];
	uint64_t ns;

	if (v->period_mixed || v->period <= 0 || __builtin_mul_overflow(shown, (uint64_t)v->period, &ns))
		return;
	buf_printf(out, DOT "%s of CPU", format_duration(text, sizeof(text), ns));
}

static void caption_add_places(struct buf *out, const struct rec_view *v)
{
	if (v->services > 1)
		buf_printf(out, DOT "%u services", v->services);
	if (v->host)
		buf_printf(out, DOT "host %s", v->host);
	else if (v->hosts > 1)
		buf_printf(out, DOT "%u hosts", v->hosts);
}

static void caption_add_times(struct buf *out, const struct rec_view *v)
{
	char text[64];

	if (!v->start_ns)
		return;
	buf_printf(out, DOT "%s", format_time(text, sizeof(text), v->start_ns));
	if (v->end_ns > v->start_ns)
		buf_printf(out, ", %s", format_duration(text, sizeof(text), v->end_ns - v->start_ns));
}

void caption_value(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown)
{
	char text[32];

	if (shown != v->value)
		buf_printf(out, "%s of ", format_count(text, sizeof(text), shown));
	buf_printf(out, "%s %s", format_count(text, sizeof(text), v->value), rec_view_unit(r, v));
}

void caption_view(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown, const char *extra)
{
	if (extra)
		buf_printf(out, "%s" DOT, extra);
	caption_value(out, r, v, shown);
	if (rec_view_is_cpu(r, v))
		caption_add_cpu_time(out, v, shown);
	caption_add_places(out, v);
	caption_add_times(out, v);
}

void caption_before(struct buf *out, const struct recording *r, const struct rec_view *v, uint64_t shown)
{
	buf_add_str(out, DOT "compared with ");
	caption_value(out, r, v, shown);
	caption_add_times(out, v);
}
