/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures as people read them: grouped digits, sizes, durations, times and
 * shares, in one form for all output.
 *
 * Called by whatever prints or draws, any thread. Pure functions: text goes
 * into the caller's buffer, is cut at its size, and always ends in NUL; the
 * buffer is returned. Not locale-aware on purpose: output is compared and
 * parsed.
 */
#ifndef OTP_BASE_FORMAT_H
#define OTP_BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

const char *format_count(char *to, size_t size, uint64_t n);      /* 1,234,567 */
const char *format_bytes(char *to, size_t size, uint64_t n);      /* 12.3 MiB */
const char *format_duration(char *to, size_t size, uint64_t ns);  /* 12.3 s, 3 min 20 s, 2 h 5 min */
const char *format_time(char *to, size_t size, uint64_t unix_ns); /* 2026-01-31 12:00:00 UTC */
double format_percent(uint64_t part, uint64_t whole);             /* 0 of 0 is 0 */

#endif
