// SPDX-License-Identifier: Apache-2.0
/* Objects of the heap: strings, arrays, and names of IDs. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define ID_SCOPE_SHIFT 4
#define IDS_PER_UNIT   512 /* ID_ENTRY_UNIT */
#define WORDS_PER_ID   2   /* ID_ENTRY_SIZE: its string, its symbol */
#define SYMBOLS_MIN    512 /* every ruby defines more before it runs anything */
#define SYMBOLS_MAX    (1u << 28)
#define ARRAY_MAX      (1u << 24)

int ruby_words(const struct ruby *r, uint64_t addr, uint64_t *to, size_t words)
{
	return memory_read(r->memory, addr, to, words * sizeof(*to));
}

bool ruby_is_imemo(uint64_t flags, uint32_t type)
{
	return (flags & RUBY_T_MASK) == RUBY_T_IMEMO && ((flags >> RUBY_IMEMO_SHIFT) & 0xf) == type;
}

/* Where a string's bytes lie, and how many. Up to 3.1 the length of an embedded one is in its flags. */
static void object_string(const struct ruby *r, uint64_t value, const uint64_t *head, uint64_t *at, uint64_t *len)
{
	if (head[0] & RUBY_NOEMBED) {
		*at = head[3];
		*len = head[2];
		return;
	}
	*at = value + r->layout->text;
	*len = r->layout->text == 16 ? (head[0] >> 14) & 0x1f : head[2];
}

int ruby_string(const struct ruby *r, uint64_t value, char *to, size_t size)
{
	uint64_t head[4], at, len;
	int err;

	if (!ruby_is_object(value))
		return -EBADMSG;
	err = ruby_words(r, value, head, 4);
	if (err < 0)
		return err;
	if ((head[0] & RUBY_T_MASK) != RUBY_T_STRING)
		return -EBADMSG;
	object_string(r, value, head, &at, &len);
	len = MIN(len, (uint64_t)size - 1);
	err = len ? memory_read(r->memory, at, to, len) : 0;
	to[err < 0 ? 0 : len] = '\0';
	return err;
}

static int object_array(const struct ruby *r, uint64_t array, uint64_t *at, uint64_t *len)
{
	uint64_t head[5];
	int err;

	if (!ruby_is_object(array))
		return -EBADMSG;
	err = ruby_words(r, array, head, 5);
	if (err < 0)
		return err;
	if ((head[0] & RUBY_T_MASK) != RUBY_T_ARRAY)
		return -EBADMSG;
	*at = head[0] & RUBY_NOEMBED ? array + 16 : head[4];
	*len = head[0] & RUBY_NOEMBED ? (head[0] >> 15) & r->layout->embedded_mask : head[2];
	return *len > ARRAY_MAX ? -EBADMSG : 0;
}

int ruby_array_at(const struct ruby *r, uint64_t array, uint64_t index, uint64_t *ret)
{
	uint64_t at, len;
	int err = object_array(r, array, &at, &len);

	if (err < 0)
		return err;
	return index < len ? memory_u64(r->memory, at + index * 8, ret) : -EBADMSG;
}

/* rb_symbols_t: last_id, str, ids. */
static int object_serial_name(const struct ruby *r, uint64_t symbols, uint64_t serial, char *to, size_t size)
{
	uint64_t table[3], unit, name;
	int err = ruby_words(r, symbols, table, 3);

	if (err < 0)
		return err;
	if (serial > (uint32_t)table[0])
		return -EBADMSG;
	err = ruby_array_at(r, table[2], serial / IDS_PER_UNIT, &unit);
	if (err == 0)
		err = ruby_array_at(r, unit, serial % IDS_PER_UNIT * WORDS_PER_ID, &name);
	return err == 0 ? ruby_string(r, name, to, size) : err;
}

int ruby_id_name(const struct ruby *r, uint64_t id, char *to, size_t size)
{
	uint64_t symbols = r->attached->param[RUBY_PARAM_SYMBOLS];

	if (!symbols)
		return -ENOENT;
	return object_serial_name(r, symbols, id > r->layout->last_op ? id >> ID_SCOPE_SHIFT : id, to, size);
}

/* The string of '+', whose ID is the character in all versions. */
bool ruby_is_symbols(const struct ruby *r, uint64_t addr)
{
	uint64_t table[3];
	char name[4];

	return ruby_words(r, addr, table, 3) == 0 && (uint32_t)table[0] >= SYMBOLS_MIN &&
	       (uint32_t)table[0] < SYMBOLS_MAX && ruby_is_object(table[1]) && ruby_is_object(table[2]) &&
	       object_serial_name(r, addr, '+', name, sizeof(name)) == 0 && strcmp(name, "+") == 0;
}
