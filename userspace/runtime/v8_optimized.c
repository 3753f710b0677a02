// SPDX-License-Identifier: Apache-2.0
/*
 * What runs where in optimized code: the functions of its deoptimization data,
 * and its table of source positions, each with the number of an inlining that
 * has a function and a position of its own (V8, deoptimization-data.h,
 * source-position.h). As a rule both tell it of calls alone, and deoptimization
 * data of what may leave the code; for the rest, see v8_anchors.c.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"
#include "unwind/x86_insn.h"

#define INLINED_MAX 512
#define NO_PATH_NODE (-1) /* nothing says which function it is */
#define CODE_MAX    (256u << 10) /* of which instructions are read */
#define CALL_MAX    48u		 /* bytes from a call's position to its return address */
#define CALL_BYTES  16u		 /* of one whose return address is not known */
#define CALL_LEN_MAX 7u		 /* of a call's instruction */
#define MAGLEV_CALL_MAX 256u	 /* likewise, of Maglev's, behind whose position the arguments are pushed */

struct v8_inlining { int64_t position; int32_t function, reserved; };

struct v8_opt {
	const struct v8 *v;
	struct memory *memory;
	struct runtime_code_made *made;
	uint64_t data, literals;
	uint32_t root, nr; /* function's index; inlinings */
	struct v8_inlining inlining[INLINED_MAX];
	uint16_t function[INLINED_MAX]; /* by its index among the literals, its own + 1 */
	struct v8_deopt deopt;
	struct v8_anchors anchors;
	struct v8_anchor exits[V8_DEOPT_MAX]; /* of each entry, once v8_opt_calls and v8_opt_instructions have read them */
	struct v8_places places;
	bool maglev, partial; /* not all that was inlined is known */
	uint32_t rows_end; /* behind it are the exits */
	uint32_t code_len;
	uint8_t code[CODE_MAX];
};

static uint32_t v8_opt_size(const struct v8_opt *o)
{
	return (uint32_t)(o->made->code.end - o->made->code.start);
}

static int v8_opt_word(const struct v8_opt *o, uint64_t array, uint32_t index, uint64_t *ret)
{
	int32_t length;
	int err = v8_length(o->v, o->memory, array, o->v->array_length, &length);

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

/* The function of a literal. They are weak. */
static int v8_opt_function(struct v8_opt *o, int32_t literal)
{
	uint64_t shared, identity;
	int err;

	if (literal < 0 || literal >= UINT16_MAX / 8 - 8)
		return -E2BIG;
	if (literal < INLINED_MAX && o->function[literal])
		return o->function[literal] - 1;
	err = v8_opt_word(o, o->literals, (uint32_t)literal, &shared);
	err = err ? err : v8_opt_add_function(o, shared & ~2ULL, &identity);
	if (err >= 0 && literal < INLINED_MAX)
		o->function[literal] = (uint16_t)(err + 1);
	return err;
}

/* The root has no number among the literals. */
static int v8_opt_inlined_function(struct v8_opt *o, uint32_t i)
{
	return o->inlining[i].function < 0 ? (int)o->root : v8_opt_function(o, o->inlining[i].function);
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

static void v8_opt_read_code(struct v8_opt *o)
{
	const struct runtime_code *c = &o->made->code;

	o->code_len = (uint32_t)MIN(c->end - c->start, (uint64_t)CODE_MAX);
	if (memory_read(o->memory, c->start, o->code, o->code_len))
		o->code_len = 0;
}

static int v8_opt_inlinings(struct v8_opt *o)
{
	uint64_t table;
	int32_t length;
	int err = v8_opt_word(o, o->data, v8_row(o->v)->deopt_inlining, &table);

	if (!err)
		err = v8_length(o->v, o->memory, table, o->v->array_length, &length);
	if (err || length < 0)
		return err;
	o->nr = (uint32_t)MIN((size_t)length / sizeof(o->inlining[0]), (size_t)INLINED_MAX);
	if (!o->nr)
		return 0;
	return memory_read(o->memory, table - 1 + o->v->array_data, o->inlining, o->nr * sizeof(o->inlining[0]));
}

/* --- by deoptimization data --- */

static uint32_t v8_opt_position(struct v8_opt *o, uint16_t function, int32_t bytecode)
{
	return v8_places_of(&o->places, o->v, o->memory, function, o->made->functions[function].key, bytecode);
}

static int v8_opt_path_node(struct v8_opt *o, uint16_t path, int32_t bytecode)
{
	int32_t way[RUNTIME_CODE_DEPTH];
	uint16_t function[RUNTIME_CODE_DEPTH];
	uint32_t nr = 0, outer = 0;
	int node = NO_PATH_NODE;

	for (; path != V8_NO_PATH && nr < RUNTIME_CODE_DEPTH; path = o->anchors.path[path].outer) {
		function[nr] = o->anchors.path[path].function;
		way[nr++] = bytecode;
		bytecode = o->anchors.path[path].call;
	}
	while (nr--) {
		node = runtime_code_add_node(o->made, function[nr], outer, v8_opt_position(o, function[nr], way[nr]));
		if (node < 0)
			return node;
		outer = (uint32_t)node + 1;
	}
	return node;
}

/* The path of an entry; V8_NO_PATH: not known. */
static struct v8_anchor v8_opt_entry(struct v8_opt *o, uint32_t entry)
{
	struct v8_deopt_frame frame[RUNTIME_CODE_DEPTH];
	struct v8_anchor ret = {.path = V8_NO_PATH, .node = RUNTIME_NO_NODE};
	int nr = v8_deopt_frames(&o->deopt, entry, frame), path = V8_NO_PATH;

	for (int i = 0; i < nr; i++) {
		int function = v8_opt_function(o, frame[i].literal);

		if (function < 0 || (!i && (uint32_t)function != o->root))
			return ret;
		path = v8_path_add(&o->anchors, (uint16_t)path, (uint16_t)function, i ? frame[i - 1].bytecode : -1);
		o->partial |= path < 0;
		if (path < 0)
			return ret;
	}
	ret.path = (uint16_t)path;
	ret.bytecode = nr > 0 ? frame[nr - 1].bytecode : -1;
	return ret;
}

/* One that returns to at. */
static void v8_opt_add_call(struct v8_opt *o, struct v8_anchor a, int32_t at)
{
	if (at <= 0 || a.path == V8_NO_PATH)
		return;
	a.at = (uint32_t)at - 1;
	a.end = (uint32_t)at;
	a.calls = true;
	v8_anchor_add(&o->anchors, &a);
}

/* Between places that are known, others are taken for theirs: where calls are missing, all is of the function around. */
static void v8_opt_lose(struct v8_opt *o)
{
	o->anchors.nr = o->deopt.nr = o->deopt.eager = 0;
}

/* Where a call of Maglev's returns to is in a table of its own. */
static void v8_opt_calls_of_maglev(struct v8_opt *o)
{
	static struct v8_safepoints s;
	struct v8_safepoint point;
	int err = v8_safepoints_open(o->memory, o->made->code.end, v8_opt_size(o), &s);

	while (!err) {
		err = v8_safepoints_next(&s, &point);
		if (!err && point.entry >= (int32_t)o->deopt.eager && point.entry < (int32_t)o->deopt.nr)
			v8_opt_add_call(o, o->exits[point.entry], (int32_t)point.at);
	}
	if (err != -ENOENT)
		v8_opt_lose(o);
}

static void v8_opt_calls(struct v8_opt *o)
{
	int32_t at;

	for (uint32_t i = o->deopt.eager; i < o->deopt.nr; i++) {
		o->exits[i] = v8_opt_entry(o, i);
		if (!o->maglev && v8_deopt_place(&o->deopt, i, &at) == 0)
			v8_opt_add_call(o, o->exits[i], at);
	}
	if (o->maglev && o->deopt.nr)
		v8_opt_calls_of_maglev(o);
}

/*
 * The call behind a place, if it is of the place's function: there may be none, and the next call is another function's.
 */
static void v8_opt_place_call(struct v8_opt *o, uint32_t calls, struct v8_anchor *a)
{
	uint32_t nearest = a->at + CALL_MAX;

	for (uint32_t i = 0; i < calls; i++) {
		const struct v8_anchor *call = &o->anchors.row[i];

		if (call->at < a->at || call->at >= nearest ||
		    o->anchors.path[call->path].function != o->made->nodes[a->node].function)
			continue;
		nearest = call->at;
		a->path = call->path;
		a->bytecode = call->bytecode;
		a->end = call->end;
	}
}

/*
 * Behind a position's call, whose path no deoptimization data tell, as of one of Maglev's that cannot leave the code. A call
 * behind the next position is that one's.
 */
static uint32_t v8_opt_call_end(const struct v8_opt *o, uint32_t at, uint32_t next)
{
	const uint32_t most = MIN(MIN(at + MAGLEV_CALL_MAX, next), o->code_len);
	struct x86_insn insn;

	for (uint32_t end = at; o->maglev && end < most; end += insn.len) {
		if (x86_decode(o->code + end, o->code_len - end, &insn) || insn.kind == INSN_JUMP || insn.kind == INSN_RET ||
		    insn.kind == INSN_END)
			break;
		if (insn.kind == INSN_CALL)
			return end + insn.len;
	}
	return at + CALL_BYTES;
}

/* A position, up to the next one. */
static void v8_opt_add_place(struct v8_opt *o, uint32_t calls, uint32_t at, int64_t position, uint32_t next)
{
	struct v8_anchor a = {.at = at, .path = V8_NO_PATH};
	int node = v8_opt_node(o, position);

	if (node < 0)
		return;
	a.node = (uint32_t)node;
	v8_opt_place_call(o, calls, &a);
	if (a.path == V8_NO_PATH)
		a.end = v8_opt_call_end(o, a.at, next);
	v8_anchor_add(&o->anchors, &a);
}

static void v8_opt_places_of(struct v8_opt *o, uint64_t table)
{
	const uint32_t calls = o->anchors.nr, size = v8_opt_size(o);
	static struct v8_positions p;
	bool more = v8_positions_open(o->v, o->memory, table, &p) == 0 && v8_positions_next(&p) == 0;

	while (more && (uint32_t)p.offset < size) {
		const uint32_t at = (uint32_t)p.offset;
		const int64_t position = p.position;

		more = v8_positions_next(&p) == 0;
		v8_opt_add_place(o, calls, at, position, more && (uint32_t)p.offset > at ? (uint32_t)p.offset : size);
	}
}

static void v8_opt_instructions(struct v8_opt *o)
{
	uint32_t size = MIN(o->code_len, o->deopt.exits);

	for (uint32_t i = 0; i < o->deopt.eager; i++)
		o->exits[i] = v8_opt_entry(o, i);
	if (size)
		v8_anchors_scan(&o->anchors, o->code, size, o->exits, o->deopt.eager, o->deopt.exits);
}

/* --- rows --- */

/* What there is no room for is not known, nor what lies behind. */
static void v8_opt_row(struct v8_opt *o, uint32_t at, int node)
{
	if (at < o->rows_end && runtime_code_add_row(o->made, at, node < 0 ? RUNTIME_NO_NODE : (uint32_t)node) == -E2BIG)
		o->made->rows[RUNTIME_CODE_ROWS - 1].node = RUNTIME_NO_NODE;
}

/* A node that is not known: of the function itself, unless it may be one of those that were inlined. */
static int v8_opt_or(const struct v8_opt *o, int node, int begin)
{
	return node >= 0 ? node : node == NO_PATH_NODE && !o->partial ? begin : -1;
}

/* Of a place between anchors, what a node next to it has in common with it: the node may say that it is elsewhere. */
static void v8_opt_keep_common(const struct v8_opt *o, uint32_t node, struct v8_between *b)
{
	uint16_t functions[RUNTIME_CODE_DEPTH], paths[RUNTIME_CODE_DEPTH];
	uint32_t nr = 0, depth = 0, common = 0;

	if (node == RUNTIME_NO_NODE)
		return;
	for (uint16_t p = b->path; p != V8_NO_PATH && depth < RUNTIME_CODE_DEPTH; p = o->anchors.path[p].outer)
		paths[depth++] = p;
	for (; node != RUNTIME_NO_NODE && nr < RUNTIME_CODE_DEPTH; nr++) {
		functions[nr] = o->made->nodes[node].function;
		node = o->made->nodes[node].outer ? o->made->nodes[node].outer - 1u : RUNTIME_NO_NODE;
	}
	while (common < MIN(depth, nr) && o->anchors.path[paths[depth - 1 - common]].function == functions[nr - 1 - common])
		common++;
	if (common == depth)
		return;
	b->bytecode = o->anchors.path[paths[depth - 1 - common]].call;
	b->path = common ? paths[depth - common] : V8_NO_PATH;
}

static void v8_opt_rows(struct v8_opt *o)
{
	const struct v8_anchors *as = &o->anchors;
	int begin = runtime_code_add_node(o->made, o->root, 0, v8_opt_position(o, (uint16_t)o->root, -1));
	const struct v8_anchor *before = NULL;

	v8_opt_row(o, 0, begin);
	for (uint32_t i = 0, next = 0; i < as->nr; i++) {
		const struct v8_anchor *a = &as->row[i];
		int node = a->node != RUNTIME_NO_NODE ? (int)a->node : v8_opt_path_node(o, a->path, a->bytecode);

		if (a->end > a->at)
			v8_opt_row(o, a->at, v8_opt_or(o, node, begin));
		before = a->path != V8_NO_PATH ? a : before;
		for (next = MAX(next, i + 1); next < as->nr && as->row[next].path == V8_NO_PATH;)
			next++;
		node = NO_PATH_NODE;
		if (before && next < as->nr) {
			struct v8_between b = v8_anchors_between(as, before, &as->row[next]);

			if (a->path == V8_NO_PATH)
				v8_opt_keep_common(o, a->node, &b);
			if (next != i + 1)
				v8_opt_keep_common(o, as->row[i + 1].node, &b);
			node = v8_opt_path_node(o, b.path, b.bytecode);
		}
		v8_opt_row(o, a->end, v8_opt_or(o, node, begin));
	}
}

/*
 * A frame of code that is wrong by now is marked by another return address: that of the exit by which it will be left
 * (V8, deoptimizer.cc, ActivationsFinder; code-generator.cc, trampoline_pc). Its call would be before the exit.
 */
static void v8_opt_exit_rows(struct v8_opt *o)
{
	if (!o->deopt.nr)
		return;
	o->rows_end = v8_opt_size(o);
	for (uint32_t i = 0; i < o->deopt.nr; i++) {
		const struct v8_anchor *a = &o->exits[i];

		v8_opt_row(o, o->deopt.exits + V8_EXIT_BYTES * i - (i >= o->deopt.eager),
			   v8_opt_path_node(o, a->path, a->bytecode));
	}
	v8_opt_row(o, o->deopt.exits + V8_EXIT_BYTES * o->deopt.nr, -1);
}

/* --- code that has no deoptimization data any more --- */

/* Whether a call ends there. */
static bool v8_opt_calls_before(const struct v8_opt *o, uint32_t at)
{
	struct x86_insn insn;

	for (uint32_t len = 2; len <= MIN(at, CALL_LEN_MAX); len++)
		if (!x86_decode(o->code + at - len, len, &insn) && insn.kind == INSN_CALL && insn.len == len)
			return true;
	return false;
}

static bool v8_opt_exits_at(const struct v8_opt *o, uint32_t at)
{
	struct x86_insn insn;

	return at < o->code_len && !x86_decode(o->code + at, o->code_len - at, &insn) && insn.kind == INSN_CALL &&
	       insn.len == V8_EXIT_BYTES;
}

/* Whether the code has all the calls by which the data say that it is left. */
static bool v8_opt_is_left_so(const struct v8_opt *o)
{
	int32_t at;

	for (uint32_t i = 0; i < o->deopt.eager; i++)
		if (!v8_opt_exits_at(o, o->deopt.exits + V8_EXIT_BYTES * i))
			return false;
	for (uint32_t i = o->deopt.eager; i < o->deopt.nr; i++)
		if (v8_deopt_place(&o->deopt, i, &at) || at <= 0 || (uint32_t)at > o->code_len ||
		    !v8_opt_calls_before(o, (uint32_t)at))
			return false;
	return o->deopt.nr;
}

/*
 * Before V8 11 data are taken from code that is wrong as soon as no frame of it is left (heap.cc,
 * InvalidateCodeDeoptimizationData), which may be a moment after it ran; an empty array of the same map is there then. Until
 * the next collection of the whole heap they lie where they were made: directly behind the table of positions
 * (code-generator.cc, FinalizeCode). false: something else does.
 */
static bool v8_opt_find_data(struct v8_opt *o, uint64_t code)
{
	uint64_t table, map, empty;
	int32_t length;

	if (v8_row(o->v)->stream_code || v8_field(o->memory, code, v8_row(o->v)->code_positions, &table) ||
	    !v8_is(o->v, o->memory, table, o->v->type_bytes) || v8_length(o->v, o->memory, table, o->v->array_length, &length) ||
	    length <= 0 || v8_field(o->memory, o->data, 0, &empty))
		return false;
	table += ALIGN_UP(o->v->array_data + (uint64_t)(uint32_t)length, 8);
	if (v8_field(o->memory, table, 0, &map) || map != empty || v8_deopt_open(o->v, o->memory, table, &o->deopt))
		return false;
	o->data = table;
	v8_opt_read_code(o);
	/* That one place is where a call ends may be by chance. */
	return (o->deopt.eager || o->deopt.nr >= 2) && v8_opt_is_left_so(o);
}

/* Code that nothing can leave has no data at all. Whether it is what was known to lie there, nothing tells. */
static int v8_optimized_without_data(struct runtime_code_made *ret)
{
	static const uint64_t none[RUNTIME_CODE_IDENTITY];

	if (!memcmp(ret->known, ret->code.identity, sizeof(ret->known)))
		return -EALREADY;
	if (memcmp(ret->known, none, sizeof(none)) != 0)
		return -ESTALE;
	ret->code.kind = V8_WITHOUT_DATA;
	return 0;
}

static void v8_opt_begin(struct v8_opt *o, const struct v8 *v, struct memory *m, bool maglev, struct runtime_code_made *made)
{
	memset(o->function, 0, sizeof(o->function));
	v8_places_begin(&o->places);
	o->anchors.nr = o->anchors.nr_paths = o->deopt.nr = o->deopt.eager = 0;
	o->v = v;
	o->memory = m;
	o->made = made;
	o->maglev = maglev;
	o->partial = o->anchors.full = false;
	o->nr = 0;
}

/* Of its data: which function was compiled, and which compilation of it this is. */
static int v8_opt_identify(struct v8_opt *o)
{
	const struct v8_row *row = v8_row(o->v);
	uint64_t *identity = o->made->code.identity, shared, id;
	int err = v8_opt_word(o, o->data, row->deopt_shared, &shared);

	if (!err && row->shared_wrapped)
		err = v8_field(o->memory, shared, row->shared_wrapped, &shared);
	if (!err)
		err = v8_opt_word(o, o->data, row->deopt_id, &id);
	if (!err)
		err = v8_opt_word(o, o->data, row->deopt_literals, &o->literals);
	if (!err)
		err = v8_opt_add_function(o, shared, &identity[1]);
	if (err < 0)
		return err;
	o->root = (uint32_t)err;
	/* Each compilation has a number of its own. */
	identity[2] = (id & ~(uint64_t)UINT32_MAX) | (uint32_t)identity[2];
	return memcmp(o->made->known, identity, sizeof(o->made->known)) ? 0 : -EALREADY;
}

static int v8_opt_describe(struct v8_opt *o, uint64_t code)
{
	uint64_t table;
	int err;

	if (v8_opt_inlinings(o) || v8_field(o->memory, code, v8_row(o->v)->code_positions, &table))
		return -EFAULT;
	err = v8_deopt_open(o->v, o->memory, o->data, &o->deopt);
	if (err)
		o->deopt.nr = o->deopt.eager = 0;
	o->partial = err == -E2BIG && o->nr;
	o->rows_end = v8_opt_size(o);
	if (o->deopt.nr)
		o->rows_end = MIN(o->rows_end, o->deopt.exits - !o->deopt.eager);
	v8_opt_read_code(o);
	v8_opt_calls(o);
	v8_opt_places_of(o, table);
	if (o->deopt.nr)
		v8_opt_instructions(o);
	o->partial |= o->anchors.full;
	v8_anchors_sort(&o->anchors);
	v8_opt_rows(o);
	v8_opt_exit_rows(o);
	return 0;
}

int v8_optimized(const struct v8 *v, struct memory *m, uint64_t code, bool maglev, struct runtime_code_made *ret)
{
	static struct v8_opt o;
	int32_t length;
	int err;

	v8_opt_begin(&o, v, m, maglev, ret);
	err = v8_field(m, code, v8_row(v)->code_interpreted, &o.data);
	if (!err)
		err = v8_length(v, m, o.data, v->array_length, &length);
	if (!err && !length && !v8_opt_find_data(&o, code))
		return v8_optimized_without_data(ret);
	if (!err)
		err = v8_opt_identify(&o);
	return err ? err : v8_opt_describe(&o, code);
}
