// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information, unit by unit: functions and inlined calls by libdw, lines
 * by lines.c. libdw keeps what it parses until it is closed, so it is closed
 * and opened again whenever that has become much.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <malloc.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "symbol/build_dwarf.h"

#define DEPTH_MAX    200
#define RANGES_MAX   65536
#define TRIM_BYTES   (1u << 20) /* of input between two looks at memory */
#define TRIM_ENTRIES 4096	/* of a tree: one unit can be very large */
#define HEAP_MORE    (4u << 20) /* what libdw may hold beyond what it needs to begin */
#define TABLES_MAX   (1u << 20)

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* --- attributes --- */

static uint64_t number_of(Dwarf_Die *die, unsigned int name, bool integrate)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!(integrate ? dwarf_attr_integrate(die, name, &a) : dwarf_attr(die, name, &a)) ||
	    dwarf_formudata(&a, &v) != 0)
		return 0;
	return v;
}

static const char *text_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, name, &a) ? dwarf_formstring(&a) : NULL;
}

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
	const char *s = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !s; i++)
		s = text_of(die, names[i]);
	return s;
}

/* A function is inlined in thousands of places: what was said of it is remembered by where it is said. */
static void describe(struct dwarf_build *d, Dwarf_Die *die, struct index_node *n)
{
	struct known_function *k;
	Dwarf_Attribute a;
	Dwarf_Die origin = *die;
	const char *name;

	/* A destructor's own name is one of three; what is inlined has the name that all share. */
	if (!dwarf_hasattr(die, DW_AT_linkage_name) && dwarf_attr(die, DW_AT_abstract_origin, &a))
		dwarf_formref_die(&a, &origin);
	k = &d->known[hash_u64((uintptr_t)origin.addr) % KNOWN_FUNCTIONS];
	if (k->die != origin.addr) {
		name = name_of(die);
		*k = (struct known_function){.die = origin.addr,
					     .name = name ? index_add_string(d->b->out, name, strlen(name)) : 0,
					     .line = (uint32_t)number_of(die, DW_AT_decl_line, true)};
	}
	n->name = k->name;
	n->start_line = k->line;
}

/* --- ranges --- */

static int put_range(struct dwarf_build *d, uint64_t start, uint64_t end, uint32_t node, unsigned depth)
{
	struct sort_record r = {.key = start};

	if (start >= end || end - start > UINT32_MAX || !builder_is_code(d->b, start, end - start))
		return 0;
	r.v[0] = (uint32_t)(end - start);
	r.v[1] = node;
	r.v[2] = depth;
	r.v[3] = d->b->order++;
	return builder_put(d->b, d->b->functions, &r);
}

static int each_range(struct dwarf_build *d, Dwarf_Die *die, uint32_t node, unsigned depth)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	int r = 0;

	if (d->split || dwarf_hasattr(die, DW_AT_ranges))
		return split_ranges(d, die, node, depth, put_range);
	for (uint32_t i = 0; r == 0 && i < RANGES_MAX; i++) {
		offset = dwarf_ranges(die, offset, &base, &start, &end);
		if (offset <= 0)
			break;
		r = put_range(d, start, end, node, depth);
	}
	return r;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* --- the tree --- */

struct place {
	uint32_t node;	/* of the function around, 0: none */
	unsigned depth; /* of nodes */
	unsigned level; /* of the tree */
};

static int walk(struct dwarf_build *d, Dwarf_Die *parent, struct place at);

static int take_function(struct dwarf_build *d, Dwarf_Die *die, struct place at)
{
	struct index_node n = {0};
	uint32_t taken = d->b->order;
	int r;

	/* What is only inlined may hold what is not: a lambda's function, say. */
	at.node = 0;
	if (!has_code(die))
		return walk(d, die, at);
	describe(d, die, &n);
	at.node = index_add_node(d->b->out, &n);
	at.depth = 0;
	r = each_range(d, die, at.node, 0);
	/* Dropped by the linker: what it inlined counts from 0 on, where another's code is. */
	if (d->b->order == taken)
		at.node = 0;
	return r < 0 ? r : walk(d, die, at);
}

static int take_inlined(struct dwarf_build *d, Dwarf_Die *die, struct place at)
{
	struct index_node n = {.parent = at.node};
	int r;

	if (!at.node || !has_code(die))
		return 0;
	describe(d, die, &n);
	n.call_file = d->has_lines ? line_table_file(&d->lines, d->b->out, number_of(die, DW_AT_call_file, false)) : 0;
	n.call_line = (uint32_t)number_of(die, DW_AT_call_line, false);
	at.node = index_add_node(d->b->out, &n);
	at.depth++;
	r = each_range(d, die, at.node, at.depth);
	return r < 0 ? r : walk(d, die, at);
}

static void trim(const struct dwarf_build *d)
{
	image_trim(d->image);
	if (d->alt)
		image_trim(d->alt);
}

static int take_die(struct dwarf_build *d, Dwarf_Die *die, struct place at)
{
	if (++d->entries % TRIM_ENTRIES == 0)
		trim(d);
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return take_function(d, die, at);
	case DW_TAG_inlined_subroutine:
		return d->b->job->inlines ? take_inlined(d, die, at) : 0;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return d->b->job->inlines || !at.node ? walk(d, die, at) : 0;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return walk(d, die, at);
	default:
		return 0;
	}
}

static int walk(struct dwarf_build *d, Dwarf_Die *parent, struct place at)
{
	Dwarf_Die die;
	int r = 0;

	if (++at.level > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return 0;
	do
		r = take_die(d, &die, at);
	while (r == 0 && dwarf_siblingof(&die, &die) == 0);
	return r;
}

/* --- lines --- */

/* Of rows with one address the last one counts; a sequence that is not in code (dropped by the linker) none. */
struct rows {
	struct dwarf_build *d;
	bool inside, skip, any, has;
	struct line_row row;
	uint32_t file, line; /* of the last one put */
};

static int put_row(struct rows *s, uint64_t addr, uint32_t file, uint32_t line, uint32_t order)
{
	struct sort_record r = {.key = addr, .v = {file, line, order}};

	if (s->any && file == s->file && line == s->line)
		return 0;
	s->any = true;
	s->file = file;
	s->line = line;
	return builder_put(s->d->b, s->d->b->lines, &r);
}

static int put_held(struct rows *s, uint64_t next)
{
	if (!s->has || s->row.addr >= next)
		return 0;
	s->has = false;
	return put_row(s, s->row.addr, line_table_file(&s->d->lines, s->d->b->out, s->row.file), s->row.line,
		       ++s->d->b->order);
}

static int end_sequence(struct rows *s, uint64_t addr)
{
	int r = s->skip ? 0 : put_held(s, addr);

	/* The gap loses against what begins at its address. */
	if (r == 0 && s->any)
		r = put_row(s, addr, 0, 0, UINT32_MAX);
	s->inside = s->any = s->has = false;
	return r;
}

static int take_row(void *ctx, const struct line_row *row)
{
	struct rows *s = ctx;
	int r;

	if (!s->inside) {
		s->inside = true;
		s->skip = !builder_is_code(s->d->b, row->addr, 0);
	}
	if (row->end)
		return end_sequence(s, row->addr);
	if (s->skip || (s->has && row->addr < s->row.addr))
		return 0;
	r = put_held(s, row->addr);
	s->row = *row;
	s->has = true;
	return r;
}

static int open_lines(struct dwarf_build *d, Dwarf_Die *cu)
{
	Dwarf_Attribute a;
	Dwarf_Word offset;
	const char *comp_dir = NULL;

	if (!dwarf_attr(cu, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &offset) != 0)
		return 0;
	if (dwarf_attr(cu, DW_AT_comp_dir, &a))
		comp_dir = dwarf_formstring(&a);
	d->has_lines = line_table_open(&d->sections, offset, comp_dir, &d->lines) == 0;
	if (!d->has_lines || !d->b->job->lines)
		return 0;
	/* Units may share a table: it is read once. */
	if (map_find(&d->tables, offset) || d->tables.count >= TABLES_MAX || map_put(&d->tables, offset, 1) < 0)
		return 0;
	d->input += (size_t)(d->lines.end - d->lines.program);
	return 1;
}

static int take_lines(struct dwarf_build *d, Dwarf_Die *cu)
{
	struct rows rows = {.d = d};
	int r = open_lines(d, cu);

	if (r == 1)
		r = line_table_run(&d->lines, take_row, &rows);
	return r == -EBADMSG ? 0 : r;
}

static void drop_lines(struct dwarf_build *d)
{
	line_table_done(&d->lines);
	d->has_lines = false;
}

/* --- units --- */

int dwarf_build_tree(struct dwarf_build *d, Dwarf_Die *cu)
{
	return walk(d, cu, (struct place){0});
}

static int take_unit(struct dwarf_build *d, Dwarf_Die *cu)
{
	int r;

	if (dwarf_tag(cu) != DW_TAG_compile_unit && dwarf_tag(cu) != DW_TAG_skeleton_unit)
		return 0;
	r = take_lines(d, cu);
	if (r == 0)
		r = plain_begin(d, cu);
	if (r == 0)
		r = split_is(d, cu) ? split_unit(d, cu) : dwarf_build_tree(d, cu);
	drop_lines(d);
	return r;
}

static int open_dwarf(struct dwarf_build *d)
{
	d->dwarf = dwarf_begin_elf(d->image->elf, DWARF_C_READ, NULL);
	if (!d->dwarf)
		return -EBADMSG;
	if (d->alt) {
		d->alt_dwarf = dwarf_begin_elf(d->alt->elf, DWARF_C_READ, NULL);
		dwarf_setalt(d->dwarf, d->alt_dwarf);
	}
	return 0;
}

static void close_dwarf(struct dwarf_build *d)
{
	dwarf_end(d->dwarf);
	dwarf_end(d->alt_dwarf);
	d->dwarf = d->alt_dwarf = NULL;
}

static int lighten(struct dwarf_build *d, bool *ret_reopened)
{
	*ret_reopened = false;
	if (d->input < TRIM_BYTES)
		return 0;
	d->input = 0;
	trim(d);
	if (heap_bytes() < d->heap + HEAP_MORE)
		return 0;
	close_dwarf(d);
	malloc_trim(0);
	*ret_reopened = true;
	return open_dwarf(d);
}

static int each_unit(struct dwarf_build *d)
{
	Dwarf_Off offset = 0, next;
	size_t head;
	int r = 0;

	while (r == 0 && dwarf_next_unit(d->dwarf, offset, &next, &head, NULL, NULL, NULL, NULL, NULL, NULL) == 0 &&
	       next > offset) {
		bool reopened;
		Dwarf_Die cu;

		if (dwarf_offdie(d->dwarf, offset + head, &cu))
			r = take_unit(d, &cu);
		d->input += next - offset;
		offset = next;
		if (r == 0)
			r = lighten(d, &reopened);
		/* What it costs to come back to here is not held against it. */
		if (r == 0 && reopened && dwarf_offdie(d->dwarf, offset, &cu))
			d->heap = heap_bytes();
	}
	return r;
}

static void dwarf_build_done(struct dwarf_build *d)
{
	split_done(d);
	drop_lines(d);
	close_dwarf(d);
	map_done(&d->tables);
	free(d->known);
}

int build_dwarf(struct builder *b, const struct image *m, const struct image *alt)
{
	_cleanup_(dwarf_build_done) struct dwarf_build d = {.b = b, .image = m, .alt = alt};
	int r;

	d.known = calloc(KNOWN_FUNCTIONS, sizeof(*d.known));
	if (!d.known)
		return -ENOMEM;
	image_section(m, ".debug_line", &d.sections.line);
	image_section(m, ".debug_line_str", &d.sections.line_str);
	image_section(m, ".debug_str", &d.sections.str);
	r = open_dwarf(&d);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	d.heap = heap_bytes();
	return each_unit(&d);
}
