// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8.h"

static const char *const v8_markers[] = {"v8dbg_class_JSFunction__shared__SharedFunctionInfo", NULL};

const struct runtime_ops runtime_v8 = {
	.name = "v8js",
	.label = "JavaScript",
	.kind = KIND_V8JS,
	.markers = v8_markers,
	.attach = v8_attach,
	.found_lasts = true,
	.decode = v8_decode,
	.library = "node",
	.epoch = v8_epoch,
	.moved = v8_moved,
	.moves = true,
	.code = v8_code,
	.registers = 1 << 0 | 1 << 2 | 1 << 5 | 0x1f << 8, /* x86-64: rax, rcx, rdi, r8 to r12 */
	.step = v8_step,
};

/* Of what no version has moved. */
#define COMMON                                                                                                   \
	.shared_data = 8, .script_id = 64, .script_line = 24, .script_functions = 88,                            \
	.interpreter_bytecodes = 8, .scope_flags = 8, .scope_locals = 24, .scope_empty = 29, .kind_mask = 15

/*
 * Members as in V8's objects/{code,script,shared-function-info,scope-info,
 * deoptimization-data,bytecode-array}.*; where each lies was read off the
 * constants that node exports, and off objects in processes of Node.js 18.20.8,
 * 20.20.2, 22.23.3 and 24.21.0. Translations: deoptimizer/translation-opcode.h
 * has the order, and node's TranslationOpcodeOperandCount the numbers.
 */
const struct v8_row v8_rows[V8_ROWS + 1] = {
	/* Node.js 18 */
	{COMMON, .major = 10, .minor = 2, .script_url = 104, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .bytecode_positions = 32, .scope_names = 32, .scope_module = 3, .stream_start = 128, .code_interpreted = 16,
	 .code_positions = 24, .code_flags = 48, .code_size = 40, .deopt_literals = 2, .deopt_id = 5, .deopt_shared = 6,
	 .deopt_inlining = 7, .isolate_scripts = 0x18e8, .heap_epoch = 0x268, .heap_isolate = 80, .isolate_thread = 0x44d8,
	 .kind_baseline = 11, .kind_maglev = 12, .kind_optimized = 13,
	 .wasm = {.spaces = 0x58, .isolates = 0x228, .scripts = 0x48, .codes = 0x1b0, .fresh = 0x1d0, .wire = 0x138,
		  .size = 32, .index = 48, .flags = 16},
	 .translation = {.nr = 28, .operands = {2, 1, 0, 3, 1, 1, 3, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3, 3, 4, 1, 1,
						   1, 1, 1, 2}, .begin = {3, 3}, .frame = {18, 18}, .signed_opcodes = true}},
	/* Node.js 20 */
	{COMMON, .major = 11, .minor = 3, .script_url = 112, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .bytecode_positions = 32, .scope_names = 32, .scope_module = 3, .stream_code = 8, .stream_start = 16,
	 .code_interpreted = 16, .code_positions = 24, .code_start = 40, .code_flags = 48, .code_size = 56,
	 .deopt_literals = 2, .deopt_id = 5, .deopt_shared = 6, .deopt_inlining = 7, .isolate_scripts = 0x1b20,
	 .heap_epoch = 0x240, .heap_isolate = 80, .isolate_thread = 0x120,
	 .kind_baseline = 11, .kind_maglev = 12, .kind_optimized = 13,
	 .wasm = {.spaces = 0x50, .isolates = 0x270, .scripts = 0x48, .codes = 0x140, .fresh = 0x160, .wire = 0xc8,
		  .size = 24, .index = 44, .flags = 80},
	 .translation = {.nr = 36, .operands = {1, 0, 3, 3, 1, 1, 3, 1, 3, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3,
						   3, 3, 4, 0, 1, 1, 1, 1, 1, 2, 1}, .begin = {2, 3}, .frame = {23, 24},
			 .repeat = 35}},
	/* Node.js 22 */
	{COMMON, .major = 12, .minor = 4, .script_url = 112, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .bytecode_positions = 24, .scope_names = 32, .scope_module = 3, .stream_code = 8, .stream_start = 32,
	 .code_interpreted = 8, .code_positions = 16, .code_start = 40, .code_flags = 48, .code_size = 52,
	 .deopt_literals = 2, .deopt_id = 5, .deopt_shared = 6, .deopt_inlining = 7, .type_trusted_bytes = 212,
	 .isolate_scripts = 0x1c70, .heap_epoch = 0x1b0, .heap_isolate = 24, .isolate_thread = 0x178,
	 .kind_baseline = 10, .kind_maglev = 11, .kind_optimized = 12,
	 .wasm = {.spaces = 0x50, .isolates = 0x288, .scripts = 0x48, .codes = 0x198, .fresh = 0x1b8, .wire = 0xc8,
		  .size = 24, .index = 44, .flags = 80},
	 .translation = {.nr = 40, .operands = {5, 3, 3, 3, 2, 1, 3, 4, 3, 2, 1, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
						   1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1}, .begin = {12, 13},
			 .frame = {0, 1}, .repeat = 39}},
	/* Node.js 24 */
	{COMMON, .major = 13, .minor = 6, .script_url = 112, .shared_name = 24, .shared_script = 40, .shared_literal = 60,
	 .bytecode_positions = 24, .scope_names = 48, .scope_positions = 32, .scope_module = 5, .scope_raw = true,
	 .stream_code = 8, .stream_start = 32, .code_interpreted = 8, .code_positions = 16, .code_start = 40,
	 .code_flags = 52, .code_size = 56, .deopt_literals = 3, .deopt_id = 6, .deopt_shared = 7, .deopt_inlining = 8,
	 .shared_wrapped = 8, .type_trusted_bytes = 196, .isolate_scripts = 0x2548, .heap_epoch = 0x238, .heap_isolate = 24,
	 .isolate_thread = 0x1a8, .kind_baseline = 10, .kind_maglev = 11, .kind_optimized = 12,
	 .wasm = {.spaces = 0x30, .wrappers = 0xb0, .isolates = 0x2100, .scripts = 0x48, .codes = 0x148, .fresh = 0x168,
		  .wire = 0xf0, .size = 32, .index = 56, .flags = 96, .metadata = 24},
	 .translation = {.nr = 45, .operands = {6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1, 1, 1,
						   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1},
			 .begin = {14, 15}, .frame = {0, 1}, .repeat = 44}},
	{0},
};
