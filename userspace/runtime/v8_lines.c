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
#define MARKS_MAX 2048u	 /* of one script: 32 million characters */
#define SCRIPTS	  8

/* How many lines end before each piece of a script: it has many functions. */
struct v8_marks {
	struct v8_flat source;
	uint64_t script;
	uint64_t worth;
	uint32_t nr, lines[MARKS_MAX], begins[MARKS_MAX]; /* where the line at a piece's begin begins */
};

/*
 * Of those that were read last, and are long: most scripts have few pieces, and many are met between two questions of a long
 * one. The one of the least worth is replaced: its length, above the worth of the one that was replaced before it was used
 * (Young, "The k-server dual and loose competitiveness for paging": GreedyDual).
 */
static struct {
	struct v8_marks of[SCRIPTS];
	uint64_t replaced;
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

/* Whether no byte of the word is c (Anderson, "Bit Twiddling Hacks": haszero). */
#define ONES 0x0101010101010101ULL
static bool v8_lacks(uint64_t word, uint8_t c)
{
	word ^= ONES * c;
	return !((word - ONES) & ~word & ONES << 7);
}

/* How many characters end no line for sure: most lines are long, and this is all that counting a script costs. */
static uint32_t v8_plain(const uint8_t *text, uint32_t nr)
{
	uint32_t n = 0;
	uint64_t word;

	for (; nr - n >= sizeof(word); n += sizeof(word)) {
		memcpy(&word, text + n, sizeof(word));
		if (!v8_lacks(word, '\n') || !v8_lacks(word, '\r'))
			break;
	}
	return n;
}

static void v8_lines_scan(struct v8_lines_scan *s, const uint8_t *text, uint32_t nr, bool wide, uint32_t at)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t c;

		i += wide || s->after_cr ? 0 : v8_plain(text + i, nr - i - 1);
		c = wide ? text[2 * i] | (uint32_t)text[2 * i + 1] << 8 : text[i];
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

static bool v8_marks_are_of(const struct v8_marks *k, const struct v8_flat *source, uint64_t script)
{
	return k->nr && k->script == script && k->source.at == source->at && k->source.len == source->len &&
	       k->source.wide == source->wide;
}

static struct v8_marks *v8_marks_of(const struct v8_flat *source, uint64_t script)
{
	struct v8_marks *least = &marks.of[0];

	for (uint32_t i = 0; i < SCRIPTS; i++) {
		if (v8_marks_are_of(&marks.of[i], source, script))
			return &marks.of[i];
		if (marks.of[i].worth < least->worth)
			least = &marks.of[i];
	}
	marks.replaced = least->worth;
	least->source = *source;
	least->script = script;
	least->lines[0] = least->begins[0] = 0;
	least->nr = 1;
	return least;
}

static int v8_marks_add(struct memory *m, struct v8_marks *k)
{
	struct v8_lines_scan s = {.line = k->lines[k->nr - 1], .begin = k->begins[k->nr - 1]};
	const struct memory_spent spent = memory_spent(m);
	int err = v8_lines_piece(m, &k->source, k->nr - 1, &s);

	if (err)
		return err;
	memory_unspend(m, spent);
	k->begins[k->nr] = s.after_cr ? k->nr * PIECE : s.begin;
	k->lines[k->nr++] = s.line + s.after_cr;
	return 0;
}

/* Counts as far as the piece, from where it was counted to before: once, and so beside the question's budget. */
static int v8_lines_count(struct memory *m, struct v8_marks *k, uint32_t piece)
{
	int err = piece < MARKS_MAX ? 0 : -E2BIG;

	while (!err && k->nr <= piece)
		err = v8_marks_add(m, k);
	k->worth = marks.replaced + k->nr;
	return err;
}

/* Of the line that begins where no more is read, the end is not known. */
static void v8_lines_cut(struct v8_lines_scan *s, uint32_t at)
{
	struct v8_lines *l = s->lines;

	if (l->nr < RUNTIME_LINES_MAX)
		l->row[l->nr++] = (__typeof__(l->row[0])){.at = at};
}

int v8_lines_read(struct memory *m, const struct v8_flat *source, uint64_t script, uint32_t from, uint32_t to,
		  struct v8_lines *ret)
{
	struct v8_lines_scan s = {.from = from, .to = to, .lines = ret};
	uint32_t piece = from / PIECE;
	struct v8_marks *k;
	int err;

	ret->nr = 0;
	if (from >= source->len)
		return -EBADMSG;
	k = v8_marks_of(source, script);
	err = v8_lines_count(m, k, piece);
	if (err)
		return err;
	s.line = k->lines[piece];
	v8_lines_begin(&s, k->begins[piece]);
	while (!err && piece * PIECE < source->len && piece * PIECE <= to && ret->nr < RUNTIME_LINES_MAX)
		err = v8_lines_piece(m, source, piece++, &s);
	if (err == -E2BIG)
		v8_lines_cut(&s, (piece - 1) * PIECE);
	return err == -E2BIG ? 0 : err;
}

uint32_t v8_line_at(const struct v8_lines *l, uint32_t at)
{
	const uint32_t n = ARRAY_COUNT_WHILE(l->nr, i, l->row[i].at <= at);

	return n ? l->row[n - 1].line : 0;
}
