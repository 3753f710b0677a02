// SPDX-License-Identifier: Apache-2.0
#include "runtime/hotspot_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/x86_scan.h"

#define FLOW_STEPS (8u << 20) /* of all walks */
#define PADDING_MAX 31u	      /* OptoLoopAlignment is 16, at most 32 */

/* --- jumps --- */

/* An instruction that ends at an offset. false: there is no room for more jumps. */
static bool flow_take(void *ctx, const struct x86_insn *i, uint32_t end)
{
	bool jumps = i->kind == INSN_JUMP || i->kind == INSN_BRANCH;
	int64_t to = (int64_t)end + (jumps ? i->n : 0);
	struct hotspot_flow *f = ctx;

	if (!jumps && i->kind != INSN_RET && i->kind != INSN_END)
		return true;
	f->jump[f->nr_jumps++] = (struct flow_jump){
		.end = end,
		.target = jumps && to >= 0 && to < f->end ? (uint32_t)to : FLOW_NONE,
		.always = i->kind != INSN_BRANCH,
	};
	return f->nr_jumps < FLOW_JUMPS;
}

/* --- parts --- */

static int flow_order(const void *a, const void *b)
{
	const struct flow_part *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void flow_add_part(struct hotspot_flow *f, uint32_t begin, uint32_t from)
{
	if (begin != FLOW_NONE && begin >= from && begin < f->end && f->nr_parts < FLOW_PARTS)
		f->part[f->nr_parts++] = (struct flow_part){.begin = begin};
}

/* Their beginnings, sorted; there were none before. */
static void flow_begin_parts(struct hotspot_flow *f, uint32_t from)
{
	uint32_t n = 0;

	flow_add_part(f, from, from);
	for (uint32_t i = 0; i < f->nr_jumps; i++) {
		flow_add_part(f, f->jump[i].end, from);
		flow_add_part(f, f->jump[i].target, from);
	}
	for (uint32_t i = 0; i < f->nr_marks; i++)
		flow_add_part(f, f->marks[i].offset + 1, from);
	if (f->nr_parts == FLOW_PARTS)
		f->nr_parts = 0;
	qsort(f->part, f->nr_parts, sizeof(f->part[0]), flow_order);
	for (uint32_t i = 0; i < f->nr_parts; i++)
		if (!n || f->part[i].begin != f->part[n - 1].begin)
			f->part[n++] = f->part[i];
	f->nr_parts = n;
}

/* The part that begins at an offset; FLOW_NONE. */
static uint32_t flow_part_at(const struct hotspot_flow *f, uint32_t begin)
{
	const struct flow_part key = {.begin = begin}, *p = bsearch(&key, f->part, f->nr_parts, sizeof(key), flow_order);

	return p ? (uint32_t)(p - f->part) : FLOW_NONE;
}

/* Where control goes on to behind a part, whose last instruction may be a jump. */
static void flow_lead_on(struct hotspot_flow *f, uint32_t i, const struct flow_jump *jump)
{
	struct flow_part *p = &f->part[i];
	bool stays = i + 1 < f->nr_parts;

	p->next = stays && !(jump && jump->always) ? i + 1 : FLOW_NONE;
	p->jump = jump ? flow_part_at(f, jump->target) : FLOW_NONE;
	p->leaves = (!stays && !(jump && jump->always)) || (jump && p->jump == FLOW_NONE);
	p->edge = p->loop = FLOW_NONE;
}

static void flow_connect(struct hotspot_flow *f)
{
	const struct flow_jump *jump = f->jump, *last = f->jump + f->nr_jumps;
	uint32_t mark = 0;

	for (uint32_t i = 0; i < f->nr_parts; i++) {
		uint32_t end = i + 1 < f->nr_parts ? f->part[i + 1].begin : f->end;

		while (jump < last && jump->end < end)
			jump++;
		while (mark < f->nr_marks && f->marks[mark].offset + 1 < end)
			mark++;
		f->part[i].mark = mark < f->nr_marks && f->marks[mark].offset + 1 == end ? mark : FLOW_NONE;
		flow_lead_on(f, i, jump < last && jump->end == end ? jump : NULL);
	}
}

static void flow_add_edge(struct hotspot_flow *f, uint32_t from, uint32_t to)
{
	if (to == FLOW_NONE)
		return;
	f->edge[f->nr_edges] = (struct flow_edge){.from = from, .next = f->part[to].edge};
	f->part[to].edge = f->nr_edges++;
}

/* What fills the place before code that is aligned, behind an instruction that does not lead there. */
static bool flow_is_padding(const struct hotspot_flow *f, uint32_t i)
{
	const struct flow_part *p = &f->part[i];

	return i && p->edge == FLOW_NONE && p->mark == FLOW_NONE && p->jump == FLOW_NONE && !p->leaves &&
	       p[1].begin - p->begin <= PADDING_MAX;
}

static void flow_add_edges(struct hotspot_flow *f)
{
	for (uint32_t i = 0; i < f->nr_parts; i++)
		flow_add_edge(f, i, f->part[i].jump);
	for (uint32_t i = 0; i < f->nr_parts; i++)
		if (f->part[i].next != FLOW_NONE && !flow_is_padding(f, i))
			flow_add_edge(f, i, f->part[i].next);
}

/* --- walks --- */

void hotspot_flow_charge(struct hotspot_flow *f, uint64_t steps)
{
	f->steps -= MIN(f->steps, steps);
}

/* A new one; false: there were too many steps. */
static bool flow_begin_walk(struct hotspot_flow *f)
{
	f->turn++;
	return f->steps > FLOW_PARTS;
}

/* Whether it was not met in this walk before. */
static bool flow_visit(struct hotspot_flow *f, uint32_t part)
{
	hotspot_flow_charge(f, 1);
	if (f->seen[part] == f->turn)
		return false;
	f->seen[part] = f->turn;
	return true;
}

static bool flow_is_in(const struct flow_loop *l, uint32_t part)
{
	return !l || (l->in[part / 64] >> part % 64 & 1);
}

static const struct flow_loop *flow_loop_of(const struct hotspot_flow *f, uint32_t part)
{
	return f->part[part].loop == FLOW_NONE ? NULL : &f->loop[f->part[part].loop];
}

static void flow_found_add(struct flow_found *to, uint32_t mark)
{
	if (to->nr < FLOW_FOUND)
		to->mark[to->nr++] = mark;
	else
		to->open = true;
}

/* --- loops --- */

static bool flow_add_to_loop(struct flow_loop *l, uint32_t part)
{
	if (flow_is_in(l, part))
		return false;
	l->in[part / 64] |= 1ULL << part % 64;
	l->size++;
	return true;
}

/* The parts that lead to one that jumps back to the loop's head. */
static void flow_fill_loop(struct hotspot_flow *f, struct flow_loop *l, uint32_t from)
{
	uint32_t nr = 0;

	if (flow_add_to_loop(l, from))
		f->stack[nr++] = from;
	while (nr)
		for (uint32_t e = f->part[f->stack[--nr]].edge; e != FLOW_NONE; e = f->edge[e].next)
			if (flow_add_to_loop(l, f->edge[e].from))
				f->stack[nr++] = f->edge[e].from;
}

/* A jump back: of the loop of its head, there may be several. */
static void flow_jump_back(struct hotspot_flow *f, uint32_t from, uint32_t head)
{
	struct flow_loop *l = f->loop;

	while (l < f->loop + f->nr_loops && l->head != head)
		l++;
	if (l == f->loop + FLOW_LOOPS)
		return;
	if (l == f->loop + f->nr_loops) {
		memset(l, 0, sizeof(*l));
		l->head = head;
		flow_add_to_loop(l, head);
		f->nr_loops++;
	}
	flow_fill_loop(f, l, from);
}

/* Whether control can go round in a loop without coming by a mark. What is entered elsewhere than at its head is none. */
static bool flow_goes_round_unmarked(struct hotspot_flow *f, const struct flow_loop *l)
{
	uint32_t nr = 0;

	if ((l->head && flow_is_in(l, 0)) || !flow_begin_walk(f))
		return true;
	f->stack[nr++] = l->head;
	while (nr) {
		const struct flow_part *p = &f->part[f->stack[--nr]];
		const uint32_t to[] = {p->next, p->jump};

		for (int i = 0; i < 2 && p->mark == FLOW_NONE; i++) {
			if (to[i] == l->head)
				return true;
			if (to[i] != FLOW_NONE && flow_is_in(l, to[i]) && flow_visit(f, to[i]))
				f->stack[nr++] = to[i];
		}
	}
	return false;
}

static void flow_keep_loop(struct hotspot_flow *f, uint32_t loop)
{
	const struct flow_loop *l = &f->loop[loop];

	for (uint32_t i = 0; i < f->nr_parts; i++)
		if (flow_is_in(l, i) && (f->part[i].loop == FLOW_NONE || l->size < f->loop[f->part[i].loop].size))
			f->part[i].loop = loop;
}

/* A part on the way that is being gone, and how many of the parts that it leads to were tried. */
struct flow_way { uint32_t part, tried; };

/* From a part on: what leads to a part on the way there leads back. seen: turn while a part is on the way, then turn + 1. */
static void flow_find_jumps_back(struct hotspot_flow *f, uint32_t first)
{
	static struct flow_way way[FLOW_PARTS];
	uint32_t nr = 1;

	way[0] = (struct flow_way){.part = first};
	f->seen[first] = f->turn;
	while (nr) {
		struct flow_way *w = &way[nr - 1];
		const struct flow_part *p = &f->part[w->part];
		uint32_t to = w->tried == 0 ? p->next : p->jump;

		if (w->tried++ == 2) {
			f->seen[w->part] = f->turn + 1;
			nr--;
		} else if (to != FLOW_NONE && f->seen[to] == f->turn) {
			flow_jump_back(f, w->part, to);
		} else if (to != FLOW_NONE && f->seen[to] < f->turn) {
			f->seen[to] = f->turn;
			way[nr++] = (struct flow_way){.part = to};
		}
	}
}

static void flow_find_loops(struct hotspot_flow *f)
{
	f->turn = 1;
	for (uint32_t i = 0; i < f->nr_parts; i++)
		if (!f->seen[i])
			flow_find_jumps_back(f, i);
	f->turn = 2;
	for (uint32_t i = 0; i < f->nr_loops; i++)
		if (!flow_goes_round_unmarked(f, &f->loop[i]))
			flow_keep_loop(f, i);
}

void hotspot_flow_read(struct hotspot_flow *f, struct memory *m, uint64_t code, uint32_t from, uint64_t size,
		       const struct flow_mark *marks, uint32_t nr_marks)
{
	f->steps = FLOW_STEPS;
	f->nr_jumps = f->nr_parts = f->nr_loops = f->nr_edges = 0;
	f->marks = marks;
	f->nr_marks = nr_marks;
	f->end = (uint32_t)MIN(size, (uint64_t)FLOW_BYTES);
	if (x86_scan(m, code, from, f->end, flow_take, f))
		return;
	flow_begin_parts(f, from);
	flow_connect(f);
	memset(f->seen, 0, f->nr_parts * sizeof(f->seen[0]));
	flow_add_edges(f);
	flow_find_loops(f);
}

/* --- what is ahead, and behind --- */

void hotspot_flow_ahead(struct hotspot_flow *f, uint32_t part, struct flow_found *ret)
{
	const struct flow_loop *l = flow_loop_of(f, part);
	uint32_t nr = 0;

	*ret = (struct flow_found){.open = !flow_begin_walk(f)};
	if (!ret->open)
		f->stack[nr++] = part;
	while (nr) {
		const struct flow_part *p = &f->part[f->stack[--nr]];
		const uint32_t to[] = {p->jump, p->next};

		if (p->mark != FLOW_NONE) {
			flow_found_add(ret, p->mark);
			continue;
		}
		ret->open |= !l && p->leaves;
		for (int i = 0; i < 2; i++) {
			ret->cycles |= to[i] == part;
			if (to[i] != FLOW_NONE && flow_is_in(l, to[i]) && flow_visit(f, to[i]))
				f->stack[nr++] = to[i];
		}
	}
	ret->open |= !ret->nr;
}

void hotspot_flow_behind(struct hotspot_flow *f, uint32_t part, struct flow_found *ret)
{
	const struct flow_loop *l = flow_loop_of(f, part);
	uint32_t nr = 0;

	*ret = (struct flow_found){.open = !flow_begin_walk(f)};
	if (!ret->open)
		f->stack[nr++] = part;
	while (nr) {
		uint32_t at = f->stack[--nr];

		ret->open |= !at || f->part[at].edge == FLOW_NONE;
		for (uint32_t e = f->part[at].edge; e != FLOW_NONE; e = f->edge[e].next) {
			uint32_t from = f->edge[e].from;

			hotspot_flow_charge(f, 1);
			if (!flow_is_in(l, from) || !flow_visit(f, from))
				continue;
			if (f->part[from].mark != FLOW_NONE)
				flow_found_add(ret, f->part[from].mark);
			else
				f->stack[nr++] = from;
		}
	}
	ret->open |= !ret->nr;
}

uint32_t hotspot_flow_straight(const struct hotspot_flow *f, uint32_t part)
{
	const struct flow_part *p = &f->part[part];

	while (p->mark == FLOW_NONE && p->next != FLOW_NONE && p->jump == FLOW_NONE && !p->leaves)
		p = &f->part[p->next];
	return p->mark;
}
