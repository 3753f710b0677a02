// SPDX-License-Identifier: Apache-2.0
/*
 * Code objects: name, file and lines. An object is read twice, before and after
 * what it points to: one that was freed meanwhile is another one, or none.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define TEXT_PIECE  1024u   /* bytes of characters that are read at once; a multiple of 4 */
#define KIND_SHIFT  2	    /* struct PyASCIIObject.state: interned 2 bits, kind 3, compact 1, ascii 1 */
#define KIND_MASK   7u
#define STATE_COMPACT (1u << 5)
#define STATE_ASCII (1u << 6)

/* Bytes of a code object as they were at one moment. */
struct code {
	uint8_t bytes[CPYTHON_CODE_MAX + 8];
};

static uint64_t code_u64(const struct code *c, uint16_t at)
{
	uint64_t v;

	memcpy(&v, c->bytes + at, sizeof(v));
	return v;
}

static uint32_t code_u32(const struct code *c, uint16_t at)
{
	uint32_t v;

	memcpy(&v, c->bytes + at, sizeof(v));
	return v;
}

/*
 * Whether the object lives: a freed block keeps all but its first word, which is then the address of the next free one,
 * or 0. The count of references is there, above which 3.14 has 16 bits of flags.
 */
static bool code_is_live(const struct code *c)
{
	uint64_t references = code_u64(c, 0) & ~(0xffffULL << 48);

	return references && references <= UINT32_MAX;
}

/* Of the object that the frame meant: its type and what was copied with the frame are the same. */
static int code_read(const struct cpython_layout *l, struct memory *m, const struct runtime_frame *f, struct code *ret)
{
	int r = memory_read(m, f->key, ret->bytes, l->code_size);

	if (r < 0)
		return r;
	if (!code_is_live(ret) || code_u64(ret, l->ob_type) != l->code_type ||
	    code_u64(ret, l->code_first_line & ~7u) != f->cookie[0] || code_u64(ret, l->code_name) != f->cookie[1] ||
	    code_u64(ret, l->code_table) != f->cookie[2])
		return -ESTALE;
	return 0;
}

/* --- text --- */

struct text {
	uint64_t at;	/* of the characters */
	uint64_t length; /* of them */
	uint32_t width;	/* bytes of one */
};

static int text_open(const struct cpython_layout *l, struct memory *m, uint64_t object, struct text *ret)
{
	uint32_t state;
	int r = memory_u64(m, object + l->text_length, &ret->length);

	if (r == 0)
		r = memory_u32(m, object + l->text_state, &state);
	if (r < 0)
		return r;
	ret->width = (state >> KIND_SHIFT) & KIND_MASK;
	if (!(state & STATE_COMPACT) || (ret->width != 1 && ret->width != 2 && ret->width != 4) || ret->length > INT32_MAX)
		return -EBADMSG;
	ret->at = object + (state & STATE_ASCII ? l->text_ascii : l->text_wide);
	return 0;
}

/* Bytes written, 0: no room for it. */
static size_t text_put(char *to, size_t room, uint32_t c)
{
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n > room)
		return 0;
	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 63));
	to[0] = (char)(n == 1 ? c : lead[n] | c);
	return n;
}

static uint32_t text_character(const uint8_t *piece, uint32_t width, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, piece + i * width, width);
	return c > 0x10ffff ? 0xfffd : c;
}

/* As UTF-8, cut at a character. */
static int text_read(const struct cpython_layout *l, struct memory *m, uint64_t object, char *to, size_t size)
{
	uint8_t piece[TEXT_PIECE];
	struct text t;
	size_t used = 0, n, put = 1;
	int r = text_open(l, m, object, &t);

	for (uint64_t done = 0; r == 0 && put && done < t.length; done += n) {
		n = MIN(t.length - done, (uint64_t)MIN((size_t)TEXT_PIECE / t.width, size - used));
		r = memory_read(m, t.at + done * t.width, piece, n * t.width);
		for (size_t i = 0; r == 0 && put && i < n; i++, used += put)
			put = text_put(to + used, size - 1 - used, text_character(piece, t.width, i));
	}
	if (r == 0)
		to[used] = '\0';
	return r;
}

/* --- lines --- */

static int code_lines(const struct cpython_layout *l, struct memory *m, uint64_t object, struct runtime_function *ret)
{
	_cleanup_(freep) uint8_t *table = NULL;
	uint64_t size;
	int r = memory_u64(m, object + l->bytes_size, &size);

	if (r < 0)
		return r;
	if (size > CPYTHON_TABLE_MAX)
		return -E2BIG;
	table = malloc(size ? size : 1);
	if (!table)
		return -ENOMEM;
	r = size ? memory_read(m, object + l->bytes_data, table, size) : 0;
	if (r == 0)
		cpython_lines_decode(l->lines, table, size, ret->start_line, ret);
	return r;
}

/*
 * A module's code is freed once it has run, long before the program ends. Its name is one string for all modules, which
 * stays; that of another function could be a different function's by now.
 */
static int code_freed(const struct cpython_layout *l, struct memory *m, const struct runtime_frame *f,
		      struct runtime_function *ret)
{
	ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (text_read(l, m, f->cookie[1], ret->name, sizeof(ret->name)) < 0)
		return -ESTALE;
	return strcmp(ret->name, "<module>") == 0 ? 0 : -ESTALE;
}

int cpython_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		   struct runtime_function *ret)
{
	struct cpython_layout l;
	struct code c = {0}, again = {0};
	int r;

	if (!cpython_layout_of(a, &l))
		return -EBADMSG;
	ret->name[0] = ret->file[0] = '\0';
	ret->nr_lines = 0;
	r = code_read(&l, m, f, &c);
	if (r < 0)
		return code_freed(&l, m, f, ret);
	ret->start_line = code_u32(&c, l.code_first_line);
	r = text_read(&l, m, code_u64(&c, l.code_name), ret->name, sizeof(ret->name));
	if (r == 0)
		r = text_read(&l, m, code_u64(&c, l.code_file), ret->file, sizeof(ret->file));
	if (r == 0)
		r = code_lines(&l, m, code_u64(&c, l.code_table), ret);
	return code_read(&l, m, f, &again) < 0 ? code_freed(&l, m, f, ret) : r;
}
