/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures as people read them, the same in all output of the tool: grouped
 * digits, shares, durations. Called by verbs and renderers. Not locale-aware
 * on purpose: output is compared and parsed.
 */
#ifndef OTP_CLI_FORMAT_H
#define OTP_CLI_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/recording.h"

const char *format_count(char *to, size_t size, uint64_t n);      /* 1,234,567; returns to */
const char *format_bytes(char *to, size_t size, uint64_t n);      /* 12.3 MiB */
const char *format_duration(char *to, size_t size, uint64_t ns);  /* 12.3 s, 3 min 20 s, 2 h 5 min */
const char *format_time(char *to, size_t size, uint64_t unix_ns); /* 2026-01-31 12:00:00 UTC */
double format_percent(uint64_t part, uint64_t whole);             /* 0 of 0 is 0 */

/* What one value counts: "samples", or the unit, such as "nanoseconds"; borrowed. */
const char *format_unit(const struct recording *r, const struct rec_view *v);
bool format_is_cpu(const struct recording *r, const struct rec_view *v); /* samples of period nanoseconds each */
/* One line about all that is in the view; extra (NULL: none) comes first. */
void format_view(struct buf *out, const struct recording *r, const struct rec_view *v, const char *extra);

#endif
