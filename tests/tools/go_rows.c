// SPDX-License-Identifier: Apache-2.0
/*
 * Compares, at every address of each function, the unwind rows that Go's table
 * of FILE gives with those of its .debug_frame. Prints
 *
 *   FUNCTIONS functions, ROWS rows, DIFFERENT differ, UNKNOWN have none
 *
 * and the first rows that differ. Rows of either that end a stack, or leave it,
 * are not compared.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"
#include "unwind/cfi.h"
#include "unwind/go.h"

#define SHOWN 10

struct tally {
	uint64_t functions, rows, different, unknown;
};

static bool same_rule(const struct rule *a, const struct rule *b)
{
	bool in_register = a->kind <= RULE_SAME && a->kind != RULE_UNDEFINED;

	return (in_register && b->kind <= RULE_SAME && b->kind != RULE_UNDEFINED) || (a->kind == b->kind && a->n == b->n);
}

static bool same_row(const struct row *a, const struct row *b)
{
	return a->cfa_kind == b->cfa_kind && a->cfa_reg == b->cfa_reg && a->cfa_n == b->cfa_n && a->ra == b->ra &&
	       same_rule(&a->reg[a->ra], &b->reg[b->ra]);
}

static void compare_at(struct binary *b, const struct arch *arch, uint64_t at, struct tally *n)
{
	struct row by_go, by_frame;

	int r = go_row(arch, b, at, &by_go);

	n->unknown += r == -ENOENT;
	if (r < 0 && r != -ENOENT && n->different++ < SHOWN)
		printf("%" PRIx64 ": %s\n", at, strerror(-r));
	if (r < 0)
		return;
	if (by_go.flags || by_go.reg[by_go.ra].kind == RULE_UNDEFINED ||
	    cfi_row(b, arch->nr_regs, at, &by_frame) < 0 || by_frame.reg[by_frame.ra].kind == RULE_UNDEFINED)
		return;
	n->rows++;
	if (!same_row(&by_go, &by_frame) && n->different++ < SHOWN)
		printf("%" PRIx64 ": cfa %" PRId64 ", by .debug_frame %" PRId64 "\n", at, by_go.cfa_n, by_frame.cfa_n);
}

static int compare_all(struct binary *b)
{
	const struct arch *arch = arch_find(b->machine == EM_AARCH64 ? OTP_ARCH_ARM64 : OTP_ARCH_X86_64);
	const struct go_table *t = go_table_get(b);
	struct tally n = {0};
	struct go_function f;

	for (uint32_t i = 0; t && i < t->count; i++) {
		if (go_function_at(t, i, &f) < 0)
			continue;
		n.functions++;
		for (uint64_t at = f.start; at < f.end; at += t->quantum)
			compare_at(b, arch, at, &n);
	}
	printf("%" PRIu64 " functions, %" PRIu64 " rows, %" PRIu64 " differ, %" PRIu64 " have none\n", n.functions, n.rows,
	       n.different, n.unknown);
	return n.different || !n.functions;
}

int main(int argc, char **argv)
{
	struct binary *b;
	int r;

	if (argc != 2 || binary_open(open(argv[1], O_RDONLY | O_CLOEXEC), argv[1], &b) < 0 || !b->is_elf) {
		fprintf(stderr, "usage: go_rows FILE\n");
		return 2;
	}
	r = compare_all(b);
	binary_put(b);
	return r;
}
