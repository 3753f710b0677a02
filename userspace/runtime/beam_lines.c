// SPDX-License-Identifier: Apache-2.0
/*
 * The line table of a module: for each function, the addresses where a line
 * begins, and for each of all these addresses a location (struct BeamCodeLineTab,
 * erts/emulator/beam/beam_code.h; beam_ranges.c reads it).
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define LINE_BITS 24
#define LINE_MASK ((1u << LINE_BITS) - 1)

/* struct BeamCodeLineTab, up to the functions. */
struct beam_table { uint64_t files, width, locations; };

struct beam_places {
	struct beam_table table;
	uint64_t all;	   /* of the module's first place */
	uint64_t from, to; /* of the function's places */
};

static int beam_places(const struct beam *b, struct memory *m, const struct beam_module *of, uint32_t i,
		       struct beam_places *ret)
{
	uint64_t at, bounds[2];

	if (!b->lines || memory_u64(m, of->start + b->lines, &at) || !at)
		return -ENOENT;
	if (memory_read(m, at, &ret->table, sizeof(ret->table)) || memory_u64(m, at + sizeof(ret->table), &ret->all) ||
	    memory_read(m, at + sizeof(ret->table) + 8ULL * i, bounds, sizeof(bounds)))
		return -EFAULT;
	ret->from = bounds[0];
	ret->to = bounds[1];
	ret->table.width = (uint32_t)ret->table.width;
	return ret->from < ret->all || ret->to < ret->from || (ret->table.width != 2 && ret->table.width != 4) ? -EBADMSG : 0;
}

static int beam_location(struct memory *m, const struct beam_places *p, uint64_t place, uint32_t *ret)
{
	*ret = 0;
	return memory_read(m, p->table.locations + (place - p->all) / 8 * p->table.width, ret, p->table.width);
}

/* The file of the function's first line: a string in the module's literals; 0: the module's own. */
static uint64_t beam_file(struct memory *m, const struct beam_places *p, uint32_t location)
{
	uint32_t file = location >> LINE_BITS;
	uint64_t string;

	if (!file || memory_u64(m, p->table.files + 8ULL * (file - 1), &string))
		return 0;
	return string;
}

/* A line of another file has no number here. */
static int beam_row(uint32_t first, uint32_t location, int function, uint64_t address, struct runtime_code_made *ret)
{
	uint32_t line = location >> LINE_BITS == first >> LINE_BITS ? location & LINE_MASK : 0;
	int node = runtime_code_add_node(ret, (uint32_t)function, 0, line);

	return node < 0 ? node : runtime_code_add_row(ret, (uint32_t)(address - ret->code.start), (uint32_t)node);
}

static int beam_all_rows(struct memory *m, const struct beam_places *p, uint32_t first, int function,
			 struct runtime_code_made *ret)
{
	uint64_t address;
	uint32_t location;
	int err = 0;

	for (uint64_t at = p->from; at < p->to && !err; at += 8) {
		err = memory_u64(m, at, &address);
		if (!err)
			err = beam_location(m, p, at, &location);
		if (!err && address >= ret->code.start && address < ret->code.end)
			err = beam_row(first, location, function, address, ret);
	}
	return err;
}

int beam_lines(const struct beam *b, struct memory *m, const struct beam_module *of, uint32_t i, struct runtime_frame *f,
	       struct runtime_code_made *ret)
{
	struct beam_places p;
	uint32_t first = 0;
	bool has = beam_places(b, m, of, i, &p) == 0 && p.from < p.to && beam_location(m, &p, p.from, &first) == 0;
	int function, unknown, err;

	if (has) {
		f->cookie[2] |= (uint64_t)(first & LINE_MASK) << 32;
		f->cookie[3] = beam_file(m, &p, first);
	}
	function = runtime_code_add_function(ret, f);
	if (function < 0)
		return function;
	/* From its info on; the first line is that of its head. */
	unknown = runtime_code_add_node(ret, (uint32_t)function, 0, 0);
	err = beam_row(first, first, function, ret->code.start, ret);
	if (!err && has)
		err = beam_all_rows(m, &p, first, function, ret);
	/* Of a function with more lines, the last one that fits must not be taken for all that follow. */
	if (err == -E2BIG && ret->code.nr_rows)
		ret->rows[ret->code.nr_rows - 1].node = (uint32_t)unknown;
	return err == -E2BIG ? 0 : err;
}
