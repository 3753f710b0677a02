// SPDX-License-Identifier: Apache-2.0
/*
 * Compares what code says about its frames with what the unwind table of FILE
 * says: at every instruction of each function, or at every EVERY-th, as where a
 * thread was interrupted, and behind each call, as where a callee returns to.
 * Prints, for each of both,
 *
 *   ROWS rows, DIFFERENT differ, ODD by another register, NONE have none, SAVED
 *   tell a saved register otherwise
 *
 * and the first that differ. Compilers write the tables, so this is a witness
 * for code that has none.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "unwind/arch.h"
#include "unwind/cfi.h"

#define SHOWN 20

struct tally {
	const char *what;
	uint64_t rows, different, odd, none, saved;
};

static bool can_be_compared(const struct row *a)
{
	return a->cfa_kind == CFA_REG && !(a->flags & ROW_SIGNAL) && a->reg[a->ra].kind != RULE_UNDEFINED;
}

/* System V ABI: rbx, rbp, r12 to r15; AAPCS64: x19 to x29. */
static bool is_preserved(unsigned reg, unsigned nr_regs)
{
	return nr_regs > 17 ? reg >= 19 && reg <= 29 : reg == 3 || reg == 6 || (reg >= 12 && reg <= 15);
}

/*
 * Where it is, as the code and as the table say. The code may not know it; and tables do not say that a register is taken
 * back already, from what lies beyond the stack pointer by now.
 */
static bool tells_otherwise(const struct row *code, const struct row *table, unsigned reg)
{
	const struct rule *c = &code->reg[reg], *t = &table->reg[reg];

	if (c->kind == RULE_UNDEFINED)
		return false;
	if (c->kind == RULE_OFFSET || t->kind != RULE_OFFSET)
		return c->kind == RULE_OFFSET && (t->kind != RULE_OFFSET || t->n != c->n);
	return code->cfa_reg == table->cfa_reg && -t->n <= code->cfa_n;
}

static bool tells_any_otherwise(const struct row *code, const struct row *table, unsigned nr_regs)
{
	for (unsigned i = 0; i < nr_regs; i++)
		if (is_preserved(i, nr_regs) && i != table->ra && i != table->cfa_reg && tells_otherwise(code, table, i))
			return true;
	return false;
}

/* at: from where on the code is read. */
static void compare_at(struct binary *b, const struct arch *arch, uint64_t at, bool called, struct tally *t)
{
	struct row table, code;

	if (cfi_row(b, arch->nr_regs, at - called, &table) < 0 || !can_be_compared(&table))
		return;
	t->rows++;
	if (arch->returns(b, at, called, &code) < 0) {
		t->none++;
		return;
	}
	if (code.cfa_kind != CFA_REG || code.cfa_reg != table.cfa_reg) {
		t->odd++;
		return;
	}
	if (code.cfa_n == table.cfa_n)
		t->saved += tells_any_otherwise(&code, &table, arch->nr_regs);
	else if (t->different++ < SHOWN)
		printf("%" PRIx64 " %s: cfa %" PRId64 ", by the table %" PRId64 "\n", at, t->what, code.cfa_n, table.cfa_n);
}

static void compare_function(struct binary *b, const struct arch *arch, const struct fde *f, unsigned every,
			     struct tally *leaf, struct tally *caller)
{
	static unsigned turn;
	struct insn i;

	for (uint64_t at = f->start; at < f->end; at += i.len) {
		uint8_t code[16];
		const ssize_t len = binary_read_vaddr(b, at, code, sizeof(code));

		if (len <= 0 || arch->decode(code, (size_t)len, &i) < 0)
			break;
		if (turn++ % every)
			continue;
		compare_at(b, arch, at, false, leaf);
		if (i.kind == INSN_CALL && at + i.len < f->end)
			compare_at(b, arch, at + i.len, true, caller);
	}
}

static void report(const struct tally *t)
{
	printf("%s: %" PRIu64 " rows, %" PRIu64 " differ, %" PRIu64 " by another register, %" PRIu64 " have none, %"
	       PRIu64 " tell a saved register otherwise\n", t->what, t->rows, t->different, t->odd, t->none, t->saved);
}

static int compare_all(struct binary *b, unsigned every)
{
	const struct arch *arch = arch_find(b->machine == EM_AARCH64 ? OTP_ARCH_ARM64 : OTP_ARCH_X86_64);
	const struct binary_section *tables = binary_section(b, ".eh_frame");
	struct tally leaf = {.what = "interrupted"}, caller = {.what = "returned to"};
	struct cie_memo memo = {0};
	struct cfi_section s;
	struct fde f;

	if (!tables)
		return 2;
	s = (struct cfi_section){.start = tables->addr, .end = tables->addr + tables->size};
	for (uint64_t at = s.start, next; at < s.end; at = next) {
		next = s.end;
		if (fde_parse(b, &s, at, &memo, &f, &next) == 0)
			compare_function(b, arch, &f, every, &leaf, &caller);
	}
	report(&leaf);
	report(&caller);
	return !leaf.rows;
}

int main(int argc, char **argv)
{
	struct binary *b;
	int r;

	if (argc < 2 || argc > 3 || binary_open(open(argv[1], O_RDONLY | O_CLOEXEC), argv[1], &b) < 0 || !b->is_elf) {
		fprintf(stderr, "usage: epilogue_rows FILE [EVERY]\n");
		return 2;
	}
	r = compare_all(b, argc > 2 ? (unsigned)MAX(atoi(argv[2]), 1) : 1);
	binary_put(b);
	return r;
}
