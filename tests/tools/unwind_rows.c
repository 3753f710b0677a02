// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the unwind row at each address of FILE that stdin names (hexadecimal,
 * one a line), in the words of readelf --debug-dump=frames-interp:
 *
 *   ADDRESS CFA r0=... r3=c-16 ... ra=c-8      or      ADDRESS none
 *
 * Registers without a rule are left out.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"

static void print_rule(const struct row *row, unsigned reg)
{
	const struct rule *r = &row->reg[reg];

	if (r->kind == RULE_UNSPECIFIED || r->kind == RULE_UNDEFINED)
		return;
	if (reg == row->ra)
		printf(" ra=");
	else
		printf(" r%u=", reg);
	switch (r->kind) {
	case RULE_SAME:
		printf("s");
		break;
	case RULE_OFFSET:
		printf("c%+" PRId64, r->n);
		break;
	case RULE_VAL_OFFSET:
		printf("v%+" PRId64, r->n);
		break;
	case RULE_REGISTER:
		printf("r%" PRId64, r->n);
		break;
	default:
		printf(r->kind == RULE_EXPR ? "exp" : "vexp");
	}
}

static void print_row(struct binary *b, unsigned nr_regs, uint64_t addr)
{
	struct row row;

	if (cfi_row(b, nr_regs, addr, &row) < 0) {
		printf("%" PRIx64 " none\n", addr);
		return;
	}
	if (row.cfa_kind == CFA_REG)
		printf("%" PRIx64 " r%u%+" PRId64, addr, row.cfa_reg, row.cfa_n);
	else
		printf("%" PRIx64 " exp", addr);
	for (unsigned i = 0; i < nr_regs; i++)
		print_rule(&row, i);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct binary *b;
	uint64_t addr;

	if (argc != 2 || binary_open(open(argv[1], O_RDONLY | O_CLOEXEC), argv[1], &b) < 0 || !b->is_elf) {
		fprintf(stderr, "usage: unwind_rows FILE < ADDRESSES\n");
		return 2;
	}
	while (scanf("%" SCNx64, &addr) == 1)
		print_row(b, b->machine == EM_AARCH64 ? OTP_REGS_ARM64 : OTP_REGS_X86_64, addr);
	binary_put(b);
	return 0;
}
