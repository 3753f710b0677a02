// SPDX-License-Identifier: Apache-2.0
/*
 * Which function's code is at an address: by the table of modules in force, and
 * the functions in the module's header (erts/emulator/beam/beam_ranges.c,
 * beam_code.h). A function's region begins with its struct ErtsCodeInfo.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"
#include "runtime/steady.h"

#define SHARED_BYTES (256u << 10) /* beneath the first module */
#define SHARED_PIECE 64u	  /* its functions have no bounds */
#define FUNCTIONS_MAX (1u << 20)

/* By the table in force. -ENOENT: no module is there. */
static int beam_find_module(const struct beam *b, struct memory *m, uint64_t pc, struct beam_module *ret)
{
	struct beam_ranges table;
	uint64_t low = 0, high;
	uint32_t index;

	if (memory_u32(m, b->active, &index) || index >= BEAM_INDEXES ||
	    memory_read(m, b->ranges + index * sizeof(table), &table, sizeof(table)))
		return -EFAULT;
	high = table.n;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (memory_read(m, table.modules + sizeof(*ret) * middle, ret, sizeof(*ret)))
			return -EFAULT;
		if (pc >= ret->start && pc < ret->end)
			return 0;
		if (pc < ret->start)
			high = middle;
		else
			low = middle + 1;
	}
	return -ENOENT;
}

/* The function whose code, with its info, is at pc. */
static int beam_find_function(const struct beam *b, struct memory *m, const struct beam_module *of, uint64_t pc,
			      uint64_t ret_bounds[2])
{
	uint64_t n, low = 0, high;

	if (memory_u64(m, of->start, &n))
		return -EFAULT;
	if (!n || n > FUNCTIONS_MAX)
		return -EBADMSG;
	for (high = n; low < high;) {
		uint64_t middle = low + (high - low) / 2;

		if (memory_read(m, of->start + b->functions + 8 * middle, ret_bounds, 16))
			return -EFAULT;
		if (pc >= ret_bounds[0] && pc < ret_bounds[1])
			return (int)middle;
		if (pc < ret_bounds[0])
			high = middle;
		else
			low = middle + 1;
	}
	return -ENOENT;
}

/* Of a module that is loaded anew, the checksum is another one: the header has it a word or two before the functions. */
static void beam_identify(const struct beam *b, struct memory *m, const struct beam_module *of, const uint64_t mfa[3],
			  struct runtime_code *c)
{
	const int16_t to_md5 = beam_rows[b->row].md5 ? beam_rows[b->row].md5 : 16;
	uint64_t md5;

	c->identity[0] = c->start;
	c->identity[1] = mfa[0] << 32 | (uint32_t)mfa[1];
	if (memory_u64(m, of->start + b->functions - (uint64_t)to_md5, &md5) || memory_u64(m, md5, &c->identity[2]))
		c->identity[2] = of->start;
}

static int beam_function(const struct beam *b, struct memory *m, const struct beam_module *of, uint64_t pc,
			 struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	uint64_t bounds[2], mfa[3];
	struct runtime_frame f;
	int i = beam_find_function(b, m, of, pc, bounds), err;

	if (i < 0)
		return i;
	if (bounds[0] <= of->start || bounds[1] > of->end || bounds[1] - bounds[0] > RUNTIME_CODE_BYTES ||
	    memory_read(m, bounds[0] + BEAM_INFO_MFA, mfa, sizeof(mfa)))
		return -EBADMSG;
	c->start = bounds[0];
	c->end = bounds[1];
	c->kind = BEAM_FUNCTION;
	beam_identify(b, m, of, mfa, c);
	if (!memcmp(ret->known, c->identity, sizeof(c->identity)))
		return -EALREADY;
	f = (struct runtime_frame){.key = bounds[0], .cookie = {mfa[0], mfa[1], mfa[2]}, .flags = RUNTIME_LINE};
	err = beam_lines(b, m, of, (uint32_t)i, &f, ret);
	if (err || b->loop)
		return err;
	err = beam_fetches(b, m, c);
	return err ? err : beam_frames(m, c);
}

/* It was made at the start, before any module. */
static int beam_shared(const struct beam *b, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;

	if (pc >= b->low || b->low < SHARED_BYTES || pc < b->low - SHARED_BYTES)
		return -ENOENT;
	c->start = pc & ~(uint64_t)(SHARED_PIECE - 1);
	c->end = c->start + SHARED_PIECE;
	c->kind = BEAM_SHARED;
	c->identity[0] = c->start;
	if (!memcmp(ret->known, c->identity, sizeof(c->identity)))
		return -EALREADY;
	snprintf(c->name, sizeof(c->name), BEAM_SHARED_NAME);
	return beam_fetches(b, m, c);
}

static int beam_dirty(const struct beam *b, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;

	c->start = c->identity[0] = b->dirty;
	c->end = c->identity[1] = b->dirty_end;
	c->kind = BEAM_DIRTY;
	snprintf(c->name, sizeof(c->name), BEAM_DIRTY_NAME);
	return memcmp(ret->known, c->identity, sizeof(c->identity)) ? 0 : -EALREADY;
}

static int beam_code_read(const struct beam *b, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct beam_module of;
	int err = b->loop ? beam_loop_code(b, m, pc, ret) : -ENOENT;

	if (err != -ENOENT)
		return err;
	if (pc >= b->dirty && pc < b->dirty_end)
		return beam_dirty(b, ret);
	err = beam_find_module(b, m, pc, &of);
	if (err == -ENOENT)
		return b->loop ? err : beam_shared(b, m, pc, ret);
	ret->code.flags = RUNTIME_CODE_RECURS;
	return err ? err : beam_function(b, m, &of, pc, ret);
}

struct beam_code_question {
	const struct beam *b;
	struct memory *memory;
	uint64_t pc, epoch; /* now */
	struct runtime_code_made *made;
};

static int beam_code_count(void *ctx, uint64_t counters[STEADY_COUNTERS])
{
	struct beam_code_question *q = ctx;

	if (beam_epoch_now(q->b, q->memory, &counters[0]))
		return -EFAULT;
	q->epoch = counters[0];
	return 0;
}

/* What was known in a former epoch is described anew. */
static int beam_code_answer(void *ctx)
{
	const struct beam_code_question *q = ctx;

	memset(&q->made->code, 0, sizeof(q->made->code));
	q->made->code.epoch = q->epoch;
	if (q->made->known_epoch != q->epoch)
		memset(q->made->known, 0, sizeof(q->made->known));
	return beam_code_read(q->b, q->memory, q->pc, q->made);
}

int beam_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct beam_code_question q = {.b = beam_of(a), .memory = m, .pc = pc, .made = ret};

	return steady_read(&(struct steady){.count = beam_code_count, .read = beam_code_answer, .ctx = &q});
}
