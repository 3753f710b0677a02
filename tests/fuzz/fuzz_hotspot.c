// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a Java virtual machine that means harm: a sound one, over which
 * the input is laid in pieces, or offsets that the input chooses. Regions, the
 * methods in them, and steps out of whatever they are.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/code_world.h"
#include "tests/lib/hotspot_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step_out(const struct runtime_attached *a, struct runtime_code_made *c, const uint8_t *data, size_t size)
{
	uint64_t reg[OTP_REGS_MAX] = {[6] = HW_BLOB + 0x180, [7] = HW_BLOB + 0x100, [13] = HW_BLOB + 0x140, [16] = HW_CODE};
	struct runtime_place at = {.pc = c->code.start + (size ? data[0] : 0u), .exact = size & 1, .valid = 0x1ffff, .reg = reg,
				   .more = c->more, .load = word_of_world};
	struct runtime_step step;

	for (size_t i = 0; i < size && i < 17; i++)
		reg[i] ^= data[i];
	for (uint32_t kind = 0; kind < 2 * (HOTSPOT_YIELD + 1); kind++) {
		step = (struct runtime_step){0};
		c->code.kind = kind % (HOTSPOT_YIELD + 1);
		at.in_heap = kind > HOTSPOT_YIELD;
		hotspot_step(a, &c->code, &at, &step);
	}
}

/* What is copied of the heap is any blocks: the input's. */
static void go_to_heap(struct runtime_attached *a, const uint8_t *data, size_t size)
{
	static uint64_t words[4 + 24 * (OTP_WALK_WORDS + 1)];
	struct hotspot *h = (void *)a->param;
	struct runtime_copied copied = {.root = words, .nr_root = 4, .frames = words + 4, .frame_words = OTP_WALK_WORDS + 1,
					.cut = size & 1};
	struct runtime_frozen frozen = {0};

	memset(words, 0, sizeof(words));
	memcpy(words, data, MIN(size, sizeof(words)));
	copied.nr_frames = (uint32_t)((MAX(MIN(size, sizeof(words)), 32u) - 32) / (8 * (OTP_WALK_WORDS + 1)));
	h->chunk_pc = 16;
	h->chunk_bottom = 28;
	h->chunk_owner = 44;
	a->more.chunks = (struct otp_walk_chunks){.wide = size >> 1 & 1, .sp = 24, .end = 12, .stack = 48};
	if (hotspot_frozen(a, &copied, &frozen))
		return;
	if (!frozen.nr || frozen.nr > RUNTIME_PARTS)
		abort();
	for (uint32_t i = 0; i < frozen.nr; i++)
		if (frozen.part[i].first + frozen.part[i].nr > copied.nr_frames)
			abort();
}

static struct binary no_symbols;
static const struct runtime_file file = {.binary = &no_symbols};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t versions[] = {8, 11, 17, 20, 23, 25};
	static struct runtime_attached a;
	static struct runtime_code_made made;
	struct hotspot *h = (void *)a.param;

	if (size < 2)
		return 0;
	memset(world, 0, sizeof(world));
	hotspot_world_make(&a, versions[data[0] % ARRAY_SIZE(versions)]);
	if (data[0] & 0x80 && size > 4) /* one offset is another */
		*(uint16_t *)((uint8_t *)&h->memory_low + 2 * (data[1] % ((sizeof(*h) - offsetof(struct hotspot, memory_low)) / 2))) =
			(uint16_t)(data[2] | data[3] << 8);
	if (data[0] & 0x40)
		hotspot_put_stubs(h->version);
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	hotspot_epoch_attach(&file, &memory, h, &a.walk);
	if (!otp_walk_plan_sound(&a.walk))
		abort();
	go_to_heap(&a, data, size);
	memory_question(&memory);
	if (hotspot_code(&a, &memory, HW_CODE + (data[1] & 0x7f), &made) == 0) {
		if (!runtime_code_sound(&made.code, made.nodes, made.rows))
			abort();
		for (uint32_t i = 0; i < made.code.nr_functions; i++)
			world_decode(&runtime_hotspot, &a, &made.functions[i]);
		step_out(&a, &made, data, size);
	}
	return 0;
}
