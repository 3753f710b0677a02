// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8.h"

static const char *const v8_markers[] = {"v8dbg_class_JSFunction__shared__SharedFunctionInfo", NULL};

const struct runtime_ops runtime_v8 = {
	.name = "v8js",
	.label = "JavaScript",
	.kind = KIND_V8JS,
	.markers = v8_markers,
	.holds = v8_hidden_holds,
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
	.shared_data = 8, .script_id = 64, .script_line = 24, .interpreter_bytecodes = 8, .scope_flags = 8,      \
	.scope_locals = 24, .kind_mask = 15
/* Of all Node.js. */
#define NODE SMALL, .kind_builtin = 2
#define NODE_LIST .isolate_key = 8

/*
 * Deno tells nothing of its V8. Members are in V8's headers, as the crate v8 of a version has them; types, and where an
 * Isolate has what, were read off processes of each version. Bytecodes, code and what is between them have types that follow
 * one another.
 */
#define HIDDEN_CONSTANTS(shared, scope, script, bytecode, bytes, function)                                       \
	&(const struct v8_constants){                                                                            \
		.map_type = 12, .function_shared = 32, .shared_token = 52, .script_name = 16, .script_source = 8,        \
		.string_length = 12, .string_bytes = 16, .cons_first = 16, .cons_second = 24, .thin_actual = 16,         \
		.sliced_parent = 16, .sliced_offset = 24, .external_resource = 16, .bytecode_data = 64,                  \
		.array_length = 8, .array_data = 16, .type_shared = shared, .type_scope = scope, .type_script = script,  \
		.type_bytecode = bytecode, .type_code = bytecode + 1, .type_interpreter_data = bytecode + 2,             \
		.type_bytes = bytes, .type_function = function, .first_nonstring = 128, .representation_mask = 7,        \
		.encoding_mask = 8, .one_byte = 8}
/* Since V8 13.6. */
#define LATE                                                                                                     \
	COMMON, .shared_name = 24, .shared_script = 40, .shared_literal = 60, .bytecode_positions = 24,          \
	.scope_names = 48, .scope_positions = 32, .scope_raw = true, .stream_code = 8, .stream_start = 32,       \
	.code_interpreted = 8, .code_positions = 16, .code_start = 40, .code_flags = 52, .code_size = 56,        \
	.deopt_literals = 3, .deopt_id = 6, .deopt_shared = 7, .deopt_inlining = 8, .shared_wrapped = 8,         \
	.heap_isolate = 24,                                                                                      \
	.translation = {.nr = 45, .operands = {6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1, 1, 1, \
					       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1},      \
			.begin = {14, 15}, .frame = {0, 1}, .repeat = 44}
/* Before V8 14.9. */
#define SMALL .script_functions = 88, .scope_empty = 1u << 29, .list_length = 16, .list_data = 24
#define HIDDEN_SMALL LATE, SMALL, .hidden = true, .script_url = 112, .scope_module = 5
#define HIDDEN_RAW                                                                                               \
	LATE, .hidden = true, .script_functions = 96, .script_url = 120, .scope_module = 3, .raw_lengths = true, .list_length = 12,     \
	.list_data = 16
#define KINDS(builtin)                                                                                           \
	.kind_builtin = builtin, .kind_baseline = builtin + 8, .kind_maglev = builtin + 9, .kind_optimized = builtin + 10
/* Maps are those of libc++ there: of what belongs to WebAssembly, only isolates are known. */
#define HIDDEN_LIST(at) .wasm = {.isolates = at, .isolate_key = 16}

/*
 * Members as in V8's objects/{code,script,shared-function-info,scope-info,
 * deoptimization-data,bytecode-array}.*; where each lies was read off the
 * constants that node exports, and off objects in processes of Node.js 18.20.8,
 * 20.20.2, 22.23.3 and 24.21.0. Translations: deoptimizer/translation-opcode.h
 * has the order, and node's TranslationOpcodeOperandCount the numbers.
 */
const struct v8_row v8_rows[V8_ROWS + 1] = {
	/* Node.js 18 */
	{COMMON, NODE, .major = 10, .minor = 2, .script_url = 104, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .debug_script = 24, .bytecode_positions = 32, .scope_names = 32, .scope_module = V8_NO_SCOPE, .stream_start = 128,
	 .code_interpreted = 16, .code_positions = 24, .code_flags = 48, .code_size = 40, .deopt_literals = 2, .deopt_id = 5,
	 .deopt_shared = 6, .deopt_inlining = 7, .isolate_scripts = 0x18e8, .heap_epoch = 0x268, .heap_isolate = 80,
	 .isolate_thread = 0x44d8,
	 .kind_baseline = 11, .kind_maglev = 12, .kind_optimized = 13,
	 .wasm = {NODE_LIST, .spaces = 0x58, .isolates = 0x228, .scripts = 0x48, .codes = 0x1b0, .fresh = 0x1d0, .wire = 0x138,
		  .size = 32, .index = 48, .flags = 16},
	 .translation = {.nr = 28, .operands = {2, 1, 0, 3, 1, 1, 3, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3, 3, 4, 1, 1,
						   1, 1, 1, 2}, .begin = {3, 3}, .frame = {18, 18}, .signed_opcodes = true}},
	/* Node.js 20 */
	{COMMON, NODE, .major = 11, .minor = 3, .script_url = 112, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .debug_script = 24, .bytecode_positions = 32, .scope_names = 32, .scope_module = V8_NO_SCOPE, .stream_code = 8,
	 .stream_start = 16, .code_interpreted = 16, .code_positions = 24, .code_start = 40, .code_flags = 48, .code_size = 56,
	 .deopt_literals = 2, .deopt_id = 5, .deopt_shared = 6, .deopt_inlining = 7, .isolate_scripts = 0x1b20,
	 .heap_epoch = 0x240, .heap_isolate = 80, .isolate_thread = 0x120,
	 .kind_baseline = 11, .kind_maglev = 12, .kind_optimized = 13,
	 .wasm = {NODE_LIST, .spaces = 0x50, .isolates = 0x270, .scripts = 0x48, .codes = 0x140, .fresh = 0x160, .wire = 0xc8,
		  .size = 24, .index = 44, .flags = 80},
	 .translation = {.nr = 36, .operands = {1, 0, 3, 3, 1, 1, 3, 1, 3, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 5, 3,
						   3, 3, 4, 0, 1, 1, 1, 1, 1, 2, 1}, .begin = {2, 3}, .frame = {23, 24},
			 .repeat = 35}},
	/* Node.js 22 */
	{COMMON, NODE, .major = 12, .minor = 4, .script_url = 112, .shared_name = 16, .shared_script = 32, .shared_literal = 52,
	 .bytecode_positions = 24, .scope_names = 32, .scope_module = 3, .stream_code = 8, .stream_start = 32,
	 .code_interpreted = 8, .code_positions = 16, .code_start = 40, .code_flags = 48, .code_size = 52,
	 .deopt_literals = 2, .deopt_id = 5, .deopt_shared = 6, .deopt_inlining = 7, .type_trusted_bytes = 212,
	 .isolate_scripts = 0x1c70, .heap_epoch = 0x1b0, .heap_isolate = 24, .isolate_thread = 0x178,
	 .kind_baseline = 10, .kind_maglev = 11, .kind_optimized = 12,
	 .wasm = {NODE_LIST, .spaces = 0x50, .isolates = 0x288, .scripts = 0x48, .codes = 0x198, .fresh = 0x1b8, .wire = 0xc8,
		  .size = 24, .index = 44, .flags = 80},
	 .translation = {.nr = 40, .operands = {5, 3, 3, 3, 2, 1, 3, 4, 3, 2, 1, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
						   1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1}, .begin = {12, 13},
			 .frame = {0, 1}, .repeat = 39}},
	/* Node.js 24 */
	{LATE, NODE, .major = 13, .minor = 6, .script_url = 112, .scope_module = 5, .type_trusted_bytes = 196,
	 .isolate_scripts = 0x2548, .heap_epoch = 0x238, .isolate_thread = 0x1a8,
	 .kind_baseline = 10, .kind_maglev = 11, .kind_optimized = 12,
	 .wasm = {NODE_LIST, .spaces = 0x30, .wrappers = 0xb0, .isolates = 0x2100, .scripts = 0x48, .codes = 0x148, .fresh = 0x168,
		  .wire = 0xf0, .size = 32, .index = 56, .flags = 96, .metadata = 24}},
	/* Deno 2.3.2 to 2.4 */
	{HIDDEN_SMALL, KINDS(2), .major = 13, .minor = 7, .isolate_heap = 0xf140, .isolate_builtins = 0x110e8, .heap_epoch = 0x220,
	 .isolate_thread = 0x1a8, .isolate_scripts = 0x2558, HIDDEN_LIST(0x20a0),
	 .constants = HIDDEN_CONSTANTS(284, 282, 165, 184, 194, 2065)},
	/* Deno 2.5 */
	{HIDDEN_SMALL, KINDS(2), .major = 14, .minor = 0, .isolate_heap = 0xee38, .isolate_builtins = 0x10e08, .heap_epoch = 0x220,
	 .isolate_thread = 0x1a8, .isolate_scripts = 0x25a8, HIDDEN_LIST(0x2080),
	 .constants = HIDDEN_CONSTANTS(286, 284, 165, 184, 195, 2065)},
	/* Deno 2.6.0 to 2.6.6 */
	{HIDDEN_SMALL, KINDS(3), .major = 14, .minor = 2, .isolate_heap = 0xeee0, .isolate_builtins = 0x10ea0, .heap_epoch = 0x220,
	 .isolate_thread = 0x1b0, .isolate_scripts = 0x25c0, HIDDEN_LIST(0x2080),
	 .constants = HIDDEN_CONSTANTS(286, 284, 165, 184, 195, 2065)},
	/* Deno 2.6.7 to 2.7.1 */
	{HIDDEN_SMALL, KINDS(3), .major = 14, .minor = 5, .isolate_heap = 0xf2c8, .isolate_builtins = 0x11240, .heap_epoch = 0x218,
	 .isolate_thread = 0x1b0, .isolate_scripts = 0x25c0, HIDDEN_LIST(0x21f0),
	 .constants = HIDDEN_CONSTANTS(288, 286, 166, 185, 196, 2065)},
	/* Deno 2.7.3 to 2.7.7 */
	{HIDDEN_SMALL, KINDS(3), .major = 14, .minor = 6, .isolate_heap = 0xf3b0, .isolate_builtins = 0x11350, .heap_epoch = 0x220,
	 .isolate_thread = 0x1b0, .isolate_scripts = 0x2608, HIDDEN_LIST(0x2230),
	 .constants = HIDDEN_CONSTANTS(288, 286, 166, 185, 196, 2066)},
	/* Deno 2.7.8 to 2.7.14 */
	{HIDDEN_SMALL, KINDS(3), .major = 14, .minor = 7, .isolate_heap = 0xf450, .isolate_builtins = 0x113f0, .heap_epoch = 0x220,
	 .isolate_thread = 0x1b0, .isolate_scripts = 0x2630, HIDDEN_LIST(0x2230),
	 .constants = HIDDEN_CONSTANTS(288, 286, 166, 185, 196, 2066)},
	/* Deno 2.8 to 2.9.0 */
	{HIDDEN_RAW, KINDS(3), .major = 14, .minor = 9, .isolate_heap = 0xf760, .isolate_builtins = 0x11708, .heap_epoch = 0x218,
	 .isolate_thread = 0x1b0, .isolate_scripts = 0x25e8, HIDDEN_LIST(0x2230),
	 .constants = HIDDEN_CONSTANTS(278, 276, 167, 185, 196, 2064)},
	/* Deno 2.9 */
	{HIDDEN_RAW, KINDS(3), .major = 15, .minor = 0, .isolate_heap = 0xf798, .isolate_builtins = 0x11748, .heap_epoch = 0x218,
	 .isolate_thread = 0x1b8, .isolate_scripts = 0x2600, HIDDEN_LIST(0x2230),
	 .constants = HIDDEN_CONSTANTS(278, 276, 166, 185, 196, 2064)},
	{0},
};
