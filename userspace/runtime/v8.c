// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8.h"

static const char *const v8_markers[] = {"v8dbg_class_JSFunction__shared__SharedFunctionInfo", NULL};

const struct runtime_ops runtime_v8 = {
	.name = "v8js",
	.label = "JavaScript",
	.kind = KIND_V8JS,
	.markers = v8_markers,
	.attach = v8_attach,
	.decode = v8_decode,
	.library = "node",
	.moves = true,
	.code = v8_code,
	.registers = 1 << 2 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12, /* x86-64: rcx, rdi, r8, r9, r10, r12 */
	.step = v8_step,
};

/*
 * From V8's sources of that version: objects/{code,script,shared-function-info,
 * scope-info}.*, and held against processes of node.
 */
const struct v8_row v8_rows[] = {
	/* Node.js 20 */
	{.major = 11, .minor = 3, .script_id = 64, .script_line = 24, .shared_literal = 52, .bytecode_positions = 32,
	 .interpreter_bytecodes = 8, .scope_flags = 8, .scope_locals = 24, .scope_names = 32, .scope_module = 3,
	 .scope_empty = 26, .stream_code = 8, .stream_start = 16, .code_interpreted = 16, .code_positions = 24,
	 .code_start = 40, .code_flags = 48, .code_size = 56, .kind_baseline = 11, .kind_maglev = 12,
	 .kind_optimized = 13, .kind_mask = 15},
	{0},
};
