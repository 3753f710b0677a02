// SPDX-License-Identifier: Apache-2.0
/*
 * Where the bytecodes of functions are in their scripts. Code that was optimized asks for many places of few functions:
 * the table of each is read once.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runtime/v8.h"

void v8_places_begin(struct v8_places *p)
{
	memset(p->function, 0, sizeof(p->function));
	p->nr = 0;
}

/*
 * One row for each bytecode: the last one of the table is what counts. The function's entry goes by its first bytecode.
 * -E2BIG: they do not fit.
 */
static int v8_places_add(struct v8_places *p, struct v8_places_function *f, int32_t bytecode, int32_t at)
{
	if (f->nr && p->row[p->nr - 1].bytecode == (uint32_t)bytecode) {
		p->nr--;
		f->nr--;
	}
	if (p->nr == V8_PLACES_MAX)
		return -E2BIG;
	p->row[p->nr++] = (struct v8_places_row){.bytecode = (uint32_t)bytecode, .at = at};
	f->nr++;
	return 0;
}

/* A table of which not all fits says nothing. */
static void v8_places_read_table(struct v8_places *p, const struct v8 *v, struct memory *m, uint64_t table,
				 struct v8_places_function *f)
{
	struct v8_positions *next = &p->table;
	int err = v8_positions_open(v, m, table, next);

	f->first = p->nr;
	while (!err && v8_positions_next(next) == 0)
		err = v8_places_add(p, f, MAX(next->offset, 0), v8_position_script(next->position));
	if (err != -E2BIG)
		return;
	p->nr = f->first;
	f->nr = 0;
	f->start = -1;
}

static const struct v8_places_function *v8_places_read(struct v8_places *p, const struct v8 *v, struct memory *m,
						       uint16_t function, uint64_t shared)
{
	struct v8_places_function *f = &p->function[function];
	struct v8_shared s;
	uint64_t table;

	if (f->read)
		return f;
	*f = (struct v8_places_function){.read = true, .start = -1};
	if (v8_shared_read(v, m, shared, &s))
		return f;
	f->start = v8_shared_start(v, m, &s);
	if (s.bytecodes && v8_field(m, s.bytecodes, v8_row(v)->bytecode_positions, &table) == 0)
		v8_places_read_table(p, v, m, table, f);
	return f;
}

uint32_t v8_places_of(struct v8_places *p, const struct v8 *v, struct memory *m, uint16_t function, uint64_t shared,
		      int32_t bytecode)
{
	const struct v8_places_function *f = v8_places_read(p, v, m, function, shared);
	const struct v8_places_row *rows = p->row + f->first;
	int32_t at = f->start;
	uint32_t n = 0;

	if (bytecode >= 0)
		n = array_count_up_to(rows, f->nr, sizeof(*rows), offsetof(struct v8_places_row, bytecode),
				      (uint32_t)bytecode);
	if (n)
		at = rows[n - 1].at;
	return at < 0 ? 0 : V8_AT(at);
}
