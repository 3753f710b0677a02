// SPDX-License-Identifier: Apache-2.0
/*
 * What a function of PHP is called and which lines its opcodes have, read after
 * the fact, when the function itself may be gone: see php.h.
 */
#include "runtime/php.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define CLASS_NAME   8 /* zend_class_entry; it begins with a byte, its type */
#define CLASS_TYPES  2
#define STRING_TYPE  6 /* in the low bits of zend_string.gc.u.type_info */
#define STRING_HASH  8
#define STRING_BYTES 24
#define HASHED	     (1ULL << 63) /* a hash of 0 means that it is not computed yet */
#define BATCH	     128u /* opcodes of one read */

struct php_function {
	const struct php_layout *layout;
	const struct runtime_frame *want;
	uint64_t opcodes; /* or the native function */
	uint64_t filename;
	uint64_t place;
};

/* --- the function --- */

static bool function_is_native(const struct php_function *f)
{
	return f->want->key & PHP_KEY_NATIVE;
}

/* Where the sampler could not read the whole function, it has to be there still. */
static int function_find_file(struct memory *m, struct php_function *f)
{
	uint64_t address = f->filename & ~(uint64_t)PHP_FILENAME_MISSED, at[16], file[2];
	const uint64_t *cookie = f->want->cookie;
	int r;

	if (!(f->filename & PHP_FILENAME_MISSED))
		return 0;
	r = memory_read(m, address, at, f->layout->opcodes + 8u);
	if (r == 0)
		r = memory_read(m, address + f->layout->filename, file, sizeof(file));
	if (r < 0)
		return r;
	if (at[1] != cookie[PHP_COOKIE_NAME] || at[2] != cookie[PHP_COOKIE_SCOPE] || at[f->layout->opcodes / 8] != f->opcodes)
		return -ESTALE;
	f->filename = file[0];
	f->place = php_place(file[1], (uint32_t)(f->place >> 32));
	return 0;
}

/* --- names --- */

static uint64_t string_hash(const char *s, uint64_t len)
{
	uint64_t hash = 5381;

	for (uint64_t i = 0; i < len; i++)
		hash = hash * 33 + (uint8_t)s[i];
	return hash | HASHED;
}

static int string_check(const uint64_t head[3], const char *text, uint64_t len, uint64_t *ret_hash)
{
	uint64_t hash = head[STRING_HASH / 8];

	if ((head[0] >> 32 & 15) != STRING_TYPE || (hash && !(hash & HASHED)))
		return -ESTALE;
	if (len == head[2]) {
		*ret_hash = string_hash(text, len);
		return hash && hash != *ret_hash ? -ESTALE : 0;
	}
	*ret_hash = hash;
	return hash ? 0 : -ESTALE;
}

/*
 * A string, cut to size; one with a NUL ends there (the name of an anonymous
 * class goes on with its place). A whole one has to agree with its hash.
 */
static int string_read(struct memory *m, uint64_t at, char *to, size_t size, uint64_t *ret_hash)
{
	uint64_t head[STRING_BYTES / 8], len;
	int r;

	r = memory_read(m, at, head, sizeof(head));
	if (r < 0)
		return r;
	len = MIN(head[2], (uint64_t)size - 1);
	r = memory_read(m, at + STRING_BYTES, to, len);
	if (r < 0)
		return r;
	to[len] = '\0';
	return string_check(head, to, len, ret_hash);
}

static void name_code(const struct php_function *f, struct runtime_function *ret)
{
	const char *slash = strrchr(ret->file, '/');

	if (f->want->key & PHP_KEY_EVAL)
		snprintf(ret->name, sizeof(ret->name), "{eval}");
	else if (f->want->key & PHP_KEY_INCLUDED)
		snprintf(ret->name, sizeof(ret->name), "include %.*s", RUNTIME_NAME_MAX / 2, slash ? slash + 1 : ret->file);
	else
		snprintf(ret->name, sizeof(ret->name), "{main}");
}

/* "Class::" */
static int name_class(struct memory *m, uint64_t class, char *to, size_t size)
{
	uint64_t at[2], hash;
	uint8_t type;
	int r;

	if (!class)
		return 0;
	r = memory_read(m, class, at, sizeof(at));
	if (r < 0)
		return r;
	type = (uint8_t)at[0];
	if (!type || type > CLASS_TYPES)
		return -ESTALE;
	r = string_read(m, at[CLASS_NAME / 8], to, size - 2, &hash);
	if (r < 0)
		return r;
	memcpy(to + strlen(to), "::", 3);
	return (int)strlen(to);
}

static int name_function(struct memory *m, const struct php_function *f, struct runtime_function *ret, uint64_t *ret_hash)
{
	int used = name_class(m, f->want->cookie[PHP_COOKIE_SCOPE], ret->name, sizeof(ret->name) / 2);

	if (used < 0)
		return used;
	return string_read(m, f->want->cookie[PHP_COOKIE_NAME], ret->name + used, sizeof(ret->name) - (size_t)used, ret_hash);
}

/* A hash that the sampler could not see is no part of the check. */
static int names_check(uint64_t check, uint64_t file, uint64_t name)
{
	if (check == php_check(file, name) || check == php_check(0, name) || check == php_check(file, 0) ||
	    check == php_check(0, 0))
		return 0;
	return -ESTALE;
}

/* Fails unless the strings are those that the sampler saw. */
static int names_read(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	uint64_t file = 0, name = 0;
	int r = 0;

	if (f->filename)
		r = string_read(m, f->filename, ret->file, sizeof(ret->file), &file);
	if (r < 0)
		return r;
	if (f->want->cookie[PHP_COOKIE_NAME])
		r = name_function(m, f, ret, &name);
	else
		name_code(f, ret);
	return r < 0 ? r : names_check(f->want->cookie[PHP_COOKIE_CHECK], file, name);
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

/* Of operands: nothing, or one bit. */
static bool op_type_is_sound(uint8_t type)
{
	return type <= 16 && !(type & (type - 1u));
}

/* 0: the line is not one of the function's. */
static uint32_t op_line(const struct php_function *f, const uint8_t *op)
{
	uint32_t first = (uint32_t)f->place, more = (uint32_t)(f->place >> 48), line;

	memcpy(&line, op + PHP_OP_LINE, sizeof(line));
	return line < first || (more < UINT16_MAX && line - first > more) ? 0 : line;
}

/* Opcodes of code that ended, as eval's does, may be overwritten. */
static bool op_is_sound(const uint8_t *op)
{
	return op_type_is_sound(op[PHP_OP_TYPES]) && op_type_is_sound(op[PHP_OP_TYPES + 1]);
}

static int lines_read_batch(struct memory *m, const struct php_function *f, uint32_t from, uint32_t nr,
			    struct runtime_function *ret)
{
	uint8_t ops[BATCH * PHP_OP_BYTES];
	int r = memory_read(m, f->opcodes + (uint64_t)from * PHP_OP_BYTES, ops, (size_t)nr * PHP_OP_BYTES);

	for (uint32_t i = 0; i < nr && r == 0; i++) {
		const uint8_t *op = ops + (size_t)i * PHP_OP_BYTES;

		if (!op_is_sound(op))
			return -ESTALE;
		line_add(ret, from + i + 1, op_line(f, op));
	}
	return r;
}

/* Position 0 is a frame whose place is not known: the function's first line. Lines that cannot be read are unknown. */
static void lines_read(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	uint32_t nr = (uint32_t)(f->place >> 32) & UINT16_MAX;
	int r = 0;

	ret->nr_lines = 0;
	ret->start_line = (uint32_t)f->place;
	line_add(ret, 0, ret->start_line);
	for (uint32_t i = 0; i < nr && r == 0 && ret->nr_lines < RUNTIME_LINES_MAX; i += BATCH)
		r = lines_read_batch(m, f, i, MIN(BATCH, nr - i), ret);
	if (r < 0)
		ret->nr_lines = 1;
	if (r < 0 || nr == PHP_OPCODES_MAX)
		line_add(ret, r < 0 ? 1 : nr + 1, 0);
}

static int decode_delegate(struct runtime_function *ret)
{
	snprintf(ret->name, sizeof(ret->name), "{yield from}");
	return 0;
}

int php_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *want,
	       struct runtime_function *ret)
{
	struct php_function f = {.layout = php_layout_at(a->param[PHP_LAYOUT]), .want = want,
				 .opcodes = want->key & PHP_KEY_ADDRESS, .filename = want->cookie[PHP_COOKIE_FILENAME],
				 .place = want->cookie[PHP_COOKIE_PLACE]};
	int r;

	if (!f.layout)
		return -EBADMSG;
	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (want->key == PHP_KEY_DELEGATE)
		return decode_delegate(ret);
	r = function_find_file(m, &f);
	if (r == 0)
		r = names_read(m, &f, ret);
	if (r < 0 || function_is_native(&f))
		return r;
	lines_read(m, &f, ret);
	return names_read(m, &f, ret); /* they may have been replaced meanwhile */
}
