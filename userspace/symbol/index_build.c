// SPDX-License-Identifier: Apache-2.0
#include "symbol/index_build.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "symbol/build.h"
#include "symbol/unpack.h"

#define NEST_MAX 256
#define XZ_MAX	 (64u << 20)

bool builder_is_code(const struct builder *b, uint64_t start, uint64_t len)
{
	for (uint32_t i = 0; start && i < b->binary->nr_segments; i++) {
		const struct binary_segment *s = &b->binary->segments[i];

		if (s->flags & 1 && start - s->vaddr < s->memsz)
			return len <= s->memsz - (start - s->vaddr);
	}
	return false;
}

/* --- order --- */

static int three_way(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/*
 * What contains comes before what is contained. Of two functions at one place
 * (identical code folded by the linker) the one that came first is innermost.
 */
static int functions_order(const void *pa, const void *pb)
{
	const struct sort_record *a = pa, *b = pb;
	int r = three_way(a->key, b->key);

	r = r ? r : three_way(b->v[0], a->v[0]);
	r = r ? r : three_way(a->v[2], b->v[2]);
	return r ? r : three_way(b->v[3], a->v[3]);
}

/* The best name last: it is the one that stays. */
static int symbols_order(const void *pa, const void *pb)
{
	const struct sort_record *a = pa, *b = pb;
	int r = three_way(a->key, b->key);

	r = r ? r : three_way(b->v[1], a->v[1]);
	return r ? r : three_way(b->v[3], a->v[3]);
}

/* Of two units that claim one address the first one wins, as for functions. */
static int lines_order(const void *pa, const void *pb)
{
	const struct sort_record *a = pa, *b = pb;
	int r = three_way(a->key, b->key);

	return r ? r : three_way(b->v[2], a->v[2]);
}

/* --- nested ranges made flat --- */

struct nest {
	struct index_writer *out;
	uint32_t depth;
	struct {
		uint64_t end;
		uint32_t value;
		bool open; /* no size known: up to the next one */
	} stack[NEST_MAX];
};

static void nest_pop(struct nest *n, uint64_t up_to)
{
	while (n->depth && n->stack[n->depth - 1].end <= up_to) {
		uint64_t end = n->stack[--n->depth].end;

		while (n->depth && n->stack[n->depth - 1].end <= end)
			n->depth--;
		index_add_row(n->out, end, n->depth ? n->stack[n->depth - 1].value : 0, 0);
	}
}

/* What begins inside another and ends behind it cuts it short (end_first), or is cut. */
static void nest_push(struct nest *n, uint64_t start, uint64_t end, uint32_t value, bool open, bool end_first)
{
	while (n->depth && (n->stack[n->depth - 1].open || (end_first && n->stack[n->depth - 1].end < end)))
		n->depth--;
	if (n->depth)
		end = MIN(end, n->stack[n->depth - 1].end);
	if (start >= end)
		return;
	/* What ends here too is covered up to its end: fifty units may claim one inline function's code. */
	if (n->depth && n->stack[n->depth - 1].end == end)
		n->depth--;
	if (n->depth == NEST_MAX)
		return;
	n->stack[n->depth].end = end;
	n->stack[n->depth].value = value;
	n->stack[n->depth++].open = open;
	index_add_row(n->out, start, value, 0);
}

static int take_function(void *ctx, const struct sort_record *r)
{
	struct nest *n = ctx;

	nest_pop(n, r->key);
	nest_push(n, r->key, r->key + r->v[0], r->v[1], false, !r->v[2]);
	return 0;
}

/* Several names of one start: the one with the best rank is the last of them. */
struct symbol_nest {
	struct nest nest;
	const struct builder *b;
	bool has;
	struct sort_record best;
	uint64_t longest;
};

static uint64_t section_end(const struct builder *b, uint64_t addr)
{
	for (uint32_t i = 0; i < b->binary->nr_sections; i++) {
		const struct binary_section *s = &b->binary->sections[i];

		if (s->flags & 4 && addr - s->addr < s->size)
			return s->addr + s->size;
	}
	return addr;
}

/*
 * A symbol without a size (assembly) reaches to the next one, unless it only
 * marks a place inside a function that has one.
 */
static void push_symbol(struct symbol_nest *s)
{
	struct nest *n = &s->nest;
	uint64_t start = s->best.key;
	bool open = !s->longest;

	if (!s->has)
		return;
	nest_pop(n, start);
	if (open && n->depth && !n->stack[n->depth - 1].open)
		return;
	nest_push(n, start, open ? section_end(s->b, start) : start + s->longest, s->best.v[2], open,
		  !open);
}

/* A name without a size does not stand for a function that has one. */
static int take_symbol(void *ctx, const struct sort_record *r)
{
	struct symbol_nest *s = ctx;

	if (!s->has || s->best.key != r->key) {
		push_symbol(s);
		s->best = *r;
		s->longest = r->v[0];
		s->has = true;
		return 0;
	}
	if (r->v[0] || !s->longest)
		s->best = *r;
	s->longest = MAX(s->longest, r->v[0]);
	return 0;
}

static int take_line(void *ctx, const struct sort_record *r)
{
	index_add_row(ctx, r->key, r->v[0], r->v[1]);
	return 0;
}

static int write_tables(struct builder *b)
{
	struct nest functions = {.out = b->out};
	struct symbol_nest symbols = {.nest.out = b->out, .b = b};
	int r;

	index_table_begin(b->out, INDEX_FUNCTIONS);
	r = sorter_finish(b->functions, take_function, &functions);
	nest_pop(&functions, UINT64_MAX);
	if (r == 0)
		r = index_table_end(b->out);
	if (r < 0)
		return r;
	index_table_begin(b->out, INDEX_SYMBOLS);
	r = sorter_finish(b->symbols, take_symbol, &symbols);
	push_symbol(&symbols);
	nest_pop(&symbols.nest, UINT64_MAX);
	if (r == 0)
		r = index_table_end(b->out);
	if (r < 0)
		return r;
	index_table_begin(b->out, INDEX_LINES);
	r = sorter_finish(b->lines, take_line, b->out);
	return r < 0 ? r : index_table_end(b->out);
}

/* --- input --- */

static void scratch_image(struct builder *b, const struct image_part *packed, struct image *ret)
{
	uint64_t offset, size, before = b->scratch.end;

	if (scratch_take(&b->scratch, XZ_MAX, &offset) < 0)
		return;
	if (unpack_xz(packed->data, packed->len, b->scratch.fd, offset, XZ_MAX, &size) < 0) {
		b->scratch.end = before;
		return;
	}
	b->scratch.end = offset + ALIGN_UP(size, (uint64_t)4096);
	image_open(b->scratch.fd, offset, size, &b->scratch, ret);
}

/* The symbols that a stripped file keeps packed in itself (Fedora's MiniDebugInfo). */
static int add_packed_symbols(struct builder *b, const struct image *m, bool *any)
{
	_cleanup_(image_close) struct image mini = {0};
	struct image_part packed;

	if (!image_section(m, ".gnu_debugdata", &packed))
		return 0;
	scratch_image(b, &packed, &mini);
	return mini.base ? build_symbols(b, &mini, SHT_SYMTAB, any) : 0;
}

static bool has_dwarf(const struct image *m)
{
	struct image_part p;

	return m->base && image_section(m, ".debug_info", &p) && p.len;
}

static int add_symbols(struct builder *b, const struct image *m, const struct image *debug)
{
	bool whole = false, any = false;
	int r = build_symbols(b, m, SHT_SYMTAB, &whole);

	if (r == 0 && debug->base)
		r = build_symbols(b, debug, SHT_SYMTAB, &whole);
	if (whole)
		b->flags |= INDEX_HAS_SYMBOLS;
	if (r == 0 && !whole)
		r = add_packed_symbols(b, m, &any);
	if (any)
		b->flags |= INDEX_HAS_PACKED;
	/* A full table has these too. */
	return r == 0 && !whole ? build_symbols(b, m, SHT_DYNSYM, &any) : r;
}

static int add_dwarf(struct builder *b, const struct image *m)
{
	_cleanup_(image_close) struct image alt = {0};

	if (b->job->symbols_only || !has_dwarf(m))
		return 0;
	debug_alt_open(b, m, &alt);
	b->flags |= INDEX_HAS_DWARF;
	return build_dwarf(b, m, alt.base ? &alt : NULL);
}

/* The table has what debug information has; where there is that, C code of the same program has it as well. */
static int add_go(struct builder *b)
{
	int r = b->flags & INDEX_HAS_DWARF ? -ENOENT : build_go(b);

	if (r == 0)
		b->flags |= INDEX_HAS_GO;
	return r == -ENOENT ? 0 : r;
}

static int add_all(struct builder *b)
{
	_cleanup_(image_close) struct image m = {0};
	_cleanup_(image_close) struct image debug = {0};
	int r = image_open(b->job->elf_fd, 0, b->binary->size, &b->scratch, &m);

	if (r < 0)
		return r;
	if (!has_dwarf(&m))
		debug_file_open(b, &m, &debug);
	r = add_symbols(b, &m, &debug);
	image_trim(&m);
	if (debug.base)
		image_trim(&debug);
	if (r == 0)
		r = add_dwarf(b, debug.base ? &debug : &m);
	return r < 0 ? r : add_go(b);
}

static int begin(struct builder *b)
{
	int fd = fcntl(b->job->elf_fd, F_DUPFD_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	r = binary_open(fd, b->job->path, &b->binary);
	if (r == 0 && (!b->binary->is_elf || !b->binary->is_64))
		r = -EBADMSG;
	if (r == 0)
		r = index_writer_new(b->job->out_fd, &b->scratch, &b->out);
	if (r == 0)
		r = sorter_new(&b->scratch, functions_order, &b->functions);
	if (r == 0)
		r = sorter_new(&b->scratch, symbols_order, &b->symbols);
	return r < 0 ? r : sorter_new(&b->scratch, lines_order, &b->lines);
}

static void builder_done(struct builder *b)
{
	sorter_free(b->functions);
	sorter_free(b->symbols);
	sorter_free(b->lines);
	index_writer_free(b->out);
	binary_put(b->binary);
}

static int finish(struct builder *b, struct index_report *ret)
{
	struct index_identity of;
	struct stat st;
	int r = write_tables(b);

	index_identity_of(b->binary, &of);
	if (r == 0)
		r = index_writer_finish(b->out, &of, b->flags);
	if (r < 0)
		return r;
	*ret = (struct index_report){
		.flags = b->flags,
		.functions = index_writer_rows(b->out, INDEX_FUNCTIONS),
		.symbols = index_writer_rows(b->out, INDEX_SYMBOLS),
		.lines = index_writer_rows(b->out, INDEX_LINES),
		.scratch_bytes = b->scratch.end,
		.index_bytes = fstat(b->job->out_fd, &st) == 0 ? (uint64_t)st.st_size : 0,
	};
	return 0;
}

int index_build(const struct index_job *job, struct index_report *ret)
{
	_cleanup_(builder_done) struct builder b = {
		.job = job, .scratch = {.fd = job->scratch_fd, .limit = INDEX_SCRATCH_MAX}};
	int r;

	elf_version(EV_CURRENT);
	r = begin(&b);
	if (r == 0)
		r = add_all(&b);
	return r < 0 ? r : finish(&b, ret);
}
