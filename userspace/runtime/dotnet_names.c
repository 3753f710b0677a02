// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a method as C# writes it: "System.Collections.Generic.List<T>.Add(T)". Generic parameters have the names of
 * their declaration, so that all instances have one name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define NESTED_MAX   16
#define PARAMS_MAX   64
#define NAME_MAX_LEN 256

/* Columns. */
enum { TYPE_NAME = 1, TYPE_NAMESPACE = 2, TYPE_METHODS = 5, METHOD_NAME = 3, METHOD_SIGNATURE = 4, NESTED_TYPE = 0, NESTED_IN = 1,
       GENERIC_OWNER = 2, GENERIC_NAME = 3 };

void dotnet_text(struct dotnet_text *t, const char *what)
{
	size_t n = MIN(strlen(what), t->left - 1);

	memcpy(t->at, what, n);
	t->at += n;
	t->left -= n;
	*t->at = '\0';
}

/* How many rows of a table that is sorted by a column have a value of at most so much there. */
static int dotnet_rows_until(const struct dotnet_metadata *d, uint32_t table, uint32_t column, uint32_t most, uint32_t *ret)
{
	uint32_t low = 0, high = d->rows[table], value;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (dotnet_cell(d, table, middle + 1, column, &value))
			return -EFAULT;
		if (value <= most)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

/* --- generic parameters --- */

int dotnet_generic_name(const struct dotnet_metadata *d, uint32_t owner, uint32_t n, char *to, size_t size)
{
	uint32_t first, value, name;

	if (!owner || dotnet_rows_until(d, DOTNET_GENERIC, GENERIC_OWNER, owner - 1, &first) ||
	    n >= d->rows[DOTNET_GENERIC] - first || dotnet_cell(d, DOTNET_GENERIC, first + 1 + n, GENERIC_OWNER, &value) ||
	    value != owner || dotnet_cell(d, DOTNET_GENERIC, first + 1 + n, GENERIC_NAME, &name))
		return -ENOENT;
	return dotnet_string(d, name, to, size);
}

/* "<TKey, TValue>", of those from one to another; as many as there are. */
static void dotnet_generics(const struct dotnet_metadata *d, uint32_t owner, uint32_t from, uint32_t to, struct dotnet_text *t)
{
	char name[NAME_MAX_LEN];
	uint32_t i = from;

	for (; i < to && dotnet_generic_name(d, owner, i, name, sizeof(name)) == 0; i++) {
		dotnet_text(t, i == from ? "<" : ", ");
		dotnet_text(t, name);
	}
	if (i > from)
		dotnet_text(t, ">");
}

/* --- types --- */

/* The type around one; 0: none. */
static uint32_t dotnet_outer(const struct dotnet_metadata *d, uint32_t type)
{
	uint32_t n, found, outer;

	if (dotnet_rows_until(d, DOTNET_NESTED, NESTED_TYPE, type, &n) || !n ||
	    dotnet_cell(d, DOTNET_NESTED, n, NESTED_TYPE, &found) || found != type ||
	    dotnet_cell(d, DOTNET_NESTED, n, NESTED_IN, &outer))
		return 0;
	return outer;
}

static int dotnet_cell_string(const struct dotnet_metadata *d, uint32_t table, uint32_t row, uint32_t column, char *to,
			      size_t size)
{
	uint32_t at;
	int err = dotnet_cell(d, table, row, column, &at);

	return err ? err : dotnet_string(d, at, to, size);
}

/* A type's own name is followed by ` and how many parameters it adds to those of the types around it. */
static int dotnet_type_part(const struct dotnet_metadata *d, uint32_t type, uint32_t of, uint32_t *params, struct dotnet_text *t)
{
	char name[NAME_MAX_LEN], *tick;
	uint32_t from = *params;
	int err = dotnet_cell_string(d, DOTNET_TYPE_DEF, type, TYPE_NAME, name, sizeof(name));

	if (err)
		return err;
	tick = strrchr(name, '`');
	if (tick) {
		*params += MIN((uint32_t)strtoul(tick + 1, NULL, 10), (uint32_t)PARAMS_MAX);
		*tick = '\0';
	}
	dotnet_text(t, name);
	dotnet_generics(d, of << 1, from, *params, t);
	return 0;
}

static int dotnet_type_name(const struct dotnet_metadata *d, uint32_t type, struct dotnet_text *t)
{
	uint32_t chain[NESTED_MAX], n = 0, params = 0;
	char space[NAME_MAX_LEN];
	int err;

	for (uint32_t at = type; at && n < NESTED_MAX; at = dotnet_outer(d, at))
		chain[n++] = at;
	err = n ? dotnet_cell_string(d, DOTNET_TYPE_DEF, chain[n - 1], TYPE_NAMESPACE, space, sizeof(space)) : -ENOENT;
	if (err)
		return err;
	dotnet_text(t, space);
	dotnet_text(t, *space ? "." : "");
	while (!err && n--) {
		err = dotnet_type_part(d, chain[n], type, &params, t);
		dotnet_text(t, n ? "." : "");
	}
	return err;
}

/* --- methods --- */

/* The last type whose methods begin at or before the row: others there have none. */
static int dotnet_type_of(const struct dotnet_metadata *d, uint32_t method, uint32_t *ret)
{
	int err = dotnet_rows_until(d, DOTNET_TYPE_DEF, TYPE_METHODS, method, ret);

	return err ? err : (*ret ? 0 : -EBADMSG);
}

int dotnet_method_name(const struct dotnet_metadata *d, uint32_t row, struct dotnet_text *to)
{
	char name[NAME_MAX_LEN];
	uint32_t type, signature;
	int err = dotnet_cell_string(d, DOTNET_METHOD_DEF, row, METHOD_NAME, name, sizeof(name));

	if (!err)
		err = dotnet_type_of(d, row, &type);
	if (!err)
		err = dotnet_type_name(d, type, to);
	if (!err)
		err = dotnet_cell(d, DOTNET_METHOD_DEF, row, METHOD_SIGNATURE, &signature);
	if (err)
		return err;
	dotnet_text(to, ".");
	dotnet_text(to, name);
	dotnet_generics(d, row << 1 | 1, 0, PARAMS_MAX, to);
	return dotnet_signature(d, type, row, signature, to);
}
