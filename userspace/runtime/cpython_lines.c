// SPDX-License-Identifier: Apache-2.0
/*
 * Line tables of code objects: three formats (Objects/lnotab_notes.txt to 3.10,
 * InternalDocs/code_objects.md from 3.11 on). Positions are bytes of bytecode.
 */
#include "runtime/cpython.h"

#define NO_LINE_310	(-128)
#define LOCATION_START	0x80
#define LOCATION_UNIT	2 /* bytes of one instruction */
#define LOCATION_LINES	10 /* kinds 10, 11, 12: lines 0, 1, 2 further on */
#define LOCATION_NO_COLUMNS 13
#define LOCATION_LONG	14
#define LOCATION_NONE	15
#define VARINT_SHIFT_MAX 30

/* The last row is kept for the end of what is known: a position beyond it has no line, rather than a wrong one. */
static bool lines_add(struct runtime_function *fn, uint64_t position, int64_t line)
{
	uint32_t n = fn->nr_lines;
	uint32_t number = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;

	if (position > UINT32_MAX)
		return false;
	if (n > 0 && fn->lines[n - 1].position == position)
		n--;
	/* What a function does before its first statement (cells, RESUME, GEN_START) has no line: it was just entered. */
	if (n == 0 && !number)
		number = fn->start_line;
	if (n == RUNTIME_LINES_MAX - 1)
		number = 0;
	if (n > 0 && fn->lines[n - 1].line == number) {
		fn->nr_lines = n;
		return true;
	}
	fn->lines[n] = (struct runtime_line){.position = (uint32_t)position, .line = number};
	fn->nr_lines = n + 1;
	return n < RUNTIME_LINES_MAX - 1;
}

static void lines_lnotab(const uint8_t *table, size_t len, int64_t line, struct runtime_function *ret)
{
	uint64_t position = 0;

	if (!lines_add(ret, 0, line))
		return;
	for (size_t i = 0; i + 1 < len; i += 2) {
		position += table[i];
		line += (int8_t)table[i + 1];
		if (!lines_add(ret, position, line))
			return;
	}
}

static void lines_linetable(const uint8_t *table, size_t len, int64_t line, struct runtime_function *ret)
{
	uint64_t position = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != NO_LINE_310)
			line += delta;
		if (table[i] && !lines_add(ret, position, delta == NO_LINE_310 ? 0 : line))
			return;
		position += table[i];
	}
}

/* Six bits a byte, the lowest first; bit 6 says that more follow, bit 0 of the sum is the sign. */
static int64_t lines_varint(const uint8_t *table, size_t len, size_t at)
{
	uint64_t v = 0;

	for (uint32_t shift = 0; at < len && shift <= VARINT_SHIFT_MAX; at++, shift += 6) {
		v |= (uint64_t)(table[at] & 63) << shift;
		if (!(table[at] & 64))
			break;
	}
	return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

static int64_t lines_delta(const uint8_t *table, size_t len, size_t at)
{
	uint32_t kind = (table[at] >> 3) & 15;

	if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS)
		return lines_varint(table, len, at + 1);
	return kind >= LOCATION_LINES && kind < LOCATION_NO_COLUMNS ? kind - LOCATION_LINES : 0;
}

static void lines_locations(const uint8_t *table, size_t len, int64_t line, struct runtime_function *ret)
{
	uint64_t position = 0;

	for (size_t at = 0; at < len && (table[at] & LOCATION_START);) {
		bool none = ((table[at] >> 3) & 15) == LOCATION_NONE;

		line += lines_delta(table, len, at);
		if (!lines_add(ret, position, none ? 0 : line))
			return;
		position += ((table[at] & 7) + 1) * LOCATION_UNIT;
		for (at++; at < len && !(table[at] & LOCATION_START);)
			at++;
	}
}

void cpython_lines_decode(enum cpython_lines kind, const uint8_t *table, size_t len, uint32_t first_line,
			  struct runtime_function *ret)
{
	ret->nr_lines = 0;
	ret->start_line = first_line;
	if (kind == CPYTHON_LNOTAB)
		lines_lnotab(table, len, first_line, ret);
	else if (kind == CPYTHON_LINETABLE)
		lines_linetable(table, len, first_line, ret);
	else
		lines_locations(table, len, first_line, ret);
}
