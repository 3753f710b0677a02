// SPDX-License-Identifier: Apache-2.0
/*
 * Layouts of CPython's structures by version. 3.13 and later publish a table of
 * offsets at the beginning of _PyRuntime; those before have rows here. Each row
 * was made with offsetof() over the headers of the release that it names, and
 * attach compares the sizes that its types state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define OFFSET_MAX	   32000 /* of a field of an interpreter's state, the largest structure */
#define FRAME_WINDOW	   (OTP_WALK_WORDS * 8)
#define PUBLISHED_COOKIE   "xdebugpy"
#define PUBLISHED_WORDS	   128
#define RODATA_MAX	   (16u << 20)
#define RELEASE_CANDIDATE  0xc0 /* Include/patchlevel.h: PY_RELEASE_LEVEL, as the high digit of the last byte */
#define WIDE_HEAD	   16 /* of struct PyCompactUnicodeObject, after the ASCII one: a length and a pointer */
#define RODATA_PIECE	   (64u << 10)

/* Of fields that no release from 3.6 to 3.12 has moved. */
#define COMMON                                                                                            \
	.ob_type = 8, .thread_next = 8, .thread_interp = 16, .interp_next = 0, .text_length = 16,          \
	.text_state = 32, .bytes_size = 16, .bytes_data = 32, .type_name = 24

/* PyFrameObject, Include/frameobject.h (3.10: cpython/frameobject.h); f_back, f_code, tstate->frame never moved. */
#define FRAME_OBJECT                                                                                      \
	.entry = CPYTHON_ENTRY_EVERY, .frame_code = 32, .frame_back = 24, .thread_frame = 24,             \
	.interp_threads = 8, .text_ascii = 48, .text_wide = 72

static const struct cpython_layout cpython_layouts[] = {
	/* 3.6.15: Include/code.h, frameobject.h, pystate.h */
	{COMMON, FRAME_OBJECT, .minor = 6, .lines = CPYTHON_LNOTAB, .unit = 1, .frame_instr = 120, .code_first_line = 36,
	 .code_file = 96, .code_name = 104, .code_table = 112, .thread_id = 152, .code_size = 144, .frame_size = 384},
	/* 3.7.16: the same, and internal/pystate.h */
	{COMMON, FRAME_OBJECT, .minor = 7, .lines = CPYTHON_LNOTAB, .unit = 1, .frame_instr = 104, .code_first_line = 36,
	 .code_file = 96, .code_name = 104, .code_table = 112, .thread_id = 176, .runtime_head = 24, .code_size = 144,
	 .frame_size = 368},
	/* 3.8.18: Include/code.h, frameobject.h, cpython/pystate.h, internal/pycore_pystate.h */
	{COMMON, FRAME_OBJECT, .minor = 8, .lines = CPYTHON_LNOTAB, .unit = 1, .frame_instr = 104, .code_first_line = 40,
	 .code_file = 104, .code_name = 112, .code_table = 120, .thread_id = 176, .runtime_head = 32, .code_size = 176,
	 .frame_size = 368},
	/* 3.9.18: cpython/code.h, cpython/frameobject.h, cpython/pystate.h, internal/pycore_runtime.h */
	{COMMON, FRAME_OBJECT, .minor = 9, .lines = CPYTHON_LNOTAB, .unit = 1, .frame_instr = 104, .code_first_line = 40,
	 .code_file = 104, .code_name = 112, .code_table = 120, .thread_id = 176, .runtime_head = 32, .code_size = 176,
	 .frame_size = 368},
	/* 3.10.13: the same; f_lasti counts instructions of two bytes */
	{COMMON, FRAME_OBJECT, .minor = 10, .lines = CPYTHON_LINETABLE, .unit = 2, .frame_instr = 96, .code_first_line = 40,
	 .code_file = 104, .code_name = 112, .code_table = 120, .thread_id = 176, .runtime_head = 32, .code_size = 176,
	 .frame_size = 360},
	/* 3.11.2, 3.11.7: cpython/code.h, cpython/pystate.h, internal/pycore_frame.h, pycore_interp.h, pycore_runtime.h */
	{COMMON, .minor = 11, .entry = CPYTHON_ENTRY_FLAG, .lines = CPYTHON_LOCATIONS, .frame_code = 32, .frame_back = 48,
	 .frame_instr = 56, .frame_owner = 68 /* is_entry */, .code_first_line = 72, .code_file = 112, .code_name = 128,
	 .code_table = 136, .code_bytes = 184, .text_ascii = 48, .text_wide = 72, .thread_id = 152, .thread_loop = 56,
	 .loop_frame = 8, .interp_threads = 16, .runtime_head = 40, .code_size = 184},
	/* 3.12.1: the same; FRAME_OWNED_BY_CSTACK is 3 */
	{COMMON, .minor = 12, .entry = CPYTHON_ENTRY_SHIM, .shim = 3, .lines = CPYTHON_LOCATIONS, .frame_code = 0,
	 .frame_back = 8, .frame_instr = 56, .frame_owner = 70, .code_first_line = 68, .code_file = 112, .code_name = 128,
	 .code_table = 136, .code_bytes = 192, .text_ascii = 40, .text_wide = 56, .thread_id = 136, .thread_loop = 56,
	 .loop_frame = 0, .interp_threads = 72, .runtime_head = 40, .code_size = 192},
};

/* --- what the runtime publishes --- */

/* Words of struct _Py_DebugOffsets that are used, and what has no word there. */
struct published {
	uint8_t minor, shim, tag, base, local;
	uint8_t runtime_head, interp_next, interp_threads, thread_next, thread_interp, thread_frame, thread_id, frame_back,
		frame_code, frame_instr, frame_owner, code_file, code_name, code_table, code_first_line, code_bytes, ob_type,
		type_name, bytes_size, bytes_data, text_state, text_length, text_ascii;
};

static const struct published published_tables[] = {
	/* 3.13.0, internal/pycore_runtime.h; the shim's FRAME_OWNED_BY_CSTACK: internal/pycore_frame.h */
	{.minor = 13, .shim = 3, .runtime_head = 5, .interp_next = 8, .interp_threads = 9, .thread_next = 21,
	 .thread_interp = 22, .thread_frame = 23, .thread_id = 24, .frame_back = 29, .frame_code = 30, .frame_instr = 31,
	 .frame_owner = 33, .code_file = 35, .code_name = 37, .code_table = 38, .code_first_line = 39, .code_bytes = 43,
	 .ob_type = 45, .type_name = 47, .bytes_size = 65, .bytes_data = 66, .text_state = 68, .text_length = 69,
	 .text_ascii = 70},
	/* 3.14.0, internal/pycore_debug_offsets.h; FRAME_OWNED_BY_INTERPRETER: internal/pycore_interpframe_structs.h */
	{.minor = 14, .shim = 3, .tag = 3, .runtime_head = 5, .interp_next = 8, .interp_threads = 9, .thread_next = 24,
	 .thread_interp = 25, .thread_frame = 26, .thread_id = 27, .frame_back = 32, .frame_code = 33, .frame_instr = 34,
	 .frame_owner = 36, .code_file = 40, .code_name = 42, .code_table = 43, .code_first_line = 44, .code_bytes = 48,
	 .ob_type = 51, .type_name = 53, .bytes_size = 75, .bytes_data = 76, .text_state = 78, .text_length = 79,
	 .text_ascii = 80},
	/* 3.15.2, the same files; base_frame: internal/pycore_tstate.h; internal/pycore_runtime_structs.h has no autoTSSkey */
	{.minor = 15, .shim = 3, .tag = 3, .base = 1, .local = 1, .runtime_head = 5, .interp_next = 8,
	 .interp_threads = 9, .thread_next = 24, .thread_interp = 25, .thread_frame = 26, .thread_id = 30, .frame_back = 40,
	 .frame_code = 41, .frame_instr = 42, .frame_owner = 44, .code_file = 48, .code_name = 50, .code_table = 51,
	 .code_first_line = 52, .code_bytes = 56, .ob_type = 59, .type_name = 61, .bytes_size = 87, .bytes_data = 88,
	 .text_state = 90, .text_length = 91, .text_ascii = 92},
};

enum { PUBLISHED_MAGIC = 0, PUBLISHED_VERSION = 1, PUBLISHED_FREE_THREADED = 2 };

static const struct published *published_of(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(published_tables); i++)
		if (published_tables[i].minor == minor)
			return &published_tables[i];
	return NULL;
}

/* What is too large for a field stays so: cpython_layout_sound refuses it. */
static void published_take(const struct published *p, const uint64_t *word, struct cpython_layout *ret)
{
#define TAKE(field) .field = (uint16_t)MIN(word[p->field], (uint64_t)UINT16_MAX)
	*ret = (struct cpython_layout){
		.minor = p->minor, .entry = CPYTHON_ENTRY_SHIM, .shim = p->shim, .tag = p->tag, .base = p->base,
		.local = p->local, .lines = CPYTHON_LOCATIONS,
		TAKE(runtime_head), TAKE(interp_next), TAKE(interp_threads), TAKE(thread_next), TAKE(thread_interp),
		TAKE(thread_frame), TAKE(thread_id), TAKE(frame_back), TAKE(frame_code), TAKE(frame_instr), TAKE(frame_owner),
		TAKE(code_file), TAKE(code_name), TAKE(code_table), TAKE(code_first_line), TAKE(code_bytes), TAKE(ob_type),
		TAKE(type_name), TAKE(bytes_size), TAKE(bytes_data), TAKE(text_state), TAKE(text_length), TAKE(text_ascii),
	};
#undef TAKE
	ret->code_size = ret->code_bytes;
	ret->text_wide = (uint16_t)MIN(ret->text_ascii + WIDE_HEAD, UINT16_MAX);
}

/* 3.13 was published before its table had its last form; releases and their candidates have it. */
static int published_find(struct memory *m, uint64_t runtime, uint32_t hex, struct cpython_layout *ret,
			  char why[RUNTIME_WHY_MAX])
{
	const struct published *p = published_of((hex >> 16) & 0xff);
	uint64_t word[PUBLISHED_WORDS];
	int r;

	if (!p || (hex & 0xff) < RELEASE_CANDIDATE)
		return -ENOTSUP;
	r = memory_read(m, runtime, word, sizeof(word));
	if (r < 0)
		return r;
	if (memcmp(&word[PUBLISHED_MAGIC], PUBLISHED_COOKIE, sizeof(*word)) != 0)
		return -ENOTSUP;
	if (word[PUBLISHED_FREE_THREADED]) {
		snprintf(why, RUNTIME_WHY_MAX, "Python without the GIL (free-threaded) is not supported");
		return -ENOTSUP;
	}
	published_take(p, word, ret);
	return (uint32_t)word[PUBLISHED_VERSION] == hex ? 0 : -ENOTSUP;
}

/* --- versions --- */

static const struct cpython_layout *layout_row(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(cpython_layouts); i++)
		if (cpython_layouts[i].minor == minor)
			return &cpython_layouts[i];
	return NULL;
}

/* The length of a version at the end of a string, as 3.10.13; 0: there is none. */
static size_t version_length(const char *at, const char *end, size_t prefix)
{
	size_t len = strnlen(at, (size_t)(end - at));

	if (len == (size_t)(end - at) || len >= RUNTIME_VERSION_MAX || at[prefix] < '0' || at[prefix] > '9')
		return 0;
	return strspn(at, "0123456789.abrc+") == len ? len : 0;
}

/* true: found as a string of its own. Linkers merge strings, so one that only ends with a version may be it too. */
static bool version_in(const char *data, size_t len, uint32_t minor, char ret[RUNTIME_VERSION_MAX])
{
	char prefix[16];
	size_t n = (size_t)snprintf(prefix, sizeof(prefix), "3.%u.", minor), length;
	const char *end = data + len, *at = data;

	while ((at = memmem(at + 1, (size_t)(end - at) - 1, prefix, n))) {
		length = version_length(at, end, n);
		if (!length || (at[-1] && strchr("0123456789.", at[-1])))
			continue;
		memcpy(ret, at, length + 1);
		if (at[-1] == '\0')
			return true;
	}
	return false;
}

/* To 3.10, the file states its full version only among its strings. */
static void version_read(struct binary *b, uint32_t minor, char ret[RUNTIME_VERSION_MAX])
{
	const struct binary_section *s = binary_section(b, ".rodata");
	_cleanup_(freep) char *piece = malloc(RODATA_PIECE);
	uint64_t size = s ? MIN(s->size, (uint64_t)RODATA_MAX) : 0;

	snprintf(ret, RUNTIME_VERSION_MAX, "3.%u", minor);
	for (uint64_t at = 0; piece && at < size; at += RODATA_PIECE - RUNTIME_VERSION_MAX) {
		ssize_t n = binary_read(b, s->offset + at, piece, (size_t)MIN(size - at, (uint64_t)RODATA_PIECE));

		if (n <= 0 || version_in(piece, (size_t)n, minor, ret))
			return;
	}
}

/* The first release that exports each: what a file exports dates it, to 3.10. */
static uint32_t version_by_symbols(struct binary *b)
{
	static const struct { const char *name; uint32_t minor; } since[] = {
		{"PyModule_AddObjectRef", 10}, {"PyObject_CallNoArgs", 9}, {"PyCode_NewWithPosOnlyArgs", 8},
		{"_PyRuntime", 7}, {"_PyEval_EvalFrameDefault", 6},
	};
	struct runtime_symbol s;

	for (size_t i = 0; i < ARRAY_SIZE(since); i++)
		if (runtime_symbol(b, since[i].name, &s) == 0)
			return since[i].minor;
	return 0;
}

static void version_text(uint32_t hex, char ret[RUNTIME_VERSION_MAX])
{
	static const char *const level[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *text = level[(hex >> 4) & 15];

	snprintf(ret, RUNTIME_VERSION_MAX, "%u.%u.%u", hex >> 24, (hex >> 16) & 0xff, (hex >> 8) & 0xff);
	if (text)
		snprintf(ret + strlen(ret), RUNTIME_VERSION_MAX - strlen(ret), "%s%u", text, hex & 15);
}

/* PY_VERSION_HEX, 0: before 3.11. */
static uint32_t version_hex(struct binary *b)
{
	struct runtime_symbol s;
	uint32_t hex;

	if (runtime_symbol(b, "Py_Version", &s) < 0 ||
	    binary_read_vaddr(b, s.value, &hex, sizeof(hex)) != sizeof(hex))
		return 0;
	return hex;
}

/* --- finding --- */

static int layout_by_version(const struct runtime_file *file, struct memory *m, struct cpython_layout *ret,
			     char version[RUNTIME_VERSION_MAX], char why[RUNTIME_WHY_MAX])
{
	uint32_t hex = version_hex(file->binary), minor = hex ? (hex >> 16) & 0xff : version_by_symbols(file->binary);
	const struct cpython_layout *row = !hex || hex >> 24 == 3 ? layout_row(minor) : NULL;
	struct runtime_symbol s;

	if (hex)
		version_text(hex, version);
	else if (minor)
		version_read(file->binary, minor, version);
	else
		snprintf(version, RUNTIME_VERSION_MAX, "before 3.6");
	if (row && (!hex || (hex & 0xff) >= RELEASE_CANDIDATE)) {
		*ret = *row;
		return 0;
	}
	if (!hex || hex >> 24 != 3 || runtime_symbol(file->binary, "_PyRuntime", &s) < 0)
		return -ENOTSUP;
	return published_find(m, file->bias + s.value, hex, ret, why);
}

/* The base size that a type of the runtime's states; its name, if name is not NULL. */
static int type_is(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l, const char *symbol,
		   const char *name, uint64_t size)
{
	struct runtime_symbol s;
	uint64_t word[2];
	char text[16];
	int r = runtime_symbol(file->binary, symbol, &s);

	if (r == 0)
		r = memory_read(m, file->bias + s.value + l->type_name, word, sizeof(word));
	if (r == 0)
		r = memory_string(m, word[0], text, sizeof(text));
	if (r < 0)
		return r;
	return strcmp(text, name) == 0 && word[1] == size ? 0 : -ENOTSUP;
}

static int layout_check(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l)
{
	int r = type_is(file, m, l, "PyCode_Type", "code", l->code_size);

	if (r == 0 && l->frame_size)
		r = type_is(file, m, l, "PyFrame_Type", "frame", l->frame_size);
	return r;
}

static void layout_image(const struct runtime_file *file, struct cpython_layout *l)
{
	const struct binary *b = file->binary;

	l->image = UINT64_MAX;
	for (uint32_t i = 0; i < b->nr_segments; i++) {
		l->image = MIN(l->image, file->bias + b->segments[i].vaddr);
		l->image_end = MAX(l->image_end, file->bias + b->segments[i].vaddr + b->segments[i].memsz);
	}
}

static bool field_fits(uint16_t at, uint16_t size)
{
	return at + sizeof(uint64_t) <= size;
}

static bool frame_fits(const struct cpython_layout *l, uint16_t at)
{
	return at >= l->frame_copy && at - l->frame_copy < FRAME_WINDOW;
}

static bool layout_is_sound(const struct cpython_layout *l)
{
	const uint16_t object[] = {l->text_length, l->text_state, l->text_ascii, l->text_wide, l->bytes_size, l->bytes_data};
	const uint16_t far[] = {l->thread_next, l->thread_interp, l->thread_id, l->thread_frame, l->thread_loop,
				l->loop_frame, l->interp_next, l->interp_threads, l->runtime_head, l->type_name};

	for (size_t i = 0; i < ARRAY_SIZE(object); i++)
		if (object[i] > CPYTHON_CODE_MAX)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(far); i++)
		if (far[i] > OFFSET_MAX)
			return false;
	return l->entry <= CPYTHON_ENTRY_SHIM && l->lines <= CPYTHON_LOCATIONS && l->code_size <= CPYTHON_CODE_MAX &&
	       field_fits(l->ob_type, l->code_size) && field_fits(l->code_first_line, l->code_size) &&
	       field_fits(l->code_file, l->code_size) && field_fits(l->code_name, l->code_size) &&
	       field_fits(l->code_table, l->code_size) && l->code_name - (l->code_first_line & ~7) < FRAME_WINDOW &&
	       l->code_table - (l->code_first_line & ~7) < FRAME_WINDOW && l->code_first_line < l->code_name &&
	       l->code_name < l->code_table && frame_fits(l, l->frame_code) && frame_fits(l, l->frame_back) &&
	       frame_fits(l, l->frame_instr) && (l->entry == CPYTHON_ENTRY_EVERY || frame_fits(l, l->frame_owner));
}

int cpython_layout_find(const struct runtime_file *file, struct memory *m, struct cpython_layout *ret,
			char version[RUNTIME_VERSION_MAX], char why[RUNTIME_WHY_MAX])
{
	struct cpython_layout l = {0};
	struct runtime_symbol s;
	int r = layout_by_version(file, m, &l, version, why);

	/* The window of words that a walk copies begins with the first of these. */
	l.frame_copy = MIN(l.frame_code, l.frame_back);
	if (r == 0 && !layout_is_sound(&l))
		r = -EBADMSG;
	if (r == 0)
		r = layout_check(file, m, &l);
	if (r == -ENOTSUP && !why[0])
		snprintf(why, RUNTIME_WHY_MAX, "Python %s is not known", version);
	if (r < 0)
		return r;
	if (runtime_symbol(file->binary, "PyCode_Type", &s) < 0)
		return -ENOENT;
	l.code_type = file->bias + s.value;
	layout_image(file, &l);
	*ret = l;
	return 0;
}

bool cpython_layout_of(const struct runtime_attached *a, struct cpython_layout *ret)
{
	memcpy(ret, a->param, sizeof(*ret));
	return layout_is_sound(ret);
}

void cpython_layout_keep(struct runtime_attached *a, const struct cpython_layout *l)
{
	memcpy(a->param, l, sizeof(*l));
}
