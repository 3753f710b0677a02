/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of two functions with the table of Go's linker, in each format, in
 * a tiny ELF file (tiny_elf.h) without sections:
 *   main.leaf    0x2000 to 0x2040, no frame
 *   main.caller  0x2040 to 0x2080, pushes the frame pointer with its first byte;
 *                its depth is 0, 8 from 1 on, 24 from 8 on, 0 from 0x38 on; line 10, 20 from 0x10
 *                on; from 0x10 to 0x20 main.inlined runs, called where line 10 is
 */
#ifndef OTP_TESTS_GO_FILE_H
#define OTP_TESTS_GO_FILE_H

#include <string.h>

#include "process/go_table.h"
#include "tests/lib/tiny_elf.h"

#define GO_FILE_MODULE 0x1c00
#define GO_FILE_TREE 0x1e00
#define GO_FILE_NAMES 0x200 /* offsets in the table */
#define GO_FILE_UNITS 0x280
#define GO_FILE_FILES 0x290
#define GO_FILE_VALUES 0x2c0
#define GO_FILE_FUNCTIONS 0x300

struct go_file {
	struct tiny tiny;
	enum go_format format;
	uint32_t function[2]; /* where each struct _func is in the image */
};

static inline void go_file_put(struct go_file *f, uint32_t at, uint64_t v, unsigned size)
{
	memcpy(f->tiny.image + at, &v, size);
}

static inline void go_file_strings(struct go_file *f)
{
	static const char names[] = "main.leaf\0main.caller\0main.inlined", path[] = "/src/main.go";
	/* Depth of the leaf; depth, file, file from 1 on, line, inlined call of the caller. */
	static const uint8_t values[] = {0,  2,	 0x40, 0, 2,	1,	16, 7,	32,   0x30, 47, 8,    0, 2,
					 0x40, 0,	 4,    0x40, 0, 22, 0x10, 20, 0x30, 0,	0,    0x10, 2, 0x10,
					 1,  0x20, 0};

	memcpy(f->tiny.image + TINY_EH + GO_FILE_NAMES, names, sizeof(names));
	memcpy(f->tiny.image + TINY_EH + GO_FILE_FILES, path, sizeof(path));
	memcpy(f->tiny.image + TINY_EH + GO_FILE_VALUES, values, sizeof(values));
}

enum {
	GO_FILE_LEAF_SP = 1, GO_FILE_SP = 4, GO_FILE_FILE = 13, GO_FILE_FILE_1 = 16, GO_FILE_LINE = 19,
	GO_FILE_INLINED = 24,
};

/* A struct _func at at: where its parts are differs by format. */
static inline void go_file_function(struct go_file *f, unsigned number, uint32_t at, uint32_t name)
{
	bool old = f->format == GO_1_2, wide = f->format <= GO_1_16;
	uint32_t base = TINY_EH + at, p = base + (wide ? 8 : 4), in = old ? GO_FILE_VALUES : 0;
	uint32_t extra = (f->format >= GO_1_16 ? 4 : 0) + (f->format == GO_1_20 ? 4 : 0), end = p + 32 + extra;
	bool caller = number == 1;

	f->function[number] = base;
	go_file_put(f, base, TINY_CODE + 0x40 * number - (wide ? 0 : TINY_CODE), wide ? 8 : 4);
	go_file_put(f, p, name + (old ? GO_FILE_NAMES : 0), 4);
	go_file_put(f, p + 12, in + (caller ? GO_FILE_SP : GO_FILE_LEAF_SP), 4);
	go_file_put(f, p + 16, in + (old ? GO_FILE_FILE_1 : GO_FILE_FILE), 4);
	go_file_put(f, p + 20, in + GO_FILE_LINE, 4);
	go_file_put(f, p + 24, caller ? 3 : 0, 4);
	if (f->format == GO_1_20)
		go_file_put(f, p + 32, 9, 4);
	f->tiny.image[end - 1] = caller ? 5 : 0; /* pieces of funcdata */
	if (!caller)
		return;
	go_file_put(f, end + 8, in + GO_FILE_INLINED, 4);
	if (wide)
		go_file_put(f, ((end + 12 + 7) & ~7U) + 8 * (old ? 4 : 3), GO_FILE_TREE, 8);
}

static inline void go_file_tree(struct go_file *f)
{
	bool narrow = f->format == GO_1_20;

	go_file_put(f, GO_FILE_TREE + (narrow ? 4 : 12), 22 + (f->format == GO_1_2 ? GO_FILE_NAMES : 0), 4);
	go_file_put(f, GO_FILE_TREE + (narrow ? 8 : 16), 4, 4);
	if (narrow)
		go_file_put(f, GO_FILE_TREE + 12, 5, 4);
}

static inline void go_file_list(struct go_file *f)
{
	bool wide = f->format <= GO_1_16;
	uint32_t from = f->format == GO_1_2 ? 16 : GO_FILE_FUNCTIONS, size = wide ? 8 : 4;
	uint32_t at = TINY_EH + from, base = f->format == GO_1_2 ? TINY_EH : TINY_EH + GO_FILE_FUNCTIONS;

	for (unsigned i = 0; i < 3; i++) {
		go_file_put(f, at + 2 * size * i, 0x40 * i + (wide ? TINY_CODE : 0), size);
		if (i < 2)
			go_file_put(f, at + 2 * size * i + size, f->function[i] - base, size);
	}
	if (f->format == GO_1_2) {
		go_file_put(f, at + 5 * size, GO_FILE_UNITS, 4);
		go_file_put(f, TINY_EH + GO_FILE_UNITS, 2, 4);
		go_file_put(f, TINY_EH + GO_FILE_UNITS + 4, GO_FILE_FILES, 4);
	}
}

/* What Go 1.26 leaves to it: where the code is; and where trees are counted from. */
static inline void go_file_module(struct go_file *f)
{
	go_file_put(f, GO_FILE_MODULE, TINY_EH, 8);
	go_file_put(f, GO_FILE_MODULE + 8, TINY_EH + GO_FILE_NAMES, 8);
	go_file_put(f, GO_FILE_MODULE + 8 * 22, TINY_CODE, 8);
	go_file_put(f, GO_FILE_MODULE + 8 * (f->format == GO_1_18 ? 38 : 40), GO_FILE_TREE, 8);
}

#define GO_FILE_MORE_NAMES 0x680 /* in the table: 64 bytes for the name of each further function, of four at most */

/* One more, the next after those that there are: of 64 bytes, without a frame. */
static inline void go_file_add(struct go_file *f, unsigned number, const char *name)
{
	uint32_t at = 0x380 + 0x80 * number, names = GO_FILE_MORE_NAMES + 0x40 * (number - 2);
	uint32_t list = TINY_EH + GO_FILE_FUNCTIONS + 8 * number;

	strcpy((char *)f->tiny.image + TINY_EH + names, name);
	go_file_put(f, TINY_EH + at, 0x40 * number, 4);
	go_file_put(f, TINY_EH + at + 4, names - GO_FILE_NAMES, 4);
	go_file_put(f, TINY_EH + at + 16, GO_FILE_LEAF_SP, 4);
	go_file_put(f, list, 0x40 * number, 4);
	go_file_put(f, list + 4, at - GO_FILE_FUNCTIONS, 4);
	go_file_put(f, list + 8, 0x40 * (number + 1), 4);
	go_file_put(f, TINY_EH + 8, number + 1, 8);
}

static inline void go_file_init(struct go_file *f, enum go_format format)
{
	static const uint32_t magic[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	static const uint16_t parts[] = {GO_FILE_NAMES, GO_FILE_UNITS, GO_FILE_FILES, GO_FILE_VALUES, GO_FILE_FUNCTIONS};
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5};

	memset(f, 0, sizeof(*f));
	f->format = format;
	tiny_init(&f->tiny, 62 /* EM_X86_64 */, TINY_NO_HDR | TINY_NO_SECTIONS);
	go_file_put(f, TINY_EH, magic[format] | 0x0801ULL << 48, 8);
	go_file_put(f, TINY_EH + 8, 2, 8);
	for (unsigned i = 0; format != GO_1_2 && i < 5; i++)
		go_file_put(f, TINY_EH + 8 + 8 * (i + (format == GO_1_16 ? 2 : 3)), parts[i], 8);
	go_file_strings(f);
	go_file_function(f, 0, 0x380, 0);
	go_file_function(f, 1, 0x400, 10);
	go_file_list(f);
	go_file_tree(f);
	go_file_module(f);
	memcpy(f->tiny.image + TINY_CODE + 0x40, code, sizeof(code));
}

#endif
