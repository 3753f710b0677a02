// SPDX-License-Identifier: Apache-2.0
/*
 * Stubs, by which compiled code reaches methods: they have no frame, and jump on.
 * Those that choose by an object's type push what they need meanwhile
 * (dotnet/runtime, src/coreclr/vm/amd64/virtualcallstubcpu.hpp). Some lie in memory
 * that is in no range of the map of code: those that count calls (callcounting.h)
 * and those that native code calls (cgencpu.h: UMEntryThunkCode), known by their
 * instructions; thunks (dotnet_thunk.c); and a page of helpers that the collector
 * needs (JIT_WriteBarrier), to which the table of helpers leads.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define STUBS_KIND    0x120 /* of a list of stubs (CodeRangeMapRangeList) */
#define SCAN_MAX      4096u
#define STUB_MIN      32u	/* bytes of one that pushes, a multiple of 8 */
#define STUB_MAX      512u
#define BEGIN	      3u	/* bytes with which all of a kind begin */
#define ALIKE	      8u	/* so many must, for their size to be known */
#define PAGE	      4096u
#define HELPERS_MAX   64
#define FORM_MAX      24u /* bytes of one that is known by its form */

enum { KIND_RESOLVE = 7, KIND_LOOKUP = 8 };

/* enum StubCodeBlockKind, as of 8 and 9. */
static const char *dotnet_stub_name(uint32_t kind)
{
	static const char *const names[] = {NULL, "jump", "precode", "dynamic helper", "precode", "precode", "virtual call",
					    "virtual call", "virtual call", "virtual call"};

	return kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : ".NET";
}

static int dotnet_stub_region(const char *name, uint64_t start, uint64_t end, struct runtime_code *c)
{
	c->kind = DOTNET_STUB;
	c->start = start;
	c->end = end;
	c->identity[0] = start;
	c->identity[1] = end;
	c->identity[2] = 1 + c->word[0];
	snprintf(c->name, sizeof(c->name), "[stub: %s]", name);
	return end > start ? 0 : -EBADMSG;
}

/* --- those that push --- */

/* Instructions of which stubs consist: how long they are, and what they do. */
static const struct dotnet_insn {
	uint8_t len, match;
	uint8_t code[4];
	enum { DOES_NOTHING, DOES_PUSH, DOES_POP, DOES_LEAVE } does;
} dotnet_insns[] = {
	{1, 1, {0x50}, DOES_PUSH},		 /* push rax */
	{1, 1, {0x52}, DOES_PUSH},		 /* push rdx */
	{1, 1, {0x58}, DOES_POP},		 /* pop rax */
	{1, 1, {0x5a}, DOES_POP},		 /* pop rdx */
	{1, 1, {0xc3}, DOES_LEAVE},		 /* ret */
	{2, 2, {0xff, 0xe0}, DOES_LEAVE},	 /* jmp rax */
	{5, 1, {0xe9}, DOES_LEAVE},		 /* jmp */
	{1, 1, {0x90}, DOES_NOTHING},		 /* nop */
	{2, 1, {0x75}, DOES_NOTHING},		 /* jne */
	{2, 1, {0x7d}, DOES_NOTHING},		 /* jge */
	{6, 2, {0x0f, 0x85}, DOES_NOTHING},	 /* jne */
	{10, 2, {0x48, 0xb8}, DOES_NOTHING},	 /* mov rax, n */
	{10, 2, {0x49, 0xba}, DOES_NOTHING},	 /* mov r10, n */
	{3, 3, {0x48, 0x8b, 0x07}, DOES_NOTHING}, /* mov rax, [rdi] */
	{3, 3, {0x48, 0x8b, 0xd0}, DOES_NOTHING}, /* mov rdx, rax */
	{4, 3, {0x48, 0xc1, 0xe8}, DOES_NOTHING}, /* shr rax, n */
	{3, 3, {0x48, 0x03, 0xc2}, DOES_NOTHING}, /* add rax, rdx */
	{6, 2, {0x48, 0x35}, DOES_NOTHING},	 /* xor rax, n */
	{6, 2, {0x48, 0x25}, DOES_NOTHING},	 /* and rax, n */
	{4, 4, {0x4a, 0x8b, 0x04, 0x10}, DOES_NOTHING}, /* mov rax, [rax + r10] */
	{4, 3, {0x48, 0x3b, 0x50}, DOES_NOTHING}, /* cmp rdx, [rax + n] */
	{4, 3, {0x4c, 0x3b, 0x50}, DOES_NOTHING}, /* cmp r10, [rax + n] */
	{4, 3, {0x48, 0x8b, 0x40}, DOES_NOTHING}, /* mov rax, [rax + n] */
	{3, 2, {0x83, 0x00}, DOES_NOTHING},	 /* add [rax], n */
	{4, 3, {0x49, 0x83, 0xcb}, DOES_NOTHING}, /* or r11, n */
};

static const struct dotnet_insn *dotnet_insn_at(const uint8_t *code, size_t left)
{
	for (size_t i = 0; i < ARRAY_SIZE(dotnet_insns); i++)
		if (left >= dotnet_insns[i].len && !memcmp(code, dotnet_insns[i].code, dotnet_insns[i].match))
			return &dotnet_insns[i];
	return NULL;
}

/* How many bytes a stub has: the next ones begin alike. 0: not known. */
static size_t dotnet_stub_size(const uint8_t code[SCAN_MAX])
{
	for (size_t n = STUB_MIN; dotnet_insn_at(code, SCAN_MAX) && n <= STUB_MAX; n += 8) {
		unsigned alike = 1;

		while (alike < ALIKE && !memcmp(code, code + alike * n, BEGIN))
			alike++;
		if (alike == ALIKE)
			return n;
	}
	return 0;
}

/*
 * The stub at pc, from its begin on, as the heap's first ones tell where others begin; of fewer, all: whatever pc was asked
 * for, a region has the same bounds.
 */
static int dotnet_stub_read(struct memory *m, uint64_t *from, uint64_t end, uint64_t pc, uint8_t code[SCAN_MAX], size_t *ret)
{
	uint8_t begin[BEGIN];
	size_t size;

	memset(code, 0, SCAN_MAX);
	*ret = MIN(end - *from, (uint64_t)SCAN_MAX);
	if (memory_read(m, *from, code, *ret))
		return -EFAULT;
	size = dotnet_stub_size(code);
	if (!size)
		return pc < *from + *ret ? 0 : -EFAULT;
	memcpy(begin, code, BEGIN);
	*from += (pc - *from) / size * size;
	*ret = MIN(end - *from, (uint64_t)size);
	return memory_read(m, *from, code, *ret) || *ret < BEGIN || memcmp(code, begin, BEGIN) != 0 ? -EFAULT : 0;
}

/*
 * Stubs of a kind lie one behind the other, with zeros between. A region ends where one more is pushed, or one less: so all
 * of it has the same depth.
 */
static int dotnet_stub_depth(struct memory *m, uint64_t *start, uint64_t *end, uint64_t pc, struct runtime_code *c)
{
	uint8_t code[SCAN_MAX];
	uint64_t from = *start;
	size_t len, i = 0;
	uint32_t depth = 0;

	if (dotnet_stub_read(m, &from, *end, pc, code, &len))
		return -EFAULT;
	*start = from;
	while (i < len) {
		const struct dotnet_insn *insn = dotnet_insn_at(code + i, len - i);
		uint32_t next = depth;

		i += insn ? insn->len : 1;
		if (!insn || insn->does == DOES_LEAVE)
			next = 0;
		else if (insn->does == DOES_PUSH)
			next++;
		else if (insn->does == DOES_POP && depth)
			next--;
		if (next == depth)
			continue;
		*end = from + i;
		if (pc < *end)
			break;
		*start = from + i;
		depth = next;
		*end = from + len;
	}
	c->word[0] = depth;
	return 0;
}

static bool dotnet_stub_pushes(uint32_t kind)
{
	return kind == KIND_RESOLVE || kind == KIND_LOOKUP;
}

int dotnet_stub(struct memory *m, uint32_t kind, uint64_t start, uint64_t end, uint64_t pc, struct runtime_code *c)
{
	int err = 0;

	if (pc < start || pc >= end)
		return -ENOENT;
	if (dotnet_stub_pushes(kind))
		err = dotnet_stub_depth(m, &start, &end, pc, c);
	return err ? err : dotnet_stub_region(dotnet_stub_name(kind), start, end, c);
}

/*
 * Where a block ends shows when a method has its place behind it, which is after its memory was taken and its code was
 * written. No two of the heap begin in the same bucket: so much of the block is the same whatever lies behind.
 */
int dotnet_stub_among(struct memory *m, uint32_t kind, uint64_t start, uint64_t end, uint64_t pc, struct runtime_code *c)
{
	const uint64_t bucket = pc & ~(uint64_t)(DOTNET_BUCKET - 1);

	if (dotnet_stub_pushes(kind))
		return dotnet_stub(m, kind, start, end, pc, c);
	return dotnet_stub(m, kind, MAX(start, bucket), MIN(end, bucket + DOTNET_BUCKET), pc, c);
}

int dotnet_stubs(struct memory *m, const struct dotnet_range *range, uint64_t pc, struct runtime_code *c)
{
	uint32_t kind;

	if (memory_u32(m, range->stubs + STUBS_KIND, &kind))
		return -EFAULT;
	return dotnet_stub(m, kind, range->start, range->end, pc, c);
}

/* --- those in no range of the map of code --- */

/* mov rax, [rip + n]; dec word [rax]; je; jmp [rip + n]; jmp [rip + n] */
static bool dotnet_counts_calls(const uint8_t *code)
{
	return !memcmp(code, "\x48\x8b\x05", 3) && !memcmp(code + 7, "\x66\xff\x08\x74\x06\xff\x25", 7) &&
	       !memcmp(code + 18, "\xff\x25", 2);
}

/* mov r10, n; mov rax, n; jmp rax */
static bool dotnet_enters(const uint8_t *code)
{
	return !memcmp(code, "\x49\xba", 2) && !memcmp(code + 10, "\x48\xb8", 2) && !memcmp(code + 20, "\x48\xff\xe0", 3);
}

static const struct dotnet_form {
	const char *name;
	size_t len;
	bool (*is)(const uint8_t *code);
} dotnet_forms[] = {
	{"call counting", 24, dotnet_counts_calls},
	{"entry from native code", 23, dotnet_enters},
};

static int dotnet_formed(struct memory *m, const struct dotnet_form *form, uint64_t pc, struct runtime_code *c)
{
	uint8_t code[2 * FORM_MAX];
	uint64_t page = pc & ~(uint64_t)(PAGE - 1), from = MAX(pc - (form->len - 1), page);
	size_t len = MIN(pc + form->len, page + PAGE) - from;

	if (memory_read(m, from, code, len))
		return -EFAULT;
	for (size_t i = 0; i + form->len <= len && from + i <= pc; i++)
		if (form->is(code + i))
			return dotnet_stub_region(form->name, from + i, from + i + form->len, c);
	return -ENOENT;
}

static int dotnet_barrier(const struct dotnet *d, struct memory *m, uint64_t pc, struct runtime_code *c)
{
	uint64_t helpers[HELPERS_MAX], page = pc & ~(uint64_t)(PAGE - 1);

	if (!d->helpers || memory_read(m, d->helpers, helpers, sizeof(helpers)))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++)
		if (helpers[i] >= page && helpers[i] < page + PAGE)
			return dotnet_stub_region("write barrier", page, page + PAGE, c);
	return -ENOENT;
}

int dotnet_stub_alone(const struct dotnet *d, struct memory *m, uint64_t pc, struct runtime_code *c)
{
	uint64_t start, end;

	for (size_t i = 0; i < ARRAY_SIZE(dotnet_forms); i++)
		if (dotnet_formed(m, &dotnet_forms[i], pc, c) == 0)
			return 0;
	if (dotnet_thunk(m, pc, &start, &end) == 0)
		return dotnet_stub_region("thunk", start, end, c);
	return dotnet_barrier(d, m, pc, c);
}
