// SPDX-License-Identifier: Apache-2.0
/*
 * What belongs to which function in code into which others were inlined. V8
 * tells it of calls, and of places where the code may be left; from these it
 * follows for the code around them:
 * - a jump to an exit belongs to the function that is gone on with there;
 * - so does one to a part behind the last return that goes back after a call or
 *   an exit: what is done rarely (the check of the stack, the one of how often
 *   a loop has run) lies there;
 * - a loop belongs to the function whose check is in it, and whatever is in it
 *   to that function, or to one inlined into it;
 * - what lies between two places of one function is that function's, else it is
 *   the one's into which both were inlined: a guess never names a neighbour.
 */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runtime/v8.h"

#define LOOPS_MAX 1024u /* of one piece of code: each looks at all anchors */
#define ASIDE_MAX 256u /* bytes of a part that is left by a jump back */

int v8_path_add(struct v8_anchors *a, uint16_t outer, uint16_t function, int32_t call)
{
	uint32_t i = 0;

	while (i < a->nr_paths && (a->path[i].outer != outer || a->path[i].function != function || a->path[i].call != call))
		i++;
	if (i == V8_PATHS_MAX)
		return -1;
	if (i == a->nr_paths)
		a->path[a->nr_paths++] = (struct v8_path){outer, function, call};
	return (int)i;
}

void v8_anchor_add(struct v8_anchors *a, const struct v8_anchor *anchor)
{
	a->full |= a->nr == V8_ANCHORS_MAX;
	if (a->nr < V8_ANCHORS_MAX)
		a->row[a->nr++] = *anchor;
}

static bool v8_anchor_before(const struct v8_anchor *a, const struct v8_anchor *b)
{
	return a->at < b->at || (a->at == b->at && a->end < b->end);
}

/* Most are in order already. */
static void v8_anchors_order(struct v8_anchors *a)
{
	for (uint32_t i = 1; i < a->nr; i++) {
		struct v8_anchor anchor = a->row[i];
		uint32_t to = i;

		while (to && v8_anchor_before(&anchor, &a->row[to - 1]))
			to--;
		memmove(&a->row[to + 1], &a->row[to], (i - to) * sizeof(anchor));
		a->row[to] = anchor;
	}
}

void v8_anchors_sort(struct v8_anchors *a)
{
	v8_anchors_order(a);
	for (uint32_t i = 0; i + 1 < a->nr; i++)
		a->row[i].end = MIN(a->row[i].end, a->row[i + 1].at);
}

/* --- paths --- */

static uint32_t v8_path_depth(const struct v8_anchors *a, uint16_t path)
{
	uint32_t depth = 0;

	for (; path != V8_NO_PATH; path = a->path[path].outer)
		depth++;
	return depth;
}

/* *below: what one is inlined into it by; the same as one, if that is inlined into two. */
static uint16_t v8_path_common(const struct v8_anchors *a, uint16_t one, uint16_t two, uint16_t *below)
{
	uint32_t deep = v8_path_depth(a, one), other = v8_path_depth(a, two);

	*below = V8_NO_PATH;
	for (; other > deep; other--)
		two = a->path[two].outer;
	for (; one != two || deep > other; deep--) {
		*below = one;
		one = a->path[one].outer;
		if (deep <= other) {
			two = a->path[two].outer;
			other--;
		}
	}
	return one;
}

struct v8_between v8_anchors_between(const struct v8_anchors *a, const struct v8_anchor *one, const struct v8_anchor *two)
{
	uint16_t below;
	struct v8_between ret = {.path = v8_path_common(a, one->path, two->path, &below), .bytecode = -1};

	if (ret.path == one->path)
		ret.bytecode = one->bytecode;
	else if (ret.path == two->path)
		ret.bytecode = two->bytecode;
	else if (below != V8_NO_PATH)
		ret.bytecode = a->path[below].call;
	return ret;
}

/* --- instructions --- */

struct v8_code_scan {
	struct v8_anchors *anchors;
	const uint8_t *code;
	uint32_t len, aside; /* offset of what is done rarely */
	uint32_t known;	     /* anchors that are not made from others */
};

struct v8_jump { uint32_t at, end; int64_t to; };

/* With a distance of 32 bits: of what lies in the code by chance, next to none leads into it. */
static bool v8_jump_at(const struct v8_code_scan *s, uint32_t at, struct v8_jump *ret)
{
	const uint8_t *code = s->code + at;
	uint32_t opcode = code[0] == 0xe9 ? 1 : (code[0] == 0x0f && at + 1 < s->len && (code[1] & 0xf0) == 0x80 ? 2 : 0);
	int32_t distance;

	if (!opcode || at + opcode + sizeof(distance) > s->len)
		return false;
	memcpy(&distance, code + opcode, sizeof(distance));
	*ret = (struct v8_jump){.at = at, .end = at + opcode + (uint32_t)sizeof(distance)};
	ret->to = (int64_t)ret->end + distance;
	return ret->to >= 0;
}

/* The same of 8 bits, where the instruction before shows that it is one: behind a check of the stack, or of a budget. */
static bool v8_short_jump_at(const struct v8_code_scan *s, uint32_t at, struct v8_jump *ret)
{
	static const uint8_t checks[] = {0x49, 0x3b, 0x65};

	if (at < 4 || at + 2 > s->len || s->code[at] != 0x77 || memcmp(s->code + at - 4, checks, sizeof(checks)) != 0)
		return false;
	*ret = (struct v8_jump){.at = at, .end = at + 2, .to = (int64_t)at + 2 + (int8_t)s->code[at + 1]};
	return ret->to >= 0;
}

static void v8_scan_add(struct v8_code_scan *s, struct v8_anchor *anchor, uint32_t at, uint32_t end)
{
	anchor->at = at;
	anchor->end = end;
	v8_anchor_add(s->anchors, anchor);
}

static void v8_scan_exits(struct v8_code_scan *s, const struct v8_anchor *exits, uint32_t nr, uint32_t exits_at)
{
	struct v8_jump jump;

	for (uint32_t at = 0; at < s->len; at++) {
		struct v8_anchor anchor;
		int64_t to;

		if (!v8_jump_at(s, at, &jump))
			continue;
		to = jump.to - exits_at;
		if (to < 0 || to % V8_EXIT_BYTES || to / V8_EXIT_BYTES >= nr || exits[to / V8_EXIT_BYTES].path == V8_NO_PATH)
			continue;
		anchor = exits[to / V8_EXIT_BYTES];
		v8_scan_add(s, &anchor, jump.at, jump.end);
	}
}

/* What lies behind the last place where a frame is taken down. */
static uint32_t v8_scan_aside(const struct v8_code_scan *s)
{
	static const uint8_t epilogue[] = {0x48, 0x8b, 0xe5, 0x5d};
	uint32_t found = s->len;

	for (uint32_t at = 0; at + sizeof(epilogue) <= s->len; at++)
		if (!memcmp(s->code + at, epilogue, sizeof(epilogue)))
			found = at;
	return found;
}

/* The first anchor from there on that says something. */
static const struct v8_anchor *v8_anchor_from(const struct v8_code_scan *s, uint32_t at)
{
	uint32_t n = ARRAY_COUNT_WHILE(s->known, i, s->anchors->row[i].at < at);

	while (n < s->known && s->anchors->row[n].path == V8_NO_PATH)
		n++;
	return n < s->known ? &s->anchors->row[n] : NULL;
}

/* The jump with which a part that is done rarely goes back. */
static bool v8_scan_back(const struct v8_code_scan *s, uint32_t from, uint32_t to, uint32_t before, struct v8_jump *ret)
{
	for (uint32_t at = from; at < MIN(to, s->len); at++)
		if (v8_jump_at(s, at, ret) && ret->to < before)
			return true;
	return false;
}

static void v8_scan_rare(struct v8_code_scan *s, const struct v8_jump *jump)
{
	const struct v8_anchor *first = v8_anchor_from(s, (uint32_t)jump->to);
	struct v8_anchor anchor;
	struct v8_jump back;

	if (!first || first->at - jump->to > ASIDE_MAX ||
	    !v8_scan_back(s, first->at, first->at + ASIDE_MAX, s->aside, &back))
		return;
	anchor = *first;
	anchor.node = RUNTIME_NO_NODE;
	anchor.checks = first->calls;
	v8_scan_add(s, &anchor, jump->at, jump->end);
	anchor.checks = false;
	v8_scan_add(s, &anchor, (uint32_t)jump->to, (uint32_t)jump->to);
	v8_scan_add(s, &anchor, back.at, back.end);
}

static void v8_scan_rares(struct v8_code_scan *s)
{
	struct v8_jump jump;

	for (uint32_t at = 0; at < s->aside; at++)
		if (v8_jump_at(s, at, &jump) && jump.to > s->aside && jump.to < s->len)
			v8_scan_rare(s, &jump);
}

/* Whatever is in it, has all of this in common; and there is a check of its own. */
static void v8_scan_loop(struct v8_code_scan *s, const struct v8_jump *jump)
{
	uint16_t path = V8_NO_PATH, ignored;
	struct v8_anchor own = {.path = V8_NO_PATH};

	for (uint32_t i = 0; i < s->known; i++) {
		const struct v8_anchor *a = &s->anchors->row[i];

		if (a->at < jump->to || a->at >= jump->end || a->path == V8_NO_PATH)
			continue;
		path = path == V8_NO_PATH ? a->path : v8_path_common(s->anchors, path, a->path, &ignored);
		if (a->checks &&
		    (own.path == V8_NO_PATH || v8_path_depth(s->anchors, a->path) < v8_path_depth(s->anchors, own.path)))
			own = *a;
	}
	if (path == V8_NO_PATH || own.path != path)
		return;
	v8_scan_add(s, &own, (uint32_t)jump->to, (uint32_t)jump->to);
	v8_scan_add(s, &own, jump->at, jump->end);
}

static void v8_scan_loops(struct v8_code_scan *s)
{
	struct v8_jump jump;
	uint32_t n = 0;

	for (uint32_t at = 0; at < s->aside && n < LOOPS_MAX; at++) {
		if (!(v8_jump_at(s, at, &jump) || v8_short_jump_at(s, at, &jump)) || jump.to >= jump.at)
			continue;
		v8_scan_loop(s, &jump);
		n++;
	}
}

void v8_anchors_scan(struct v8_anchors *a, const uint8_t *code, uint32_t len, const struct v8_anchor *exits, uint32_t nr,
		     uint32_t exits_at)
{
	struct v8_code_scan s = {.anchors = a, .code = code, .len = len};

	v8_scan_exits(&s, exits, nr, exits_at);
	v8_anchors_order(a);
	s.known = a->nr;
	s.aside = v8_scan_aside(&s);
	v8_scan_rares(&s);
	v8_anchors_order(a);
	s.known = a->nr;
	v8_scan_loops(&s);
}
