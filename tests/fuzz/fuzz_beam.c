// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a BEAM that means harm: a sound one, over which the input is
 * laid in pieces. Where tables are, regions, the functions in them, steps, the
 * process that a thread runs, and the one that has a name; and the input as code
 * of an interpreter.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/beam_world.h"
#include "runtime/beam_flow.h"
#include "tests/lib/code_world.h"
#include "tests/lib/symbols_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step_out(const struct runtime_attached *a, const struct runtime_code_made *c, const uint8_t *data)
{
	uint64_t reg[OTP_REGS_MAX] = {[6] = WORLD + 8ULL * data[1], [7] = WORLD + 0x30000 + 8ULL * data[0]};
	const struct runtime_place at = {.pc = c->code.start + data[1] % (c->code.end - c->code.start),
					 .exact = data[0] & 1, .valid = 0x1ffff, .reg = reg, .load = word_of_world,
					 .left_sp = data[1] & 1 ? WORLD + 8ULL * data[0] : 0};
	struct runtime_step step = {0};

	runtime_beam.step(a, &c->code, &at, &step);
}

#define LOOP   (WORLD + 0x34000)
#define LABELS (WORLD + 0x33000)

/* Its instructions begin where every eighth byte of the input says. Regions of all code are sound, and do not overlap. */
static void interpret(struct runtime_attached *a, const uint8_t *data, size_t size)
{
	static struct runtime_code_made made;
	struct beam *b = (void *)a->param;
	uint64_t end = LOOP;
	uint32_t questions = 0;

	size = MIN(size, (size_t)256);
	put(LOOP, data, size);
	for (uint32_t i = 0; i < size / 8; i++)
		put64(LABELS + 8 * i, LOOP + data[8 * i] % size);
	b->loop = LOOP;
	b->loop_end = LOOP + size;
	b->labels = LABELS;
	b->labels_end = LABELS + size / 8 * 8;
	for (uint64_t pc = LOOP; pc < LOOP + size && questions < 16; pc++) {
		if (pc < end)
			continue;
		memset(&made.code, 0, sizeof(made.code));
		memset(&made.known, 0, sizeof(made.known));
		memory_question(&memory);
		questions++;
		if (beam_code(a, &memory, pc, &made))
			continue;
		if (!runtime_code_sound(&made.code, made.nodes, made.rows) || made.code.start < end || made.code.end <= pc)
			abort();
		end = made.code.end;
		step_out(a, &made, data);
	}
	b->loop = 0;
}

static void name_process(const struct runtime_attached *a)
{
	struct runtime_context c;

	if (!otp_walk_plan_sound(&a->more) || !runtime_attached_sound(a))
		abort();
	beam_world_context(a, &c);
	if (c.named.key)
		world_decode(&runtime_beam, a, &c.named);
}

/* Of a file that has no symbols, and its data at the start of the world. */
static void find_registered(const struct runtime_attached *a)
{
	static struct runtime_file file = {.bias = WORLD};
	static struct symbols_elf elf;
	uint64_t process;

	if (!file.binary) {
		symbols_elf_init(&elf, EM_X86_64);
		elf.segment.p_flags = PF_R | PF_W | PF_X;
		elf.segment.p_memsz = 0x10000;
		file.binary = symbols_elf_open(&elf);
	}
	memory_question(&memory);
	beam_registered(&file, &memory, beam_of(a), BW_TERM(10), &process);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t places[] = {BW_INFO(0, 0) + 0x30, BW_INFO(0, 1) + 0x50, BW_INFO(1, 1) + 0x80, BW_MODULE(0) - 1};
	static struct runtime_attached a;
	static struct runtime_code_made made;

	if (size < 2)
		return 0;
	memset(world, 0, sizeof(world));
	beam_world_make(&a);
	beam_put_names(BW_TERM(10));
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	find_registered(&a);
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	if (beam_world_find(&memory, &a))
		return 0;
	if (a.more.start != OTP_WALK_NONE)
		name_process(&a);
	if (size >= 8)
		interpret(&a, data, size);
	memory_question(&memory);
	((struct beam *)(void *)a.param)->framed |= data[1] >> 7;
	if (beam_code(&a, &memory, places[data[0] % ARRAY_SIZE(places)], &made))
		return 0;
	if (!runtime_code_sound(&made.code, made.nodes, made.rows))
		abort();
	for (uint32_t i = 0; i < made.code.nr_functions; i++)
		world_decode(&runtime_beam, &a, &made.functions[i]);
	step_out(&a, &made, data);
	return 0;
}
