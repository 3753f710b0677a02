/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/maps, line by line (Linux, Documentation/filesystems/
 * proc.rst). Names are chosen by the target: any byte may occur. The kernel
 * writes a newline as \012; it is restored, so that a name equals the
 * side-band's.
 * Pure; the name is valid until the next call. A malformed line is skipped and
 * counted.
 */
#ifndef OTP_PROCESS_MAPS_TEXT_H
#define OTP_PROCESS_MAPS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPS_NAME_MAX 4200 /* PATH_MAX and " (deleted)" */

struct maps_line {
	uint64_t start, end, offset;
	uint64_t dev, ino; /* dev as makedev() */
	bool exec;
	const char *name; /* NUL-terminated too, "" if none */
	size_t name_len;
};

struct maps_text {
	const char *at, *end;
	uint32_t bad_lines;
	char name[MAPS_NAME_MAX + 1];
};

void maps_text_init(struct maps_text *t, const char *text, size_t len);
bool maps_text_next(struct maps_text *t, struct maps_line *ret); /* false at the end */

#endif
