// SPDX-License-Identifier: Apache-2.0
/*
 * Which instructions of compiled code belong to the same loop, and where control does not simply go on. The compilers write
 * down only at calls and polls which method runs; between two of them, of which one is of one inlined method and one of
 * another, the loops tell whose an instruction is.
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot_flow.h"
#include "unwind/x86_insn.h"

#define FLOW_MAX  (128u << 10) /* bytes that are looked at */
#define PIECE	  4096u

static void flow_add_loop(struct hotspot_flow *f, uint32_t begin, uint32_t end)
{
	if (f->nr_loops < FLOW_LOOPS)
		f->loop[f->nr_loops++] = (struct flow_loop){.begin = begin, .end = end};
}

static void flow_add_break(struct hotspot_flow *f, uint32_t at, bool always)
{
	if (f->nr_breaks < FLOW_BREAKS)
		f->breaks[f->nr_breaks++] = (struct flow_break){.at = at, .always = always};
}

/* An instruction that ends at an offset. */
static void flow_take(struct hotspot_flow *f, const struct x86_insn *i, uint32_t end)
{
	bool jumps = i->kind == INSN_JUMP || i->kind == INSN_BRANCH;

	if (!jumps && i->kind != INSN_RET && i->kind != INSN_END)
		return;
	flow_add_break(f, end, i->kind != INSN_BRANCH);
	if (jumps && i->n < 0 && i->n >= -(int64_t)end)
		flow_add_loop(f, (uint32_t)((int64_t)end + i->n), end);
}

/* Whole instructions of a piece of code; the offset that it got to in it. */
static uint32_t flow_scan(struct hotspot_flow *f, const uint8_t *code, uint32_t len, uint32_t offset, bool last)
{
	struct x86_insn insn;
	uint32_t at = 0;

	while (at < len && (last || len - at >= X86_INSN_MAX)) {
		if (x86_decode(code + at, len - at, &insn) || !insn.len) {
			at++;
			continue;
		}
		at += insn.len;
		flow_take(f, &insn, offset + at);
	}
	return at;
}

void hotspot_flow_read(struct hotspot_flow *f, struct memory *m, uint64_t code, uint64_t from, uint64_t size)
{
	uint8_t bytes[PIECE];
	uint64_t end = MIN(size, (uint64_t)FLOW_MAX);

	f->nr_loops = f->nr_breaks = 0;
	while (from < end) {
		uint32_t len = (uint32_t)MIN(end - from, (uint64_t)PIECE);

		if (memory_read(m, code + from, bytes, len))
			return;
		from += flow_scan(f, bytes, len, (uint32_t)from, from + len == end);
	}
}

/* Of its instructions, the first behind which control may not go on to offset; strictly: behind any jump. */
uint32_t hotspot_flow_straight(const struct hotspot_flow *f, uint32_t from, uint32_t to, bool strictly)
{
	for (uint32_t i = f->nr_breaks; i--;)
		if (f->breaks[i].at > from && f->breaks[i].at <= to && (strictly || f->breaks[i].always))
			return f->breaks[i].at;
	return from;
}

bool hotspot_flow_loop(const struct hotspot_flow *f, uint32_t at, uint32_t longer_than, struct flow_loop *ret)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < f->nr_loops; i++) {
		const struct flow_loop *l = &f->loop[i];
		uint32_t len = l->end - l->begin;

		if (at >= l->begin && at < l->end && len > longer_than && len < best) {
			best = len;
			*ret = *l;
		}
	}
	return best != UINT32_MAX;
}

uint32_t hotspot_flow_next(const struct hotspot_flow *f, uint32_t from, uint32_t to)
{
	uint32_t next = to;

	for (uint32_t i = 0; i < f->nr_loops; i++) {
		if (f->loop[i].begin > from && f->loop[i].begin < next)
			next = f->loop[i].begin;
		if (f->loop[i].end > from && f->loop[i].end < next)
			next = f->loop[i].end;
	}
	return next;
}
