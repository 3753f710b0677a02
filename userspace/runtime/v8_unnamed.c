// SPDX-License-Identifier: Apache-2.0
/*
 * Builtins of a file without symbols, as of a distribution's library, or of a program that was stripped. Functions that it
 * exports return where their code lies (V8, embedded-data.h, DefaultEmbeddedBlob*) and what each is called (builtins.h,
 * Builtins::name): these are a few instructions, and what they return is read off them. V8 13 exports only its interface:
 * there, Isolate::GetEmbeddedCodeRange calls the functions that return it (api.cc; isolate.cc, CurrentEmbeddedBlob*), and the
 * names are sought.
 * Names are in a table by the builtin's number, which has 24 bytes for each and begins with the name (builtins.cc,
 * BuiltinMetadata); the code's own table has the same numbers. That it is so in V8 10.2, 11.3, 12.4 and 13.6 was seen in
 * files with symbols, of every builtin.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define FUNCTION_BYTES	32
#define RANGE_BYTES	64 /* of GetEmbeddedCodeRange */
#define RANGE_CALLS	4
#define RANGE_DISTANCE	16 /* of the functions that it calls, which lie one behind the other */
#define SECTION_MAX	(1u << 20) /* bytes in which names are sought */
#define TRIES_MAX	1024u
#define ENTRY_BYTES	24
#define NAMES_AT_ONCE	128u
#define CODE_MAX	(64u << 20)
#define OF_BUILTINS	9 /* of "Builtins_", which symbols begin with */

/* --- functions --- */

/* What it returns, as far as its instructions are known. */
struct v8_returning { struct memory *memory; uint64_t at, value; bool has_value, returns; };

struct v8_instruction {
	uint8_t len, nr_bytes;
	uint8_t bytes[4];
	enum v8_effect { NOTHING, RETURN, ADDRESS, WORD_AT, HALF_AT, NUMBER, WORD_BEHIND, HALF_BEHIND } effect;
};

/* Those that compilers make such functions of, with what keeps frame pointers and control flow. */
static const struct v8_instruction v8_instructions[] = {
	{4, 4, {0xf3, 0x0f, 0x1e, 0xfa}, NOTHING}, /* endbr64 */
	{1, 1, {0x55}, NOTHING},		   /* push rbp */
	{3, 3, {0x48, 0x89, 0xe5}, NOTHING},	   /* mov rbp, rsp */
	{1, 1, {0x5d}, NOTHING},		   /* pop rbp */
	{1, 1, {0xc3}, RETURN},
	{7, 3, {0x48, 0x8d, 0x05}, ADDRESS},	   /* lea rax, [rip + n] */
	{7, 3, {0x48, 0x8b, 0x05}, WORD_AT},	   /* mov rax, [rip + n] */
	{6, 2, {0x8b, 0x05}, HALF_AT},		   /* mov eax, [rip + n] */
	{5, 1, {0xb8}, NUMBER},			   /* mov eax, n */
	{3, 3, {0x48, 0x8b, 0x00}, WORD_BEHIND},   /* mov rax, [rax] */
	{2, 2, {0x8b, 0x00}, HALF_BEHIND},	   /* mov eax, [rax] */
};

static const struct v8_instruction *v8_instruction_at(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(v8_instructions); i++) {
		const struct v8_instruction *x = &v8_instructions[i];

		if (x->len <= len && !memcmp(code, x->bytes, x->nr_bytes))
			return x;
	}
	return NULL;
}

static int v8_returning_load(struct v8_returning *r, uint64_t at, bool whole)
{
	uint32_t half = 0;
	int err = whole ? memory_u64(r->memory, at, &r->value) : memory_u32(r->memory, at, &half);

	if (!whole)
		r->value = half;
	return err;
}

static int v8_returning_run(struct v8_returning *r, const struct v8_instruction *x, const uint8_t *code)
{
	uint64_t behind = r->value;
	int32_t n = 0;

	if (x->effect == NOTHING || x->effect == RETURN) {
		r->returns = x->effect == RETURN;
		return 0;
	}
	if (x->effect == WORD_BEHIND || x->effect == HALF_BEHIND)
		return r->has_value ? v8_returning_load(r, behind, x->effect == WORD_BEHIND) : -ENOTSUP;
	memcpy(&n, code + x->len - sizeof(n), sizeof(n));
	r->value = x->effect == NUMBER ? (uint32_t)n : r->at + x->len + (uint64_t)(int64_t)n;
	r->has_value = true;
	return x->effect == NUMBER || x->effect == ADDRESS ? 0 : v8_returning_load(r, r->value, x->effect == WORD_AT);
}

/* -ENOTSUP: it is made of other instructions. */
static int v8_returned_at(struct memory *m, uint64_t function, uint64_t *ret)
{
	struct v8_returning r = {.memory = m, .at = function};
	uint8_t code[FUNCTION_BYTES];
	size_t at = 0;

	if (memory_read(m, r.at, code, sizeof(code)))
		return -EFAULT;
	while (!r.returns) {
		const struct v8_instruction *x = v8_instruction_at(code + at, sizeof(code) - at);
		int err = x ? v8_returning_run(&r, x, code + at) : -ENOTSUP;

		if (err)
			return err;
		at += x->len;
		r.at += x->len;
	}
	*ret = r.value;
	return r.has_value ? 0 : -ENOTSUP;
}

/* -ENOENT: it is not exported. */
static int v8_returned(const struct runtime_file *file, struct memory *m, const char *function, uint64_t *ret)
{
	uint64_t at;
	int err = runtime_address(file, function, &at);

	return err ? err : v8_returned_at(m, at, ret);
}

/* --- names --- */

/*
 * Where Builtins::name has its table: lea rax, [rip + n], or of a program that lies where it was linked to,
 * mov rax, [rax * 8 + n].
 */
static int v8_unnamed_table(const struct runtime_file *file, struct memory *m, uint64_t *ret)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x05}, mov[] = {0x48, 0x8b, 0x04, 0xc5};
	uint8_t code[FUNCTION_BYTES];
	uint64_t at;
	int32_t n;
	int err = runtime_address(file, "_ZN2v88internal8Builtins4nameENS0_7BuiltinE", &at);

	if (err || memory_read(m, at, code, sizeof(code)))
		return err ? err : -EFAULT;
	for (size_t i = 0; i + sizeof(mov) + sizeof(n) <= sizeof(code); i++) {
		if (!memcmp(code + i, lea, sizeof(lea))) {
			memcpy(&n, code + i + sizeof(lea), sizeof(n));
			*ret = at + i + sizeof(lea) + sizeof(n) + (uint64_t)(int64_t)n;
			return 0;
		}
		if (!memcmp(code + i, mov, sizeof(mov))) {
			memcpy(&n, code + i + sizeof(mov), sizeof(n));
			*ret = (uint64_t)(int64_t)n;
			return 0;
		}
	}
	return -ENOTSUP;
}

static bool v8_is_identifier(const char *name)
{
	size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return len && !name[len];
}

/* A longer one than has room is none: no other one's name may be made of it. */
static int v8_unnamed_read(struct memory *m, uint64_t at, char to[RUNTIME_CODE_NAME])
{
	int err = memory_string(m, at, to, RUNTIME_CODE_NAME);

	if (err)
		return err;
	return v8_is_identifier(to) && strlen(to) < RUNTIME_CODE_NAME - OF_BUILTINS - 1 ? 0 : -EBADMSG;
}

int v8_unnamed_name(const struct v8 *v, struct memory *m, uint32_t i, char to[RUNTIME_CODE_NAME])
{
	char name[RUNTIME_CODE_NAME];
	uint64_t at;
	int err;

	if (!v->names)
		return -ENOENT;
	err = memory_u64(m, v->names + (uint64_t)i * ENTRY_BYTES, &at);
	if (!err)
		err = v8_unnamed_read(m, at, name);
	if (!err)
		snprintf(to, RUNTIME_CODE_NAME, "Builtins_%.*s", RUNTIME_CODE_NAME - OF_BUILTINS - 1, name);
	return err;
}

/* --- attach --- */

struct v8_blob { uint64_t code, size, data; };

static int v8_unnamed_default(const struct runtime_file *file, struct memory *m, struct v8_blob *ret)
{
	int err = v8_returned(file, m, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", &ret->code);

	if (!err)
		err = v8_returned(file, m, "_ZN2v88internal23DefaultEmbeddedBlobDataEv", &ret->data);
	return err ? err : v8_returned(file, m, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", &ret->size);
}

/* The lowest of the functions that it calls, each of which lies right before the one that was called last. */
static int v8_unnamed_called(struct memory *m, uint64_t at, uint64_t *ret)
{
	uint8_t code[RANGE_BYTES];
	uint32_t nr = 0;
	int32_t n;

	if (memory_read(m, at, code, sizeof(code)))
		return -EFAULT;
	for (size_t i = 0; i + 1 + sizeof(n) <= sizeof(code) && nr < RANGE_CALLS; i++) {
		uint64_t to;

		if (code[i] != 0xe8)
			continue;
		memcpy(&n, code + i + 1, sizeof(n));
		to = at + i + 1 + sizeof(n) + (uint64_t)(int64_t)n;
		if (nr && to != *ret - RANGE_DISTANCE)
			return -ENOTSUP;
		*ret = to;
		nr++;
		i += sizeof(n);
	}
	return nr == RANGE_CALLS ? 0 : -ENOTSUP;
}

/* -EAGAIN: V8 has not begun yet. */
static int v8_unnamed_current(const struct runtime_file *file, struct memory *m, struct v8_blob *ret)
{
	uint64_t at;
	int err = runtime_address(file, "_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", &at);

	if (!err)
		err = v8_unnamed_called(m, at, &at);
	if (!err)
		err = v8_returned_at(m, at, &ret->code);
	if (!err)
		err = v8_returned_at(m, at + RANGE_DISTANCE, &ret->size);
	if (!err)
		err = v8_returned_at(m, at + 2 * RANGE_DISTANCE, &ret->data);
	return err || ret->code ? err : -EAGAIN;
}

int v8_unnamed_blob(const struct runtime_file *file, struct memory *m, struct v8 *v, uint64_t *ret_data)
{
	struct v8_blob blob;
	int err = v8_unnamed_default(file, m, &blob);

	if (err == -ENOENT)
		err = v8_unnamed_current(file, m, &blob);
	if (err)
		return err == -ENOENT ? -ENOTSUP : err;
	if (!blob.size || blob.size > CODE_MAX || !binary_is_code(file->binary, blob.code - file->bias) ||
	    !binary_is_code(file->binary, blob.code + blob.size - 1 - file->bias))
		return -ENOTSUP;
	v->builtins = blob.code;
	v->builtins_end = blob.code + blob.size;
	*ret_data = blob.data;
	return 0;
}

/* --- names that no function tells --- */

/* Pointers to constants of the file, with 24 bytes from one to the next: three such rows lie in one another. */
struct v8_rows_of_names {
	struct memory *memory;
	uint64_t first, end; /* the constants */
	uint32_t wanted, tries;
	uint32_t nr[ENTRY_BYTES / 8];
};

static bool v8_names_begin(struct v8_rows_of_names *r, uint64_t at)
{
	char name[RUNTIME_CODE_NAME];
	uint64_t text;

	return r->tries++ < TRIES_MAX && memory_u64(r->memory, at, &text) == 0 &&
	       v8_unnamed_read(r->memory, text, name) == 0 && !strcmp(name, V8_FIRST_BUILTIN);
}

/* Whether a table of so many names ends with this word. */
static bool v8_names_end(struct v8_rows_of_names *r, uint64_t at, uint64_t word)
{
	uint32_t *nr = &r->nr[at / 8 % ARRAY_SIZE(r->nr)];

	*nr = word >= r->first && word < r->end ? *nr + 1 : 0;
	return *nr >= r->wanted && v8_names_begin(r, at - (uint64_t)(r->wanted - 1) * ENTRY_BYTES);
}

static int v8_names_in(struct v8_rows_of_names *r, uint64_t from, uint64_t len, uint64_t *ret)
{
	uint64_t word[512];

	memset(r->nr, 0, sizeof(r->nr));
	for (uint64_t at = from; at < from + len; at += sizeof(word)) {
		size_t n = (size_t)MIN(from + len - at, (uint64_t)sizeof(word)) / 8;

		if (memory_read(r->memory, at, word, n * 8))
			return -EFAULT;
		for (size_t i = 0; i < n; i++)
			if (v8_names_end(r, at + 8 * i, word[i])) {
				*ret = at + 8 * i - (uint64_t)(r->wanted - 1) * ENTRY_BYTES;
				return 0;
			}
	}
	return -ENOENT;
}

/* In the file's data: constants that are relocated, and what is written to. */
static int v8_unnamed_seek(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	static const char *const sections[] = {".data.rel.ro", ".data"};
	const struct binary_section *constants = binary_section(file->binary, ".rodata"), *s;
	struct v8_rows_of_names rows = {.memory = m, .wanted = v->layout_nr};
	int err = -ENOENT;

	if (!constants || !v->layout_nr)
		return -ENOTSUP;
	rows.first = file->bias + constants->addr;
	rows.end = rows.first + constants->size;
	for (size_t i = 0; i < ARRAY_SIZE(sections) && err == -ENOENT; i++) {
		s = binary_section(file->binary, sections[i]);
		if (s)
			err = v8_names_in(&rows, file->bias + s->addr, MIN(s->size, (uint64_t)SECTION_MAX), &v->names);
	}
	return err == -ENOENT ? -ENOTSUP : err;
}

struct v8_role { const char *name; uint64_t *ret; bool must; };

static int v8_unnamed_take(const struct v8 *v, struct memory *m, struct v8_role *roles, size_t nr, uint32_t i,
			   const char *name)
{
	uint32_t offset;
	int err = 0;

	for (size_t k = 0; k < nr && !err; k++) {
		if (strcmp(name, roles[k].name) != 0)
			continue;
		err = *roles[k].ret ? -ENOTSUP : memory_u32(m, v->layout + (uint64_t)i * v->layout_stride, &offset);
		if (!err)
			*roles[k].ret = v->builtins + offset;
	}
	return err;
}

/* All that the code's table has must have names: else the two are not of one V8. */
static int v8_unnamed_search(const struct v8 *v, struct memory *m, struct v8_role *roles, size_t nr)
{
	uint64_t entry[NAMES_AT_ONCE][ENTRY_BYTES / sizeof(uint64_t)];
	char name[RUNTIME_CODE_NAME];
	int err = 0;

	for (uint32_t i = 0; i < v->layout_nr && !err; i++) {
		const uint32_t in = i % NAMES_AT_ONCE;

		if (!in)
			err = memory_read(m, v->names + (uint64_t)i * ENTRY_BYTES, entry,
					  MIN(NAMES_AT_ONCE, v->layout_nr - i) * ENTRY_BYTES);
		if (!err)
			err = v8_unnamed_read(m, entry[in][0], name);
		if (!err)
			err = v8_unnamed_take(v, m, roles, nr, i, name);
	}
	return err;
}

static int v8_unnamed_names(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	int err = v->names ? 0 : v8_unnamed_table(file, m, &v->names);

	return err == -ENOENT ? v8_unnamed_seek(file, m, v) : err;
}

int v8_unnamed_find(const struct runtime_file *file, struct memory *m, struct v8 *v)
{
	uint64_t resumed[V8_RESUMED] = {0};
	struct v8_role roles[5 + V8_RESUMED] = {
		{"InterpreterEntryTrampoline", &v->trampoline, true}, {"BaselineOutOfLinePrologue", &v->prologue, true},
		{"BaselineLeaveFrame", &v->leave, true}, {"WideHandler", &v->handlers, true},
		{"WasmLiftoffFrameSetup", &v->setup, false},
	};
	int err = v8_unnamed_names(file, m, v);

	for (uint32_t i = 0; i < V8_RESUMED; i++)
		roles[5 + i] = (struct v8_role){v8_resumed[i].symbol + OF_BUILTINS, &resumed[i], false};
	v->trampoline = v->prologue = v->leave = v->handlers = v->setup = 0;
	if (!err)
		err = v8_unnamed_search(v, m, roles, ARRAY_SIZE(roles));
	for (size_t i = 0; i < ARRAY_SIZE(roles) && !err; i++)
		err = roles[i].must && !*roles[i].ret ? -ENOTSUP : 0;
	for (uint32_t i = 0; i < V8_RESUMED; i++)
		v->resumed[i] = resumed[i] ? (uint32_t)(resumed[i] - v->builtins) : 0;
	return err == -EBADMSG ? -ENOTSUP : err;
}
