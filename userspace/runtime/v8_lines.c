// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of a script, by its source: V8 knows where lines end only of scripts that
 * an error or a debugger has asked for.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runtime/v8.h"

#define PIECE	  16384u /* characters */
#define MARKS_MAX 2048	 /* of one script: 32 million characters */

/* How many lines end before each piece of the script that was last read: scripts have many functions. */
static struct {
	struct v8_flat source;
	uint64_t script;
	uint32_t nr, lines[MARKS_MAX], begins[MARKS_MAX]; /* where the line at a piece's begin begins */
} marks;

struct v8_lines_scan {
	uint32_t line, begin; /* of the character at hand, from 0; where the line begins */
	bool after_cr;
	uint32_t from, to;
	struct v8_lines *lines; /* NULL: only count */
};

static void v8_lines_begin(struct v8_lines_scan *s, uint32_t at)
{
	struct v8_lines *l = s->lines;

	s->begin = at;
	if (!l || at > s->to || l->nr == RUNTIME_LINES_MAX)
		return;
	if (at <= s->from)
		l->nr = 0;
	/* Of the last one that there is room for, the end is not known. */
	l->row[l->nr] = (__typeof__(l->row[0])){.at = at, .line = l->nr == RUNTIME_LINES_MAX - 1 ? 0 : s->line + 1};
	l->nr++;
}

/* But for a carriage return, behind which a line feed may come (V8, char-predicates.h, IsLineTerminatorSequence). */
static bool v8_is_line_end(uint32_t c)
{
	return c == '\n' || c == 0x2028 || c == 0x2029;
}

static void v8_lines_scan(struct v8_lines_scan *s, const uint8_t *text, uint32_t nr, bool wide, uint32_t at)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t c = wide ? text[2 * i] | (uint32_t)text[2 * i + 1] << 8 : text[i];

		if (s->after_cr && c != '\n') {
			s->line++;
			v8_lines_begin(s, at + i);
		}
		s->after_cr = c == '\r';
		if (!v8_is_line_end(c))
			continue;
		s->line++;
		v8_lines_begin(s, at + i + 1);
	}
}

static int v8_lines_piece(struct memory *m, const struct v8_flat *source, uint32_t piece, struct v8_lines_scan *s)
{
	static uint8_t text[2 * PIECE];
	uint32_t at = piece * PIECE, nr = MIN(source->len - at, PIECE);
	int err = memory_read(m, source->at + ((uint64_t)at << source->wide), text, (size_t)nr << source->wide);

	if (!err)
		v8_lines_scan(s, text, nr, source->wide, at);
	return err;
}

/* Counts as far as the piece, from where it was counted to before. */
static int v8_lines_count(struct memory *m, const struct v8_flat *source, uint64_t script, uint32_t piece)
{
	int err = 0;

	if (script != marks.script || marks.source.at != source->at || marks.source.len != source->len || !marks.nr) {
		marks.script = script;
		marks.source = *source;
		marks.lines[0] = marks.begins[0] = 0;
		marks.nr = 1;
	}
	if (piece >= MARKS_MAX)
		return -E2BIG;
	while (!err && marks.nr <= piece) {
		struct v8_lines_scan s = {.line = marks.lines[marks.nr - 1], .begin = marks.begins[marks.nr - 1]};

		err = v8_lines_piece(m, source, marks.nr - 1, &s);
		if (err)
			break;
		marks.begins[marks.nr] = s.after_cr ? marks.nr * PIECE : s.begin;
		marks.lines[marks.nr++] = s.line + s.after_cr;
	}
	return err;
}

int v8_lines_read(struct memory *m, const struct v8_flat *source, uint64_t script, uint32_t from, uint32_t to,
		  struct v8_lines *ret)
{
	struct v8_lines_scan s = {.from = from, .to = to, .lines = ret};
	uint32_t piece = from / PIECE;
	int err;

	ret->nr = 0;
	if (from >= source->len)
		return -EBADMSG;
	err = v8_lines_count(m, source, script, piece);
	if (err)
		return err;
	s.line = marks.lines[piece];
	v8_lines_begin(&s, marks.begins[piece]);
	for (; !err && piece < MARKS_MAX && piece * PIECE < source->len && piece * PIECE <= to; piece++)
		err = v8_lines_piece(m, source, piece, &s);
	return err;
}

uint32_t v8_line_at(const struct v8_lines *l, uint32_t at)
{
	const uint32_t n = ARRAY_COUNT_WHILE(l->nr, i, l->row[i].at <= at);

	return n ? l->row[n - 1].line : 0;
}
