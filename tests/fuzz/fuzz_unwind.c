// SPDX-License-Identifier: Apache-2.0
/*
 * Input: one byte of flags, registers, then stack bytes, over this program's
 * own file and a mapping of generated code, which parts of the file may enter.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x10000000ULL
#define JIT 0x20000000ULL
#define STACK 0x30000000ULL

static struct space *space;
static struct unwinder *unwinder;
static uint64_t code_at, code_len;

static void add(uint64_t start, uint64_t end, uint64_t offset, struct binary *b)
{
	struct mapped_file *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->refs = 1;
	f->kind = b ? MAPPED_FILE : MAPPED_ANON;
	f->state = MAPPED_READY;
	f->binary = b;
	if (space_map(&space, start, end, offset, f) < 0)
		abort();
	mapped_file_put(f);
}

static void once(void)
{
	struct binary *b;

	if (space)
		return;
	space = space_new();
	if (!space || unwinder_new(NULL, &unwinder) < 0 ||
	    binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self", &b) < 0)
		abort();
	for (unsigned i = 0; i < b->nr_segments; i++) {
		if (!(b->segments[i].flags & PF_X))
			continue;
		code_at = BASE;
		code_len = b->segments[i].filesz;
		add(BASE, BASE + ALIGN_UP(code_len, (uint64_t)4096), b->segments[i].offset, b);
		break;
	}
	add(JIT, JIT + 0x10000, 0, NULL);
}

/* Words are bent towards code and stack, or random bytes would never leave the first frame. */
static uint64_t bend(uint64_t v)
{
	switch (v >> 62) {
	case 0:
		return code_at + (v & 0xffffffff) % (code_len ? code_len : 1);
	case 1:
		return STACK + (v & 0x1ff8);
	case 2:
		return JIT + (v & 0xffff);
	default:
		return v;
	}
}

/* Bits of flags: one gate, which part of the code it is, and how it enters generated code. */
static uint32_t make_gate(uint8_t flags, struct unwind_gate *to)
{
	uint64_t part = code_len / 8;

	*to = (struct unwind_gate){.start = code_at + (flags >> 5) * part, .jumps = flags & 8};
	to->end = to->start + part;
	return flags >> 2 & 1;
}

/* Code at multiples of 16 leads to the heap and back, or nowhere, by what the address says; the rest is not known. */
static int step_of_heap(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			const struct mapping **ret_wait)
{
	(void)ctx, (void)final, (void)ret_wait;
	if (f->pc & 15 || f->pc < JIT || f->pc >= JIT + 0x10000)
		return -ENOENT;
	ret->sp = ret->cfa = f->reg[7] + (f->pc & 0x70) + 16;
	ret->flags = (uint32_t)(f->pc >> 7 & 0x3f);
	if (ret->flags & UNWIND_CODE_FROZEN && !f->leads_to_heap && !f->in_heap)
		ret->flags &= ~(uint32_t)UNWIND_CODE_FROZEN;
	return f->load(f->ctx, ret->sp - 8, &ret->pc);
}

/* The stack's upper half is another part of it in the heap, twice. */
static void make_heap(const uint64_t *stack, size_t n, struct unwind_frozen *to)
{
	const size_t half = n / 2;

	*to = (struct unwind_frozen){.nr = half > 8 ? 2 : 0, .low = STACK, .high = STACK + 8 * n};
	if (!to->nr)
		return;
	for (uint32_t i = 0; i < to->nr; i++)
		to->part[i] = (struct unwind_part){.addr = STACK + 0x100000 * (1 + i), .bytes = (const uint8_t *)(stack + half),
						   .len = (uint32_t)(8 * half), .pc = stack[half + i], .sp = STACK + 0x100000 * (1 + i) + 16};
	to->back_pc = stack[half + 2];
	to->back_sp = STACK + (stack[half + 3] & 0xff8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_code code = {.step = step_of_heap, .owns = true};
	struct unwind_frozen frozen;
	struct unwind_gate gate;
	static struct unwind_stack out;
	uint64_t reg[OTP_REGS_MAX], stack[512] = {0};
	const struct mapping *wait;
	struct unwind_input in = {.reg = reg, .valid = ~0ULL, .stack_addr = STACK, .stack = (const uint8_t *)stack};
	size_t n;

	once();
	if (size < 1 + sizeof(reg))
		return 0;
	memcpy(reg, data + 1, sizeof(reg));
	n = MIN((size - 1 - sizeof(reg)) / 8, ARRAY_SIZE(stack));
	memcpy(stack, data + 1 + sizeof(reg), n * 8);
	for (size_t i = 0; i < ARRAY_SIZE(reg); i++)
		reg[i] = bend(reg[i]);
	for (size_t i = 0; i < n; i++)
		stack[i] = bend(stack[i]);
	in.space = space;
	in.stack_len = (uint32_t)n * 8;
	in.gates = &gate;
	in.nr_gates = make_gate(data[0], &gate);
	if (data[0] & 16) {
		make_heap(stack, n, &frozen);
		in.frozen = &frozen;
		in.code = &code;
	}
	in.arch = data[0] & 1 ? OTP_ARCH_ARM64 : OTP_ARCH_X86_64;
	(void)unwind_user(unwinder, &in, data[0] & 2, &out, &wait);
	if (out.count > UNWIND_FRAMES_MAX || out.end >= UNWIND_END_NR)
		abort();
	return 0;
}
