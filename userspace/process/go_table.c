// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the table of a file, and of its parts. It has a section of its own but
 * in a PIE that an external linker made, and where sections were removed or
 * renamed; there it is searched by its first bytes.
 */
#include "process/go_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HEAD_MAX 72
#define PIECE 4096
#define TREES_TRIED 32

/* Words of struct moduledata, which is written anew with every version or two. */
enum { MODULE_TABLE = 0, MODULE_NAMES = 1, MODULE_TEXT = 22, MODULE_WORDS = 48 };

static const uint32_t go_magic[GO_FORMAT_NR] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};

static uint64_t go_word(const uint8_t *head, unsigned number)
{
	uint64_t v;

	memcpy(&v, head + 8 + 8 * (size_t)number, sizeof(v));
	return v;
}

static bool go_table_read(struct binary *b, uint64_t vaddr, void *to, size_t len)
{
	return binary_read_vaddr(b, vaddr, to, len) == (ssize_t)len;
}

/* --- the head --- */

/* An unknown magic, which obfuscators write, is taken for the latest format: its parts are checked like any other's. */
static bool go_head_fits(const struct binary *b, const uint8_t *head, enum go_format *ret)
{
	uint32_t magic;

	memcpy(&magic, head, sizeof(magic));
	if (head[4] || head[5] || head[6] != (b->machine == EM_AARCH64 ? 4 : 1) || head[7] != 8)
		return false;
	*ret = GO_1_20;
	for (unsigned f = 0; f < GO_FORMAT_NR; f++)
		if (magic == go_magic[f])
			*ret = (enum go_format)f;
	return true;
}

/* Parts follow each other in this order; each is at an offset that the head has. */
static bool go_parts(struct go_table *t, const uint8_t *head)
{
	uint64_t *const part[] = {&t->names, &t->units, &t->files, &t->values, &t->functions};
	unsigned first = t->format == GO_1_16 ? 2 : 3;
	uint64_t size = t->end - t->at, last = 8;

	for (unsigned i = 0; i < ARRAY_SIZE(part); i++) {
		uint64_t offset = go_word(head, first + i);

		if (offset < last || offset >= size)
			return false;
		*part[i] = t->at + offset;
		last = offset;
	}
	return true;
}

/* Until Go 1.15 all offsets count from the table's start; where the files are follows the functions. */
static bool go_parts_1_2(struct go_table *t)
{
	uint64_t after = t->at + 16 + 16 * (uint64_t)t->count + 8;
	uint32_t files;

	t->names = t->values = t->at;
	t->functions = t->at + 16;
	if (!go_table_read(t->binary, after, &files, sizeof(files)) || files >= t->end - t->at)
		return false;
	t->files = t->at + files;
	return true;
}

static bool go_segment_end(const struct binary *b, uint64_t vaddr, uint64_t *ret)
{
	for (unsigned i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz && s->filesz <= UINT64_MAX - s->vaddr) {
			*ret = s->vaddr + s->filesz;
			return true;
		}
	}
	return false;
}

static bool go_open_at(struct binary *b, uint64_t at, struct go_table *ret)
{
	struct go_table t = {.binary = b, .at = at};
	uint8_t head[HEAD_MAX] = {0};
	uint64_t count;

	if (binary_read_vaddr(b, at, head, sizeof(head)) < 16 || !go_head_fits(b, head, &t.format) ||
	    !go_segment_end(b, at, &t.end))
		return false;
	count = go_word(head, 0);
	if (!count || count > GO_FUNCTIONS_MAX)
		return false;
	t.count = (uint32_t)count;
	t.quantum = head[6];
	if (t.format == GO_1_2 ? !go_parts_1_2(&t) : !go_parts(&t, head))
		return false;
	if (t.format >= GO_1_18)
		t.text = go_word(head, 2);
	*ret = t;
	return true;
}

/* --- searching --- */

typedef bool go_hit_fn(struct go_table *t, uint64_t vaddr);

struct go_search {
	struct go_table *table;
	go_hit_fn *hit;	     /* whether what was searched for is at vaddr */
	uint64_t want, mask; /* an aligned word with these bits, at which hit is asked */
	uint64_t left;	     /* bytes that may still be read */
};

static bool go_search_piece(struct go_search *s, uint64_t vaddr, const uint8_t *piece, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t word;

		memcpy(&word, piece + i, sizeof(word));
		if ((word & s->mask) == s->want && s->hit(s->table, vaddr + i))
			return true;
	}
	return false;
}

static bool go_search_range(struct go_search *s, struct binary *b, uint64_t vaddr, uint64_t size)
{
	uint64_t past = vaddr + MIN(size, s->left);
	uint8_t piece[PIECE];

	vaddr = ALIGN_UP(vaddr, (uint64_t)8);
	while (vaddr < past) {
		ssize_t n = binary_read_vaddr(b, vaddr, piece, MIN(past - vaddr, (uint64_t)sizeof(piece)));

		if (n < 8)
			return false;
		s->left -= MIN(s->left, (uint64_t)n);
		if (go_search_piece(s, vaddr, piece, (size_t)n))
			return true;
		vaddr += (uint64_t)n & ~7ULL;
	}
	return false;
}

static bool go_search_section(struct go_search *s, struct binary *b, const char *name)
{
	const struct binary_section *x = binary_section(b, name);

	return x && x->addr && x->type != SHT_NOBITS && go_search_range(s, b, x->addr, x->size);
}

static bool go_search_segments(struct go_search *s, struct binary *b)
{
	for (unsigned i = 0; i < b->nr_segments; i++)
		if (go_search_range(s, b, b->segments[i].vaddr, b->segments[i].filesz))
			return true;
	return false;
}

static bool go_hit_table(struct go_table *t, uint64_t vaddr)
{
	struct go_function first;
	struct go_table found;

	if (!go_open_at(t->binary, vaddr, &found))
		return false;
	*t = found;
	/* Where the text is may still be unknown: then only the table's own order can be looked at. */
	return go_function_at(t, 0, &first) == 0;
}

/* The head's first word, in a file that is Go's or has no sections to tell. All magics begin with the same digits. */
static bool go_search_table(struct binary *b, struct go_table *t)
{
	static const char *const places[] = {".data.rel.ro", ".rodata"};
	uint64_t rest = b->machine == EM_AARCH64 ? 0x0804ULL << 48 : 0x0801ULL << 48;
	struct go_search s = {.table = t, .hit = go_hit_table, .want = rest | 0xfffffff0, .mask = ~0xfULL,
			      .left = GO_SEARCH_MAX};

	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		if (go_search_section(&s, b, places[i]))
			return true;
	return !b->nr_sections && go_search_segments(&s, b);
}

static bool go_made(const struct binary *b)
{
	static const char *const names[] = {".go.buildinfo", ".note.go.buildid", ".go.module", ".noptrdata", ".noptrbss"};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (binary_section(b, names[i]))
			return true;
	return !b->nr_sections;
}

static bool go_find_table(struct binary *b, struct go_table *t)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};

	t->binary = b;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		const struct binary_section *s = binary_section(b, names[i]);

		if (s && s->addr && go_hit_table(t, s->addr))
			return true;
	}
	return go_made(b) && go_search_table(b, t);
}

/* --- the runtime's own record of the module, which has what the head of the table lacks --- */

static bool go_hit_module(struct go_table *t, uint64_t vaddr)
{
	uint64_t word[MODULE_TEXT + 1];

	if (!go_table_read(t->binary, vaddr, word, sizeof(word)) || word[MODULE_NAMES] != t->names ||
	    !binary_is_code(t->binary, word[MODULE_TEXT]))
		return false;
	t->module = vaddr;
	t->text = word[MODULE_TEXT];
	return true;
}

static bool go_find_module(struct binary *b, struct go_table *t)
{
	static const char *const places[] = {".go.module", ".noptrdata", ".data.rel.ro", ".data"};
	struct go_search s = {.table = t, .hit = go_hit_module, .want = t->at, .mask = ~0ULL, .left = GO_SEARCH_MAX};

	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		if (go_search_section(&s, b, places[i]))
			return true;
	return !b->nr_sections && go_search_segments(&s, b);
}

/* Go 1.26 leaves the word of the head empty, and so may a linker that leaves it to the loader. */
static int go_open(struct binary *b, struct go_table *t)
{
	struct go_function first;

	if (!b->is_elf || !b->is_64 || (b->machine != EM_X86_64 && b->machine != EM_AARCH64) || !go_find_table(b, t))
		return -ENOENT;
	if (t->format >= GO_1_18 && (!t->text || !binary_is_code(b, t->text)) && !go_find_module(b, t))
		return -ENOENT;
	if (go_function_at(t, 0, &first) < 0 || !binary_is_code(b, first.start))
		return -ENOENT;
	return 0;
}

static struct go_table *go_table_kept(struct binary *b)
{
	struct go_table *t = b->slot[BINARY_SLOT_GO];

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	if (go_open(b, t) < 0)
		t->count = 0;
	b->slot[BINARY_SLOT_GO] = t;
	b->slot_free[BINARY_SLOT_GO] = free;
	return t;
}

const struct go_table *go_table_get(struct binary *b)
{
	const struct go_table *t = go_table_kept(b);

	return t && t->count ? t : NULL;
}

/* --- inline trees --- */

/* Whether the first trees, counted from here, look like trees. */
static bool go_trees_fit(const struct go_table *from, uint64_t data)
{
	struct go_table t = *from;
	unsigned tried = 0;

	t.data = data;
	for (uint32_t i = 0; i < t.count && tried < TREES_TRIED; i++) {
		struct go_function f;
		struct go_inlined call;

		if (go_function_at(&t, i, &f) < 0)
			return false;
		if (!f.tree)
			continue;
		if (go_inlined_at(&t, &f, 0, &call) < 0)
			return false;
		/* Zeros prove nothing. */
		tried += call.name != 0;
	}
	return tried > 0;
}

/* The word of struct moduledata is another one in Go 1.18, 1.20 and 1.27: the right one leads to trees. */
int go_table_find_trees(struct binary *b)
{
	static const uint8_t numbers[] = {38, 40, 43};
	struct go_table *t = go_table_kept(b);
	uint64_t word[MODULE_WORDS] = {0}, text;

	if (!t || !t->count)
		return t ? -ENOENT : -ENOMEM;
	if (t->format < GO_1_18 || t->data)
		return 0;
	text = t->text;
	if (!t->module && !go_find_module(b, t))
		return -ENOENT;
	t->text = text;
	if (binary_read_vaddr(b, t->module, word, sizeof(word)) < 0)
		return -ENOENT;
	for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++)
		if (word[numbers[i]] && go_trees_fit(t, word[numbers[i]])) {
			t->data = word[numbers[i]];
			return 0;
		}
	return -ENOENT;
}
