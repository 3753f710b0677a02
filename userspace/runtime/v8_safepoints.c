// SPDX-License-Identifier: Apache-2.0
/*
 * Where calls of Maglev's code return to, and by which entry of the deoptimization data each of them may leave the code:
 * those data themselves have where it is left to (V8, maglev-code-generator.cc, GenerateDeoptimizationData). The table lies
 * behind the instructions (maglev-safepoint-table.h; read from Node.js 20 to 24): slots of the frame, the number of entries,
 * how wide what each of them has is, slots that are tagged, and the entries.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

enum { HEADER_NR = 1, HEADER_WIDTHS, HEADER_WORDS = 4 };

#define HAS_ENTRIES	    1u
#define WIDTH(widths, from) ((widths) >> (from) & 7u) /* in bytes: of registers from bit 1, places from 4, entries from 7 on */
#define SLOTS_BYTES	    1u

int v8_safepoints_open(struct memory *m, uint64_t table, uint32_t end, struct v8_safepoints *ret)
{
	uint32_t header[HEADER_WORDS], widths;
	int err = memory_read(m, table, header, sizeof(header));

	if (err)
		return err;
	widths = header[HEADER_WIDTHS];
	*ret = (struct v8_safepoints){.nr = header[HEADER_NR], .end = end, .place = WIDTH(widths, 4), .entry = WIDTH(widths, 7)};
	ret->size = 2 * ret->place + ret->entry + SLOTS_BYTES + WIDTH(widths, 1);
	if (!(widths & HAS_ENTRIES))
		return -ENOENT;
	if (widths >> 10 || !ret->place || ret->place > 4 || !ret->entry || ret->entry > 4 || ret->nr > end)
		return -EBADMSG;
	return memory_read(m, table + sizeof(header), ret->bytes, MIN((size_t)ret->nr * ret->size, sizeof(ret->bytes)));
}

static uint32_t v8_safepoints_number(const uint8_t *at, uint32_t bytes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < bytes; i++)
		n |= (uint32_t)at[i] << 8 * i;
	return n;
}

int v8_safepoints_next(struct v8_safepoints *s, struct v8_safepoint *ret)
{
	const uint8_t *at = s->bytes + (size_t)s->next * s->size;

	if (s->next == s->nr)
		return -ENOENT;
	if (((size_t)s->next + 1) * s->size > sizeof(s->bytes))
		return -E2BIG;
	*ret = (struct v8_safepoint){.at = v8_safepoints_number(at, s->place),
				     .entry = (int32_t)(v8_safepoints_number(at + s->place, s->entry) - 1U)};
	s->next++;
	return ret->at && ret->at <= s->end ? 0 : -EBADMSG;
}
