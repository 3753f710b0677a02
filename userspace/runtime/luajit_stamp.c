// SPDX-License-Identifier: Apache-2.0
/*
 * Whether machine code is still that of the same traces. Memory for it is taken
 * from the top of an area on, and given back for all traces at once, when they are
 * flushed (lj_mcode.c): until then, no address is of two traces. For the first area
 * after a flush a random address is chosen (mcode_alloc), which changes the state
 * of the generator, PRNGState of struct global_State (since 2020). It changes at
 * other times, too: for each 128 new strings or so (lj_str.c), when memory is
 * sought (lj_alloc.c), when the recording of a trace is given up (lj_trace.c,
 * penalty_pc). While it is the same, nothing was replaced.
 * OpenResty's places traces by another generator, in its jit_State: it has none.
 */
#include "base/cleanup.h"
#include "runtime/luajit.h"

#define PRNG_OFF   16 /* from jit_base; between them is ctype_state (lj_obj.h, struct global_State) */
#define PRNG_BYTES 32 /* lj_prng.h; gcroot follows, which begins with the names of metamethods */

static bool luajit_points_to_string(struct memory *m, uint64_t at)
{
	uint64_t string;

	return memory_u64(m, at, &string) == 0 && luajit_is_string(m, string);
}

void luajit_stamp_attach(struct memory *m, uint64_t jit_base, bool tells, struct runtime_attached *ret)
{
	const uint64_t at = ret->param[LUAJIT_PARAM_GLOBAL] + jit_base + PRNG_OFF;

	ret->walk.root_off = (int32_t)(jit_base + PRNG_OFF);
	ret->walk.root_keep = 1;
	/* Without a generator, gcroot is in its place. */
	if (tells && luajit_points_to_string(m, at + PRNG_BYTES) && !luajit_points_to_string(m, at))
		ret->param[LUAJIT_PARAM_PRNG] = jit_base + PRNG_OFF;
}

uint64_t luajit_stamp(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root)
{
	return a->param[LUAJIT_PARAM_PRNG] && nr_root ? root[LUAJIT_ROOT_PRNG] : 0;
}

uint64_t luajit_stamp_now(const struct runtime_attached *a, struct memory *m)
{
	uint64_t word;

	if (!a->param[LUAJIT_PARAM_PRNG] || memory_u64(m, a->param[LUAJIT_PARAM_GLOBAL] + a->param[LUAJIT_PARAM_PRNG], &word))
		return 0;
	return word;
}
