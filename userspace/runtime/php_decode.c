// SPDX-License-Identifier: Apache-2.0
/* What a function of PHP is called and which lines its opcodes have, read after the fact. */
#include "runtime/php.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define CLASS_NAME   8 /* zend_class_entry */
#define STRING_HASH  8 /* zend_string; then its length and its bytes */
#define STRING_BYTES 24
#define HASHED	     (1ULL << 63) /* a hash of 0 means that it is not computed yet */
#define BATCH	     128u /* opcodes of one read */

struct php_function {
	const struct php_layout *layout;
	uint64_t address;
	uint64_t word[PHP_WORDS];
	uint64_t filename;
};

/* --- the function --- */

static int function_read_class(struct memory *m, struct php_function *f)
{
	if (!f->word[PHP_SCOPE])
		return 0;
	return memory_u64(m, f->word[PHP_SCOPE] + f->layout->class_lines, &f->word[PHP_CLASS_LINES]);
}

static int function_read_file(struct memory *m, struct php_function *f)
{
	uint64_t at[2];
	int r = memory_read(m, f->address + f->layout->filename, at, sizeof(at));

	if (r < 0)
		return r;
	f->filename = at[0];
	f->word[PHP_LINES] = at[1];
	return at[0] ? memory_u64(m, at[0] + STRING_HASH, &f->word[PHP_FILE_HASH]) : 0;
}

/* The words as the sampler's plan copies them. */
static int function_read(struct memory *m, struct php_function *f)
{
	uint64_t at[16];
	int r = memory_read(m, f->address, at, f->layout->opcodes + 8u);

	if (r < 0)
		return r;
	memset(f->word, 0, sizeof(f->word));
	f->word[PHP_TYPE] = at[0];
	f->word[PHP_NAME] = at[1];
	f->word[PHP_SCOPE] = at[2];
	f->word[PHP_LAST] = at[f->layout->last / 8];
	f->word[PHP_OPCODES] = at[f->layout->opcodes / 8];
	r = function_read_class(m, f);
	return r < 0 || php_function_type(f->word) == PHP_INTERNAL ? r : function_read_file(m, f);
}

/* Whether the function is still the one that the sample saw. */
static int function_check(struct memory *m, const struct runtime_frame *want, struct php_function *f)
{
	uint64_t cookie[RUNTIME_COOKIES];
	int r = function_read(m, f);

	if (r < 0)
		return r;
	php_function_cookies(f->layout, f->word, PHP_KEY_MISSING(want->key), cookie);
	return memcmp(cookie, want->cookie, sizeof(cookie)) == 0 ? 0 : -ESTALE;
}

/* --- names --- */

static uint64_t string_hash(const char *s, uint64_t len)
{
	uint64_t hash = 5381;

	for (uint64_t i = 0; i < len; i++)
		hash = hash * 33 + (uint8_t)s[i];
	return hash | HASHED;
}

/*
 * A string, cut to size; one with a NUL ends there (the name of an anonymous
 * class goes on with its place). A whole one has to agree with its hash.
 */
static int string_read(struct memory *m, uint64_t at, char *to, size_t size)
{
	uint64_t head[2], len;
	int r;

	r = memory_read(m, at + STRING_HASH, head, sizeof(head));
	if (r < 0)
		return r;
	len = MIN(head[1], (uint64_t)size - 1);
	r = memory_read(m, at + STRING_BYTES, to, len);
	if (r < 0)
		return r;
	to[len] = '\0';
	if (len == head[1] && head[0] && string_hash(to, len) != head[0])
		return -ESTALE;
	return 0;
}

static void name_code(const struct php_function *f, const struct runtime_frame *want, struct runtime_function *ret)
{
	const char *slash = strrchr(ret->file, '/');

	if (php_function_type(f->word) == PHP_EVAL)
		snprintf(ret->name, sizeof(ret->name), "{eval}");
	else if (want->key & PHP_KEY_INCLUDED)
		snprintf(ret->name, sizeof(ret->name), "include %.*s", RUNTIME_NAME_MAX / 2, slash ? slash + 1 : ret->file);
	else
		snprintf(ret->name, sizeof(ret->name), "{main}");
}

static int name_function(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	size_t used = 0;
	uint64_t class;
	int r = 0;

	if (f->word[PHP_SCOPE]) {
		r = memory_u64(m, f->word[PHP_SCOPE] + CLASS_NAME, &class);
		if (r == 0)
			r = string_read(m, class, ret->name, sizeof(ret->name) / 2);
		if (r < 0)
			return r;
		used = strlen(ret->name);
		used += (size_t)snprintf(ret->name + used, sizeof(ret->name) - used, "::");
	}
	return string_read(m, f->word[PHP_NAME], ret->name + used, sizeof(ret->name) - used);
}

static int name_read(struct memory *m, const struct php_function *f, const struct runtime_frame *want,
		     struct runtime_function *ret)
{
	int r = f->filename ? string_read(m, f->filename, ret->file, sizeof(ret->file)) : 0;

	if (r < 0)
		return r;
	if (f->word[PHP_NAME])
		return name_function(m, f, ret);
	name_code(f, want, ret);
	return 0;
}

/* --- lines --- */

/* The last row that there is room for says that what follows is unknown. */
static void line_add(struct runtime_function *ret, uint32_t position, uint32_t line)
{
	if (ret->nr_lines == RUNTIME_LINES_MAX || (ret->nr_lines && ret->lines[ret->nr_lines - 1].line == line))
		return;
	if (ret->nr_lines == RUNTIME_LINES_MAX - 1)
		line = 0;
	ret->lines[ret->nr_lines++] = (struct runtime_line){position, line};
}

static int lines_read_batch(struct memory *m, uint64_t opcodes, uint32_t from, uint32_t nr, struct runtime_function *ret)
{
	uint8_t ops[BATCH * PHP_OP_BYTES];
	int r = memory_read(m, opcodes + (uint64_t)from * PHP_OP_BYTES, ops, (size_t)nr * PHP_OP_BYTES);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t line;

		memcpy(&line, ops + (size_t)i * PHP_OP_BYTES + PHP_OP_LINE, sizeof(line));
		line_add(ret, from + i + 1, line);
	}
	return 0;
}

/* Position 0 is a frame whose place is not known: the function's first line. */
static int lines_read(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	uint32_t last = php_function_last(f->layout, f->word), nr = MIN(last, PHP_OPCODES_MAX);
	int r = 0;

	ret->start_line = (uint32_t)f->word[PHP_LINES];
	line_add(ret, 0, ret->start_line);
	for (uint32_t i = 0; i < nr && r == 0 && ret->nr_lines < RUNTIME_LINES_MAX; i += BATCH)
		r = lines_read_batch(m, f->word[PHP_OPCODES], i, MIN(BATCH, nr - i), ret);
	if (nr < last)
		line_add(ret, nr + 1, 0);
	return r;
}

static int decode_delegate(struct runtime_function *ret)
{
	snprintf(ret->name, sizeof(ret->name), "{yield from}");
	return 0;
}

int php_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *want,
	       struct runtime_function *ret)
{
	struct php_function f = {.layout = php_layout_at(a->param[PHP_LAYOUT]), .address = want->key & PHP_KEY_ADDRESS};
	int r;

	if (!f.layout)
		return -EBADMSG;
	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (want->key == PHP_KEY_DELEGATE)
		return decode_delegate(ret);
	r = function_check(m, want, &f);
	if (r == 0)
		r = name_read(m, &f, want, ret);
	if (r == 0 && php_function_type(f.word) != PHP_INTERNAL)
		r = lines_read(m, &f, ret);
	return r < 0 ? r : function_check(m, want, &f); /* it may have been replaced meanwhile */
}
