// SPDX-License-Identifier: Apache-2.0
/*
 * What runs where in optimized code: its table of source positions, each with
 * the number of an inlining, and that has a function and a position of its own
 * (V8, deoptimization-data.h, source-position.h).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define INLINED_MAX 512

struct v8_inlining { int64_t position; int32_t function, reserved; };

struct v8_opt {
	const struct v8 *v;
	struct memory *memory;
	struct runtime_code_made *made;
	uint64_t data, literals;
	uint32_t root, nr; /* function's index; inlinings */
	struct v8_inlining inlining[INLINED_MAX];
	uint16_t function[INLINED_MAX]; /* its index + 1 */
	struct v8_positions positions;
};

static int v8_opt_word(const struct v8_opt *o, uint64_t array, uint32_t index, uint64_t *ret)
{
	int32_t length;
	int err = v8_smi(o->memory, array, o->v->array_length, &length);

	if (err || length < 0 || index >= (uint32_t)length)
		return err ? err : -EBADMSG;
	return v8_field(o->memory, array, (uint16_t)(o->v->array_data + 8 * index), ret);
}

static int v8_opt_add_function(struct v8_opt *o, uint64_t shared, uint64_t *ret_identity)
{
	struct runtime_frame f = {.key = shared};
	struct v8_shared s;
	int err = v8_shared_read(o->v, o->memory, shared, &s);

	if (err)
		return err;
	f.cookie[0] = *ret_identity = s.identity;
	f.cookie[1] = V8_BY_SHARED;
	return runtime_code_add_function(o->made, &f);
}

/* The root has no number among the literals. They are weak. */
static int v8_opt_inlined_function(struct v8_opt *o, uint32_t i)
{
	uint64_t shared, identity;
	int err;

	if (o->function[i])
		return o->function[i] - 1;
	if (o->inlining[i].function < 0)
		return (int)o->root;
	if (o->inlining[i].function >= UINT16_MAX / 8 - 8)
		return -E2BIG;
	err = v8_opt_word(o, o->literals, (uint32_t)o->inlining[i].function, &shared);
	err = err ? err : v8_opt_add_function(o, shared & ~2ULL, &identity);
	if (err >= 0)
		o->function[i] = (uint16_t)(err + 1);
	return err;
}

/* From the outermost function in. */
static int v8_opt_node(struct v8_opt *o, int64_t position)
{
	int32_t way[RUNTIME_CODE_DEPTH];
	int64_t at[RUNTIME_CODE_DEPTH];
	uint32_t nr = 0, outer = 0;

	for (int32_t i = v8_position_inlined(position); i >= 0; i = v8_position_inlined(position)) {
		if (nr == RUNTIME_CODE_DEPTH || (uint32_t)i >= o->nr)
			return -EBADMSG;
		way[nr] = i;
		at[nr++] = position;
		position = o->inlining[i].position;
	}
	for (int node;; outer = (uint32_t)node + 1) {
		int function = outer ? v8_opt_inlined_function(o, (uint32_t)way[nr]) : (int)o->root;

		node = function < 0 ? function :
				      runtime_code_add_node(o->made, (uint32_t)function, outer,
							    V8_AT(v8_position_script(position)));
		if (node < 0 || !nr)
			return node;
		position = at[--nr];
	}
}

static int v8_opt_inlinings(struct v8_opt *o)
{
	uint64_t table;
	int32_t length;
	int err = v8_opt_word(o, o->data, v8_row(o->v)->deopt_inlining, &table);

	if (!err)
		err = v8_smi(o->memory, table, o->v->array_length, &length);
	if (err || length < 0)
		return err;
	o->nr = (uint32_t)MIN((size_t)length / sizeof(o->inlining[0]), (size_t)INLINED_MAX);
	if (!o->nr)
		return 0;
	return memory_read(o->memory, table - 1 + o->v->array_data, o->inlining, o->nr * sizeof(o->inlining[0]));
}

static void v8_opt_rows(struct v8_opt *o, uint64_t table)
{
	uint64_t size = o->made->code.end - o->made->code.start;
	int begin = runtime_code_add_node(o->made, o->root, 0, 0);

	runtime_code_add_row(o->made, 0, begin < 0 ? RUNTIME_NO_NODE : (uint32_t)begin);
	if (v8_positions_open(o->v, o->memory, table, &o->positions))
		return;
	while (v8_positions_next(&o->positions) == 0 && (uint64_t)o->positions.offset < size) {
		int node = v8_opt_node(o, o->positions.position);

		node = node < 0 ? begin : node;
		if (runtime_code_add_row(o->made, (uint32_t)o->positions.offset, (uint32_t)node))
			break;
	}
}

int v8_optimized(const struct v8 *v, struct memory *m, uint64_t code, struct runtime_code_made *ret)
{
	static struct v8_opt o;
	const struct v8_row *row = v8_row(v);
	uint64_t shared, table, id;
	int err;

	memset(o.function, 0, sizeof(o.function));
	o.v = v;
	o.memory = m;
	o.made = ret;
	o.nr = 0;
	err = v8_field(m, code, row->code_interpreted, &o.data);
	if (!err)
		err = v8_opt_word(&o, o.data, row->deopt_shared, &shared);
	if (!err && row->shared_wrapped)
		err = v8_field(m, shared, row->shared_wrapped, &shared);
	if (!err)
		err = v8_opt_word(&o, o.data, row->deopt_id, &id);
	if (!err)
		err = v8_opt_word(&o, o.data, row->deopt_literals, &o.literals);
	if (!err)
		err = v8_opt_add_function(&o, shared, &ret->code.identity[1]);
	if (err < 0)
		return err;
	o.root = (uint32_t)err;
	/* Each compilation has a number of its own. */
	ret->code.identity[2] = (id & ~(uint64_t)UINT32_MAX) | (uint32_t)ret->code.identity[2];
	if (!memcmp(ret->known, ret->code.identity, sizeof(ret->known)))
		return -EALREADY;
	if (v8_opt_inlinings(&o) || v8_field(m, code, row->code_positions, &table))
		return -EFAULT;
	v8_opt_rows(&o, table);
	return 0;
}
