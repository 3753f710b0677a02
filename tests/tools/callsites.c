// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/callsites.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"

#define CALL_MAX 8 /* bytes of the longest call, prefixes included */

struct call {
	bool direct;
	uint64_t target; /* address in the file */
};

static csh disassembler(uint16_t machine)
{
	static csh x86, arm;
	csh *h = machine == EM_AARCH64 ? &arm : &x86;

	if (!*h) {
		if (cs_open(machine == EM_AARCH64 ? CS_ARCH_ARM64 : CS_ARCH_X86,
			    machine == EM_AARCH64 ? CS_MODE_ARM : CS_MODE_64, h))
			return 0;
		cs_option(*h, CS_OPT_DETAIL, CS_OPT_ON);
	}
	return *h;
}

static void call_target(csh h, uint16_t machine, const cs_insn *insn, struct call *ret)
{
	if (machine == EM_AARCH64) {
		const cs_arm64_op *op = insn->detail->arm64.operands;

		ret->direct = insn->detail->arm64.op_count && op->type == ARM64_OP_IMM;
		ret->target = ret->direct ? (uint64_t)op->imm : 0;
	} else {
		const cs_x86_op *op = insn->detail->x86.operands;

		ret->direct = insn->detail->x86.op_count && op->type == X86_OP_IMM;
		ret->target = ret->direct ? (uint64_t)op->imm : 0;
	}
}

/* One call instruction that fills exactly the len bytes before end. */
static bool call_of_length(csh h, uint16_t machine, const uint8_t *end, unsigned len, uint64_t pc, struct call *ret)
{
	cs_insn *insn;
	bool found = false;
	size_t n = cs_disasm(h, end - len, len, pc - len, 1, &insn);

	if (!n)
		return false;
	if (insn->size == len && cs_insn_group(h, insn, CS_GRP_CALL)) {
		call_target(h, machine, insn, ret);
		found = true;
	}
	cs_free(insn, n);
	return found;
}

static bool find_call(struct binary *b, uint64_t pc, struct call *ret)
{
	static const uint8_t x86[] = {5, 2, 3, 6, 7, 4, 8}, arm[] = {4};
	const uint8_t *lens = b->machine == EM_AARCH64 ? arm : x86;
	size_t nr = b->machine == EM_AARCH64 ? sizeof(arm) : sizeof(x86);
	csh h = disassembler(b->machine);
	uint8_t code[CALL_MAX];

	if (!h || binary_read_vaddr(b, pc - CALL_MAX, code, CALL_MAX) != CALL_MAX)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (call_of_length(h, b->machine, code + CALL_MAX, lens[i], pc, ret))
			return true;
	return false;
}

static bool is_jump(struct binary *b, uint64_t at, uint64_t *ret_target)
{
	csh h = disassembler(b->machine);
	uint8_t code[32];
	cs_insn *insn;
	struct call to = {0};
	bool jump = false;
	ssize_t len = binary_read_vaddr(b, at, code, sizeof(code));
	size_t n = len > 0 ? cs_disasm(h, code, (size_t)len, at, 4, &insn) : 0;

	for (size_t i = 0; i < n && !jump; i++) {
		jump = cs_insn_group(h, &insn[i], CS_GRP_JUMP);
		if (jump)
			call_target(h, b->machine, &insn[i], &to);
		else if (i) /* more than a landing mark before it: no mere jump */
			break;
	}
	if (n)
		cs_free(insn, n);
	*ret_target = to.direct ? to.target : 0;
	return jump;
}

static bool same_function(struct binary *b, uint64_t target, uint64_t pc)
{
	struct fde to, in;

	if (cfi_find(b, target, &to) < 0 || cfi_find(b, pc, &in) < 0)
		return false;
	return to.start == in.start;
}

/*
 * A function may have ended in a jump to another one, and split functions have
 * a second part elsewhere: then the call's target says nothing about the inner
 * frame. What remains to be told apart is a target that returns.
 */
static bool leaves_by_jump(struct binary *b, uint64_t target)
{
	csh h = disassembler(b->machine);
	_cleanup_(freep) uint8_t *code = NULL;
	cs_insn *insn;
	struct fde f;
	bool leaves = false;
	size_t n;
	ssize_t len;

	if (cfi_find(b, target, &f) < 0 || f.end - f.start > 1u << 20)
		return true;
	code = malloc(f.end - f.start);
	len = code ? binary_read_vaddr(b, f.start, code, f.end - f.start) : 0;
	n = len > 0 ? cs_disasm(h, code, (size_t)len, f.start, 0, &insn) : 0;
	for (size_t i = 0; i < n && !leaves; i++) {
		struct call to = {0};

		if (!cs_insn_group(h, &insn[i], CS_GRP_JUMP))
			continue;
		call_target(h, b->machine, &insn[i], &to);
		leaves = !to.direct || to.target < f.start || to.target >= f.end;
	}
	if (n)
		cs_free(insn, n);
	return leaves;
}

static bool direct_fits(struct binary *b, uint64_t target, const struct frame *inner, struct binary *inner_binary)
{
	uint64_t next, pc = mapping_address(inner->map, inner->pc - !!(inner->flags & FRAME_CALLER));

	for (unsigned hops = 0; hops < 4; hops++) {
		if (b == inner_binary && same_function(b, target, pc))
			return true;
		if (!is_jump(b, target, &next))
			break;
		if (!next)
			return true; /* through a table: anywhere */
		target = next;
	}
	return leaves_by_jump(b, target);
}

static void check_pair(const struct frame *inner, const struct frame *outer, struct callsite_counts *counts)
{
	struct binary *b = outer->map ? outer->map->file->binary : NULL;
	struct call call = {0};

	if (!(outer->flags & FRAME_CALLER) || inner->flags & FRAME_SIGNAL || !b || !b->is_elf)
		return;
	counts->checked++;
	if (!find_call(b, mapping_address(outer->map, outer->pc - 1) + 1, &call))
		return;
	counts->after_call++;
	if (!call.direct || !inner->map || !inner->map->file->binary)
		return;
	counts->direct++;
	counts->direct_fits += direct_fits(b, call.target, inner, inner->map->file->binary);
}

void callsites_check(const struct frame *frames, uint32_t count, struct callsite_counts *counts)
{
	for (uint32_t i = 1; i < count; i++)
		check_pair(&frames[i - 1], &frames[i], counts);
}
