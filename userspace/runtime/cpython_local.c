// SPDX-License-Identifier: Apache-2.0
/*
 * From 3.15 on a thread's state is in a thread-local variable, _Py_tss_gilstate in
 * Python/pystate.c, whether the thread holds the GIL or not. No symbol tells where;
 * a neighbour of it, which is 0 without the GIL, often has the same value. But all
 * that PyGILState_GetThisThreadState does is to return it.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define MODULES_MAX  (1u << 16)
#define VECTOR	     8 /* of the thread pointer: its vector of blocks */
#define GLIBC_ENTRY  16
#define MUSL_ENTRY   8
#define ARM64_MRS    0xd53bd040u /* mrs x0, tpidr_el0 */
#define ARM64_LOAD   0xf9400000u /* ldr x0, [x0, #] */
#define ARM64_RET    0xd65f03c0u

struct local_code {
	struct memory *m;
	uint8_t byte[CPYTHON_LOCAL_CODE];
	uint64_t pc; /* of the first byte, in the process */
};

static bool local_is(const struct local_code *c, size_t at, const char *bytes, size_t n)
{
	return at + n <= CPYTHON_LOCAL_CODE && memcmp(c->byte + at, bytes, n) == 0;
}

static int32_t local_s32(const struct local_code *c, size_t at)
{
	int32_t v;

	memcpy(&v, c->byte + at, sizeof(v));
	return v;
}

/* Of an operand relative to the next instruction, in whose last four bytes it stands. */
static uint64_t local_operand(const struct local_code *c, size_t at)
{
	return c->pc + at + 4 + (uint64_t)(int64_t)local_s32(c, at);
}

/* The variable's place in the block whose address __tls_get_addr returned: mov offset(%rax),%rax. */
static int local_in_block(const struct local_code *c, size_t from, int32_t *ret)
{
	for (size_t at = from; at + 7 <= CPYTHON_LOCAL_CODE && c->byte[at] != 0xc3; at++) {
		if (local_is(c, at, "\x48\x8b\x00", 3))
			*ret = 0;
		else if (local_is(c, at, "\x48\x8b\x40", 3))
			*ret = (int8_t)c->byte[at + 3];
		else if (local_is(c, at, "\x48\x8b\x80", 3))
			*ret = local_s32(c, at + 3);
		else
			continue;
		return 0;
	}
	return -ENOTSUP;
}

/* lea slot(%rip),%rdi; call __tls_get_addr: the slot has the block's module, and an offset in it. */
static int local_shared(const struct local_code *c, size_t at, struct cpython_local *ret)
{
	uint64_t slot[2];
	int32_t in_block;
	int r = local_in_block(c, at + 7, &in_block);

	if (r == 0)
		r = memory_read(c->m, local_operand(c, at + 3), slot, sizeof(slot));
	if (r < 0)
		return r;
	if (slot[0] >= MODULES_MAX || slot[1] > INT32_MAX / 2 || in_block < 0 || in_block > INT32_MAX / 2)
		return -ENOTSUP;
	*ret = (struct cpython_local){.shared = true, .module = (uint32_t)slot[0], .offset = (int32_t)slot[1] + in_block};
	return 0;
}

/* mov slot(%rip),%rax; mov %fs:(%rax),%rax */
static int local_by_slot(const struct local_code *c, size_t at, struct cpython_local *ret)
{
	uint64_t offset;
	int r = memory_u64(c->m, local_operand(c, at + 3), &offset);

	if (r < 0)
		return r;
	if ((int64_t)offset < INT32_MIN || (int64_t)offset >= 0)
		return -ENOTSUP;
	*ret = (struct cpython_local){.offset = (int32_t)(int64_t)offset};
	return 0;
}

static int local_x86_64(const struct local_code *c, struct cpython_local *ret)
{
	for (size_t at = 0; at + 11 <= CPYTHON_LOCAL_CODE && c->byte[at] != 0xc3; at++) {
		if (local_is(c, at, "\x64\x48\x8b\x04\x25", 5)) { /* mov %fs:offset,%rax */
			*ret = (struct cpython_local){.offset = local_s32(c, at + 5)};
			return 0;
		}
		if (local_is(c, at, "\x48\x8d\x3d", 3))
			return local_shared(c, at, ret);
		if (local_is(c, at, "\x48\x8b\x05", 3) && local_is(c, at + 7, "\x64\x48\x8b\x00", 4))
			return local_by_slot(c, at, ret);
	}
	return -ENOTSUP;
}

/* Of a program: mrs, as many additions as the offset needs, the load. */
static int local_arm64(const struct local_code *c, struct cpython_local *ret)
{
	uint32_t insn, offset = 0;
	bool is_pointer = false;

	for (size_t at = 0; at + 4 <= CPYTHON_LOCAL_CODE; at += 4) {
		memcpy(&insn, c->byte + at, sizeof(insn));
		if (insn == ARM64_RET)
			break;
		if (insn == ARM64_MRS) {
			is_pointer = true;
		} else if ((insn & 0xff8003ff) == 0x91000000 && is_pointer) { /* add x0, x0, # */
			offset += (insn >> 10 & 0xfff) << (insn >> 22 & 1 ? 12 : 0);
		} else if ((insn & 0xffc003ff) == ARM64_LOAD && is_pointer) {
			*ret = (struct cpython_local){.offset = (int32_t)(offset + 8 * (insn >> 10 & 0xfff))};
			return 0;
		}
	}
	return -ENOTSUP;
}

int cpython_local_decode(uint16_t machine, const uint8_t code[CPYTHON_LOCAL_CODE], uint64_t pc, struct memory *m,
			 struct cpython_local *ret)
{
	struct local_code c = {.m = m, .pc = pc};

	memcpy(c.byte, code, sizeof(c.byte));
	if (machine == EM_X86_64)
		return local_x86_64(&c, ret);
	return machine == EM_AARCH64 ? local_arm64(&c, ret) : -ENOTSUP;
}

int cpython_local_read(const struct runtime_file *file, struct memory *m, struct cpython_local *ret)
{
	uint8_t code[CPYTHON_LOCAL_CODE];
	struct runtime_symbol s;

	if (runtime_symbol(file->binary, "PyGILState_GetThisThreadState", &s) < 0 ||
	    binary_read_vaddr(file->binary, s.value, code, sizeof(code)) != sizeof(code))
		return -ENOTSUP;
	return cpython_local_decode(file->binary->machine, code, file->bias + s.value, m, ret);
}

/* --- in a thread --- */

static bool local_holds(struct memory *m, uint64_t pointer, const int32_t *chain, uint8_t nr, uint64_t state)
{
	uint64_t at = pointer;

	for (uint8_t i = 0; i < nr; i++)
		if (memory_u64(m, at + (uint64_t)(int64_t)chain[i], &at) < 0)
			return false;
	return at == state;
}

/* What x86-64's and musl's pthread_t is, and on arm64 what is at a distance from glibc's. */
static int local_pointer(struct memory *m, uint16_t machine, uint64_t self, uint64_t *ret)
{
	int64_t distance = 0;
	int r = machine == EM_AARCH64 ? cpython_arm64_pointer(m, self, &distance) : 0;

	*ret = self + (uint64_t)distance;
	return r;
}

int cpython_local_find(struct memory *m, uint16_t machine, const struct cpython_local *l, uint64_t self, uint64_t state,
		       struct otp_walk *walk)
{
	const int32_t glibc[] = {VECTOR, (int32_t)l->module * GLIBC_ENTRY, l->offset};
	const int32_t musl[] = {VECTOR, (int32_t)l->module * MUSL_ENTRY, l->offset};
	const int32_t *chain = l->shared ? glibc : &l->offset;
	uint8_t nr = l->shared ? 3 : 1;
	uint64_t pointer;

	if (local_pointer(m, machine, self, &pointer) < 0)
		return -ENOENT;
	if (l->shared && !local_holds(m, pointer, chain, nr, state))
		chain = musl;
	if (!local_holds(m, pointer, chain, nr, state))
		return -ENOENT;
	walk->start = OTP_WALK_TLS;
	walk->base = 0;
	walk->nr_chain = nr;
	memcpy(walk->chain, chain, nr * sizeof(*chain));
	return 0;
}
