// SPDX-License-Identifier: Apache-2.0
/*
 * Input: 32 bytes that choose addresses, then an ELF file. Every segment's
 * rows are asked for, and stacks are unwound through them.
 */
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHOICES 32
#define BASE 0x10000000ULL

static struct space *space_of(struct binary *b)
{
	struct space *s = space_new();
	struct mapped_file *f = calloc(1, sizeof(*f));

	if (!s || !f)
		abort();
	f->refs = 1;
	f->kind = MAPPED_FILE;
	f->state = MAPPED_READY;
	f->binary = binary_ref(b);
	(void)space_map(&s, BASE, BASE + (1u << 24), 0, f);
	mapped_file_put(f);
	return s;
}

static void rows(struct binary *b, const uint8_t *choices)
{
	struct row row;

	for (unsigned i = 0; i < CHOICES; i += 2) {
		uint64_t addr = (uint64_t)choices[i] << 8 | choices[i + 1];

		(void)cfi_row(b, OTP_REGS_X86_64, addr, &row);
		(void)cfi_row(b, OTP_REGS_ARM64, addr << 4, &row);
	}
}

static void stacks(struct binary *b, const uint8_t *choices, const uint8_t *stack, uint32_t len)
{
	static struct unwind_stack out;
	struct space *s = space_of(b);
	struct unwind_limits limits = {.rules = 64};
	struct unwinder *u = NULL;
	const struct mapping *wait;
	uint64_t reg[OTP_REGS_MAX];
	struct unwind_input in = {
		.space = s,
		.valid = ~0ULL,
		.reg = reg,
		.stack_addr = 0x7000,
		.stack = stack,
		.stack_len = len,
	};

	if (unwinder_new(&limits, &u) < 0)
		abort();
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned r = 0; r < OTP_REGS_MAX; r++)
			reg[r] = 0x7080 + 8 * (uint64_t)choices[(i + r) % CHOICES];
		reg[16] = reg[32] = BASE + ((uint64_t)choices[4 * i] << 8 | choices[4 * i + 1]);
		in.arch = i & 1 ? OTP_ARCH_ARM64 : OTP_ARCH_X86_64;
		(void)unwind_user(u, &in, i & 2, &out, &wait);
	}
	unwinder_free(u);
	space_put(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct binary *b;

	if (size < CHOICES || binary_open_memory(data + CHOICES, size - CHOICES, "fuzz", &b) < 0)
		return 0;
	if (b->is_elf) {
		rows(b, data);
		stacks(b, data, data, (uint32_t)MIN(size, (size_t)4096));
	}
	binary_put(b);
	return 0;
}
