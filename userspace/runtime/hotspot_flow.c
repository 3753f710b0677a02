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

	if (f->pushed)
		hotspot_pushed_take(f->pushed, i, end);
	if (!jumps && i->kind != INSN_RET && i->kind != INSN_END)
		return true;
	f->jump[f->nr_jumps++] = (struct flow_jump){
		.end = end,
		.target = jumps && to >= 0 && to < f->end ? (uint32_t)to : FLOW_NONE,
		.always = i->kind != INSN_BRANCH,
	};
	return f->nr_jumps < FLOW_JUMPS;
}

/* --- basic blocks --- */

static int flow_order(const void *a, const void *b)
{
	const struct flow_block *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void flow_add_block(struct hotspot_flow *f, uint32_t begin, uint32_t from)
{
	if (begin != FLOW_NONE && begin >= from && begin < f->end && f->nr_blocks < FLOW_BLOCKS)
		f->block[f->nr_blocks++] = (struct flow_block){.begin = begin};
}

/* Their beginnings, sorted; there were none before. */
static void flow_begin_blocks(struct hotspot_flow *f, uint32_t from)
{
	uint32_t n = 0;

	flow_add_block(f, from, from);
	for (uint32_t i = 0; i < f->nr_jumps; i++) {
		flow_add_block(f, f->jump[i].end, from);
		flow_add_block(f, f->jump[i].target, from);
	}
	for (uint32_t i = 0; i < f->nr_marks; i++)
		flow_add_block(f, f->marks[i].offset + 1, from);
	if (f->nr_blocks == FLOW_BLOCKS)
		f->nr_blocks = 0;
	qsort(f->block, f->nr_blocks, sizeof(f->block[0]), flow_order);
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		if (!n || f->block[i].begin != f->block[n - 1].begin)
			f->block[n++] = f->block[i];
	f->nr_blocks = n;
}

/* The block that begins at an offset; FLOW_NONE. */
static uint32_t flow_block_at(const struct hotspot_flow *f, uint32_t begin)
{
	const struct flow_block key = {.begin = begin}, *p = bsearch(&key, f->block, f->nr_blocks, sizeof(key), flow_order);

	return p ? (uint32_t)(p - f->block) : FLOW_NONE;
}

/* Where control goes on to behind a block, whose last instruction may be a jump. */
static void flow_lead_on(struct hotspot_flow *f, uint32_t i, const struct flow_jump *jump)
{
	struct flow_block *b = &f->block[i];
	bool stays = i + 1 < f->nr_blocks;

	b->next = stays && !(jump && jump->always) ? i + 1 : FLOW_NONE;
	b->jump = jump ? flow_block_at(f, jump->target) : FLOW_NONE;
	b->leaves = (!stays && !(jump && jump->always)) || (jump && b->jump == FLOW_NONE);
	b->edge = b->loop = FLOW_NONE;
}

static void flow_connect(struct hotspot_flow *f)
{
	const struct flow_jump *jump = f->jump, *last = f->jump + f->nr_jumps;
	uint32_t mark = 0;

	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		uint32_t end = i + 1 < f->nr_blocks ? f->block[i + 1].begin : f->end;

		while (jump < last && jump->end < end)
			jump++;
		while (mark < f->nr_marks && f->marks[mark].offset + 1 < end)
			mark++;
		f->block[i].mark = mark < f->nr_marks && f->marks[mark].offset + 1 == end ? mark : FLOW_NONE;
		flow_lead_on(f, i, jump < last && jump->end == end ? jump : NULL);
	}
}

static void flow_add_edge(struct hotspot_flow *f, uint32_t from, uint32_t to)
{
	if (to == FLOW_NONE)
		return;
	f->edge[f->nr_edges] = (struct flow_edge){.from = from, .next = f->block[to].edge};
	f->block[to].edge = f->nr_edges++;
}

/* What fills the place before code that is aligned, behind an instruction that does not lead there. */
static bool flow_is_padding(const struct hotspot_flow *f, uint32_t i)
{
	const struct flow_block *b = &f->block[i];

	return i && b->edge == FLOW_NONE && b->mark == FLOW_NONE && b->jump == FLOW_NONE && !b->leaves &&
	       b[1].begin - b->begin <= PADDING_MAX;
}

static void flow_add_edges(struct hotspot_flow *f)
{
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		flow_add_edge(f, i, f->block[i].jump);
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		if (f->block[i].next != FLOW_NONE && !flow_is_padding(f, i))
			flow_add_edge(f, i, f->block[i].next);
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
	return f->steps > FLOW_BLOCKS;
}

/* Whether it was not met in this walk before. */
static bool flow_visit(struct hotspot_flow *f, uint32_t block)
{
	hotspot_flow_charge(f, 1);
	if (f->seen[block] == f->turn)
		return false;
	f->seen[block] = f->turn;
	return true;
}

static bool flow_is_in(const struct flow_loop *l, uint32_t block)
{
	return !l || (l->in[block / 64] >> block % 64 & 1);
}

static const struct flow_loop *flow_loop_of(const struct hotspot_flow *f, uint32_t block)
{
	return f->block[block].loop == FLOW_NONE ? NULL : &f->loop[f->block[block].loop];
}

static void flow_found_add(struct flow_found *to, uint32_t mark)
{
	if (to->nr < FLOW_FOUND)
		to->mark[to->nr++] = mark;
	else
		to->open = true;
}

/* --- loops --- */

static bool flow_add_to_loop(struct flow_loop *l, uint32_t block)
{
	if (flow_is_in(l, block))
		return false;
	l->in[block / 64] |= 1ULL << block % 64;
	l->size++;
	return true;
}

/* The blocks that lead to one that jumps back to the loop's head. */
static void flow_fill_loop(struct hotspot_flow *f, struct flow_loop *l, uint32_t from)
{
	uint32_t nr = 0;

	if (flow_add_to_loop(l, from))
		f->stack[nr++] = from;
	while (nr)
		for (uint32_t e = f->block[f->stack[--nr]].edge; e != FLOW_NONE; e = f->edge[e].next)
			if (flow_add_to_loop(l, f->edge[e].from))
				f->stack[nr++] = f->edge[e].from;
}

/* A jump back: of the loop of its head, there may be several. */
static void flow_back_edge(struct hotspot_flow *f, uint32_t from, uint32_t head)
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
		const struct flow_block *b = &f->block[f->stack[--nr]];
		const uint32_t to[] = {b->next, b->jump};

		for (int i = 0; i < 2 && b->mark == FLOW_NONE; i++) {
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

	for (uint32_t i = 0; i < f->nr_blocks; i++)
		if (flow_is_in(l, i) && (f->block[i].loop == FLOW_NONE || l->size < f->loop[f->block[i].loop].size))
			f->block[i].loop = loop;
}

/* A block on the way that is being gone, and how many of the blocks that it leads to were tried. */
struct flow_way { uint32_t block, tried; };

/* From a block on: what leads to a block on the way there leads back. seen: turn while a block is on the way, then turn + 1. */
static void flow_find_back_edges(struct hotspot_flow *f, uint32_t first)
{
	static struct flow_way way[FLOW_BLOCKS];
	uint32_t nr = 1;

	way[0] = (struct flow_way){.block = first};
	f->seen[first] = f->turn;
	while (nr) {
		struct flow_way *w = &way[nr - 1];
		const struct flow_block *b = &f->block[w->block];
		uint32_t to = w->tried == 0 ? b->next : b->jump;

		if (w->tried++ == 2) {
			f->seen[w->block] = f->turn + 1;
			nr--;
		} else if (to != FLOW_NONE && f->seen[to] == f->turn) {
			flow_back_edge(f, w->block, to);
		} else if (to != FLOW_NONE && f->seen[to] < f->turn) {
			f->seen[to] = f->turn;
			way[nr++] = (struct flow_way){.block = to};
		}
	}
}

static void flow_find_loops(struct hotspot_flow *f)
{
	f->turn = 1;
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		if (!f->seen[i])
			flow_find_back_edges(f, i);
	f->turn = 2;
	for (uint32_t i = 0; i < f->nr_loops; i++)
		if (!flow_goes_round_unmarked(f, &f->loop[i]))
			flow_keep_loop(f, i);
}

void hotspot_flow_read(struct hotspot_flow *f, struct memory *m, uint64_t code, uint32_t from, uint64_t size,
		       const struct flow_mark *marks, uint32_t nr_marks)
{
	f->steps = FLOW_STEPS;
	f->nr_jumps = f->nr_blocks = f->nr_loops = f->nr_edges = 0;
	f->marks = marks;
	f->nr_marks = nr_marks;
	f->end = (uint32_t)MIN(size, (uint64_t)FLOW_BYTES);
	if (x86_scan(m, code, from, f->end, flow_take, f))
		return;
	flow_begin_blocks(f, from);
	flow_connect(f);
	memset(f->seen, 0, f->nr_blocks * sizeof(f->seen[0]));
	flow_add_edges(f);
	flow_find_loops(f);
}

/* --- what is ahead, and behind --- */

void hotspot_flow_ahead(struct hotspot_flow *f, uint32_t block, struct flow_found *ret)
{
	const struct flow_loop *l = flow_loop_of(f, block);
	uint32_t nr = 0;

	*ret = (struct flow_found){.open = !flow_begin_walk(f)};
	if (!ret->open)
		f->stack[nr++] = block;
	while (nr) {
		const struct flow_block *b = &f->block[f->stack[--nr]];
		const uint32_t to[] = {b->jump, b->next};

		if (b->mark != FLOW_NONE) {
			flow_found_add(ret, b->mark);
			continue;
		}
		ret->open |= !l && b->leaves;
		for (int i = 0; i < 2; i++) {
			ret->cycles |= to[i] == block;
			if (to[i] != FLOW_NONE && flow_is_in(l, to[i]) && flow_visit(f, to[i]))
				f->stack[nr++] = to[i];
		}
	}
	ret->open |= !ret->nr;
}

void hotspot_flow_behind(struct hotspot_flow *f, uint32_t block, struct flow_found *ret)
{
	const struct flow_loop *l = flow_loop_of(f, block);
	uint32_t nr = 0;

	*ret = (struct flow_found){.open = !flow_begin_walk(f)};
	if (!ret->open)
		f->stack[nr++] = block;
	while (nr) {
		uint32_t at = f->stack[--nr];

		ret->open |= !at || f->block[at].edge == FLOW_NONE;
		for (uint32_t e = f->block[at].edge; e != FLOW_NONE; e = f->edge[e].next) {
			uint32_t from = f->edge[e].from;

			hotspot_flow_charge(f, 1);
			if (!flow_is_in(l, from) || !flow_visit(f, from))
				continue;
			if (f->block[from].mark != FLOW_NONE)
				flow_found_add(ret, f->block[from].mark);
			else
				f->stack[nr++] = from;
		}
	}
	ret->open |= !ret->nr;
}

uint32_t hotspot_flow_straight(const struct hotspot_flow *f, uint32_t block)
{
	const struct flow_block *b = &f->block[block];

	while (b->mark == FLOW_NONE && b->next != FLOW_NONE && b->jump == FLOW_NONE && !b->leaves)
		b = &f->block[b->next];
	return b->mark;
}
