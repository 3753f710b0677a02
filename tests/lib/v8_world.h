/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up V8 in the memory of a process: a function with its bytecodes, scope
 * information and script, and an optimized one with another function inlined.
 * Types are those of V8 11.3, as node exports them; offsets are those of a row
 * of v8_rows.
 *
 * Included after put, put32 and put64 of WORLD are there (tests/lib/world.h).
 */
#ifndef OTP_TESTS_V8_WORLD_H
#define OTP_TESTS_V8_WORLD_H

#include <stdint.h>
#include <string.h>

#include "runtime/v8.h"

#define VW_ROWS	      12 /* of v8_rows */
#define VW_WASM_ROWS  4  /* in which code of WebAssembly is known: the first ones */
#define VW_ROW	      1 /* the one of V8 11.3 */
#define VW_MAP(type)  (WORLD + 0x1000 + 0x20ULL * (type) + 1)
#define VW_FUNCTION   (WORLD + 0x8001)
#define VW_SHARED(i)  (WORLD + 0x9001 + 0x100ULL * (i))
#define VW_SCOPE(i)   (WORLD + 0xa001 + 0x100ULL * (i))
#define VW_STRING(i)  (WORLD + 0xb001 + 0x100ULL * (i))
#define VW_SCRIPT     (WORLD + 0xc001)
#define VW_BYTECODES  (WORLD + 0xd001)
#define VW_TABLE(i)   (WORLD + 0xe001 + 0x100ULL * (i))
#define VW_ARRAY(i)   (WORLD + 0x10001 + 0x100ULL * (i))
#define VW_DEOPT(i)   (VW_ARRAY(0) - 1 + 16 + 8ULL * (i))
#define VW_BUILTINS   (WORLD + 0x18000)
#define VW_LAYOUT     (WORLD + 0x1f000)
#define VW_CODE_START (WORLD + 0x12040)
#define VW_CODE_BYTES 0x80
#define VW_CALL	      0x30 /* the return address of a call that may leave the code */
#define VW_JUMP	      0x40 /* a jump that does */
#define VW_EXITS      0x70
#define VW_CODE(row)  ((row)->stream_code ? WORLD + 0xf001 : VW_CODE_START - (row)->stream_start + 1)
#define VW_WRAPPER    (WORLD + 0xf101)
#define VW_SCRIPTS    (WORLD + 0x41001) /* a list, behind the isolate's begin */
#define VW_FUNCTIONS  (WORLD + 0x42001) /* likewise, of a script's functions */
#define VW_EPOCH      0xe000 /* of an isolate */
#define VW_WEAK	      2u
#define VW_CLEARED    3u

static inline void v8_layout(struct v8 *v, uint16_t row)
{
	*v = (struct v8){
		.row = row,
		.isolate_epoch = VW_EPOCH,
		.builtins = VW_BUILTINS, .builtins_end = VW_BUILTINS + 0x1000, .trampoline = VW_BUILTINS,
		.trampoline_end = VW_BUILTINS + 0x100, .prologue = VW_BUILTINS + 0x200, .leave = VW_BUILTINS + 0x300,
		.handlers = VW_BUILTINS + 0x400, .layout = VW_LAYOUT, .layout_nr = 5, .layout_stride = 8,
		.map_type = 12, .function_shared = 24,
		.shared_token = 44, .script_name = 16, .script_source = 8, .string_length = 12, .string_bytes = 16,
		.cons_first = 16, .cons_second = 24, .thin_actual = 16, .sliced_parent = 16, .sliced_offset = 24,
		.external_resource = 16, .bytecode_data = 54, .array_length = 8, .array_data = 16, .type_shared = 262,
		.type_scope = 261, .type_script = 167, .type_bytecode = 191, .type_interpreter_data = 159, .type_code = 245,
		.type_bytes = 190, .type_function = 300,
		.first_nonstring = 128, .representation_mask = 7, .encoding_mask = 8, .one_byte = 8,
	};
}

static inline void v8_put_object(uint64_t object, uint16_t type)
{
	put64(object - 1, VW_MAP(type));
	put(VW_MAP(type) - 1 + 12, &type, sizeof(type));
}

static inline void v8_put_smi(uint64_t at, int32_t v)
{
	put64(at, (uint64_t)(uint32_t)v << 32);
}

static const struct v8_row *vw_row; /* of v8_world_make */

/* Of an array, or, at another offset, of a list. */
static inline void v8_put_length_at(uint64_t at, uint32_t n)
{
	if (vw_row->raw_lengths)
		put32(at, n);
	else
		v8_put_smi(at, (int32_t)n);
}

static inline void v8_put_length(uint64_t array, uint32_t n)
{
	put64(array - 1 + 8, 0);
	v8_put_length_at(array - 1 + 8, n);
}

static inline uint64_t v8_put_string(uint32_t i, const char *text)
{
	v8_put_object(VW_STRING(i), 40);
	put32(VW_STRING(i) - 1 + 12, (uint32_t)strlen(text));
	put(VW_STRING(i) - 1 + 16, text, strlen(text));
	return VW_STRING(i);
}

static inline uint64_t v8_put_bytes(uint32_t i, const void *bytes, uint32_t len)
{
	v8_put_object(VW_TABLE(i), 190);
	v8_put_length(VW_TABLE(i), len);
	put(VW_TABLE(i) - 1 + 16, bytes, len);
	return VW_TABLE(i);
}

struct vw_scope { bool module, inferred; uint32_t locals; uint64_t name; int32_t from, to; };

static inline uint32_t v8_scope_kind(const struct v8_row *row, const struct vw_scope *s)
{
	return (s->module ? (row->major < 12 ? 3 : row->scope_module) : 2) | (s->inferred ? 1 << 14 : 1 << 12);
}

/* A module's has the number of its variables first, since V8 12. Many locals have their names in a table. */
static inline void v8_put_scope(const struct v8_row *row, uint64_t object, const struct vw_scope *s)
{
	const bool counted = s->module && row->major >= 12;
	const uint64_t scope = object - 1;
	uint64_t at = scope + row->scope_names + (counted ? 8 : 0);

	v8_put_object(object, 261);
	put32(scope + row->scope_flags + (row->scope_raw ? 0 : 4), v8_scope_kind(row, s));
	v8_put_smi(scope + row->scope_locals, (int32_t)s->locals);
	if (counted)
		v8_put_smi(at - 8, 9);
	at += 8ULL * (s->locals < 75 ? s->locals : 1) + 8ULL * s->locals;
	put64(at, s->name);
	at = row->scope_positions ? scope + row->scope_positions : at + (s->inferred ? 8 : 16);
	v8_put_smi(at, s->from);
	v8_put_smi(at + 8, s->to);
}

/* Named by its own name, or, without one, by where it is assigned to. */
static inline void v8_put_shared(const struct v8_row *row, uint32_t i, const char *name, bool inferred, int32_t from,
				 int32_t to)
{
	const struct vw_scope scope = {.inferred = inferred, .name = v8_put_string(i, name), .from = from, .to = to};
	uint64_t shared = VW_SHARED(i) - 1;

	v8_put_object(VW_SHARED(i), 262);
	put64(shared + row->shared_data, VW_BYTECODES);
	put64(shared + row->shared_name, VW_SCOPE(i));
	put64(shared + row->shared_script, VW_SCRIPT);
	put32(shared + row->shared_literal, 5 + i);
	v8_put_scope(row, VW_SCOPE(i), &scope);
}

static inline void v8_put_script(const char *source)
{
	v8_put_object(VW_SCRIPT, 167);
	put64(VW_SCRIPT - 1 + 8, v8_put_string(4, source));
	put64(VW_SCRIPT - 1 + 16, v8_put_string(5, "file:///srv/app.js"));
	v8_put_smi(VW_SCRIPT - 1 + 24, 0);
	v8_put_smi(VW_SCRIPT - 1 + 64, 77);
}

/* An instruction of a translation: its first two numbers, with signs, and zeros for the others. */
static inline uint32_t v8_put_instruction(const struct v8_translation *how, uint32_t opcode, int first, int second, uint8_t *to)
{
	uint32_t nr = 1;

	to[0] = (uint8_t)(how->signed_opcodes ? opcode << 1 : opcode);
	for (uint32_t i = 0; i < how->operands[opcode]; i++)
		to[nr++] = (uint8_t)(i ? (i == 1 ? second << 1 : 0) : first << 1);
	return nr;
}

/* The code is left in the second function, which the first one called, by two ways: its bytecodes 4 and 6. */
static inline void v8_put_deopt(const struct v8_row *row)
{
	const struct v8_translation *how = &row->translation;
	uint32_t at = row->deopt_inlining + 1u, nr, basis;
	uint8_t bytes[64];

	nr = v8_put_instruction(how, how->begin[0], 0, 2, bytes);
	nr += v8_put_instruction(how, how->frame[1], 0, 1, bytes + nr);
	nr += v8_put_instruction(how, how->frame[1], 4, 0, bytes + nr);
	basis = nr;
	nr += v8_put_instruction(how, how->begin[0], 0, 2, bytes + nr);
	if (how->repeat) {
		bytes[basis + 1] = (uint8_t)basis;
		bytes[nr++] = (uint8_t)(how->nr + 1);
	} else {
		nr += v8_put_instruction(how, how->frame[1], 0, 1, bytes + nr);
	}
	nr += v8_put_instruction(how, how->frame[1], 6, 0, bytes + nr);
	put64(VW_DEOPT(0), v8_put_bytes(4, bytes, nr));
	v8_put_smi(VW_DEOPT(at), VW_EXITS);
	v8_put_smi(VW_DEOPT(at + 1), 1);
	v8_put_smi(VW_DEOPT(at + 2), 1);
	v8_put_smi(VW_DEOPT(at + 4), 0);
	v8_put_smi(VW_DEOPT(at + 5), -1);
	v8_put_smi(VW_DEOPT(at + 7), (int32_t)basis);
	v8_put_smi(VW_DEOPT(at + 8), VW_CALL);
	v8_put_length(VW_ARRAY(0), at + 9);
}

/* The first function, with the second inlined where it was called at VW_CALL. */
static inline void v8_put_code(const struct v8_row *row)
{
	static const uint8_t code[] = {0x48, 0x8b, 0x59, 0xf8, 0x55, 0x48, 0x89, 0xe5, 0x56};
	static const uint8_t jump[] = {0x0f, 0x80, VW_EXITS - VW_JUMP - 6, 0, 0, 0};
	static const uint8_t epilogue[] = {0x48, 0x8b, 0xe5, 0x5d, 0x41, 0x5a, 0x41, 0x52, 0xc3};
	/* Differences, the first one to -1. At 0: place 3 of the function itself. At VW_CALL - 5: place 13, of inlining 0. */
	static const uint8_t rows[] = {1 << 1, 4 << 2, 0x56, 0xa8, 0x80, 0x80, 0x80, 0x10};
	const struct { int64_t position; int32_t function, reserved; } inlining = {.position = (3 + 1) << 1, .function = 0};
	const uint64_t object = VW_CODE(row) - 1;

	v8_put_object(VW_CODE(row), 245);
	v8_put_object(VW_ARRAY(0), 175);
	v8_put_object(VW_ARRAY(1), 240);
	if (row->stream_code) {
		v8_put_object(VW_CODE_START - row->stream_start + 1, 252);
		put64(VW_CODE_START - row->stream_start + row->stream_code, VW_CODE(row));
		put64(object + row->code_start, VW_CODE_START);
	} else {
		put64(object + 8, v8_put_bytes(3, "", 1));
	}
	put64(object + row->code_interpreted, VW_ARRAY(0));
	put64(object + row->code_positions, v8_put_bytes(1, rows, sizeof(rows)));
	put32(object + row->code_flags, row->kind_optimized);
	put32(object + row->code_size, VW_CODE_BYTES);
	v8_put_deopt(row);
	put64(VW_DEOPT(row->deopt_literals), VW_ARRAY(1));
	v8_put_smi(VW_DEOPT(row->deopt_id), 9);
	put64(VW_WRAPPER - 1 + 8, VW_SHARED(0));
	put64(VW_DEOPT(row->deopt_shared), row->shared_wrapped ? VW_WRAPPER : VW_SHARED(0));
	put64(VW_DEOPT(row->deopt_inlining), v8_put_bytes(2, &inlining, sizeof(inlining)));
	v8_put_length(VW_ARRAY(1), 2);
	put64(VW_ARRAY(1) - 1 + 16, VW_SHARED(1) | 2);
	put64(VW_ARRAY(1) - 1 + 24, VW_SHARED(0) | 2);
	put(VW_CODE_START, code, sizeof(code));
	put(VW_CODE_START + VW_JUMP, jump, sizeof(jump));
	put(VW_CODE_START + 0x50, epilogue, sizeof(epilogue));
}

/* It was deoptimized: an empty array takes the place of its data, which are behind the table of positions. */
static inline void v8_put_parted(const struct v8_row *row)
{
	const uint64_t behind = VW_TABLE(1) + 24;

	put(VW_CODE_START + VW_EXITS, "\x41\xff\x55\x10", 4);
	put(VW_CODE_START + VW_CALL - 5, "\xe8\1\2\3\4", 5);
	put(behind - 1, world + (VW_ARRAY(0) - 1 - WORLD), 0xc0);
	v8_put_object(VW_ARRAY(3), 175);
	put64(VW_CODE(row) - 1 + row->code_interpreted, VW_ARRAY(3));
}

/* An isolate's list of scripts, the second of which has the first function, as its third. */
static inline void v8_put_scripts(const struct v8_row *row, uint64_t isolate)
{
	put64(isolate + row->isolate_scripts, VW_SCRIPTS);
	v8_put_object(VW_SCRIPTS, 160);
	v8_put_length_at(VW_SCRIPTS - 1 + row->list_length, 2);
	put64(VW_SCRIPTS - 1 + row->list_data, VW_CLEARED);
	put64(VW_SCRIPTS - 1 + row->list_data + 8, VW_SCRIPT | VW_WEAK);
	put64(VW_SCRIPT - 1 + row->script_functions, VW_FUNCTIONS);
	v8_put_object(VW_FUNCTIONS, 161);
	v8_put_length(VW_FUNCTIONS, 3);
	put64(VW_FUNCTIONS - 1 + 16, VW_CLEARED);
	put64(VW_FUNCTIONS - 1 + 24, VW_SCOPE(1) | VW_WEAK);
	put64(VW_FUNCTIONS - 1 + 32, VW_SHARED(0) | VW_WEAK);
}

static inline void v8_world_make(struct runtime_attached *a, uint16_t row)
{
	/* Bytecode 0 is at place 3, bytecode 4 at place 13. */
	static const uint8_t positions[] = {1 << 1, 4 << 2, 4 << 1, 10 << 2};

	memset(a, 0, sizeof(*a));
	vw_row = &v8_rows[row];
	v8_layout((void *)a->param, row);
	for (uint32_t i = 0; i < 5; i++) {
		put32(VW_LAYOUT + 8ULL * i, 0x100 * i);
		put32(VW_LAYOUT + 8ULL * i + 4, 0x100);
	}
	v8_put_script("var x;\nfoo(\n  bar)\nbaz\n");
	v8_put_shared(&v8_rows[row], 0, "first", false, 2, 20);
	v8_put_shared(&v8_rows[row], 1, "it.second", true, 7, 20);
	v8_put_object(VW_BYTECODES, 191);
	put64(VW_BYTECODES - 1 + v8_rows[row].bytecode_positions, v8_put_bytes(0, positions, sizeof(positions)));
	v8_put_object(VW_FUNCTION, 300);
	put64(VW_FUNCTION - 1 + 24, VW_SHARED(0));
	v8_put_code(&v8_rows[row]);
}

#endif
