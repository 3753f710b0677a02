// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a process of node that means harm: a sound one, over which the
 * input is laid in pieces. Regions, the functions in them, functions of frames,
 * and steps.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (384u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/symbols_elf.h"
#include "tests/lib/v8_world.h"
#include "tests/lib/v8_wasm_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step_out(const struct runtime_attached *a, struct runtime_code_made *c, const uint8_t *data, size_t size)
{
	uint64_t reg[OTP_REGS_MAX] = {[5] = VW_FUNCTION, [6] = WORLD + 0x30000, [7] = WORLD + 0x2ff00};
	const struct runtime_place at = {.pc = c->code.start + data[0], .exact = size & 1, .valid = 0x1ffff, .reg = reg,
					 .more = c->more, .load = word_of_world};

	for (size_t i = 0; i < size && i < 17; i++)
		reg[i] ^= data[i];
	for (uint32_t kind = 0; kind <= V8_WASM; kind++) {
		struct runtime_step step = {0};

		c->code.kind = kind;
		v8_step(a, &c->code, &at, &step);
	}
}

/* A function whose closure is gone. */
static void decode_by_scripts(struct runtime_attached *a)
{
	struct v8_epochs now;

	if (v8_epoch_attach((struct v8 *)a->param, &memory, &a->walk) || v8_epochs_now(v8_of(a), &memory, 0, &now))
		return;
	memory_question(&memory);
	world_decode(&runtime_v8, a, &(struct runtime_frame){.key = VW_BYTECODES, .flags = RUNTIME_HINTED,
							     .cookie = {[1] = V8_BY_BYTECODES, [RUNTIME_COOKIE_EPOCH] = now.epoch}});
}

/* A library without symbols: what its functions return, and names of its builtins. V8 13 exports less. */
static void attach_unnamed(struct v8 *v, bool only_interface)
{
	static struct symbols_elf elf;
	struct runtime_file file = {.bias = WORLD};
	uint64_t data;

	symbols_elf_init(&elf, EM_X86_64);
	elf.segment.p_memsz = WORLD_BYTES;
	for (uint32_t i = 0; i < ARRAY_SIZE(v8_export_symbols) && !only_interface; i++)
		symbols_elf_add(&elf, v8_export_symbols[i], VW_EXPORT(i) - WORLD);
	symbols_elf_add(&elf, "_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", VW_RANGE - WORLD);
	symbols_elf_section(&elf, 5, ".rodata", SHT_NOBITS, VW_NAME(0) - WORLD, 0x200, 0);
	symbols_elf_section(&elf, 6, ".data", SHT_NOBITS, VW_NAMES - WORLD, 0x1000, 0);
	elf.head.e_shnum = 7;
	file.binary = symbols_elf_open(&elf);
	if (file.binary && v8_unnamed_blob(&file, &memory, v, &data) == 0)
		v8_unnamed_find(&file, &memory, v);
	binary_put(file.binary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t places[] = {VW_CODE_START + 0x20,		  VW_CODE_START + 0x70,
					  VW_BUILTINS + 0x210,		  VW_BUILTINS + 0x410,
					  VW_WASM_START(VW_FIRST) + 0x20, VW_WASM_START(VW_SECOND),
					  VW_WASM_START(VW_TO_JS),	  VW_COPY + 0x410};
	static struct runtime_attached a;
	static struct runtime_code_made made;

	if (size < 2)
		return 0;
	memset(world, 0, sizeof(world));
	v8_world_make(&a, data[1] % VW_ROWS);
	v8_wasm_put(&a, data[1] % VW_ROWS);
	v8_put_scripts(&v8_rows[data[1] % VW_ROWS], VW_ISOLATE);
	v8_put_copy(&a);
	v8_put_names();
	v8_put_exports();
	v8_put_range();
	if (data[1] & 0x80)
		v8_put_parted(&v8_rows[data[1] % VW_ROWS]);
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	world_decode(&runtime_v8, &a, &(struct runtime_frame){.key = VW_FUNCTION, .cookie = {VW_BYTECODES}});
	memory_question(&memory);
	decode_by_scripts(&a);
	memory_question(&memory);
	if (data[1] & 0x40)
		attach_unnamed((struct v8 *)a.param, data[1] & 0x20);
	memory_question(&memory);
	if (v8_code(&a, &memory, places[data[0] % ARRAY_SIZE(places)], &made))
		return 0;
	if (!runtime_code_sound(&made.code, made.nodes, made.rows))
		abort();
	for (uint32_t i = 0; i < made.code.nr_functions; i++)
		world_decode(&runtime_v8, &a, &made.functions[i]);
	step_out(&a, &made, data, size);
	return 0;
}
