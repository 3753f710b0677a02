// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define DOT " \xc2\xb7 "

const char *format_count(char *to, size_t size, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), i;
	size_t at = 0;

	for (i = 0; i < len && at + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			to[at++] = ',';
		to[at++] = digits[i];
	}
	to[at] = '\0';
	return to;
}

const char *format_bytes(char *to, size_t size, uint64_t n)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)n;
	size_t i;

	for (i = 0; value >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		value /= 1024;
	snprintf(to, size, i ? "%.1f %s" : "%.0f %s", value, units[i]);
	return to;
}

const char *format_duration(char *to, size_t size, uint64_t ns)
{
	uint64_t s = ns / NSEC_PER_SEC;

	if (s >= 3600)
		snprintf(to, size, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else if (s >= 120)
		snprintf(to, size, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s >= 10)
		snprintf(to, size, "%.1f s", (double)ns / NSEC_PER_SEC);
	else if (ns >= NSEC_PER_SEC)
		snprintf(to, size, "%.2f s", (double)ns / NSEC_PER_SEC);
	else
		snprintf(to, size, "%" PRIu64 " ms", (uint64_t)(ns / NSEC_PER_MSEC));
	return to;
}

const char *format_time(char *to, size_t size, uint64_t unix_ns)
{
	time_t t = (time_t)(unix_ns / NSEC_PER_SEC);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(to, size, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(to, size, "unknown time");
	return to;
}

double format_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

bool format_is_cpu(const struct recording *r, const struct rec_view *v)
{
	return strcmp(recording_str(r, v->unit), "count") == 0 &&
	       strcmp(recording_str(r, v->period_type), "cpu") == 0 &&
	       strcmp(recording_str(r, v->period_unit), "nanoseconds") == 0 && v->period > 0;
}

const char *format_unit(const struct recording *r, const struct rec_view *v)
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

void format_view(struct buf *out, const struct recording *r, const struct rec_view *v, const char *extra)
{
	char text[32];

	if (extra)
		buf_printf(out, "%s" DOT, extra);
	buf_printf(out, "%s %s", format_count(text, sizeof(text), v->samples), format_unit(r, v));
	if (format_is_cpu(r, v))
		add_cpu_time(out, v);
	add_places(out, v);
	add_times(out, v);
	if (v->other)
		buf_printf(out, DOT "%s of other types left out", format_count(text, sizeof(text), v->other));
}
