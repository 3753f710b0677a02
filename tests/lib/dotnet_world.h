/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up CoreCLR 10, as 8 and 9 would find it too but for bounds, in the memory
 * of a process: a heap of code with a method and stubs, a list of stubs, an image
 * that was compiled before, and an assembly with types and methods, and a portable
 * PDB. Compilers' debug information is that of two of the methods.
 *
 * Included after put, put32 and put64 of WORLD are there (tests/lib/world.h).
 */
#ifndef OTP_TESTS_DOTNET_WORLD_H
#define OTP_TESTS_DOTNET_WORLD_H

#include <stdint.h>
#include <string.h>

#include <zlib.h>

#include "runtime/dotnet.h"
#include "tests/lib/dotnet_pdb.h"

#define DW_MAP	      (WORLD + 0x1000)	/* five levels, 2 KiB each */
#define DW_FRAGMENT(i) (WORLD + 0x4000 + 0x20ULL * (i))
#define DW_SECTION(i) (WORLD + 0x4200 + 0x80ULL * (i))
#define DW_HEAP	      (WORLD + 0x4800)
#define DW_NIBBLES    (WORLD + 0x4900)
#define DW_HEADER     (WORLD + 0x5000)
#define DW_LIST	      (WORLD + 0x5800)
#define DW_MODULE     (WORLD + 0x6000)
#define DW_R2R	      (WORLD + 0x6800)
#define DW_FUNCTIONS  (WORLD + 0x7000)
#define DW_BUCKETS    (WORLD + 0x7800)
#define DW_NR_BUCKETS 5u
#define DW_CHUNK      (WORLD + 0x8000)
#define DW_METHOD(i)  (DW_CHUNK + 24 + 0x40ULL * (i))
#define DW_TABLE      (WORLD + 0x8400)
#define DW_HELPERS    (WORLD + 0x8800)
#define DW_NAME	      (WORLD + 0x8a00)
#define DW_FILE	      (WORLD + 0x8c00) /* a PEAssembly, and what it leads to */
#define DW_DEBUG      (WORLD + 0x9000) /* of DW_RUN */
#define DW_CORE	      (WORLD + 0x9800) /* the ReadyToRunCoreInfo, and its header */
#define DW_CODE	      (WORLD + 0x10000) /* the heap */
#define DW_RUN	      (DW_CODE + 0x40)	/* a method: push rbp; push rbx; sub rsp, 32; ... */
#define DW_RUN_BYTES  0x60u
#define DW_RUN_LEAVES 0x40u /* add rsp, 32; pop rbx; pop rbp; ret */
#define DW_LOOKUP     (DW_CODE + 0x200)
#define DW_UNWIND     (DW_CODE + 0x3000)
#define DW_STUBS      (WORLD + 0x14000)
#define DW_BEFORE     (WORLD + 0x18000) /* compiled before */
#define DW_IMAGE      (WORLD + 0x1e000) /* the assembly */
#define DW_TABLES     (DW_IMAGE + 0x700)
#define DW_STRINGS    (DW_IMAGE + 0x900)
#define DW_BLOBS      (DW_IMAGE + 0xb00)
#define DW_ENTRIES    (DW_IMAGE + 0xd00) /* of its debug directory */
#define DW_PDB	      (DW_IMAGE + 0xe00) /* packed, behind 8 bytes */
#define DW_ARRAY      (DW_BEFORE + 0x3000) /* of debug information */

static inline void dotnet_put16(uint64_t at, uint16_t v)
{
	put(at, &v, sizeof(v));
}

static inline void dotnet_put_range(uint32_t i, uint64_t start, uint64_t end, uint32_t flags)
{
	put64(DW_FRAGMENT(i), DW_FRAGMENT(i + 1) | 1);
	put64(DW_FRAGMENT(i) + 8, start);
	put64(DW_FRAGMENT(i) + 16, end);
	put64(DW_FRAGMENT(i) + 24, DW_SECTION(i));
	put64(DW_SECTION(i), start);
	put64(DW_SECTION(i) + 8, end);
	put32(DW_SECTION(i) + 16, flags);
}

static inline void dotnet_put_map(void)
{
	for (unsigned level = 0; level < 5; level++) {
		uint64_t table = DW_MAP + 2048 * level, index = WORLD >> (17 + 8 * (4 - level)) & 0xff;

		put64(table + 8 * index, level < 4 ? table + 2048 : DW_FRAGMENT(0));
	}
	dotnet_put_range(0, DW_CODE, DW_CODE + 0x4000, DOTNET_RANGE_HEAP);
	put64(DW_SECTION(0) + 40, DW_HEAP);
	dotnet_put_range(1, DW_STUBS, DW_STUBS + 0x1000, DOTNET_RANGE_STUBS);
	put64(DW_SECTION(1) + 48, DW_LIST);
	put32(DW_LIST + 0x120, 5);
	dotnet_put_range(2, DW_BEFORE, DW_BEFORE + 0x4000, 0);
	put64(DW_SECTION(2) + 32, DW_MODULE);
	put64(DW_FRAGMENT(2), 0);
}

/* That a method or a stub begins there. */
static inline void dotnet_put_nibble(uint64_t code)
{
	uint64_t offset = code - DW_CODE, at = DW_NIBBLES + offset / 256 * 4;
	uint32_t word;

	memcpy(&word, world + (at - WORLD), sizeof(word));
	word |= (uint32_t)(offset % 32 / 4 + 1) << (28 - 4 * (offset % 256 / 32));
	put32(at, word);
}

/* --- debug information --- */

/* Bits, and numbers of three bits a nibble; flushed to a whole byte. */
struct dotnet_writer { uint8_t bytes[256]; size_t at; };

static inline void dotnet_put_bits(struct dotnet_writer *w, uint32_t value, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++, w->at++)
		w->bytes[w->at / 8] |= (uint8_t)((value >> i & 1) << w->at % 8);
}

static inline void dotnet_put_number(struct dotnet_writer *w, uint32_t value)
{
	unsigned shift = 0;

	while (shift < 30 && value >> (shift + 3))
		shift += 3;
	for (; shift; shift -= 3)
		dotnet_put_bits(w, 8 | (value >> shift & 7), 4);
	dotnet_put_bits(w, value & 7, 4);
}

static inline void dotnet_flush(struct dotnet_writer *w)
{
	w->at = (w->at + 7) / 8 * 8;
}

/* Of DW_RUN: offsets, and places of bytecode with 3 added: 0 is an epilogue, 1 a prologue, 2 none. */
static const uint8_t dotnet_bounds_of_run[][2] = {{0, 1}, {6, 3 + 0}, {0x10, 3 + 4}, {0x20, 2}, {0x28, 3 + 9}, {0x40, 0}, {0x48, 2}};
#define DW_BOUNDS (sizeof(dotnet_bounds_of_run) / sizeof(dotnet_bounds_of_run[0]))

static inline void dotnet_write_bounds(struct dotnet_writer *w, bool packed)
{
	uint8_t last = 0;

	dotnet_put_number(w, DW_BOUNDS);
	if (packed) {
		dotnet_put_number(w, 5 - 1);
		dotnet_put_number(w, 4 - 1);
		dotnet_flush(w);
	}
	for (size_t i = 0; i < DW_BOUNDS; i++) {
		const uint8_t by = dotnet_bounds_of_run[i][0] - last, place = dotnet_bounds_of_run[i][1];

		if (packed) {
			dotnet_put_bits(w, i & 3, 2);
			dotnet_put_bits(w, by, 5);
			dotnet_put_bits(w, place, 4);
		} else {
			dotnet_put_number(w, by);
			dotnet_put_number(w, place);
			dotnet_put_number(w, 0x10);
		}
		last += by;
	}
	dotnet_flush(w);
}

/* extra: what lies before it, from the byte of flags on. */
static inline void dotnet_put_debug(uint64_t to, bool packed, const void *extra, size_t len)
{
	struct dotnet_writer bounds = {.at = 0}, head = {.at = 0};

	dotnet_write_bounds(&bounds, packed);
	dotnet_put_number(&head, (uint32_t)bounds.at / 8);
	dotnet_put_number(&head, 0);
	dotnet_flush(&head);
	put(to, extra, len);
	put(to + len, head.bytes, head.at / 8);
	put(to + len + head.at / 8, bounds.bytes, bounds.at / 8);
}

static inline void dotnet_put_heap(void)
{
	static const uint8_t enter[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x20}, leave[] = {0x48, 0x83, 0xc4, 0x20, 0x5b, 0x5d, 0xc3},
			     unwind[] = {0x19, 6, 3, 0, 6, 0x32, 2, 0x30, 1, 0x50},
			     lookup[] = {0x90, 0x48, 0xb8, 1, 0, 0, 0, 2, 0, 0, 0, 0x50, 0x48, 0xb8, 2, 0, 0, 0, 2, 0, 0, 0, 0xff, 0xe0};

	put64(DW_HEAP + 16, DW_CODE + 0x10);
	put64(DW_HEAP + 24, DW_CODE + 0x300);
	put64(DW_HEAP + 32, DW_CODE);
	put64(DW_HEAP + 40, DW_NIBBLES);
	dotnet_put_nibble(DW_RUN);
	dotnet_put_nibble(DW_LOOKUP);
	put64(DW_RUN - 8, DW_HEADER);
	put64(DW_LOOKUP - 8, 8);
	put64(DW_HEADER + 24, DW_METHOD(0));
	put32(DW_HEADER + 32, 1);
	put32(DW_HEADER + 36, (uint32_t)(DW_RUN - DW_CODE));
	put32(DW_HEADER + 40, (uint32_t)(DW_RUN - DW_CODE) + DW_RUN_BYTES);
	put32(DW_HEADER + 44, (uint32_t)(DW_UNWIND - DW_CODE));
	put64(DW_HEADER, DW_DEBUG);
	dotnet_put_debug(DW_DEBUG, true, "", 1);
	put(DW_RUN, enter, sizeof(enter));
	put(DW_RUN + DW_RUN_LEAVES, leave, sizeof(leave));
	put(DW_UNWIND, unwind, sizeof(unwind));
	put(DW_LOOKUP, lookup, sizeof(lookup));
	put(DW_LOOKUP + 32, lookup, sizeof(lookup));
}

/* --- what was compiled before --- */

static inline void dotnet_put_function(uint32_t i, uint32_t begin, uint32_t end)
{
	put32(DW_FUNCTIONS + 12 * i, begin);
	put32(DW_FUNCTIONS + 12 * i + 4, end);
	put32(DW_FUNCTIONS + 12 * i + 8, 0x2000);
}

static inline void dotnet_put_entry(uint64_t entry, uint64_t method)
{
	uint64_t bucket = DW_BUCKETS + 64 * (1 + (uint32_t)(entry >> 2) % DW_NR_BUCKETS);

	put64(bucket, entry);
	put64(bucket + 32, method >> 1);
}

/* The debug information of the first function: a tree whose only leaf is number 0, and what it is. */
static inline void dotnet_put_array(void)
{
	static const uint8_t array[] = {(3 << 2 | 0) << 1, 1, 0 << 3, 0};
	static const uint32_t sections[] = {0, 2, 102, 0, 0, 105, (uint32_t)(DW_ARRAY - DW_BEFORE), 64};

	put64(DW_CORE + 8, DW_CORE + 0x40);
	put(DW_CORE + 0x40, sections, sizeof(sections));
	put(DW_ARRAY, array, sizeof(array));
	dotnet_put_debug(DW_ARRAY + sizeof(array), true, "", 0);
}

/* Two methods, the first with a handler; a third that the runtime has not entered. */
static inline void dotnet_put_before(void)
{
	static const uint8_t unwind[] = {0x19, 1, 1, 0, 1, 0x50};

	put64(DW_MODULE + 704, DW_R2R); /* of 10, of 9, and of 8 */
	put64(DW_MODULE + 1168, DW_R2R);
	put64(DW_MODULE + 1152, DW_R2R);
	put64(DW_R2R + 40, DW_R2R);
	put64(DW_R2R + 72, DW_CORE);
	put64(DW_R2R + 80, DW_FUNCTIONS);
	dotnet_put_array();
	put32(DW_R2R + 88, 3);
	put64(DW_R2R + 376, DW_BUCKETS);
	put64(DW_R2R + 448, DW_BUCKETS);
	put64(DW_BUCKETS, DW_NR_BUCKETS);
	dotnet_put_function(0, 0x1000, 0x1040);
	dotnet_put_function(1, 0x1040, 0x1080);
	dotnet_put_function(2, 0x1100, 0x1140);
	put(DW_BEFORE + 0x2000, unwind, sizeof(unwind));
	dotnet_put_entry(DW_BEFORE + 0x1000, DW_METHOD(1));
	dotnet_put_entry(DW_BEFORE + 0x1100, DW_METHOD(2));
}

/* --- methods and metadata --- */

static inline void dotnet_put_method(uint32_t i, uint16_t row, uint16_t class)
{
	dotnet_put16(DW_METHOD(i), row);
	put(DW_METHOD(i) + 2, &(uint8_t){(uint8_t)(0x40 * i / 8)}, 1);
	dotnet_put16(DW_METHOD(i) + 6, class);
}

/* Strings by their place in the heap. */
enum { DW_S_SPACE = 1, DW_S_OUTER = 10, DW_S_NESTED = 20, DW_S_RUN = 30, DW_S_CALL = 40, DW_S_T = 50, DW_S_U = 52, DW_S_LIST = 60,
       DW_S_MODULE = 70 };

static inline void dotnet_put_row(uint64_t *at, const char *sizes, const uint32_t *v)
{
	for (; *sizes; sizes++, v++) {
		put(*at, v, *sizes == '4' ? 4 : 2);
		*at += *sizes == '4' ? 4 : 2;
	}
}

#define DW_ROW(at, sizes, ...) dotnet_put_row(at, sizes, (const uint32_t[]){__VA_ARGS__})

static inline void dotnet_put_tables(void)
{
	uint64_t at = DW_TABLES + 24;
	static const uint32_t rows[] = {1, 3, 2, 1, 3};

	put64(DW_TABLES + 8, 1ULL << 1 | 1ULL << 2 | 1ULL << 6 | 1ULL << 0x29 | 1ULL << 0x2a);
	put(at, rows, sizeof(rows));
	at += sizeof(rows);
	DW_ROW(&at, "222", 0, DW_S_LIST, 0);
	DW_ROW(&at, "422222", 0, DW_S_MODULE, 0, 0, 1, 1);
	DW_ROW(&at, "422222", 0, DW_S_OUTER, DW_S_SPACE, 0, 1, 1);
	DW_ROW(&at, "422222", 0, DW_S_NESTED, 0, 0, 1, 2);
	DW_ROW(&at, "422222", 0, 0, 0, DW_S_RUN, 1, 1);
	DW_ROW(&at, "422222", 0, 0, 0, DW_S_CALL, 16, 1);
	DW_ROW(&at, "22", 3, 2);
	DW_ROW(&at, "2222", 0, 0, 2 << 1, DW_S_T);
	DW_ROW(&at, "2222", 0, 0, 2 << 1 | 1, DW_S_U);
	DW_ROW(&at, "2222", 0, 0, 3 << 1, DW_S_T);
}

static inline void dotnet_put_string(uint32_t at, const char *text)
{
	put(DW_STRINGS + at, text, strlen(text) + 1);
}

static inline void dotnet_put_heaps(void)
{
	/* void Run(int, string[]); U Call<U>(T, List<U>, ref long) */
	static const uint8_t run[] = {6, 0x00, 2, 0x01, 0x08, 0x1d, 0x0e},
			     call[] = {13, 0x30, 1, 3, 0x1e, 0, 0x13, 0, 0x15, 0x12, 0x05, 1, 0x1e, 0, 0x10, 0x0a};

	dotnet_put_string(DW_S_SPACE, "My.Space");
	dotnet_put_string(DW_S_OUTER, "Outer`1");
	dotnet_put_string(DW_S_NESTED, "Nested");
	dotnet_put_string(DW_S_RUN, "Run");
	dotnet_put_string(DW_S_CALL, "Call");
	dotnet_put_string(DW_S_T, "T");
	dotnet_put_string(DW_S_U, "U");
	dotnet_put_string(DW_S_LIST, "List`1");
	dotnet_put_string(DW_S_MODULE, "<Module>");
	put(DW_BLOBS + 1, run, sizeof(run));
	put(DW_BLOBS + 16, call, sizeof(call));
	put(DW_BLOBS + 16, &(uint8_t){15}, 1);
}

static inline void dotnet_put_stream(uint64_t *at, uint32_t offset, uint32_t size, const char *name)
{
	put32(*at, offset);
	put32(*at + 4, size);
	put(*at + 8, name, strlen(name) + 1);
	*at += 8 + (strlen(name) / 4 + 1) * 4;
}

static inline size_t dotnet_pack(const uint8_t *from, size_t len, uint8_t *to, size_t size)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)len, .next_out = to, .avail_out = (uInt)size};

	deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
	deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return z.total_out;
}

/* An entry of the debug directory: its data lies at an address of the image as the file is. */
static inline void dotnet_put_entry_of(uint32_t i, uint32_t type, uint64_t at, size_t size)
{
	put32(DW_ENTRIES + 28 * i + 12, type);
	put32(DW_ENTRIES + 28 * i + 16, (uint32_t)size);
	put32(DW_ENTRIES + 28 * i + 20, (uint32_t)(at - DW_IMAGE - 0x400 + 0x2000));
}

static inline void dotnet_put_pdb(void)
{
	uint8_t pdb[DOTNET_PDB_MAX], packed[DOTNET_PDB_MAX];
	size_t size = dotnet_pdb_make(pdb), len = dotnet_pack(pdb, size, packed, sizeof(packed));

	put32(DW_IMAGE + 0x80 + 24 + 112 + 8 * 6, 0x2900);
	put32(DW_IMAGE + 0x80 + 24 + 112 + 8 * 6 + 4, 2 * 28);
	dotnet_put_entry_of(0, 2, DW_ENTRIES + 0x80, 24);
	put(DW_ENTRIES + 0x80, "RSDSidentity", 12);
	dotnet_put_entry_of(1, 17, DW_PDB, len + 8);
	put(DW_PDB, "MPDB", 4);
	put32(DW_PDB + 4, (uint32_t)size);
	put(DW_PDB + 8, packed, len);
}

/* In place of that: one in a file of its own, which had this path where it was built. */
static inline void dotnet_put_pdb_path(const char *path)
{
	dotnet_put_entry_of(0, 2, DW_ENTRIES + 0x80, 24 + strlen(path) + 1);
	dotnet_put16(DW_ENTRIES + 10, 0x504d);
	put(DW_ENTRIES + 4, dotnet_pdb_id + 16, 4);
	put(DW_ENTRIES + 0x80, "RSDS", 4);
	put(DW_ENTRIES + 0x84, dotnet_pdb_id, 16);
	put32(DW_ENTRIES + 0x94, 1);
	put(DW_ENTRIES + 0x98, path, strlen(path) + 1);
	put32(DW_ENTRIES + 28 + 12, 16);
}

/* As the file is: its section has other offsets in memory. */
static inline void dotnet_put_image(void)
{
	const uint64_t pe = DW_IMAGE + 0x80, root = DW_IMAGE + 0x600;
	uint64_t at = root + 16 + 12 + 4;

	put32(DW_IMAGE + 0x3c, 0x80);
	put32(pe, 0x4550);
	dotnet_put16(pe + 6, 1);
	dotnet_put16(pe + 20, 0xf0);
	dotnet_put16(pe + 24, 0x20b);
	put32(pe + 24 + 112 + 8 * 14, 0x2008);
	put32(pe + 24 + 0xf0 + 8, 0x1000);
	put32(pe + 24 + 0xf0 + 12, 0x2000);
	put32(pe + 24 + 0xf0 + 16, 0x1000);
	put32(pe + 24 + 0xf0 + 20, 0x400);
	put32(DW_IMAGE + 0x408, 72);
	put32(DW_IMAGE + 0x410, 0x2200);
	put32(root, 0x424a5342);
	put32(root + 12, 12);
	dotnet_put16(root + 16 + 12 + 2, 3);
	dotnet_put_stream(&at, 0x100, 0x200, "#~");
	dotnet_put_stream(&at, 0x300, 0x100, "#Strings");
	dotnet_put_stream(&at, 0x500, 0x100, "#Blob");
	dotnet_put_tables();
	dotnet_put_heaps();
	dotnet_put_pdb();
}

static inline void dotnet_put_methods(void)
{
	put64(DW_CHUNK, DW_TABLE);
	put64(DW_TABLE + 24, DW_MODULE);
	put64(DW_MODULE + 224, DW_IMAGE); /* of 10, of 9, and of 8 */
	put64(DW_MODULE + 288, DW_IMAGE);
	put64(DW_MODULE + 272, DW_FILE);
	put64(DW_FILE + 8, DW_FILE + 0x40);
	put64(DW_FILE + 0x40 + 120, DW_FILE + 0xc0);
	put64(DW_FILE + 0xc0 + 8, DW_IMAGE);
	put64(DW_MODULE + 192, DW_NAME);
	put64(DW_MODULE + 264, DW_NAME);
	put(DW_NAME, "My.Assembly", 12);
	dotnet_put_method(0, 1, 0);
	dotnet_put_method(1, 2, 0);
	dotnet_put_method(2, 0, DOTNET_CLASS_DYNAMIC);
	put64(DW_METHOD(2) + 32, DW_NAME + 32);
	put(DW_NAME + 32, "Made", 5);
}

/* As attach finds it. */
static inline void dotnet_world_make(struct runtime_attached *a)
{
	struct dotnet *d = (void *)a->param;

	*a = (struct runtime_attached){.version = "10.0.0"};
	d->code_map = DW_MAP;
	d->helpers = DW_HELPERS;
	while (dotnet_rows[d->row].major != 10)
		d->row++;
	dotnet_put_map();
	dotnet_put_heap();
	dotnet_put_before();
	dotnet_put_methods();
	dotnet_put_image();
}

#endif
