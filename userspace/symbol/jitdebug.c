// SPDX-License-Identifier: Apache-2.0
#include "symbol/jitdebug.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define FILE_NAME_MAX 4096
/* V8's addresses are relative to the ELF file that perf inject makes of the code: after the file's header. */
#define V8_SHIFT 64

/* struct debug_entry of the specification; the name follows. V8 writes a column where others write a discriminator. */
struct entry {
	uint64_t addr;
	uint32_t line, discriminator;
	const char *file;
	size_t file_len;
};

struct entries {
	const uint8_t *at, *end;
	uint64_t left, last_addr;
	const char *file; /* of the entry before */
	size_t file_len;
};

/* A name of the two bytes ff 00 stands for the name in the entry before. */
static int jit_parse_file(struct entries *e, struct entry *ret)
{
	const char *text = (const char *)e->at;
	size_t len = strnlen(text, (size_t)(e->end - e->at));

	if (e->at + len == e->end)
		return -ENODATA;
	if (!len)
		return -EBADMSG;
	e->at += len + 1;
	if (len == 1 && text[0] == '\xff') {
		if (!e->file)
			return -EBADMSG;
	} else {
		if (len > FILE_NAME_MAX || !utf8_is_clean(text, len))
			return -EBADMSG;
		e->file = text;
		e->file_len = len;
	}
	ret->file = e->file;
	ret->file_len = e->file_len;
	return 0;
}

static int jit_next_entry(struct entries *e, struct entry *ret)
{
	if (e->end - e->at < 16)
		return -ENODATA;
	memcpy(&ret->addr, e->at, 8);
	memcpy(&ret->line, e->at + 8, 4);
	memcpy(&ret->discriminator, e->at + 12, 4);
	e->at += 16;
	e->left--;
	return jit_parse_file(e, ret);
}

/* Addresses ascend, and lie in the code. */
static bool jit_place_fits_code(struct entries *e, const struct entry *x, const struct jit_code *code)
{
	bool fits = x->addr >= code->start && x->addr >= e->last_addr &&
		    x->addr - code->start <= code->size + V8_SHIFT && x->line <= INT32_MAX;

	e->last_addr = x->addr;
	return fits;
}

int jit_place_find(const uint8_t *entries, size_t len, uint64_t nr, const struct jit_code *code, uint64_t pc,
		   struct jit_place *ret)
{
	struct entries e = {.at = entries, .end = entries + len, .left = nr};
	bool found = false, passed = false;
	uint64_t shift = 0;
	struct entry x;

	while (e.left) {
		bool first = e.left == nr;
		int err = jit_next_entry(&e, &x);

		if (err == -ENODATA)
			return found && passed ? 0 : -ENOENT;
		if (err < 0 || !jit_place_fits_code(&e, &x, code))
			return -EBADMSG;
		if (first && code->of_v8 && x.addr - code->start >= V8_SHIFT)
			shift = V8_SHIFT;
		passed = x.addr - shift > pc;
		if (passed)
			continue;
		*ret = (struct jit_place){.file = x.file, .file_len = x.file_len, .line = x.line,
					  .column = shift && x.discriminator <= INT32_MAX ? x.discriminator : 0};
		found = true;
	}
	return found ? 0 : -ENOENT;
}
