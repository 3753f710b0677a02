// SPDX-License-Identifier: Apache-2.0
/*
 * Where in code the frame is made and taken down, by the instructions with which
 * V8 does so on x86-64 (V8, macro-assembler-x64.cc, code-generator-x64.cc:
 * AssembleReturn, builtins-x64.cc): push rbp, mov rbp, rsp; mov rsp, rbp and pop
 * rbp, or leave; then arguments are dropped, for which the return address is
 * taken from the stack and put back. Regular expressions have what makes their
 * frame behind all other code, as only then it is known how much is to be saved
 * (regexp-macro-assembler-x64.cc, GetCode). Builtins without a frame that pass arguments on take the return address
 * from the stack as well, and put it back behind them (PopReturnAddressTo, PushReturnAddressFrom).
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"
#include "runtime/x86_scan.h"

#define SCAN_MAX (256u << 10)
#define PIECE	 4096u
#define OVERLAP	 64u /* an epilogue is shorter */

enum { RCX = 2, R8 = 8, R9 = 9, R10 = 10 };

/* From one offset to another, the return address is in a register. */
struct v8_taken { uint32_t from, to; uint8_t reg; /* enum x86_reg */ };
#define V8_TAKEN_MAX 4u

struct v8_scan {
	struct runtime_code_made *made;
	struct v8_taken taken[V8_TAKEN_MAX];
	uint32_t nr_taken;
	uint32_t entry; /* to which the first jump leads */
	bool full, pushes, pushes_context;
};

static void v8_event(struct v8_scan *s, uint64_t offset, uint32_t state)
{
	if (s->full || offset >= 1u << 24)
		return;
	s->full = s->made->code.nr_more == RUNTIME_CODE_MORE - 1;
	runtime_code_add_more(s->made, (uint32_t)offset << 8 | (s->full ? V8_UNTOLD : state));
}

static bool v8_taken_goes_on(const struct v8_taken *t, const struct x86_insn *i)
{
	switch (i->kind) {
	case INSN_CALL:
		return !t->from;
	case INSN_OTHER:
	case INSN_LOAD:
	case INSN_STORE:
	case INSN_COPY:
	case INSN_ADD:
	case INSN_JUMP:
	case INSN_BRANCH:
		return !t->from || !(i->writes >> t->reg & 1);
	case INSN_PUSH:
		return t->from;
	default:
		return false;
	}
}

/* Up to where it is taken, the stack stays as it is. */
static bool v8_taken_look(void *ctx, const struct x86_insn *i, uint32_t end)
{
	struct v8_taken *t = ctx;

	if (!t->from && i->kind == INSN_POP && i->reg < X86_NONE) {
		t->from = end;
		t->reg = i->reg;
		return true;
	}
	if (t->from && i->kind == INSN_PUSH && i->reg == t->reg) {
		t->to = end;
		return false;
	}
	return v8_taken_goes_on(t, i);
}

static void v8_scan_taken(struct v8_scan *s, struct memory *m, uint32_t size)
{
	for (uint32_t at = 0; s->nr_taken < V8_TAKEN_MAX && at < size; at = s->taken[s->nr_taken++].to) {
		struct v8_taken *t = &s->taken[s->nr_taken];

		x86_scan(m, s->made->code.start, at, size, v8_taken_look, t);
		if (!t->to)
			return;
	}
}

static void v8_taken_events(struct v8_scan *s, uint32_t offset)
{
	for (uint32_t i = 0; i < s->nr_taken; i++) {
		if (offset == s->taken[i].from)
			v8_event(s, offset, V8_IN_REG | x86_dwarf[s->taken[i].reg]);
		if (offset == s->taken[i].to)
			v8_event(s, offset, 1);
	}
}

/* Instructions between a frame's end and the return; keeps: the return address stays where it is. */
static const struct v8_insn {
	uint8_t len, match; /* bytes in all, and of code */
	uint8_t code[4];
	enum { V8_KEEPS, V8_TAKES, V8_PUTS, V8_RETURNS, V8_LEAVES } does;
	uint8_t reg;
} v8_insns[] = {
	{1, 1, {0xc3}, V8_LEAVES, 0},			   /* ret */
	{3, 1, {0xc2}, V8_RETURNS, 0},			   /* ret n: another way of returning may follow */
	{2, 2, {0x41, 0x5a}, V8_TAKES, R10},		   /* pop r10 */
	{2, 2, {0x41, 0x58}, V8_TAKES, R8},		   /* pop r8 */
	{2, 2, {0x41, 0x59}, V8_TAKES, R9},		   /* pop r9 */
	{1, 1, {0x59}, V8_TAKES, RCX},			   /* pop rcx */
	{2, 2, {0x41, 0x52}, V8_PUTS, R10},		   /* push r10 */
	{2, 2, {0x41, 0x50}, V8_PUTS, R8},		   /* push r8 */
	{2, 2, {0x41, 0x51}, V8_PUTS, R9},		   /* push r9 */
	{1, 1, {0x51}, V8_PUTS, RCX},			   /* push rcx */
	{4, 3, {0x48, 0x8d, 0x24}, V8_KEEPS, 0},	   /* lea rsp, [rsp + reg * 8] */
	{4, 3, {0x4a, 0x8d, 0x24}, V8_KEEPS, 0},	   /* lea rsp, [rsp + r8 * 8] */
	{3, 3, {0x48, 0x03, 0xe3}, V8_KEEPS, 0},	   /* add rsp, rbx */
	{4, 3, {0x48, 0x83, 0xf9}, V8_KEEPS, 0},	   /* cmp rcx, n */
	{7, 3, {0x48, 0x81, 0xf9}, V8_KEEPS, 0},	   /* cmp rcx, n */
	{4, 3, {0x49, 0x83, 0xf8}, V8_KEEPS, 0},	   /* cmp r8, n */
	{7, 3, {0x49, 0x81, 0xf8}, V8_KEEPS, 0},	   /* cmp r8, n */
	{2, 1, {0x7f}, V8_KEEPS, 0},			   /* jg */
	{6, 2, {0x0f, 0x8f}, V8_KEEPS, 0},		   /* jg */
	{4, 3, {0x48, 0x8b, 0x49}, V8_KEEPS, 0},	   /* mov rcx, [rcx + n] */
	{7, 3, {0x49, 0x8b, 0xb5}, V8_KEEPS, 0},	   /* mov rsi, [r13 + n] */
	{11, 3, {0x49, 0xc7, 0x85}, V8_KEEPS, 0},	   /* mov [r13 + n], 0 */
	{4, 4, {0x49, 0x8d, 0x67, 0x08}, V8_KEEPS, 0},	   /* lea rsp, [r15 + 8] */
	{2, 1, {0xeb}, V8_LEAVES, 0},			   /* jmp */
	{5, 1, {0xe9}, V8_LEAVES, 0},			   /* jmp */
	{2, 1, {0xff}, V8_LEAVES, 0},			   /* jmp reg */
	{3, 2, {0x41, 0xff}, V8_LEAVES, 0},		   /* jmp reg */
};

static const struct v8_insn *v8_insn_at(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(v8_insns); i++)
		if (len >= v8_insns[i].len && !memcmp(code, v8_insns[i].code, v8_insns[i].match))
			return &v8_insns[i];
	return NULL;
}

static bool v8_scan_is_builtin(const struct v8_scan *s)
{
	return s->made->code.kind == V8_BUILTIN || s->made->code.kind == V8_HANDLER || s->made->code.kind == V8_PROLOGUE;
}

/* From the end of a frame on. Returns the bytes up to behind the return. */
static uint32_t v8_epilogue(struct v8_scan *s, const uint8_t *code, size_t len, uint32_t offset)
{
	const struct v8_insn *insn;
	uint32_t at = 0;

	v8_event(s, offset, 1);
	while ((insn = v8_insn_at(code + at, len - at)) && at < OVERLAP - 8) {
		at += insn->len;
		if (insn->does == V8_TAKES)
			v8_event(s, offset + at, V8_IN_REG | insn->reg);
		else if (insn->does == V8_PUTS)
			v8_event(s, offset + at, 1);
		else if (insn->does == V8_LEAVES)
			break;
	}
	/* What V8 brings along goes on without a frame, and compiled code with another way of returning. */
	if (insn || !v8_scan_is_builtin(s))
		v8_event(s, offset + at, V8_FRAMED);
	return at;
}

static bool v8_begins(const uint8_t *code, size_t left, const char *with, size_t len)
{
	return left >= len && !memcmp(code, with, len);
}

/* What is at one place; returns its bytes. */
static uint32_t v8_scan_at(struct v8_scan *s, const uint8_t *code, size_t left, uint32_t offset)
{
	v8_taken_events(s, offset);
	if (v8_begins(code, left, "\x55\x48\x89\xe5", 4)) {
		s->pushes = true;
		s->pushes_context |= !v8_begins(code + 4, left - 4, "\x6a", 1);
		if (offset && offset == s->entry)
			v8_event(s, offset, 1);
		v8_event(s, offset + 1, 2);
		v8_event(s, offset + 4, V8_FRAMED);
		return 4;
	}
	if (v8_begins(code, left, "\x48\x8b\xe5\x5d", 4))
		return 4 + v8_epilogue(s, code + 4, left - 4, offset + 4);
	/* add rsp, 8: the baseline code that called is not gone on with, so its return address is dropped */
	if (s->made->code.kind == V8_PROLOGUE && v8_begins(code, left, "\x48\x83\xc4\x08", 4)) {
		v8_event(s, offset, 1);
		return 4;
	}
	/* pop rbx; pop rbp; ret */
	if (s->made->code.kind == V8_REGEXP && v8_begins(code, left, "\x5b\x5d\xc3", 3))
		return 2 + v8_epilogue(s, code + 2, left - 2, offset + 2);
	/* leave; pop rcx; add rsp, rbx; or lea rsp, [rsp + rbx * 8]. leave; mov rsi, [r13 + n]: CEntry, LeaveExitFrame */
	if (v8_begins(code, left, "\xc9\x59\x48\x03\xe3", 5) || v8_begins(code, left, "\xc9\x59\x48\x8d\x24\xdc", 6) ||
	    v8_begins(code, left, "\xc9\x49\x8b\xb5", 4))
		return 1 + v8_epilogue(s, code + 1, left - 1, offset + 1);
	return 1;
}

/* The out-of-line prologue is called by the code that it makes a frame for, and takes that return address away. */
static uint32_t v8_scan_prologue(struct v8_scan *s, const uint8_t *code, size_t len)
{
	/* pop r15; r11 from V8 13 on; of WebAssembly, rdi. Then push rbp; mov rbp, rsp. */
	static const struct { uint32_t pop; char code[7]; } begins[] = {
		{2, "\x41\x5f\x55\x48\x89\xe5"}, {2, "\x41\x5b\x55\x48\x89\xe5"}, {1, "\x5f\x55\x48\x89\xe5"}};

	for (uint32_t i = 0; i < len; i++)
		for (uint32_t k = 0; k < ARRAY_SIZE(begins); k++) {
			if (!v8_begins(code + i, len - i, begins[k].code, begins[k].pop + 4))
				continue;
			v8_event(s, i + begins[k].pop, 1);
			return i + begins[k].pop;
		}
	return 0;
}

/* Bytes of an instruction that loads a number, which may look like a call; 0: it is none. */
static uint32_t v8_loads_number(const uint8_t *code, size_t left)
{
	if (left >= 10 && (code[0] & 0xfe) == 0x48 && (code[1] & 0xf8) == 0xb8)
		return 10;
	return left >= 5 && (code[0] & 0xf8) == 0xb8 ? 5 : 0;
}

/* Bytes of a call of a builtin: nearby, by the table that r13 leads to, or by a register; 0: it is none. */
static uint32_t v8_calls(const uint8_t *code, size_t left)
{
	if (v8_begins(code, left, "\xe8", 1))
		return 5;
	if (v8_begins(code, left, "\x41\xff\x95", 3))
		return 7;
	return v8_begins(code, left, "\x41\xff\xd2", 3) ? 3 : 0;
}

/* Baseline code has its frame from the first call on; so has WebAssembly's that does not begin with push rbp. */
static bool v8_has_frame_by_call(const struct runtime_code *c, const uint8_t *code, size_t len)
{
	if (c->kind == V8_WASM) /* xor r12d, r12d; call. mov r12d, n */
		return v8_begins(code, len, "\x45\x31\xe4\xe8", 4) || v8_begins(code, len, "\x41\xbc", 2);
	return c->kind == V8_BASELINE;
}

static uint32_t v8_scan_baseline(struct v8_scan *s, const uint8_t *code, size_t len)
{
	for (uint32_t i = 0, skip; i + 7 <= len && i < 48; i += skip) {
		uint32_t call = v8_calls(code + i, len - i);

		if (call) {
			v8_event(s, i + call, V8_FRAMED);
			return i + call;
		}
		skip = MAX(v8_loads_number(code + i, len - i), 1u);
	}
	return 0;
}

/* jmp, perhaps behind endbr64. */
static uint32_t v8_scan_regexp(struct v8_scan *s, const uint8_t *code, size_t len)
{
	uint32_t at = v8_begins(code, len, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
	int32_t n;

	if (!v8_begins(code + at, len - at, "\xe9", 1) || len - at < 5)
		return 0;
	memcpy(&n, code + at + 1, sizeof(n));
	s->entry = at + 5 + (uint32_t)n;
	v8_event(s, at + 5, V8_FRAMED);
	return at + 5;
}

void v8_events(struct memory *m, struct runtime_code_made *made, uint32_t first)
{
	struct runtime_code *c = &made->code;
	struct v8_scan s = {.made = made};
	uint64_t size = MIN(c->end - c->start, (uint64_t)SCAN_MAX);
	uint8_t bytes[PIECE];
	uint32_t skip = 0;

	v8_event(&s, 0, first);
	if (c->kind == V8_BUILTIN && first == 1)
		v8_scan_taken(&s, m, (uint32_t)size);
	for (uint64_t at = 0; at < size && !s.full; at += PIECE - OVERLAP) {
		size_t len = MIN(size - at, (uint64_t)PIECE), stop = MIN(len, (size_t)(PIECE - OVERLAP));

		if (memory_read(m, c->start + at, bytes, len))
			return;
		if (!at && c->kind == V8_PROLOGUE)
			skip = v8_scan_prologue(&s, bytes, len);
		else if (!at && c->kind == V8_REGEXP)
			skip = v8_scan_regexp(&s, bytes, len);
		else if (!at && v8_has_frame_by_call(c, bytes, len))
			skip = v8_scan_baseline(&s, bytes, len);
		while (skip < stop)
			skip += v8_scan_at(&s, bytes + skip, len - skip, (uint32_t)at + skip);
		skip -= (uint32_t)MIN(stop, skip);
	}
	if (c->kind == V8_BUILTIN && !s.pushes_context)
		c->kind = V8_STUB;
	/* Maglev's code that goes on with a loop in place of unoptimized code takes that one's frame over. */
	if ((c->kind == V8_OPTIMIZED || c->kind == V8_WITHOUT_DATA) && !s.pushes)
		made->more[0] |= V8_FRAMED;
}
