// SPDX-License-Identifier: Apache-2.0
/*
 * Thunks that the runtime puts together: of delegates of static methods, of
 * generic methods whose code is shared, and of methods of boxed structures. They
 * move arguments, and jump on (dotnet/runtime, src/coreclr/vm/i386/stublinkerx86.cpp:
 * EmitShuffleThunk, EmitInstantiatingMethodStub, EmitUnboxMethodStub). They are in
 * no range of the map of code; each has a header, which says how long it is
 * (stublink.h: class Stub).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"
#include "unwind/x86_insn.h"

#define HEADER	   16u /* references, length and flags, a MethodDesc; the code is as aligned */
#define LEN_BITS   26
#define CODE_MAX   512u
#define REFERENCES (1u << 20)
#define PAGE	   4096u

struct dotnet_thunk_bytes { uint64_t from; size_t len; uint8_t byte[CODE_MAX + HEADER + CODE_MAX]; };

/* Whether pc is at an instruction of the code, which keeps the stack as it is up to its jump; *ret_end: behind that. */
static bool dotnet_thunk_is_code(const uint8_t *code, size_t len, size_t pc, size_t *ret_end)
{
	struct x86_insn i = {0};
	bool met = false;

	for (size_t at = 0; at < len; at += i.len) {
		if (x86_decode(code + at, len - at, &i))
			return false;
		met |= at == pc;
		*ret_end = at + i.len;
		if (i.kind == INSN_END)
			return met && i.n == INSN_BY_REGISTER;
		if (!insn_keeps_stack(i.kind))
			return false;
	}
	return false;
}

/* Bytes of the code behind a header; 0: it is none. */
static size_t dotnet_thunk_len(const uint8_t *header)
{
	uint32_t references, len;

	memcpy(&references, header, sizeof(references));
	memcpy(&len, header + sizeof(references), sizeof(len));
	if (!references || references > REFERENCES || !(len >> LEN_BITS))
		return 0;
	len &= (1u << LEN_BITS) - 1;
	return len <= CODE_MAX ? len : 0;
}

/* What lies around pc. The pages before and behind may not be there. */
static int dotnet_thunk_read(struct memory *m, uint64_t pc, struct dotnet_thunk_bytes *ret)
{
	const uint64_t code = pc & ~(uint64_t)(HEADER - 1), page = pc & ~(uint64_t)(PAGE - 1);

	if (pc < PAGE)
		return -ENOENT;
	ret->from = code - CODE_MAX;
	ret->len = sizeof(ret->byte);
	if (memory_read(m, ret->from, ret->byte, ret->len) == 0)
		return 0;
	ret->len = MIN(ret->from + ret->len, page + PAGE) - MAX(ret->from, page);
	ret->from = MAX(ret->from, page);
	return memory_read(m, ret->from, ret->byte, ret->len);
}

int dotnet_thunk(struct memory *m, uint64_t pc, uint64_t *ret_start, uint64_t *ret_end)
{
	struct dotnet_thunk_bytes b;
	size_t end;
	int err = dotnet_thunk_read(m, pc, &b);

	if (err)
		return err;
	for (uint64_t at = pc & ~(uint64_t)(HEADER - 1); at >= b.from + HEADER; at -= HEADER) {
		size_t in = at - b.from, len = MIN(dotnet_thunk_len(b.byte + in - HEADER), b.len - in);

		if (pc - at >= len || !dotnet_thunk_is_code(b.byte + in, len, pc - at, &end))
			continue;
		*ret_start = at;
		*ret_end = at + end;
		return 0;
	}
	return -ENOENT;
}
