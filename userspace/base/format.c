// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

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
