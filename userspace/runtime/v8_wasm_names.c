// SPDX-License-Identifier: Apache-2.0
/*
 * Names of a module's functions, by the name section in its bytes (WebAssembly,
 * core specification, "Binary Format" and "Custom Sections": sections have a
 * number and a length; a custom one begins with its name; the name section's own
 * parts are as sections; names of functions follow their numbers, which ascend).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define HEADER	      8 /* magic and version */
#define SECTIONS_MAX  1024
#define CUSTOM	      0
#define FUNCTION_NAMES 1
#define NAMES_BYTES   (16u << 20) /* that a question looks through: what is marked on the way stays */
#define MARKS_MAX     2048
#define MARK_BYTES    (8u << 10) /* of names at least from one mark to the next */
#define MODULES	      4

/* Where names of a function's number and greater ones begin. */
struct v8_wasm_marks {
	struct v8_wasm_module of;
	uint64_t asked; /* when, in questions; 0: never */
	uint64_t begin, end; /* of the names */
	uint64_t nr_names;
	uint32_t nr;
	struct { uint64_t at, name; uint32_t function; } row[MARKS_MAX]; /* name: how many are before */
};

/* Of the modules that were asked for last. */
static struct {
	struct v8_wasm_marks of[MODULES];
	uint64_t questions;
} marks;

static int v8_wasm_number(struct v8_bytes *b, uint32_t *ret)
{
	uint64_t n;
	int err = v8_bytes_number(b, 35, &n);

	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	*ret = (uint32_t)n;
	return n > UINT32_MAX ? -EBADMSG : 0;
}

/* The next section's number and end. -ENOENT: there are no more. */
static int v8_wasm_section(struct v8_bytes *b, uint8_t *ret, uint64_t *ret_end)
{
	uint32_t len;
	int err = v8_bytes_next(b, ret);

	if (!err)
		err = v8_wasm_number(b, &len);
	if (err)
		return err;
	*ret_end = v8_bytes_at(b) + len;
	return *ret_end > b->end ? -EBADMSG : 0;
}

static int v8_wasm_text(struct v8_bytes *b, uint32_t len, char *to, size_t size)
{
	uint32_t kept = (uint32_t)MIN((size_t)len, size - 1);
	int err = 0;

	for (uint32_t i = 0; !err && i < kept; i++)
		err = v8_bytes_next(b, (uint8_t *)&to[i]);
	to[err ? 0 : kept] = '\0';
	if (!err)
		err = v8_bytes_skip(b, len - kept);
	return err == -ENOENT ? -EBADMSG : err;
}

static bool v8_wasm_is_names(struct v8_bytes *b)
{
	char name[8];
	uint32_t len;

	return v8_wasm_number(b, &len) == 0 && len == strlen("name") && v8_wasm_text(b, len, name, sizeof(name)) == 0 &&
	       !strcmp(name, "name");
}

/* Narrows what is left to be read to the section of this number that holds, if asked for, names. */
static int v8_wasm_open(struct v8_bytes *b, uint8_t wanted, bool named)
{
	for (uint32_t i = 0; i < SECTIONS_MAX; i++) {
		uint64_t end;
		uint8_t number;
		int err = v8_wasm_section(b, &number, &end);

		if (err)
			return err;
		if (number == wanted && (!named || v8_wasm_is_names(b))) {
			v8_bytes_open(b, b->memory, v8_bytes_at(b), end);
			return 0;
		}
		v8_bytes_open(b, b->memory, end, b->end);
	}
	return -ENOENT;
}

static int v8_wasm_open_names(struct memory *m, const struct v8_wasm_module *module, struct v8_wasm_marks *k,
			      struct v8_bytes *b)
{
	uint32_t nr;
	int err;

	v8_bytes_open(b, m, module->wire + HEADER, module->wire_end);
	err = v8_wasm_open(b, CUSTOM, true);
	if (!err)
		err = v8_wasm_open(b, FUNCTION_NAMES, false);
	if (!err)
		err = v8_wasm_number(b, &nr);
	if (err)
		return err;
	k->of = *module;
	k->begin = v8_bytes_at(b);
	k->end = b->end;
	k->nr_names = nr;
	k->nr = 0;
	return 0;
}

/* Those of the module, or else what was asked for longest ago. */
static struct v8_wasm_marks *v8_wasm_marks_of(const struct v8_wasm_module *module)
{
	struct v8_wasm_marks *oldest = &marks.of[0];

	for (uint32_t i = 0; i < MODULES; i++) {
		if (!memcmp(&marks.of[i].of, module, sizeof(*module)))
			return &marks.of[i];
		if (marks.of[i].asked < oldest->asked)
			oldest = &marks.of[i];
	}
	return oldest;
}

/* From the last mark before the function's name; from the first name, of a module that nothing tells from others. */
static int v8_wasm_seek(struct memory *m, const struct v8_wasm_module *module, uint32_t function, struct v8_wasm_marks *k,
			struct v8_bytes *b, uint64_t *ret_name)
{
	uint32_t i;

	*ret_name = 0;
	k->asked = ++marks.questions;
	if (!module->script_id || memcmp(&k->of, module, sizeof(*module)) != 0)
		return v8_wasm_open_names(m, module, k, b);
	for (i = k->nr; i && k->row[i - 1].function > function; i--)
		;
	v8_bytes_open(b, m, i ? k->row[i - 1].at : k->begin, k->end);
	*ret_name = i ? k->row[i - 1].name : 0;
	return 0;
}

static void v8_wasm_mark(struct v8_wasm_marks *k, uint64_t at, uint64_t name, uint32_t function)
{
	uint64_t last = k->nr ? k->row[k->nr - 1].at : k->begin;

	if (k->nr == MARKS_MAX || at < last + MAX((k->end - k->begin) / MARKS_MAX, (uint64_t)MARK_BYTES))
		return;
	k->row[k->nr].at = at;
	k->row[k->nr].name = name;
	k->row[k->nr++].function = function;
}

/* What is looked through is marked, and not looked through again: it is beside the question's budget. */
int v8_wasm_name(struct memory *m, const struct v8_wasm_module *module, uint32_t function, char *to, size_t size)
{
	static struct v8_bytes b;
	struct v8_wasm_marks *k = v8_wasm_marks_of(module);
	uint32_t number, len;
	uint64_t name, begin;
	int err = v8_wasm_seek(m, module, function, k, &b, &name);
	const struct memory_spent spent = memory_spent(m);

	begin = v8_bytes_at(&b);
	for (; !err && name < k->nr_names; name++) {
		uint64_t at = v8_bytes_at(&b);

		memory_unspend(m, spent);
		err = at - begin > NAMES_BYTES ? (module->script_id ? -EBUSY : -E2BIG) : v8_wasm_number(&b, &number);
		if (!err)
			err = v8_wasm_number(&b, &len);
		if (err || number > function)
			break;
		if (number == function)
			return v8_wasm_text(&b, len, to, size);
		v8_wasm_mark(k, at, name, number);
		err = v8_bytes_skip(&b, len);
	}
	return err ? err : -ENOENT;
}
