// SPDX-License-Identifier: Apache-2.0
/*
 * Input: a byte of the processor, one each of where a call returns to and of the function that it may lead to, then the
 * code of a file whose tables know four functions.
 */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/calls.h"

#define BASE	  0x10000000ULL
#define FUNCTIONS 4
#define LENGTH	  0x100 /* of each */
#define HEAD	  3
#define ROW(...)  (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct binary *file_of(uint16_t machine, const uint8_t *code, size_t len)
{
	static struct tiny tiny;
	struct binary *b;

	tiny_init(&tiny, machine, 0);
	/* The CFA is the stack pointer, of x86-64 above the return address. */
	if (machine == EM_X86_64)
		tiny_cie(&tiny, "zR", -8, 16, ROW(0x0c, 7, 8, 0x90, 1));
	else
		tiny_cie(&tiny, "zR", -8, 30, ROW(0x0c, 31, 0));
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		tiny_fde(&tiny, TINY_CODE + i * LENGTH, LENGTH, ROW(0));
	memset(tiny.image + TINY_CODE, 0xcc, TINY_SIZE - TINY_CODE);
	memcpy(tiny.image + TINY_CODE, code, MIN(len, (size_t)(FUNCTIONS * LENGTH)));
	b = tiny_open(&tiny);
	if (!b)
		abort();
	return b;
}

/* What was answered with work left is answered again, from what was kept, and costs no more. */
static void ask(struct calls *k, struct cursor *c, const struct mapping *m, uint64_t pc, const struct code_range *callee)
{
	bool leads, away;

	c->search_left = SEARCH_WORK;
	c->scan_left = SEARCH_SCAN;
	leads = calls_lead_to(k, c, m, pc, callee, true);
	away = calls_jump_away(k, c, callee->start);
	if (c->search_left > SEARCH_WORK || c->scan_left > SEARCH_SCAN)
		abort();
	if (c->search_left && (calls_lead_to(k, c, m, pc, callee, true) != leads || calls_jump_away(k, c, callee->start) != away))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct calls calls;
	struct unwind_input in = {0};
	struct cursor c = {.in = &in};
	struct code_range callee;
	const struct mapping *m;
	struct space *space;
	struct binary *b;

	if (size < HEAD)
		return 0;
	c.arch = data[0] & 1 ? &arch_arm64 : &arch_x86_64;
	b = file_of(c.arch->machine, data + HEAD, size - HEAD);
	space = tiny_space(b, BASE);
	in.space = space;
	/* Kept, as each file has an id of its own. */
	if (!calls.rules && rules_new(0, &calls.rules) < 0)
		abort();
	m = space_find(space, BASE + TINY_CODE);
	if (!m || !calls_function(&calls, m, BASE + TINY_CODE + (data[2] % FUNCTIONS) * LENGTH, &callee))
		abort();
	ask(&calls, &c, m, BASE + TINY_CODE + 1 + data[1], &callee);
	space_put(space);
	binary_put(b);
	return 0;
}
