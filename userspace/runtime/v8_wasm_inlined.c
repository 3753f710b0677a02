// SPDX-License-Identifier: Apache-2.0
/*
 * What was inlined where in optimized code of WebAssembly: its table of source
 * positions, each with the number of an inlining, whose own position has that of
 * the function around it (V8, wasm-code-manager.h, WasmCode::GetInliningPosition).
 * It tells of calls and traps alone; what is between two of them is of the
 * innermost function that both are in.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define INLINED_MAX 512
#define CALL_BYTES  16u	 /* from a call's position to its return address, at most */
#define NOT_INLINED (-1) /* the code's own function */

/* Of an inlining: function, whether it was a tail call, and position, without gaps. */
#define INLINING_BYTES 13u
#define INLINING_POSITION 5

struct v8_wasm_inlinings {
	struct memory *memory;
	const struct v8_wasm_code *code;
	struct runtime_code_made *made;
	uint32_t nr;
	struct { int32_t function; int32_t outer; } row[INLINED_MAX]; /* outer: smaller than its own number */
};

/* Its metadata has, behind one another, relocations, protected instructions, source positions, and inlinings. */
static int v8_wasm_metadata(const struct v8_wasm_row *row, struct memory *m, uint64_t code, uint64_t *ret_at,
			    uint32_t ret[2])
{
	uint32_t sizes[3], protected;

	if (memory_u64(m, code + row->metadata, ret_at) || memory_read(m, code + row->size + 4, sizes, sizeof(sizes)) ||
	    memory_u32(m, code + row->index - 4, &protected))
		return -EFAULT;
	*ret_at += (uint64_t)sizes[0] + protected;
	memcpy(ret, sizes + 1, 2 * sizeof(*ret));
	return 0;
}

static int v8_wasm_read_inlinings(struct v8_wasm_inlinings *t, uint64_t at, uint32_t size)
{
	static uint8_t bytes[INLINED_MAX * INLINING_BYTES];
	int err;

	t->nr = (uint32_t)MIN(size / INLINING_BYTES, INLINED_MAX);
	err = t->nr ? memory_read(t->memory, at, bytes, (size_t)t->nr * INLINING_BYTES) : 0;
	for (uint32_t i = 0; !err && i < t->nr; i++) {
		const uint8_t *entry = bytes + i * INLINING_BYTES;
		int64_t position;

		memcpy(&t->row[i].function, entry, sizeof(t->row[i].function));
		memcpy(&position, entry + INLINING_POSITION, sizeof(position));
		t->row[i].outer = v8_position_inlined(position);
		if (t->row[i].outer >= (int32_t)i)
			err = -EBADMSG;
	}
	return err;
}

static uint32_t v8_wasm_depth(const struct v8_wasm_inlinings *t, int32_t i)
{
	uint32_t n = 0;

	for (; i != NOT_INLINED; i = t->row[i].outer)
		n++;
	return n;
}

static int32_t v8_wasm_common(const struct v8_wasm_inlinings *t, int32_t one, int32_t two)
{
	uint32_t depth = v8_wasm_depth(t, one), other = v8_wasm_depth(t, two);

	for (; depth > other; depth--)
		one = t->row[one].outer;
	for (; other > depth; other--)
		two = t->row[two].outer;
	while (one != two) {
		one = t->row[one].outer;
		two = t->row[two].outer;
	}
	return one;
}

/* From the outermost function in. */
static int v8_wasm_node(const struct v8_wasm_inlinings *t, int32_t i)
{
	int32_t way[RUNTIME_CODE_DEPTH];
	uint32_t nr = 0;
	int node = 0; /* of the code's own function */

	for (; i != NOT_INLINED; i = t->row[i].outer) {
		if (nr == RUNTIME_CODE_DEPTH)
			return -E2BIG;
		way[nr++] = i;
	}
	while (nr-- && node >= 0) {
		int function = v8_wasm_add_function(t->memory, t->code, (uint32_t)t->row[way[nr]].function, t->made);

		node = function < 0 ? function : runtime_code_add_node(t->made, (uint32_t)function, (uint32_t)node + 1, 0);
	}
	return node;
}

static int v8_wasm_row(const struct v8_wasm_inlinings *t, uint64_t at, int32_t inlined)
{
	int node = at < t->code->size ? v8_wasm_node(t, inlined) : 0;

	if (node < 0 || at >= t->code->size)
		return node;
	return runtime_code_add_row(t->made, (uint32_t)at, (uint32_t)node);
}

static int v8_wasm_place_rows(const struct v8_wasm_inlinings *t, uint64_t at, uint32_t len)
{
	static struct v8_positions p;
	int32_t last = NOT_INLINED, here;
	uint64_t behind = 0;
	int err = 0;

	v8_positions_begin(t->memory, at, len, &p);
	while (!err && v8_positions_next(&p) == 0 && (uint64_t)p.offset < t->code->size) {
		here = v8_position_inlined(p.position);
		if (here >= (int32_t)t->nr)
			return -EBADMSG;
		if (behind < (uint64_t)p.offset)
			err = v8_wasm_row(t, behind, v8_wasm_common(t, last, here));
		if (!err)
			err = v8_wasm_row(t, (uint64_t)p.offset, here);
		behind = (uint64_t)p.offset + CALL_BYTES;
		last = here;
	}
	return err ? err : v8_wasm_row(t, behind, NOT_INLINED);
}

int v8_wasm_inlined(const struct v8 *v, struct memory *m, const struct v8_wasm_code *code, struct runtime_code_made *ret)
{
	static struct v8_wasm_inlinings t;
	const struct v8_wasm_row *row = &v8_row(v)->wasm;
	uint32_t size[2]; /* of positions, of inlinings */
	uint64_t at;
	int err;

	if (!row->metadata)
		return 0;
	t.memory = m;
	t.code = code;
	t.made = ret;
	err = v8_wasm_metadata(row, m, code->at, &at, size);
	if (!err)
		err = v8_wasm_read_inlinings(&t, at + size[0], size[1]);
	if (err || !t.nr)
		return err;
	return v8_wasm_place_rows(&t, at, size[0]);
}
