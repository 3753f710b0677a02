// SPDX-License-Identifier: Apache-2.0
/* Lookups of addresses in an index. Whatever the file contains, a lookup reads a few pages and ends. */
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "symbol/bytes.h"
#include "symbol/index.h"
#include "symbol/naming.h"

#define CHAIN_STEPS_MAX 4096
#define NODE_BYTES_MAX	50

void index_identity_of(const struct binary *b, struct index_identity *ret)
{
	*ret = (struct index_identity){.size = b->size, .dev = b->dev, .ino = b->ino, .ctime_ns = b->ctime_ns,
				       .build_id_len = b->build_id_len};
	memcpy(ret->htlhash, b->htlhash, sizeof(ret->htlhash));
	memcpy(ret->build_id, b->build_id, sizeof(ret->build_id));
}

static bool index_lies_within(uint64_t offset, uint64_t bytes, uint64_t end)
{
	return offset <= end && bytes <= end - offset;
}

static bool index_head_is_valid(const struct index_head *h, uint64_t size)
{
	if (memcmp(h->magic, INDEX_MAGIC, sizeof(h->magic)) != 0 || h->version != INDEX_VERSION ||
	    h->file_bytes != size || h->crc != crc32(0, (const Bytef *)h, offsetof(struct index_head, crc)))
		return false;
	if (!index_lies_within(h->heap_offset, h->heap_bytes, size) || h->heap_bytes > UINT32_MAX)
		return false;
	for (int i = 0; i < INDEX_TABLE_NR; i++) {
		const struct index_table *t = &h->table[i];

		if (!index_lies_within(t->dir_offset, (uint64_t)t->blocks * sizeof(struct index_block), size) ||
		    !index_lies_within(t->data_offset, t->data_bytes, size))
			return false;
	}
	return true;
}

/* The change time may differ (another link, a new owner); the hashed bytes must not. */
static bool index_is_of(const struct index_head *h, const struct binary *b)
{
	struct index_identity have = h->of, want;

	index_identity_of(b, &want);
	have.ctime_ns = want.ctime_ns = 0;
	return memcmp(&have, &want, sizeof(have)) == 0;
}

static void binary_putp(struct binary **b)
{
	binary_put(*b);
}

int index_open(struct binary *file, const struct binary *of, struct index **ret)
{
	_cleanup_(binary_putp) struct binary *own = file;
	struct index_head head;
	struct index *x;

	if (binary_read(file, 0, &head, sizeof(head)) != sizeof(head) || !index_head_is_valid(&head, file->size))
		return -EBADMSG;
	if (!index_is_of(&head, of))
		return -ESTALE;
	x = malloc(sizeof(*x));
	if (!x)
		return -ENOMEM;
	*x = (struct index){.file = steal_ptr(&own), .head = head};
	*ret = x;
	return 0;
}

struct index *index_free(struct index *x)
{
	if (x)
		binary_put(x->file);
	free(x);
	return NULL;
}

/* --- tables --- */

static uint32_t index_read_u32(struct bytes *b)
{
	uint64_t v = bytes_uleb(b);

	b->bad |= v > UINT32_MAX;
	return (uint32_t)v;
}

static uint32_t index_read_difference(struct bytes *b, uint32_t from)
{
	uint64_t v = bytes_uleb(b);

	return from + (uint32_t)((v >> 1) ^ -(v & 1));
}

static int index_read_block(struct index *x, const struct index_table *t, uint32_t number, struct index_block *ret)
{
	ssize_t n = binary_read(x->file, t->dir_offset + (uint64_t)number * sizeof(*ret), ret, sizeof(*ret));

	return n == sizeof(*ret) ? 0 : -EBADMSG;
}

/* The last block that begins at or below addr. */
static int index_find_block(struct index *x, const struct index_table *t, uint64_t addr, struct index_block *ret)
{
	uint32_t lo = 0, hi = t->blocks;
	struct index_block b;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (index_read_block(x, t, mid, &b) < 0)
			return -EBADMSG;
		if (b.addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return -ENOENT;
	return index_read_block(x, t, lo - 1, ret);
}

/* The values at addr; -ENOENT where there is no information. */
static int index_find_row(struct index *x, enum index_table_kind kind, uint64_t vaddr, uint32_t ret[2])
{
	const struct index_table *t = &x->head.table[kind];
	uint8_t data[INDEX_BLOCK_MAX];
	struct index_block b;
	struct bytes in = {.p = data};
	uint32_t v[2] = {0}, have[2] = {0};
	uint64_t addr;
	int r = index_find_block(x, t, vaddr, &b);

	if (r < 0)
		return r;
	if (b.bytes > sizeof(data) || !index_lies_within(b.offset, b.bytes, t->data_bytes) ||
	    binary_read(x->file, t->data_offset + b.offset, data, b.bytes) != b.bytes)
		return -EBADMSG;
	in.end = data + b.bytes;
	addr = b.addr;
	for (uint16_t i = 0; i < MIN(b.rows, INDEX_BLOCK_ROWS); i++) {
		addr += bytes_uleb(&in);
		v[0] = index_read_difference(&in, v[0]);
		v[1] = index_read_difference(&in, v[1]);
		if (in.bad)
			return -EBADMSG;
		if (addr > vaddr)
			break;
		have[0] = v[0];
		have[1] = v[1];
	}
	if (!have[0])
		return -ENOENT;
	ret[0] = have[0];
	ret[1] = have[1];
	return 0;
}

/* --- heap --- */

static int index_read_string(struct index *x, uint32_t at, char to[INDEX_STRING_MAX])
{
	size_t want;
	ssize_t n;

	if (!at || at >= x->head.heap_bytes)
		return -ENOENT;
	want = MIN(x->head.heap_bytes - at, (uint64_t)INDEX_STRING_MAX - 1);
	/* Most names are short: one page is read, not two. */
	n = binary_read(x->file, x->head.heap_offset + at, to, MIN(want, 96u));
	if (n == 96 && !memchr(to, '\0', 96))
		n = binary_read(x->file, x->head.heap_offset + at, to, want);
	if (n < 0)
		return -EBADMSG;
	to[n] = '\0';
	return *to ? 0 : -ENOENT;
}

struct node {
	uint32_t parent, name, call_file, call_line, start_line;
};

static int index_read_node(struct index *x, uint32_t at, struct node *ret)
{
	uint8_t raw[NODE_BYTES_MAX];
	struct bytes in = {.p = raw};
	uint32_t back;
	ssize_t n;

	if (!at || at >= x->head.heap_bytes)
		return -EBADMSG;
	n = binary_read(x->file, x->head.heap_offset + at, raw, MIN(sizeof(raw), x->head.heap_bytes - at));
	if (n <= 0)
		return -EBADMSG;
	in.end = raw + n;
	back = index_read_u32(&in);
	ret->name = index_read_u32(&in);
	ret->call_file = index_read_u32(&in);
	ret->call_line = index_read_u32(&in);
	ret->start_line = index_read_u32(&in);
	if (in.bad || back >= at)
		return -EBADMSG;
	ret->parent = back ? at - back : 0;
	return 0;
}

/* Innermost first. If the chain is too long, the outermost function stays, and those in the middle are dropped. */
static int index_read_chain(struct index *x, uint32_t at, struct node chain[SYMBOL_LINES_MAX], uint32_t *ret_count)
{
	uint32_t n = 0;

	for (uint32_t steps = 0; at; steps++) {
		/* The last one is dropped: its call place becomes that of the function inside it. */
		if (steps >= SYMBOL_LINES_MAX) {
			chain[SYMBOL_LINES_MAX - 2].call_file = chain[SYMBOL_LINES_MAX - 1].call_file;
			chain[SYMBOL_LINES_MAX - 2].call_line = chain[SYMBOL_LINES_MAX - 1].call_line;
		}
		if (steps == CHAIN_STEPS_MAX || index_read_node(x, at, &chain[n]) < 0)
			return -EBADMSG;
		at = chain[n].parent;
		n = MIN(n + 1, SYMBOL_LINES_MAX - 1u);
		if (!at && steps >= SYMBOL_LINES_MAX - 1u)
			n = SYMBOL_LINES_MAX;
	}
	*ret_count = n;
	return 0;
}

/* --- an answer --- */

struct place {
	uint32_t file, line;
};

struct lookup {
	struct index *x;
	const struct index_options *o;
	struct node chain[SYMBOL_LINES_MAX];
	uint32_t nodes;
	uint32_t symbol; /* name of the symbol there, 0: none */
	struct place at;
	char text[INDEX_STRING_MAX];
};

static void index_set_source(struct lookup *l, struct symbol_line *to, struct place p)
{
	if (!l->o->lines || index_read_string(l->x, p.file, l->text) < 0)
		return;
	to->file = str_get_c(l->text);
	to->line = p.line;
}

/*
 * The outermost function has a symbol, which is the preferred one of its
 * several names (malloc, for __libc_malloc).
 */
static uint32_t index_read_name(const struct lookup *l, uint32_t number)
{
	bool outermost = number + 1 >= l->nodes;

	return outermost && l->symbol ? l->symbol : l->nodes ? l->chain[number].name : 0;
}

static int index_add_line(struct lookup *l, uint32_t number, struct place p, struct symbol_result *ret)
{
	struct symbol_line *to = &ret->lines[ret->count];
	int r;

	*to = (struct symbol_line){0};
	if (index_read_string(l->x, index_read_name(l, number), l->text) < 0)
		return -ENOENT;
	r = name_make(l->text, "", l->o->show_clones, &to->name);
	if (r < 0)
		return r;
	to->start_line = l->o->lines && l->nodes ? l->chain[number].start_line : 0;
	index_set_source(l, to, p);
	ret->count++;
	return 0;
}

static int index_add_lines(struct lookup *l, struct symbol_result *ret)
{
	struct place p = l->at;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < MAX(l->nodes, 1u); i++) {
		if (l->o->inlines || i + 1 >= l->nodes)
			r = index_add_line(l, i, p, ret);
		/* A function without a name must not hide those around it. */
		if (r == -ENOENT && i + 1 < l->nodes)
			r = 0;
		if (i < l->nodes)
			p = (struct place){l->chain[i].call_file, l->chain[i].call_line};
	}
	return r;
}

static const char *index_resolver_name(const struct lookup *l)
{
	if (l->nodes)
		return l->x->head.flags & INDEX_HAS_GO ? "gopclntab" : "dwarf";
	return l->x->head.flags & INDEX_HAS_PACKED ? "gnu_debugdata" : "debug_symbols";
}

int index_find(struct index *x, uint64_t vaddr, const struct index_options *o, struct symbol_result *ret)
{
	struct lookup l = {.x = x, .o = o};
	uint32_t row[2];
	int r;

	ret->count = 0;
	r = index_find_row(x, INDEX_FUNCTIONS, vaddr, row);
	if (r == 0)
		r = index_read_chain(x, row[0], l.chain, &l.nodes);
	if (r < 0 && r != -ENOENT)
		return r;
	if (index_find_row(x, INDEX_SYMBOLS, vaddr, row) == 0)
		l.symbol = row[0];
	if (o->lines && index_find_row(x, INDEX_LINES, vaddr, row) == 0)
		l.at = (struct place){row[0], row[1]};
	r = index_add_lines(&l, ret);
	if (ret->count) {
		ret->resolver = index_resolver_name(&l);
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}
