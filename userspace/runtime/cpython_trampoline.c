// SPDX-License-Identifier: Apache-2.0
/*
 * Trampolines of python -X perf: for profilers that know native code alone, each
 * Python function gets a copy of one small function, which calls the loop. Copies
 * lie side by side in anonymous memory, which no unwind table describes, at one
 * distance from each other (CPython, Python/perf_trampoline.c). A region is what
 * begins in one page. They have no frame of their own: Python's frames are walked.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/cpython.h"

#define PAGE	 4096u
#define ALIGN	 16u /* of a copy */
#define CODE_MAX 20u
#define DISTANCE_MAX 1024u
#define PAD	 4u  /* bytes of endbr64, before a copy where the build has them */

enum { RBP = 6, RSP = 7, X29 = 29, X31 = 31 };

/* From pushed to popped the return address is at sp + 8, and at sp the frame pointer, if it is saved. */
struct trampoline {
	uint8_t code[CODE_MAX], len;
	uint8_t pushed, popped;
	uint8_t arch; /* enum otp_arch */
	bool saves_fp;
};

/* Python/asm_trampoline.S */
static const struct trampoline trampolines[] = {
	/* 3.12, 3.13: sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
	{{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 11, 4, 10, OTP_ARCH_X86_64, false},
	/* 3.14: push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
	{{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}, 8, 1, 7, OTP_ARCH_X86_64, true},
	/* 3.12 to 3.14: stp x29,x30,[sp,-16]!; mov x29,sp; blr x3; ldp x29,x30,[sp],16; ret */
	{{0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x60, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f,
	  0xd6}, 20, 4, 16, OTP_ARCH_ARM64, true},
};

enum { WORD_FIRST, WORD_DISTANCE }; /* of a region */

/* --- regions --- */

struct trampoline_page {
	uint64_t start;
	uint32_t len;
	uint8_t bytes[PAGE + CODE_MAX];
};

static bool trampoline_is(const struct trampoline_page *p, const struct trampoline *t, uint64_t at)
{
	return at >= p->start && at < p->start + PAGE && at - p->start + t->len <= p->len &&
	       memcmp(p->bytes + (at - p->start), t->code, t->len) == 0;
}

static bool trampoline_has_pad(const struct trampoline_page *p, uint64_t at)
{
	static const uint8_t pad[PAD] = {0xf3, 0x0f, 0x1e, 0xfa};

	return at - p->start >= PAD && memcmp(p->bytes + (at - p->start) - PAD, pad, PAD) == 0;
}

static int trampoline_read(struct memory *m, uint64_t start, struct trampoline_page *ret)
{
	ret->start = start;
	ret->len = sizeof(ret->bytes);
	if (memory_read(m, start, ret->bytes, ret->len) == 0)
		return 0;
	ret->len = PAGE; /* the last page of the mapping */
	return memory_read(m, start, ret->bytes, ret->len);
}

/* The copy that pc is in, or its landing pad, or in the room behind it. */
static const struct trampoline *trampoline_around(const struct trampoline_page *p, uint64_t pc, uint64_t *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(trampolines); i++)
		for (uint64_t at = pc + PAD; pc + PAD - at < DISTANCE_MAX; at--)
			if (trampoline_is(p, &trampolines[i], at) && (at <= pc || trampoline_has_pad(p, at))) {
				*ret = at;
				return &trampolines[i];
			}
	return NULL;
}

static bool trampoline_has_next(const struct trampoline_page *p, const struct trampoline *t, uint64_t at, uint64_t far)
{
	return trampoline_is(p, t, at + far) || trampoline_is(p, t, at - far);
}

/*
 * To the next copy, or from the one before. Up to 3.12 one follows the other; those of a jitdump have room for unwind
 * tables between them.
 */
static uint64_t trampoline_distance(const struct trampoline_page *p, const struct trampoline *t, uint64_t at)
{
	if (trampoline_has_next(p, t, at, t->len))
		return t->len;
	for (uint64_t far = ALIGN; far < DISTANCE_MAX; far += ALIGN)
		if (trampoline_has_next(p, t, at, far))
			return far;
	return PAGE;
}

static void trampoline_describe(const struct trampoline_page *p, const struct trampoline *t, uint64_t at,
				struct runtime_code *c)
{
	uint64_t distance = trampoline_distance(p, t, at), first = at, last = at;

	while (trampoline_is(p, t, first - distance))
		first -= distance;
	while (trampoline_is(p, t, last + distance))
		last += distance;
	c->kind = (uint32_t)(t - trampolines);
	c->start = first - (trampoline_has_pad(p, first) ? PAD : 0);
	c->end = last + t->len;
	c->word[WORD_FIRST] = c->identity[0] = first;
	c->word[WORD_DISTANCE] = c->identity[1] = distance;
	c->identity[2] = last;
}

int cpython_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	uint64_t start = pc & ~(uint64_t)(PAGE - 1), at;
	const struct trampoline *t = NULL;
	struct trampoline_page p;

	(void)a;
	if (trampoline_read(m, start, &p) == 0)
		t = trampoline_around(&p, pc, &at);
	/* It may have begun in the page before. */
	if (!t && pc - start < CODE_MAX && trampoline_read(m, start - PAGE, &p) == 0)
		t = trampoline_around(&p, pc, &at);
	if (!t)
		return -ENOENT;
	trampoline_describe(&p, t, at, &ret->code);
	/* All between the first copy and the last has one answer: of a region that is known, any address may be asked. */
	if (pc < ret->code.start || pc >= ret->code.end)
		return -ENOENT;
	return memcmp(ret->known, ret->code.identity, sizeof(ret->known)) == 0 ? -EALREADY : 0;
}

/* --- steps --- */

static bool trampoline_pushed(const struct trampoline *t, const struct runtime_code *c, uint64_t pc)
{
	uint64_t offset = (pc + c->word[WORD_DISTANCE] - c->word[WORD_FIRST]) % c->word[WORD_DISTANCE];

	return offset >= t->pushed && offset < t->popped;
}

int cpython_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		 struct runtime_step *ret)
{
	const struct trampoline *t = c->kind < ARRAY_SIZE(trampolines) ? &trampolines[c->kind] : NULL;
	unsigned sp = at->arch == OTP_ARCH_ARM64 ? X31 : RSP, fp = at->arch == OTP_ARCH_ARM64 ? X29 : RBP;
	uint64_t where = at->reg[sp];
	bool pushed;

	(void)a;
	if (!t || t->arch != at->arch || !(at->valid >> sp & 1) || !c->word[WORD_DISTANCE])
		return -ENOENT;
	pushed = trampoline_pushed(t, c, at->pc);
	if (!pushed && at->arch == OTP_ARCH_ARM64) /* for two instructions it is in a register */
		return -ENOENT;
	ret->flags = RUNTIME_STEP_SAME | RUNTIME_STEP_WRAPS | (at->valid >> fp & 1 ? RUNTIME_STEP_FP : 0);
	ret->fp = at->reg[fp];
	if (pushed && t->saves_fp) {
		ret->flags |= RUNTIME_STEP_FP;
		if (at->load(at->ctx, where, &ret->fp))
			return -EFAULT;
	}
	where += pushed ? 8 : 0;
	ret->cfa = ret->sp = where + 8;
	return at->load(at->ctx, where, &ret->pc) ? -EFAULT : 0;
}
