// SPDX-License-Identifier: Apache-2.0
/*
 * Out of Haskell code that GHC compiled: it has its own stack, makes no calls and
 * never returns, and its files have no tables for it. But the thread's stack
 * pointer stays where StgRun left it, 16 KiB below the registers that StgRun saved
 * and its return address (rts/StgCRun.c: RESERVED_C_STACK_BYTES and
 * STG_RUN_STACK_FRAME_SIZE on x86-64 but Windows, since GHC 7). What proves a
 * frame is that return address: the call before it leads to StgRun's own
 * instructions. Haskell's stack is not shown.
 */
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cursor.h"

#define STG_RESERVED 16384
#define STG_SAVED    6 /* registers */

enum { STG_RBX = 3, STG_RBP = 6, STG_R12 = 12, STG_R13, STG_R14, STG_R15 };

/* sub $48,%rsp; mov %rsp,%rax; sub $16384,%rsp; mov %rbx,(%rax) */
static const uint8_t stg_run[] = {0x48, 0x83, 0xec, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x81,
				  0xec, 0x00, 0x40, 0x00, 0x00, 0x48, 0x89, 0x18};

static bool stg_is_run(struct binary *b, uint64_t vaddr)
{
	uint8_t code[sizeof(stg_run)];

	return binary_read_vaddr(b, vaddr, code, sizeof(code)) == (ssize_t)sizeof(code) && !memcmp(code, stg_run, sizeof(code));
}

/* Whether pc is behind a call of StgRun. */
static bool stg_returns_from_run(const struct cursor *c, uint64_t pc)
{
	const struct mapping *m = space_find(c->in->space, pc - 1);
	struct code code;
	uint64_t at, target;

	if (!m || mapping_is_generated(m, pc - 1) || m->file->state != MAPPED_READY || !m->file->binary)
		return false;
	at = mapping_address(m, pc - 1);
	code_read(m->file->binary, at, &code);
	return c->arch->call_kind(&code, at + 1, &target) == CALL_DIRECT && stg_is_run(m->file->binary, target);
}

static int stg_leave(struct cursor *c, uint64_t saved)
{
	static const uint8_t reg[STG_SAVED] = {STG_RBX, STG_RBP, STG_R12, STG_R13, STG_R14, STG_R15};
	uint64_t word[STG_SAVED + 1];

	for (unsigned i = 0; i <= STG_SAVED; i++)
		if (cursor_load(c, saved + 8 * i, &word[i]) < 0)
			return STEP_NOTHING;
	if (word[STG_SAVED] < 4096 || word[STG_SAVED] >= c->arch->address_end || !stg_returns_from_run(c, word[STG_SAVED]))
		return STEP_NOTHING;
	c->valid = 0;
	for (unsigned i = 0; i < STG_SAVED; i++)
		cursor_set(c, reg[i], word[i]);
	cursor_set(c, c->arch->pc, word[STG_SAVED]);
	cursor_set(c, c->arch->sp, saved + 8 * (STG_SAVED + 1));
	c->low = c->reg[c->arch->sp] - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_BY_EPILOGUE;
	return 1;
}

int step_stg(struct cursor *c)
{
	const struct cursor before = *c;
	int step;

	if (c->arch != &arch_x86_64 || !cursor_is_valid(c, c->arch->sp) || c->reg[c->arch->sp] % 8)
		return STEP_NOTHING;
	step = stg_leave(c, c->reg[c->arch->sp] + STG_RESERVED);
	if (step == STEP_NOTHING)
		*c = before; /* no larger copy is asked for in vain */
	return step;
}
