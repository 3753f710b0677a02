// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a CoreCLR that means harm: a sound one, over which the input is
 * laid in pieces. Regions of methods and stubs, the methods' names, and steps; of
 * an assembly whose PDB is a file of its own, what it names that by.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORLD_BYTES (256u << 10)
#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "process/beside.h"
#include "tests/lib/code_world.h"
#include "tests/lib/dotnet_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sound one: what else may be in it is fuzz_dotnet_pdb's. */
static int beside_of_world(struct memory *m, uint64_t addr, const char *name, int *ret_fd)
{
	uint8_t bytes[DOTNET_PDB_MAX];
	size_t len = dotnet_pdb_make(bytes);

	(void)m;
	if (addr < WORLD || !beside_name_is_sound(name, strnlen(name, BESIDE_NAME_MAX)))
		abort();
	*ret_fd = memfd_create("pdb", MFD_CLOEXEC);
	return *ret_fd >= 0 && write(*ret_fd, bytes, len) == (ssize_t)len ? 0 : -ENOENT;
}

static void step_out(const struct runtime_attached *a, const struct runtime_code_made *c, const uint8_t *data)
{
	uint64_t reg[OTP_REGS_MAX] = {[6] = WORLD + 0x30000 + 8ULL * data[1], [7] = WORLD + 0x30000 + 8ULL * data[0]};
	const struct runtime_place at = {.pc = c->code.start + (data[1] % (c->code.end - c->code.start)), .exact = data[0] & 1,
					 .valid = data[0] & 2 ? 0x1ffff : 0x40, .reg = reg, .load = word_of_world};
	struct runtime_step step = {0};

	runtime_dotnet.step(a, &c->code, &at, &step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t places[] = {DW_RUN + 0x10, DW_BEFORE + 0x1050, DW_BEFORE + 0x1110, DW_LOOKUP + 0x21, DW_STUBS + 8,
					  DW_CODE + 0x810, WORLD + 0xc020, DW_BEFORE + 0x1090};
	static struct runtime_attached a;
	static struct runtime_code_made made;

	if (size < 2)
		return 0;
	memset(world, 0, sizeof(world));
	dotnet_world_make(&a);
	/* A byte more: where the PDB is, and to which version the memory belongs. */
	if (data[1] & 0x80)
		dotnet_put_pdb_path("/build/a.pdb");
	memory.beside = beside_of_world;
	((struct dotnet *)(void *)a.param)->row = data[1] % 3;
	for (size_t i = 2; i < size;)
		i += world_lay(data + i, size - i);
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	if (dotnet_code(&a, &memory, places[data[0] % ARRAY_SIZE(places)], &made) ||
	    !runtime_code_sound(&made.code, made.nodes, made.rows)) /* decode_code refuses such regions */
		return 0;
	for (uint32_t i = 0; i < made.code.nr_functions; i++)
		world_decode(&runtime_dotnet, &a, &made.functions[i]);
	step_out(&a, &made, data);
	return 0;
}
