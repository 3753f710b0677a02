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

#define BATCH 128u /* opcodes of one read */

/* --- the function --- */

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
	if (at[1] != cookie[PHP_COOKIE_NAME] || at[2] != cookie[PHP_COOKIE_SCOPE] ||
	    at[f->layout->opcodes / 8] != f->opcodes)
		return -ESTALE;
	f->filename = file[0];
	f->place = php_place(file[1], (uint32_t)(f->place >> 32));
	return 0;
}

/* --- lines --- */

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
		runtime_add_line(ret, from + i + 1, op_line(f, op));
	}
	return r;
}

/* Position 0 is a frame whose place is not known: the function's first line. Lines that cannot be read are 0. */
static void lines_read(struct memory *m, const struct php_function *f, struct runtime_function *ret)
{
	uint32_t nr = (uint32_t)(f->place >> 32) & UINT16_MAX;
	int r = 0;

	ret->nr_lines = 0;
	ret->start_line = (uint32_t)f->place;
	runtime_add_line(ret, 0, ret->start_line);
	for (uint32_t i = 0; i < nr && r == 0 && ret->nr_lines < RUNTIME_LINES_MAX; i += BATCH)
		r = lines_read_batch(m, f, i, MIN(BATCH, nr - i), ret);
	if (r < 0)
		ret->nr_lines = 1;
	if (r < 0 || nr == PHP_OPCODES_MAX)
		runtime_add_line(ret, r < 0 ? 1 : nr + 1, 0);
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
				 .globals = a->param[PHP_GLOBALS], .requests = a->param[PHP_REQUESTS], .opcodes = want->key & PHP_KEY_ADDRESS,
				 .filename = want->cookie[PHP_COOKIE_FILENAME], .place = want->cookie[PHP_COOKIE_PLACE]};
	int r;

	if (!f.layout)
		return -EBADMSG;
	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (want->key == PHP_KEY_DELEGATE)
		return decode_delegate(ret);
	r = function_find_file(m, &f);
	if (r == 0)
		r = php_names_read(m, &f, ret);
	if (r < 0 || want->key & PHP_KEY_NATIVE)
		return r;
	lines_read(m, &f, ret);
	return php_names_read(m, &f, ret); /* they may have been replaced meanwhile */
}
