// SPDX-License-Identifier: Apache-2.0
/*
 * Unwind information of a function, which is that of Windows on x86-64: which
 * instruction of the prologue pushed a register or moved the stack pointer
 * (dotnet/runtime, src/coreclr/inc/win64unwind.h; src/coreclr/jit/unwindamd64.cpp).
 * Nothing tells where frames are taken down but the instructions that do so
 * (codegenxarch.cpp: genFnEpilog): the frame's bytes are added to rsp, or rsp is
 * computed from rbp; then what was pushed is popped, and a return follows, or a
 * jump. Code that replaces other code on the stack saves its registers beneath
 * those that this one has pushed, so that it pops both
 * (docs/design/features/OSRX64EpilogRedesign.md).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

enum { UW_PUSH, UW_ALLOC_LARGE, UW_ALLOC_SMALL, UW_SET_FP, UW_SAVE, UW_SAVE_FAR, UW_SAVE_XMM = 8, UW_SAVE_XMM_FAR,
       UW_SET_FP_LARGE = 11 };

#define VERSION	      1
#define CHAINED	      4
#define CHAIN_MAX     4
#define RBP	      5 /* as the processor counts registers */
#define SLOTS_MAX     255
#define SCAN_MAX      (1u << 20)
#define PIECE	      4096u
#define OVERLAP	      64u /* an epilogue is shorter */
#define POPS_MAX      8

struct dotnet_codes {
	uint32_t nr, pops, allocated; /* allocated: bytes, behind the pushes */
	uint8_t prologue;
	uint32_t code[DOTNET_CODES_MAX];
	uint8_t pop[POPS_MAX]; /* the registers, in the order in which they are popped */
	uint32_t saves;
	struct { uint8_t reg; uint32_t offset; } save[POPS_MAX]; /* from the frame's end */
};

/* --- the codes --- */

static int dotnet_code_add(struct dotnet_codes *to, uint8_t offset, enum dotnet_unwind what, uint64_t bytes)
{
	if (to->nr == DOTNET_CODES_MAX || bytes % 8 || bytes / 8 > DOTNET_VALUE_MAX)
		return -E2BIG;
	to->code[to->nr++] = (uint32_t)(bytes / 8) << 12 | (uint32_t)what << 8 | offset;
	return 0;
}

static uint32_t dotnet_slot(const uint8_t *slots, uint32_t i)
{
	return slots[2 * i] | (uint32_t)slots[2 * i + 1] << 8;
}

static uint32_t dotnet_wide_slot(const uint8_t *slots, uint32_t i)
{
	return dotnet_slot(slots, i) | dotnet_slot(slots, i + 1) << 16;
}

static int dotnet_push(struct dotnet_codes *to, uint8_t offset, uint8_t reg)
{
	if (to->pops == POPS_MAX)
		return -E2BIG;
	to->pop[to->pops++] = reg;
	return dotnet_code_add(to, offset, reg == RBP ? DOTNET_PUSHED_RBP : DOTNET_PUSHED, 0);
}

static int dotnet_alloc(struct dotnet_codes *to, uint8_t offset, uint32_t bytes)
{
	/* Codes are in reverse: what comes behind a push was there before it, as a frame that on-stack replacement left. */
	if (!to->pops)
		to->allocated += bytes;
	return dotnet_code_add(to, offset, DOTNET_ALLOCATED, bytes);
}

static int dotnet_save(struct dotnet_codes *to, uint8_t offset, uint8_t reg, uint32_t at)
{
	if (to->saves == POPS_MAX)
		return -E2BIG;
	to->save[to->saves].reg = reg;
	to->save[to->saves++].offset = at;
	return reg == RBP ? dotnet_code_add(to, offset, DOTNET_SAVED_RBP, at) : 0;
}

/* A register that was saved right beneath those that are popped is popped before them. False: there is none. */
static bool dotnet_pop_saved(struct dotnet_codes *c)
{
	uint32_t i = 0;

	while (i < c->saves && c->save[i].offset + 8 != c->allocated)
		i++;
	if (i == c->saves || c->pops == POPS_MAX)
		return false;
	memmove(c->pop + 1, c->pop, c->pops++);
	c->pop[0] = c->save[i].reg;
	c->allocated -= 8;
	return true;
}

/* The slots that an operation takes; 0: it is none. */
static uint32_t dotnet_slots(uint8_t op, uint8_t info)
{
	switch (op) {
	case UW_PUSH:
	case UW_ALLOC_SMALL:
	case UW_SET_FP:
		return 1;
	case UW_ALLOC_LARGE:
		return info ? 3 : 2;
	case UW_SAVE:
	case UW_SAVE_XMM:
		return 2;
	case UW_SAVE_FAR:
	case UW_SAVE_XMM_FAR:
	case UW_SET_FP_LARGE:
		return 3;
	default:
		return 0;
	}
}

static int dotnet_frame_code(struct dotnet_codes *to, uint8_t offset, uint8_t reg, uint64_t bytes)
{
	if (reg != RBP)
		return -ENOTSUP;
	return dotnet_code_add(to, offset, DOTNET_FRAMED, bytes);
}

static int dotnet_code_read(struct dotnet_codes *to, uint8_t frame, uint8_t offset, const uint8_t *slots, uint32_t i)
{
	uint8_t op = slots[2 * i + 1] & 0xf, info = slots[2 * i + 1] >> 4;

	switch (op) {
	case UW_PUSH:
		return dotnet_push(to, offset, info);
	case UW_ALLOC_SMALL:
		return dotnet_alloc(to, offset, 8 * info + 8u);
	case UW_ALLOC_LARGE:
		return dotnet_alloc(to, offset, info ? dotnet_wide_slot(slots, i + 1) : 8 * dotnet_slot(slots, i + 1));
	case UW_SET_FP:
		return dotnet_frame_code(to, offset, frame & 0xf, 16ULL * (frame >> 4));
	case UW_SET_FP_LARGE:
		return dotnet_frame_code(to, offset, frame & 0xf, 16ULL * dotnet_wide_slot(slots, i + 1));
	case UW_SAVE:
		return dotnet_save(to, offset, info, 8 * dotnet_slot(slots, i + 1));
	case UW_SAVE_FAR:
		return dotnet_save(to, offset, info, dotnet_wide_slot(slots, i + 1));
	default:
		return 0;
	}
}

/* One block of unwind information; *ret_chain where it goes on, 0: nowhere. */
static int dotnet_codes_block(struct memory *m, uint64_t at, bool first, struct dotnet_codes *to, uint64_t *ret_chain)
{
	uint8_t head[4], slots[2 * SLOTS_MAX + 2];
	uint32_t i = 0;
	int err = 0;

	if (memory_read(m, at, head, sizeof(head)))
		return -EFAULT;
	if ((head[0] & 7) != VERSION)
		return -EBADMSG;
	if (head[2] && memory_read(m, at + sizeof(head), slots, 2u * head[2]))
		return -EFAULT;
	if (first)
		to->prologue = head[1];
	while (!err && i < head[2]) {
		uint32_t n = dotnet_slots(slots[2 * i + 1] & 0xf, slots[2 * i + 1] >> 4);

		if (!n || n > head[2] - i)
			return -EBADMSG;
		err = dotnet_code_read(to, head[3], first ? slots[2 * i] : 0, slots, i);
		i += n;
	}
	*ret_chain = head[0] >> 3 & CHAINED ? at + sizeof(head) + 2u * ((head[2] + 1u) & ~1u) : 0;
	return err;
}

static int dotnet_codes_read(struct memory *m, uint64_t base, const struct dotnet_function *f, struct dotnet_codes *ret)
{
	struct dotnet_function chained = *f;
	uint64_t chain = 0;

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		/* The lowest bit marks one that is indirect, on Windows. */
		int err = chained.unwind & 1 ? -ENOTSUP : dotnet_codes_block(m, base + chained.unwind, !i, ret, &chain);

		if (err || !chain)
			return err;
		if (memory_read(m, chain, &chained, sizeof(chained)))
			return -EFAULT;
	}
	return -E2BIG;
}

/* --- where frames are taken down --- */

struct dotnet_scan { const struct dotnet_codes *codes; const uint8_t *code; size_t len; };

static bool dotnet_has(const struct dotnet_scan *s, size_t i, size_t n)
{
	return i <= s->len && n <= s->len - i;
}

/* pop of a register: its bytes, 0: it is not there. */
static uint32_t dotnet_pop_at(const struct dotnet_scan *s, size_t i, uint8_t reg)
{
	if (reg < 8)
		return dotnet_has(s, i, 1) && s->code[i] == 0x58 + reg ? 1 : 0;
	return dotnet_has(s, i, 2) && s->code[i] == 0x41 && s->code[i + 1] == 0x58 + (reg & 7) ? 2 : 0;
}

/* ret; jmp near, or by memory or a register. */
static bool dotnet_leaves_at(const struct dotnet_scan *s, size_t i)
{
	if (!dotnet_has(s, i, 2))
		return dotnet_has(s, i, 1) && s->code[i] == 0xc3;
	switch (s->code[i]) {
	case 0xc3:
	case 0xe9:
	case 0xeb:
		return true;
	case 0xff:
		return (s->code[i + 1] & 0x38) == 0x20;
	case 0x41:
	case 0x48:
	case 0x49:
		return s->code[i + 1] == 0xff && dotnet_has(s, i, 3) && (s->code[i + 2] & 0x38) == 0x20;
	default:
		return false;
	}
}

/* add rsp, bytes: its length; 0: it is not there. */
static uint32_t dotnet_add_at(const struct dotnet_scan *s, size_t i, uint32_t bytes)
{
	uint32_t wide;

	if (dotnet_has(s, i, 4) && !memcmp(s->code + i, "\x48\x83\xc4", 3) && s->code[i + 3] == bytes)
		return 4;
	if (!dotnet_has(s, i, 7) || memcmp(s->code + i, "\x48\x81\xc4", 3) != 0)
		return 0;
	memcpy(&wide, s->code + i + 3, sizeof(wide));
	return wide == bytes ? 7 : 0;
}

/* lea rsp, [rbp + n], or mov rsp, rbp. */
static uint32_t dotnet_lea_at(const struct dotnet_scan *s, size_t i)
{
	if (dotnet_has(s, i, 4) && !memcmp(s->code + i, "\x48\x8d\x65", 3))
		return 4;
	if (dotnet_has(s, i, 7) && !memcmp(s->code + i, "\x48\x8d\xa5", 3))
		return 7;
	return dotnet_has(s, i, 3) && (!memcmp(s->code + i, "\x48\x8b\xe5", 3) || !memcmp(s->code + i, "\x48\x89\xec", 3)) ?
		       3 : 0;
}

/* Which pop is that of rbp, from 1; 0: none is. */
static uint32_t dotnet_pops_rbp(const struct dotnet_codes *codes)
{
	for (uint32_t k = 0; k < codes->pops; k++)
		if (codes->pop[k] == RBP)
			return k + 1;
	return 0;
}

/* Whether an epilogue begins at i: where its pops do, where the return or jump has begun, and the word for them. */
static bool dotnet_epilogue_at(const struct dotnet_scan *s, size_t i, size_t *ret_pops, size_t *ret_end, uint32_t *ret)
{
	const struct dotnet_codes *codes = s->codes;
	uint32_t lengths = 0, n = codes->allocated ? dotnet_add_at(s, i, codes->allocated) : 0;

	if (!n && dotnet_pops_rbp(codes))
		n = dotnet_lea_at(s, i);
	if (!n && codes->allocated)
		return false;
	*ret_pops = i += n;
	for (uint32_t k = 0; k < codes->pops; k++, i += n) {
		n = dotnet_pop_at(s, i, codes->pop[k]);
		if (!n)
			return false;
		lengths |= (n - 1) << k;
	}
	*ret = lengths << 8 | codes->pops;
	*ret |= dotnet_pops_rbp(codes) << 4;
	*ret_end = i + 1;
	return (codes->pops || codes->allocated) && dotnet_leaves_at(s, i);
}

/*
 * Regions end with the last epilogue that they have room for, so that a function with many is several regions. Of the one
 * around pc: its bounds, and its epilogues.
 */
struct dotnet_part { uint32_t start, end, nr; uint64_t epilogue[DOTNET_EPILOGUES_MAX]; };

/* true: pc is in the part that ends with this epilogue. */
static bool dotnet_part_add(struct dotnet_part *p, uint32_t pc, uint32_t pops, uint32_t end, uint32_t word)
{
	if (p->nr == DOTNET_EPILOGUES_MAX) {
		if (pc < p->end)
			return true;
		p->start = p->end;
		p->nr = 0;
	}
	p->epilogue[p->nr++] = (uint64_t)pops << 32 | word;
	p->end = end;
	return false;
}

static bool dotnet_part_scan(struct dotnet_part *p, const struct dotnet_scan *s, uint32_t offset, size_t stop, uint32_t pc)
{
	size_t pops, end;
	uint32_t word;

	for (size_t i = 0; i < stop; i++)
		if (dotnet_epilogue_at(s, i, &pops, &end, &word) &&
		    dotnet_part_add(p, pc, offset + (uint32_t)pops, offset + (uint32_t)end, word))
			return true;
	return false;
}

static int dotnet_part_find(struct memory *m, uint64_t code, uint32_t size, uint32_t pc, const struct dotnet_codes *codes,
			    struct dotnet_part *ret)
{
	uint8_t bytes[PIECE];
	struct dotnet_scan s = {.codes = codes, .code = bytes};

	*ret = (struct dotnet_part){0};
	for (uint32_t at = 0; at < MIN(size, SCAN_MAX); at += PIECE - OVERLAP) {
		s.len = MIN(size - at, PIECE);
		if (memory_read(m, code + at, bytes, s.len))
			return -EFAULT;
		if (dotnet_part_scan(ret, &s, at, MIN(s.len, (size_t)(PIECE - OVERLAP)), pc))
			return 0;
	}
	ret->end = size;
	return 0;
}

int dotnet_unwind(struct memory *m, uint64_t base, const struct dotnet_function *f, uint64_t pc, struct runtime_code *ret)
{
	uint64_t code = base + f->begin;
	struct dotnet_codes codes;
	struct dotnet_part part;
	int err = dotnet_codes_read(m, base, f, &codes);

	while (!err && dotnet_pop_saved(&codes))
		;
	if (!err)
		err = dotnet_part_find(m, code, f->end - f->begin, (uint32_t)(pc - code), &codes, &part);
	if (err)
		return err;
	ret->kind = DOTNET_METHOD;
	ret->start = code + part.start;
	ret->end = code + MIN(part.end, f->end - f->begin);
	ret->word[DOTNET_HEAD] = (uint64_t)part.start << 32 | (uint64_t)codes.prologue << 8 | codes.nr;
	for (uint32_t i = 0; i < codes.nr; i++)
		runtime_code_set_half(ret, 2 * DOTNET_CODES + i, codes.code[i]);
	memcpy(&ret->word[DOTNET_EPILOGUES], part.epilogue, part.nr * sizeof(part.epilogue[0]));
	return 0;
}
