// SPDX-License-Identifier: Apache-2.0
/*
 * Which code lies at an address: a method that the JIT compiler made, with a
 * header before it (dotnet/runtime, src/coreclr/vm/codeman.h: RealCodeHeader);
 * one that was compiled before; or a stub, which jumps on to where a method is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/dotnet.h"

#define STUB_KINDS	16 /* in place of a header */
#define HEADER_DEBUG	0
#define HEADER_METHOD	24
#define HEADER_NR	32 /* of functions */
#define HEADER_FUNCTION 36
#define FUNCTIONS_MAX	4096

/* --- methods --- */

/* All of a region is one function. */
static int dotnet_own(const struct dotnet *d, struct memory *m, const struct dotnet_compiled *compiled,
		      const struct dotnet_method *method, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	const uint64_t row = (uint64_t)method->class << 32 | method->token;
	const struct runtime_frame f = {.key = method->address, .cookie = {method->table, row, method->identity}};
	int function, node, err;

	c->identity[0] = method->address;
	c->identity[1] = f.cookie[1] ^ method->table;
	if (!memcmp(ret->known, c->identity, sizeof(c->identity)))
		return -EALREADY;
	function = runtime_code_add_function(ret, &f);
	node = function < 0 ? function : runtime_code_add_node(ret, (uint32_t)function, 0, DOTNET_NO_POSITION);
	err = node < 0 ? node : runtime_code_add_row(ret, 0, (uint32_t)node);
	if (!err)
		dotnet_bounds(d, m, compiled, (uint32_t)function, (uint32_t)node, ret);
	return err;
}

/* A word that differs with other code in the same place: where it is, by which codes its frame is left, and its places. */
static uint64_t dotnet_words(const struct runtime_code *c, uint64_t identity, uint64_t debug)
{
	uint64_t hash = (c->start * 31 + c->end + (identity << 1)) * 31 + debug;

	for (uint32_t i = 0; i < RUNTIME_CODE_WORDS; i++)
		hash = hash * 1099511628211ULL ^ c->word[i];
	return hash;
}

static int dotnet_describe(const struct dotnet *d, struct memory *m, uint64_t base, const struct dotnet_function *f,
			   const struct dotnet_compiled *compiled, uint64_t pc, struct runtime_code_made *ret)
{
	struct dotnet_method method;
	int err = dotnet_unwind(m, base, f, pc, &ret->code);

	if (err)
		return err;
	/* How its frame is left is known all the same. */
	if (!compiled->method || dotnet_method_read(d, m, compiled->method, &method)) {
		snprintf(ret->code.name, sizeof(ret->code.name), "[unknown method of .NET]");
		ret->code.identity[0] = ret->code.start;
		ret->code.identity[2] = dotnet_words(&ret->code, compiled->method, compiled->debug);
		return 0;
	}
	ret->code.identity[2] = dotnet_words(&ret->code, method.identity, compiled->debug);
	return dotnet_own(d, m, compiled, &method, ret);
}

static int dotnet_jitted_function(struct memory *m, uint64_t header, uint64_t offset, struct dotnet_function *ret)
{
	uint32_t nr;

	if (memory_u32(m, header + HEADER_NR, &nr))
		return -EFAULT;
	for (uint32_t i = 0; i < MIN(nr, (uint32_t)FUNCTIONS_MAX); i++) {
		if (memory_read(m, header + HEADER_FUNCTION + i * sizeof(*ret), ret, sizeof(*ret)))
			return -EFAULT;
		if (offset >= ret->begin && offset < ret->end)
			return 0;
	}
	return -ENOENT;
}

static int dotnet_jitted(const struct dotnet *d, struct memory *m, const struct dotnet_range *range, uint64_t pc,
			 struct runtime_code_made *ret)
{
	struct dotnet_compiled compiled = {.jitted = true};
	struct dotnet_function f;
	uint64_t header, end;
	int err = dotnet_heap_find(m, range, pc, &compiled.code);

	if (err || compiled.code < 8 || memory_u64(m, compiled.code - 8, &header))
		return err ? err : -EFAULT;
	if (range->flags & DOTNET_RANGE_COLLECTED)
		ret->code.flags = RUNTIME_CODE_FLEETING;
	if (header < STUB_KINDS) {
		err = dotnet_heap_next(m, range, compiled.code, &end);
		return err ? err : dotnet_stub_among(m, (uint32_t)header, compiled.code, end, pc, &ret->code);
	}
	err = dotnet_jitted_function(m, header, pc - range->start, &f);
	if (err || memory_u64(m, header + HEADER_DEBUG, &compiled.debug) ||
	    memory_u64(m, header + HEADER_METHOD, &compiled.method))
		return err ? err : -EFAULT;
	return dotnet_describe(d, m, range->start, &f, &compiled, pc, ret);
}

static int dotnet_compiled_before(const struct dotnet *d, struct memory *m, const struct dotnet_range *range, uint64_t pc,
				  struct runtime_code_made *ret)
{
	struct dotnet_compiled compiled;
	struct dotnet_function f;
	int err = dotnet_r2r_find(d, m, range, pc, &f, &compiled);

	if (err == -ENOENT && pc >= range->start + f.begin && pc < range->start + f.end)
		return dotnet_stub(m, DOTNET_NO_STUB, range->start + f.begin, range->start + f.end, pc, &ret->code);
	return err ? err : dotnet_describe(d, m, range->start, &f, &compiled, pc, ret);
}

static int dotnet_code_read(const struct dotnet *d, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct dotnet_range range;
	int err = dotnet_hijack(d, pc, &ret->code);

	if (!err)
		return 0;
	err = dotnet_range_find(d, m, pc, &range);
	if (err)
		return err == -ENOENT ? dotnet_stub_alone(d, m, pc, &ret->code) : err;
	if (range.flags & DOTNET_RANGE_STUBS)
		err = dotnet_stubs(m, &range, pc, &ret->code);
	else if (range.flags & DOTNET_RANGE_HEAP)
		err = dotnet_jitted(d, m, &range, pc, ret);
	else
		err = dotnet_compiled_before(d, m, &range, pc, ret);
	if (!err && (pc < ret->code.start || pc >= ret->code.end))
		err = -EBADMSG;
	return err;
}

/* The last stub of a heap ends where that does, until other code is put behind it: it may be longer then. */
static bool dotnet_is_known(const struct runtime_code_made *made, uint64_t pc)
{
	const uint64_t *known = made->known, *now = made->code.identity;

	if (made->code.kind != DOTNET_STUB)
		return !memcmp(known, now, sizeof(made->known));
	return known[0] == now[0] && known[2] == now[2] && pc < known[1] && known[1] <= now[1];
}

int dotnet_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	int err = dotnet_code_read(dotnet_of(a), m, pc, ret);

	return !err && dotnet_is_known(ret, pc) ? -EALREADY : err;
}
