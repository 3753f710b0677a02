// SPDX-License-Identifier: Apache-2.0
/*
 * V8 in a program that exports nothing of it and has no symbols: Deno. Its constants are known by version (v8_rows); the rest
 * is found by what it looks like:
 * - the version, by the word that the embedder adds to it (.gn of rusty_v8, v8_embedder_string);
 * - the table of where builtins lie in the code: offset, length and offset of further data, of 32 bits each, the first two
 *   builtins having no such data, each aligned behind the one before (V8, embedded-data.h, LayoutDescription);
 * - the code, by what is between builtins: int3 (embedded-data.cc), from where a page begins (embedded-file-writer.cc);
 * - what builtins are called, by the relocation that puts the first one's name into its table (builtins.cc,
 *   builtin_metadata);
 * - the isolates, by the only pointer of the program's data to what has a list of them (wasm-engine.cc, global_wasm_state):
 *   an isolate is known by pointers to itself.
 * Cost: constants and a part of each page of code are read once for a process, some 100 MiB of a file at most.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "runtime/v8.h"

#define EMBEDDER      "-rusty"
#define ALIGNMENT     64u
#define PAGE	      4096u
#define PIECE	      (64u << 10)
#define OVERLAP	      1024u
#define CONSTANTS_MAX (64ull << 20)
#define CODE_MAX      (128ull << 20) /* of the program, in which builtins are sought */
#define RELOCS_MAX    (32ull << 20)
#define DATA_MAX      (2u << 20) /* in which pointers are sought */
#define LAYOUT_WORDS  3u
#define LAYOUT_TRIED  16u
#define BUILTINS_MAX  4096u
#define INT3	      0xcc

/* --- pieces of a section --- */

/* Calls back with each piece, and OVERLAP bytes behind it, until that answers other than 0. */
typedef int v8_piece_fn(void *ctx, uint64_t vaddr, const uint8_t *bytes, size_t len, size_t own);

static int v8_pieces(struct binary *b, const char *name, uint64_t most, v8_piece_fn *fn, void *ctx)
{
	static uint8_t bytes[PIECE + OVERLAP];
	const struct binary_section *s = binary_section(b, name);
	int err = 0;

	if (!s || s->type == SHT_NOBITS)
		return -ENOENT;
	for (uint64_t at = 0; at < MIN(s->size, most) && !err; at += PIECE) {
		const size_t len = (size_t)MIN(s->size - at, (uint64_t)sizeof(bytes));
		const ssize_t n = binary_read(b, s->offset + at, bytes, len);

		if (n <= 0)
			return n ? (int)n : -ENODATA;
		err = fn(ctx, s->addr + at, bytes, (size_t)n, MIN((size_t)n, (size_t)PIECE));
	}
	return err;
}

/* --- constants --- */

/* The digits and dots before the embedder's word; false: there are none, or more than a version has. */
static bool v8_hidden_version(const uint8_t *bytes, size_t word, char to[V8_HIDDEN_VERSION])
{
	size_t from = word;

	while (from && word - from < V8_HIDDEN_VERSION && (bytes[from - 1] == '.' || (bytes[from - 1] >= '0' && bytes[from - 1] <= '9')))
		from--;
	if (from == word || word - from >= V8_HIDDEN_VERSION)
		return false;
	memcpy(to, bytes + from, word - from);
	to[word - from] = '\0';
	return true;
}

static uint32_t v8_hidden_padded(uint32_t len)
{
	return ALIGN_UP(len + 1, ALIGNMENT);
}

static bool v8_hidden_is_layout(const uint8_t *bytes)
{
	uint32_t word[LAYOUT_WORDS * LAYOUT_TRIED], end = 0;

	memcpy(word, bytes, sizeof(word));
	for (uint32_t i = 0; i < LAYOUT_TRIED; i++) {
		const uint32_t *entry = word + (size_t)i * LAYOUT_WORDS;

		if (entry[0] != end || !entry[1] || entry[1] > PIECE || (i < 2 && entry[2]))
			return false;
		end = entry[0] + v8_hidden_padded(entry[1]);
	}
	return true;
}

static void v8_hidden_see_text(struct v8_hidden *seen, uint64_t vaddr, const uint8_t *bytes, size_t len, size_t own)
{
	static const char first[] = "\0" V8_FIRST_BUILTIN; /* with its own end */
	const uint8_t *at = seen->name ? NULL : memmem(bytes, len, first, sizeof(first));

	if (at && (size_t)(at - bytes) < own)
		seen->name = vaddr + (uint64_t)(at - bytes) + 1;
	at = seen->version[0] ? NULL : memmem(bytes, len, EMBEDDER, sizeof(EMBEDDER));
	if (at)
		v8_hidden_version(bytes, (size_t)(at - bytes), seen->version);
}

static int v8_hidden_see(void *ctx, uint64_t vaddr, const uint8_t *bytes, size_t len, size_t own)
{
	const size_t table = sizeof(uint32_t) * LAYOUT_WORDS * LAYOUT_TRIED;
	struct v8_hidden *seen = ctx;
	uint32_t word;

	v8_hidden_see_text(seen, vaddr, bytes, len, own);
	for (size_t i = 0; i < own && i + table <= len && !seen->layout; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		if (!word && v8_hidden_is_layout(bytes + i))
			seen->layout = vaddr + i;
	}
	return 0;
}

/* --- code --- */

struct v8_hidden_code {
	struct binary *binary;
	uint64_t layout, code; /* addresses in the file; code 0: not met */
	uint32_t nr, size;
	uint32_t place[BUILTINS_MAX][2]; /* offset, length */
};

static bool v8_hidden_read(struct v8_hidden_code *c, uint64_t vaddr, void *to, size_t len)
{
	return binary_read_vaddr(c->binary, vaddr, to, len) == (ssize_t)len;
}

static int v8_hidden_layout(struct v8_hidden_code *c)
{
	uint32_t entry[LAYOUT_WORDS];

	for (c->nr = c->size = 0; c->nr < BUILTINS_MAX; c->nr++) {
		if (!v8_hidden_read(c, c->layout + (uint64_t)c->nr * sizeof(entry), entry, sizeof(entry)))
			return -ENOTSUP;
		if (entry[0] != c->size || !entry[1] || entry[1] > CODE_MAX / 8 || c->size > CODE_MAX / 2)
			break;
		memcpy(c->place[c->nr], entry, sizeof(c->place[0]));
		c->size += v8_hidden_padded(entry[1]);
	}
	return c->nr > LAYOUT_TRIED ? 0 : -ENOTSUP;
}

/* Whether there is nothing but int3 behind each builtin. */
static bool v8_hidden_is_code(struct v8_hidden_code *c, uint64_t code)
{
	uint8_t gap[ALIGNMENT];

	for (uint32_t i = 0; i < c->nr; i++) {
		const uint32_t end = c->place[i][0] + c->place[i][1], len = v8_hidden_padded(c->place[i][1]) - c->place[i][1];

		if (!v8_hidden_read(c, code + end, gap, len))
			return false;
		for (uint32_t k = 0; k < len; k++)
			if (gap[k] != INT3)
				return false;
	}
	return true;
}

static int v8_hidden_code(struct v8_hidden_code *c)
{
	const struct binary_section *s = binary_section(c->binary, ".text");

	if (!s)
		return -ENOTSUP;
	for (uint64_t at = ALIGN_UP(s->addr, (uint64_t)PAGE); at - s->addr < MIN(s->size, CODE_MAX) && !c->code; at += PAGE)
		if (s->size - (at - s->addr) >= c->size && v8_hidden_is_code(c, at))
			c->code = at;
	return c->code ? 0 : -ENOTSUP;
}

/* --- names --- */

struct v8_hidden_name { uint64_t section, name, table; };

static int v8_hidden_relocation(void *ctx, uint64_t vaddr, const uint8_t *bytes, size_t len, size_t own)
{
	struct v8_hidden_name *n = ctx;
	Elf64_Rela r;
	/* Pieces are no multiple of a relocation. */
	const size_t first = (sizeof(r) - (vaddr - n->section) % sizeof(r)) % sizeof(r);

	for (size_t i = first; i < own && i + sizeof(r) <= len; i += sizeof(r)) {
		memcpy(&r, bytes + i, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE && (uint64_t)r.r_addend == n->name)
			n->table = r.r_offset;
	}
	return n->table ? 1 : 0;
}

/* 0: not met, as where a program lies where it was linked to. */
static uint64_t v8_hidden_names(struct binary *b, uint64_t name)
{
	const struct binary_section *s = binary_section(b, ".rela.dyn");
	struct v8_hidden_name n = {.name = name};

	if (!name || !s)
		return 0;
	n.section = s->addr;
	v8_pieces(b, ".rela.dyn", RELOCS_MAX, v8_hidden_relocation, &n);
	return n.table;
}

/* --- isolates --- */

static bool v8_hidden_is_isolate(const struct v8 *v, struct memory *m, uint64_t isolate)
{
	const struct v8_row *row = v8_row(v);
	uint64_t self, of_heap;

	return isolate % 8 == 0 && memory_u64(m, isolate + V8_ISOLATE_SELF, &self) == 0 && self == isolate &&
	       memory_u64(m, isolate + row->isolate_heap + row->heap_isolate, &of_heap) == 0 && of_heap == isolate;
}

/* Whether a list of isolates is where the manager of WebAssembly has it. */
static bool v8_hidden_is_manager(const struct v8 *v, struct memory *m, uint64_t manager)
{
	uint64_t node, isolate;

	return memory_u64(m, manager + v8_row(v)->wasm.isolates, &node) == 0 && node && node % 8 == 0 &&
	       memory_u64(m, node + v8_row(v)->wasm.isolate_key, &isolate) == 0 && v8_hidden_is_isolate(v, m, isolate);
}

struct v8_data { uint64_t file, end; /* where the program lies; of its data, the last of it */ };

/* Of the pointers in a piece of the data, which lead out of the program. */
static uint64_t v8_hidden_manager_in(const struct v8 *v, struct memory *m, const struct v8_data *d, uint64_t at)
{
	const size_t len = (size_t)MIN(d->end - at, (uint64_t)PAGE);
	uint64_t word[PAGE / sizeof(uint64_t)];

	if (memory_read(m, at, word, len))
		return 0;
	for (size_t i = 0; i < len / sizeof(word[0]); i++) {
		if (word[i] < PAGE || word[i] % 8 || word[i] >> 47 || (word[i] >= d->file && word[i] < d->end))
			continue;
		if (v8_hidden_is_manager(v, m, word[i]))
			return at + i * sizeof(word[0]);
	}
	return 0;
}

int v8_hidden_isolates(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	const struct binary_section *s = binary_section(file->binary, ".bss");
	struct v8_data d = {.file = file->bias};

	v->wasm = 0;
	if (!s)
		return -ENOTSUP;
	d.end = file->bias + s->addr + MIN(s->size, (uint64_t)DATA_MAX);
	for (uint64_t at = file->bias + s->addr; at < d.end && !v->wasm; at += PAGE)
		v->wasm = v8_hidden_manager_in(v, m, &d, at);
	return v->wasm ? 0 : -EAGAIN;
}

/* --- all --- */

int v8_hidden_look(struct binary *b, struct v8_hidden *ret)
{
	int err;

	*ret = (struct v8_hidden){0};
	err = v8_pieces(b, ".rodata", CONSTANTS_MAX, v8_hidden_see, ret);
	return err ? err : (ret->version[0] ? 0 : -ENOENT);
}

int v8_hidden_blob(const struct runtime_file *file, const struct v8_hidden *h, struct v8 *v, uint64_t *ret_data)
{
	static struct v8_hidden_code c;
	uint64_t names;
	int err;

	c = (struct v8_hidden_code){.binary = file->binary, .layout = h->layout};
	err = h->layout ? v8_hidden_layout(&c) : -ENOTSUP;
	if (!err)
		err = v8_hidden_code(&c);
	if (err)
		return err;
	names = v8_hidden_names(file->binary, h->name);
	v->builtins = file->bias + c.code;
	v->builtins_end = v->builtins + c.size;
	v->names = names ? file->bias + names : 0;
	*ret_data = file->bias + h->layout - V8_LAYOUT_AT;
	return 0;
}

/* What the interface for addons needs (node_api.h), which Deno has too. */
bool v8_hidden_holds(struct binary *b)
{
	return b->machine == EM_X86_64 && runtime_exports(b, "napi_create_function");
}
