// SPDX-License-Identifier: Apache-2.0
/*
 * The function that runs interpreted code, where it has a symbol, and the part
 * of it that the compiler put elsewhere: both are the loop.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define CODE_MAX       (256u << 10) /* of a function that is read for jumps */
#define COLD_MAX       (64u << 10)
#define COLD_JUMPS_MIN 4
#define COLD_JUMPS_MAX 4096
#define SYMBOL_MAX     64

struct jumps {
	uint64_t at[COLD_JUMPS_MAX];
	uint32_t nr;
};

/* Targets, outside of the function, of what looks like a conditional jump (0f 8x and 32 bits) of x86-64. */
static void jumps_find(const uint8_t *code, size_t len, uint64_t addr, struct jumps *ret)
{
	int32_t disp;

	for (size_t i = 0; i + 6 <= len && ret->nr < COLD_JUMPS_MAX; i++) {
		uint64_t target;

		if (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80)
			continue;
		memcpy(&disp, code + i + 2, sizeof(disp));
		target = addr + i + 6 + (uint64_t)(int64_t)disp;
		if (target < addr || target >= addr + len)
			ret->at[ret->nr++] = target;
	}
}

static int jump_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Compilers put rare code of a function elsewhere (NAME.cold), and only the
 * static symbol table names it. It is where most of the function's conditional
 * jumps to the outside lead; bytes that only look like jumps lead anywhere.
 */
static uint64_t jumps_centre(struct jumps *j, const struct binary *b)
{
	uint32_t best = 0, centre = 0, from = 0;

	qsort(j->at, j->nr, sizeof(j->at[0]), jump_compare);
	for (uint32_t to = 0; to < j->nr; to++) {
		while (j->at[to] - j->at[from] > COLD_MAX)
			from++;
		if (to - from + 1 > best) {
			best = to - from + 1;
			centre = from + best / 2;
		}
	}
	return best >= COLD_JUMPS_MIN && binary_is_code(b, j->at[centre]) ? j->at[centre] : 0;
}

static uint64_t jumps_to_cold(struct binary *b, const struct runtime_symbol *loop)
{
	_cleanup_(freep) uint8_t *code = malloc(CODE_MAX);
	_cleanup_(freep) struct jumps *jumps = calloc(1, sizeof(*jumps));
	size_t len = (size_t)MIN(loop->size, (uint64_t)CODE_MAX);

	if (!code || !jumps || b->machine != EM_X86_64 ||
	    binary_read_vaddr(b, loop->value, code, len) != (ssize_t)len)
		return 0;
	jumps_find(code, len, loop->value, jumps);
	return jumps_centre(jumps, b);
}

static uint64_t runtime_cold_part(struct binary *b, const char *name, const struct runtime_symbol *loop)
{
	char cold_name[SYMBOL_MAX];
	struct runtime_symbol cold;

	snprintf(cold_name, sizeof(cold_name), "%s.cold", name);
	return runtime_symbol(b, cold_name, &cold) == 0 ? cold.value : jumps_to_cold(b, loop);
}

static void runtime_add_parts(const struct runtime_file *file, uint64_t start, uint64_t cold, struct runtime_attached *ret)
{
	ret->loop[ret->nr_loops++] = file->bias + start;
	if (cold)
		ret->loop[ret->nr_loops++] = file->bias + cold;
}

void runtime_add_loop(const struct runtime_file *file, const char *name, struct runtime_attached *ret)
{
	struct runtime_symbol loop;

	if (ret->nr_loops + 2 <= RUNTIME_LOOPS && runtime_symbol(file->binary, name, &loop) == 0)
		runtime_add_parts(file, loop.value, runtime_cold_part(file->binary, name, &loop), ret);
}

void runtime_add_loop_at(const struct runtime_file *file, uint64_t vaddr, uint64_t size, struct runtime_attached *ret)
{
	struct runtime_symbol loop = {.value = vaddr, .size = size};

	if (ret->nr_loops + 2 <= RUNTIME_LOOPS)
		runtime_add_parts(file, vaddr, jumps_to_cold(file->binary, &loop), ret);
}
