// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a LuaJIT that means harm: a sound one, over which the input is
 * laid in pieces. Attaching, the walk by what was found, frames and names of it,
 * traces, and steps out of them.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/luajit_world.h"
#include "tests/lib/walked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct runtime_attached *a, const uint8_t *data)
{
	static struct otp_walker w;
	struct otp_walked head;
	struct runtime_words words = {.position = data[0]};

	memset(&w, 0, sizeof(w));
	w.sp = LW_STACK;
	w.pc = LW_VM + (data[0] & 1 ? 0x20 : 0xffff0000);
	w.regs[1] = LW_SLOTS + 8ULL * data[1];
	w.regs[3] = LW_BC(LW_LEAF) + data[0];
	otp_walk_prepare(&w.ready, &a->walk);
	otp_walk_run(&w, 0, 1, 0);
	memcpy(&head, w.out, sizeof(head));
	for (uint32_t i = 0; i < head.frames; i++) {
		struct runtime_frame f = {0};

		walked_words(&w, &head, i, &words);
		if (luajit_frame(a, &words, &f) == 0 && f.key)
			world_decode(&runtime_luajit, a, &f);
	}
}

static void trace(const struct runtime_attached *a, const uint8_t *data)
{
	static struct runtime_code_made made;
	uint64_t reg[OTP_REGS_MAX] = {[6] = LW_MAIN + data[1], [7] = LW_STACK + 8ULL * data[0]};
	const struct runtime_place at = {.pc = LW_MCODE + data[0], .exact = data[1] & 1, .valid = 0x1ffff, .reg = reg,
					 .load = word_of_world};
	struct runtime_step step = {0};

	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	if (luajit_code(a, &memory, at.pc, &made) ||
	    !runtime_code_sound(&made.code, made.nodes, made.rows)) /* decode_code refuses such regions */
		return;
	for (uint32_t i = 0; i < made.code.nr_functions; i++)
		world_decode(&runtime_luajit, a, &made.functions[i]);
	luajit_step(a, &made.code, &at, &step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct runtime_seen seen = {.nr = 2, .word = {LW_SLOTS, LW_MAIN}};
	static struct runtime_attached a;
	static struct binary *file;
	char why[RUNTIME_WHY_MAX];

	if (size < 2)
		return 0;
	if (!file)
		file = lw_open_file("LuaJIT 2.1.0-beta3", EM_X86_64);
	memset(world, 0, sizeof(world));
	lw_make();
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	if (lw_attach(file, &seen, &a, why))
		return 0;
	if (!otp_walk_plan_sound(&a.walk) || !runtime_attached_sound(&a))
		abort();
	walk(&a, data);
	trace(&a, data);
	return 0;
}
