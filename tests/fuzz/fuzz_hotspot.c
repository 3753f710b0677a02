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
#include "tests/lib/hotspot_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(void *ctx, uint64_t addr, uint64_t *ret)
{
	return memory_of_world(NULL, addr, ret, sizeof(*ret));
}

/* A piece: where, in units of 4 bytes, how many bytes, the bytes. Returns how many it took. */
static size_t lay(const uint8_t *data, size_t size)
{
	uint32_t at;
	size_t len;

	if (size < 4)
		return size;
	at = (uint32_t)(data[0] | data[1] << 8) * 4u % (WORLD_BYTES - 256);
	len = MIN((size_t)data[2], size - 3);
	memcpy(world + at, data + 3, len);
	return 3 + len;
}

static void step_out(const struct runtime_attached *a, struct runtime_code_made *c, const uint8_t *data, size_t size)
{
	uint64_t reg[OTP_REGS_MAX] = {[6] = HW_BLOB + 0x180, [7] = HW_BLOB + 0x100, [13] = HW_BLOB + 0x140, [16] = HW_CODE};
	struct runtime_place at = {.pc = c->code.start + (size ? data[0] : 0u), .exact = size & 1, .valid = 0x1ffff, .reg = reg,
				   .load = load};
	struct runtime_step step;

	for (size_t i = 0; i < size && i < 17; i++)
		reg[i] ^= data[i];
	for (uint32_t kind = 0; kind < 6; kind++) {
		step = (struct runtime_step){0};
		c->code.kind = kind;
		hotspot_step(a, &c->code, &at, &step);
	}
}

static void name_all(const struct runtime_attached *a, const struct runtime_code_made *c)
{
	static struct runtime_function function;

	for (uint32_t i = 0; i < c->code.nr_functions; i++) {
		memset(&function, 0, sizeof(function));
		memory_question(&memory);
		hotspot_decode(a, &memory, &c->functions[i], &function);
		if (strnlen(function.name, sizeof(function.name)) == sizeof(function.name) ||
		    function.nr_lines > RUNTIME_LINES_MAX)
			abort();
	}
}

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
	for (size_t i = 2; i < size;)
		i += lay(data + i, size - i);
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	hotspot_epoch_attach(h, &memory, &a.walk);
	if (!otp_walk_plan_sound(&a.walk))
		abort();
	memory_question(&memory);
	if (hotspot_code(&a, &memory, HW_CODE + (data[1] & 0x7f), &made) == 0) {
		if (!runtime_code_sound(&made.code, made.nodes, made.rows))
			abort();
		name_all(&a, &made);
		step_out(&a, &made, data, size);
	}
	return 0;
}
