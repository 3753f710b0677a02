// SPDX-License-Identifier: Apache-2.0
/*
 * What BEAM made at its start, beneath the first module that it loaded: the code
 * that all modules share names the index of the table of modules in force, and
 * among it are functions of a module that is in no table, to which a process'
 * first function returns (erts/emulator/beam/jit/x86: beam_asm.hpp,
 * beam_asm_module.cpp of OTP 24 to 29). Modules lie in several areas, of which
 * later ones are mostly lower, once the first one is full (asmjit, jitallocator.cpp).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define SHARED_MAX (64u << 10)
#define PAGE	 4096u
#define GAP	 1024u /* between two modules, in which the shared code may be */
#define GAPS_MAX 128u  /* that are looked into */
#define OWN_ARITY_MAX 3u
#define EXITS_NEAR 4096u /* bytes from the exits to the module: some 1000 in each version */
#define MODULES_READ 64u
#define NEAR	 (16u << 10) /* between the index in force and the tables of modules */
#define LOAD_LEN 10u	     /* movabs $address,%rXX */
#define USE_FAR	 16u	     /* bytes from its end to the load that uses it */
#define USE_LEN	 3u
#define ENTER_LEN 4u
#define ENTERS	 16u /* there are some 80 */

/* mov (%reg),%r12d */
static bool beam_loads_index(const uint8_t *code, uint8_t reg)
{
	for (uint32_t i = 0; i <= USE_FAR; i++)
		if (code[i] == 0x44 && code[i + 1] == 0x8b && code[i + 2] == (0x20 | reg))
			return true;
	return false;
}

/* An address near the tables of modules, that is loaded into the register of the index: 0 none. */
static uint64_t beam_index_in(const struct beam *b, const uint8_t *code, size_t len)
{
	uint64_t address;

	for (size_t i = 0; i + LOAD_LEN + USE_FAR + USE_LEN <= len; i++) {
		if (code[i] != 0x48 || (code[i + 1] & 0xf8) != 0xb8)
			continue;
		memcpy(&address, code + i + 2, sizeof(address));
		if (address + NEAR - b->ranges < 2 * NEAR && beam_loads_index(code + i + LOAD_LEN, code[i + 1] & 7))
			return address;
	}
	return 0;
}

/* The name of the function of this info, if it is one that all modules share. */
static bool beam_own_function(const struct beam *b, struct memory *m, const uint64_t mfa[3], char ret[BEAM_ATOM_MAX])
{
	if (!beam_is_atom(mfa[0]) || !beam_is_atom(mfa[1]) || mfa[2] > OWN_ARITY_MAX ||
	    beam_atom(b, m, mfa[0], ret) < 0 || strcmp(ret, "erts_beamasm") != 0)
		return false;
	return beam_atom(b, m, mfa[1], ret) >= 0;
}

/* Whether it is one that a process' first function returns to. */
static bool beam_is_exit_info(const struct beam *b, struct memory *m, const uint64_t mfa[3])
{
	char text[BEAM_ATOM_MAX];

	return !mfa[2] && beam_own_function(b, m, mfa, text) && (!strcmp(text, "normal_exit") || !strcmp(text, "continue_exit"));
}

static uint32_t beam_exits_in(const struct beam *b, struct memory *m, const uint8_t *code, size_t len, uint64_t at,
			      uint64_t exits[BEAM_EXITS])
{
	uint64_t mfa[3];
	uint32_t n = 0;

	for (size_t i = BEAM_INFO_MFA; i + sizeof(mfa) <= len && n < BEAM_EXITS; i += 8) {
		memcpy(mfa, code + i, sizeof(mfa));
		if (beam_is_exit_info(b, m, mfa))
			exits[n++] = at + i - BEAM_INFO_MFA + BEAM_INFO_BYTES;
	}
	return n;
}

/*
 * Emulators that are started with +JPperf keep frame pointers: nearly each part of an instruction begins with push %rbp;
 * mov %rsp,%rbp then (emit_enter_frame), and none does in others.
 */
static bool beam_is_framed(const uint8_t *code, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i + ENTER_LEN <= len; i++)
		n += code[i] == 0x55 && code[i + 1] == 0x48 &&
		     ((code[i + 2] == 0x89 && code[i + 3] == 0xe5) || (code[i + 2] == 0x8b && code[i + 3] == 0xec));
	return n >= ENTERS;
}

/* Whether they lie right beneath a module. */
static bool beam_has_exits(const struct beam *b, struct memory *m, uint64_t module)
{
	uint64_t at = (module & ~7ULL) - EXITS_NEAR, exits[BEAM_EXITS];
	uint8_t code[EXITS_NEAR];

	return !memory_read(m, at, code, sizeof(code)) && beam_exits_in(b, m, code, sizeof(code), at, exits) == BEAM_EXITS;
}

/* The first module that was loaded: beneath it is room for what was there before. -ENOENT: no such one. */
static int beam_find_low(struct memory *m, struct beam *b)
{
	struct beam_module of[MODULES_READ];
	struct beam_ranges r;
	uint64_t end = 0;
	uint32_t tried = 0;

	if (memory_read(m, b->ranges, &r, sizeof(r)))
		return -EFAULT;
	for (uint64_t i = 0; i < r.n && tried < GAPS_MAX; i++) {
		if (!(i % MODULES_READ) && memory_read(m, r.modules + sizeof(of[0]) * i, of,
						       sizeof(of[0]) * MIN(r.n - i, (uint64_t)MODULES_READ)))
			return -EFAULT;
		const struct beam_module *here = &of[i % MODULES_READ];

		if (here->start - end >= GAP && ++tried && beam_has_exits(b, m, here->start)) {
			b->low = here->start;
			return 0;
		}
		end = here->end;
	}
	return -ENOENT;
}

/* --- what traced functions return to --- */

/*
 * Behind its return address, the first word of the frame is where the traced function's name is, or the code of the one
 * that was counted before it (do_call_trace, erts_generic_breakpoint of erts/emulator/beam/beam_bp.c).
 */
static const struct { const char *name; uint16_t words; } beam_traces[] = {
	{"return_trace", 1}, {"exception_trace", 1}, {"return_time_trace", 1}, {"call_trace_return", 1}, {"return_to_trace", 0},
};

static const uint16_t *beam_trace_words(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(beam_traces); i++)
		if (!strcmp(beam_traces[i].name, name))
			return &beam_traces[i].words;
	return NULL;
}

/* Each ends where the next function's info begins. */
static void beam_find_traces(struct beam *b, struct memory *m, const uint8_t code[EXITS_NEAR])
{
	struct beam_trace *last = NULL;
	uint32_t n = 0;
	uint64_t mfa[3];
	char name[BEAM_ATOM_MAX];

	for (size_t i = 0; i + BEAM_INFO_BYTES <= EXITS_NEAR; i += 8) {
		const uint16_t *words;

		memcpy(mfa, code + i + BEAM_INFO_MFA, sizeof(mfa));
		if (!beam_own_function(b, m, mfa, name))
			continue;
		if (last)
			last->end = (uint16_t)(EXITS_NEAR - i);
		words = beam_trace_words(name);
		last = words && n < BEAM_TRACES ? &b->trace[n++] : NULL;
		if (last)
			*last = (struct beam_trace){.code = (uint16_t)(EXITS_NEAR - i - BEAM_INFO_BYTES), .words = *words};
	}
}

/* --- where there are too many gaps --- */

#define CALLERS_MAX 16u   /* modules whose code is looked at */
#define CALLER_LEN  4096u /* of it, the first bytes */
#define CALL_LEN    5u

/* The next module above an address, and not far away. */
static bool beam_next_module(struct memory *m, const struct beam_ranges *r, uint64_t address, struct beam_module *ret)
{
	uint64_t low = 0, high = r->n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (memory_read(m, r->modules + sizeof(*ret) * middle, ret, sizeof(*ret)))
			return false;
		if (ret->start > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low < r->n && !memory_read(m, r->modules + sizeof(*ret) * low, ret, sizeof(*ret)) &&
	       ret->start - address < SHARED_MAX;
}

/* Where a call or jump leads to; 0: it is none. */
static uint64_t beam_call_to(const uint8_t *code, uint64_t at)
{
	int32_t relative;

	if (code[0] != 0xe8 && code[0] != 0xe9)
		return 0;
	memcpy(&relative, code + 1, sizeof(relative));
	return at + CALL_LEN + (uint64_t)(int64_t)relative;
}

/* Code calls, and jumps to, what all modules share; one module's calls of another one are indirect. */
static bool beam_leads_low(struct beam *b, struct memory *m, const struct beam_ranges *r, const struct beam_module *of,
			   uint32_t *tried)
{
	uint8_t code[CALLER_LEN];
	struct beam_module next = {0};
	uint64_t at, last = 0;
	size_t len;

	if (memory_u64(m, of->start + b->functions, &at) || at <= of->start || at >= of->end)
		return false;
	len = MIN(of->end - at, (uint64_t)sizeof(code));
	if (memory_read(m, at, code, len))
		return false;
	for (size_t i = 0; i + CALL_LEN <= len && *tried < GAPS_MAX; i++) {
		uint64_t to = beam_call_to(code + i, at + i);

		if (!to || (to >= of->start && to < of->end) || !beam_next_module(m, r, to, &next) || next.start == last)
			continue;
		last = next.start;
		++*tried;
		if (beam_has_exits(b, m, next.start)) {
			b->low = next.start;
			return true;
		}
	}
	return false;
}

/* Of a system that has purged many modules: what others call is beneath the first one that was loaded. */
static int beam_find_low_by_calls(struct memory *m, struct beam *b)
{
	struct beam_module of;
	struct beam_ranges r;
	uint32_t tried = 0;

	if (memory_read(m, b->ranges, &r, sizeof(r)))
		return -EFAULT;
	/* The last modules lie highest, and are mostly among the first that were loaded. */
	for (uint64_t i = 0, seen = 0; i < r.n && seen < CALLERS_MAX && tried < GAPS_MAX; i++) {
		if (memory_read(m, r.modules + sizeof(of) * (r.n - 1 - i), &of, sizeof(of)))
			return -EFAULT;
		if (of.end > of.start && ++seen && beam_leads_low(b, m, &r, &of, &tried))
			return 0;
	}
	return -ENOENT;
}

/* The bytes beneath the first module, as far down as they are mapped: how many are behind code's start. */
static size_t beam_read_shared(struct memory *m, uint64_t low, uint8_t code[SHARED_MAX])
{
	size_t first = low & (PAGE - 1), len = first;

	if (low < SHARED_MAX || (first && memory_read(m, low - first, code + SHARED_MAX - first, first)))
		return 0;
	while (len + PAGE <= SHARED_MAX && !memory_read(m, low - len - PAGE, code + SHARED_MAX - len - PAGE, PAGE))
		len += PAGE;
	return len;
}

int beam_find_shared(struct memory *m, struct beam *b)
{
	uint8_t code[SHARED_MAX];
	int err = beam_find_low(m, b);
	const uint8_t *from;
	uint64_t low;
	size_t len;

	if (err == -ENOENT)
		err = beam_find_low_by_calls(m, b);
	if (err)
		return err;
	low = b->low & ~7ULL;
	len = beam_read_shared(m, low, code);
	from = code + SHARED_MAX - len;
	if (!len)
		return -EFAULT;
	if (!b->active)
		b->active = beam_index_in(b, from, len);
	b->framed = beam_is_framed(from, len);
	if (len >= EXITS_NEAR)
		beam_find_traces(b, m, code + SHARED_MAX - EXITS_NEAR);
	return b->active && beam_exits_in(b, m, from, len, low - len, b->exits) == BEAM_EXITS ? 0 : -ENOENT;
}
