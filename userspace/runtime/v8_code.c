// SPDX-License-Identifier: Apache-2.0
/*
 * Which code lies at an address: a builtin, by their table; else what was
 * compiled since. An InstructionStream begins with its map and its Code, and the
 * Code has the address of the instructions, which are aligned: the stream is
 * found by going back from the address until the two agree, further away only
 * where large code may begin (V8, code.h, instruction-stream.h). Before V8 11
 * the two are one object.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/steady.h"
#include "runtime/v8.h"

#define ALIGNMENT 64u
#define PIECE	  4096u
#define BACK_MAX  (1u << 20)
#define HEADER_MAX 128u /* of an InstructionStream */
#define CHUNK	  (256u << 10) /* of V8's heap */
#define CHUNK_PAGES 4u /* of its begin: a header, and a page that guards what is behind */
#define CODE_HEAD 256u /* in one of which the code begins within so much */
#define RELOCATION 8    /* of a Code that has its instructions: an array of bytes */

/* --- builtins --- */

static int v8_builtin_place(const struct v8 *v, struct memory *m, uint32_t i, uint32_t place[2])
{
	return memory_read(m, v->layout + (uint64_t)i * v->layout_stride, place, 2 * sizeof(place[0]));
}

bool v8_builtin_find(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_builtin *ret)
{
	uint32_t low = 0, high = v->layout_nr, place[2];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (v8_builtin_place(v, m, middle, place))
			return false;
		if (v->builtins + place[0] <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || v8_builtin_place(v, m, low - 1, place))
		return false;
	ret->start = v->builtins + place[0];
	ret->end = ret->start + place[1];
	ret->number = low - 1;
	return pc < ret->end && ret->end <= v->builtins_end;
}

static uint32_t v8_builtin_kind(const struct v8 *v, uint64_t start)
{
	if (start == v->trampoline || start == v->leave)
		return V8_TRAMPOLINE;
	if (start == v->prologue || (v->setup && start == v->setup))
		return V8_PROLOGUE;
	return start >= v->handlers ? V8_HANDLER : V8_BUILTIN;
}

/* Baseline code jumps to what takes its frame down, and calls what makes it. */
static uint32_t v8_builtin_first(const struct v8 *v, const struct runtime_code *c)
{
	return c->start == v->leave ? V8_FRAMED : (c->kind == V8_PROLOGUE ? 2 : 1);
}

/* The one of v8_resumed that begins there; V8_RESUMED: none. */
static uint32_t v8_resumed_at(const struct v8 *v, uint64_t start)
{
	uint32_t i = 0;

	while (i < V8_RESUMED && (!v->resumed[i] || v->builtins + v->resumed[i] != start))
		i++;
	return i;
}

/*
 * A frame that returns to its begin is sought at the byte before, which is no other builtin's (V8, embedded-data.cc,
 * PadAndAlignCode). All of it runs in that frame.
 */
static void v8_resumed_describe(uint32_t i, struct memory *m, struct runtime_code_made *made)
{
	struct runtime_code *c = &made->code;

	if (!v8_resumed[i].interprets) {
		snprintf(c->name, sizeof(c->name), "%s", v8_resumed[i].symbol);
		c->flags |= RUNTIME_CODE_IS_NATIVE;
	}
	v8_events(m, made, V8_FRAMED);
	c->kind = v8_resumed[i].interprets ? V8_TRAMPOLINE : V8_BUILTIN;
}

/* The file's symbols name it, or else the table of names does. */
static int v8_builtin_name(const struct v8 *v, struct memory *m, uint32_t number, struct runtime_code *c)
{
	int err = v->names ? v8_unnamed_name(v, m, number, c->name) : -ENOENT;

	if (!err)
		c->flags |= RUNTIME_CODE_IS_NATIVE;
	return err == -EFAULT || err == -E2BIG ? err : 0;
}

/* copy: how far behind the file's it lies. */
static int v8_builtin(const struct v8 *v, struct memory *m, uint64_t pc, uint64_t copy, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	struct v8_builtin builtin;
	uint32_t first, resumed;

	if (!v8_builtin_find(v, m, pc - copy + (v8_resumed_at(v, pc - copy + 1) < V8_RESUMED), &builtin))
		return -ENOENT;
	c->start = builtin.start;
	c->end = builtin.end;
	resumed = v8_resumed_at(v, c->start);
	c->kind = v8_builtin_kind(v, c->start);
	first = v8_builtin_first(v, c);
	c->start -= resumed < V8_RESUMED;
	c->copy_of = copy ? c->start : 0;
	c->start += copy;
	c->end += copy;
	c->identity[0] = c->start;
	if (!memcmp(ret->known, c->identity, sizeof(c->identity)))
		return -EALREADY;
	if (resumed < V8_RESUMED) {
		v8_resumed_describe(resumed, m, ret);
		return 0;
	}
	v8_events(m, ret, first);
	return v8_builtin_name(v, m, builtin.number, c);
}

static int v8_builtin_of_file(const struct v8 *v, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	ret->code.flags = RUNTIME_CODE_LASTS;
	return v8_builtin(v, m, pc, 0, ret);
}

/*
 * Where an isolate's code lies too far from the file for calls, the builtins are beside it a second time: V8 maps the
 * file again, or, before V8 11, has a copy of them, as long as the isolate lives (code-range.cc, RemapEmbeddedBuiltins).
 */
static int v8_builtin_copied(const struct v8 *v, struct memory *m, uint64_t pc, uint64_t epoch,
			     struct runtime_code_made *ret)
{
	uint64_t copy;

	if (v8_isolate_copy(v, m, pc, &copy))
		return -ENOENT;
	ret->code.epoch = epoch;
	ret->code.flags = epoch ? RUNTIME_CODE_OF_EPOCH : 0;
	if (ret->known_epoch != epoch)
		memset(ret->known, 0, sizeof(ret->known));
	return v8_builtin(v, m, pc, copy, ret);
}

/* --- code that was compiled --- */

struct v8_found { uint64_t code, start; uint32_t size, flags; };

static bool v8_is_start_of(const struct v8 *v, struct memory *m, uint64_t code, uint64_t start)
{
	const struct v8_row *row = v8_row(v);
	uint64_t found;

	if (row->stream_code)
		return v8_field(m, code, row->code_start, &found) == 0 && found == start;
	return v8_field(m, code, RELOCATION, &found) == 0 && v8_is(v, m, found, v->type_bytes);
}

/* Whether this is a Code whose instructions begin at start. */
static bool v8_is_code_of(const struct v8 *v, struct memory *m, uint64_t code, uint64_t start, struct v8_found *ret)
{
	const struct v8_row *row = v8_row(v);

	if (!v8_is_object(code) || !v8_is(v, m, code, v->type_code) || !v8_is_start_of(v, m, code, start) ||
	    memory_u32(m, code - 1 + row->code_size, &ret->size) ||
	    memory_u32(m, code - 1 + row->code_flags, &ret->flags))
		return false;
	ret->code = code;
	ret->start = start;
	return ret->size && ret->size < RUNTIME_CODE_BYTES;
}

/* From the last aligned place of a piece of memory to its first; what lies before a place is read with it. */
static bool v8_find_in(const struct v8 *v, struct memory *m, uint64_t from, uint64_t to, struct v8_found *ret)
{
	const struct v8_row *row = v8_row(v);
	uint8_t bytes[PIECE + HEADER_MAX];
	uint64_t code, map;

	if (memory_read(m, from - row->stream_start, bytes, to - from + row->stream_start))
		return false;
	for (uint64_t at = to; at >= from; at -= ALIGNMENT) {
		memcpy(&map, bytes + (at - from), sizeof(map));
		code = at - row->stream_start + 1;
		if (row->stream_code)
			memcpy(&code, bytes + (at - from) + row->stream_code, sizeof(code));
		if (v8_is_object(map) && v8_is_code_of(v, m, code, at, ret))
			return true;
	}
	return false;
}

static bool v8_find_in_chunk(const struct v8 *v, struct memory *m, uint64_t chunk, struct v8_found *ret)
{
	const uint64_t first = ALIGN_UP((uint64_t)v8_row(v)->stream_start, (uint64_t)ALIGNMENT);

	for (uint64_t page = chunk; page < chunk + CHUNK_PAGES * PIECE; page += PIECE)
		if (v8_find_in(v, m, page + first, page + first + CODE_HEAD, ret))
			return true;
	return false;
}

/*
 * Code that is too large for a chunk among others lies alone, at the begin of as many as it takes (V8, heap.h,
 * MaxRegularHeapObjectSize; memory-chunk-layout.cc, ObjectStartOffsetInCodePage). All from there to pc can be read.
 */
static bool v8_find_large(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_found *ret)
{
	uint64_t chunk = (pc - BACK_MAX) & ~(uint64_t)(CHUNK - 1), header;

	for (; pc - chunk < RUNTIME_CODE_BYTES && memory_u64(m, chunk, &header) == 0; chunk -= CHUNK)
		if (v8_find_in_chunk(v, m, chunk, ret))
			return pc < ret->start + ret->size;
	return false;
}

static bool v8_find(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_found *ret)
{
	uint64_t to = pc & ~(uint64_t)(ALIGNMENT - 1), back = 0;

	while (back < BACK_MAX && to > BACK_MAX) {
		uint64_t from = (to - 1) & ~(uint64_t)(PIECE - 1);

		/* The header may lie on the page before, which may not be there. */
		if (v8_find_in(v, m, from + ALIGNMENT > to ? to : from + ALIGNMENT, to, ret) ||
		    v8_find_in(v, m, from, from, ret))
			return pc < ret->start + ret->size;
		back += to - from;
		to = from - ALIGNMENT;
	}
	return v8_find_large(v, m, pc, ret);
}

/* Kinds of a Code that are in this order in all versions (V8, code-kind.h), from that of builtins on. */
enum { CODE_BUILTIN, CODE_REGEXP, CODE_WASM_TO_CAPI = 3, CODE_WASM_TO_JS, CODE_JS_TO_WASM };

/*
 * --interpreted-frames-native-stack: each function has a copy of what enters its bytecodes (V8, compiler.cc,
 * InstallInterpreterTrampolineCopy). Of other builtins only jumps to them are on the heap.
 */
#define JUMP_MAX 64u
static bool v8_is_trampoline_copy(uint8_t kind, const struct runtime_code *c)
{
	return kind == CODE_BUILTIN && c->end - c->start > JUMP_MAX;
}

static void v8_describe_generated(uint8_t kind, struct runtime_code *c)
{
	static const char *const names[] = {[CODE_REGEXP] = "[regular expression]",
					    [CODE_WASM_TO_CAPI] = "[wasm-to-capi wrapper]",
					    [CODE_WASM_TO_JS] = "[wasm-to-js wrapper]",
					    [CODE_JS_TO_WASM] = "[js-to-wasm wrapper]"};
	const char *name = kind < ARRAY_SIZE(names) ? names[kind] : NULL;

	snprintf(c->name, sizeof(c->name), "%s", name ? name : "[generated code of V8]");
	if (v8_is_trampoline_copy(kind, c))
		c->kind = V8_TRAMPOLINE;
	else if (kind == CODE_REGEXP)
		c->kind = V8_REGEXP;
	else if (name)
		c->kind = V8_WASM;
}

static int v8_describe(const struct v8 *v, struct memory *m, const struct v8_found *f, struct runtime_code_made *ret)
{
	const struct v8_row *row = v8_row(v);
	uint8_t kind = f->flags & row->kind_mask;
	struct runtime_code *c = &ret->code;
	int err = 0;

	c->start = f->start;
	c->end = f->start + f->size;
	c->identity[0] = f->start;
	c->identity[2] = (uint64_t)f->flags << 32 | f->size;
	c->kind = kind == row->kind_baseline ? V8_BASELINE : V8_BUILTIN;
	if (kind == row->kind_maglev || kind == row->kind_optimized) {
		c->kind = V8_OPTIMIZED;
		err = v8_optimized(v, m, f->code, kind == row->kind_maglev, ret);
	} else if (!memcmp(ret->known, c->identity, sizeof(c->identity))) {
		err = -EALREADY;
	}
	if (err)
		return err;
	if (c->kind == V8_BUILTIN)
		v8_describe_generated((uint8_t)(kind - row->kind_builtin), c);
	v8_events(m, ret, 1);
	return 0;
}

static int v8_code_compiled(const struct v8 *v, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct v8_found found, again;
	int err;

	if (!v8_find(v, m, pc, &found))
		return -ENOENT;
	ret->code.flags = ret->code.epoch ? RUNTIME_CODE_OF_EPOCH : 0;
	err = v8_describe(v, m, &found, ret);
	memory_gather_done(m);
	/* It was there all the while. */
	if (!err && (!v8_is_code_of(v, m, found.code, found.start, &again) || again.size != found.size))
		err = -ESTALE;
	return err;
}

/*
 * Code of WebAssembly lies outside of the heap, and no place in a module's space is used twice (V8, wasm-code-manager.cc,
 * FreeCode). Its script holds a module until a collection of the whole heap has found the script to be dead (Managed): what a
 * sample has run stays for its epoch, as code on the heap does. Without the sample's epoch, time decides; so it does where
 * several isolates may have one module, whose code would be asked for again for each.
 */
static int v8_code_outside(const struct v8 *v, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	uint64_t known[RUNTIME_CODE_IDENTITY];
	struct v8_epochs alone = {0};
	int err;

	if (ret->heap && v8_epochs_now(v, m, 0, &alone))
		return -EFAULT;
	memcpy(known, ret->known, sizeof(known));
	if (ret->known_epoch != alone.epoch)
		memset(ret->known, 0, sizeof(ret->known));
	err = v8_wasm_code(v, m, pc, ret);
	ret->code.epoch = alone.epoch;
	ret->code.flags = alone.epoch ? RUNTIME_CODE_OF_EPOCH : 0;
	memcpy(ret->known, known, sizeof(known));
	return err;
}

static int v8_code_on_heap(const struct v8 *v, struct memory *m, uint64_t pc, uint64_t epoch, struct runtime_code_made *ret)
{
	int err;

	memset(&ret->code, 0, sizeof(ret->code));
	ret->code.epoch = epoch;
	if (ret->known_epoch != epoch)
		memset(ret->known, 0, sizeof(ret->known));
	if (epoch)
		memory_gather(m);
	err = v8_code_compiled(v, m, pc, ret);
	memory_gather_done(m);
	return err;
}

struct v8_code_question {
	const struct v8 *v;
	struct memory *memory;
	uint64_t pc;
	struct runtime_code_made *made;
	uint64_t epoch; /* now */
};

static int v8_code_count(void *ctx, uint64_t counters[STEADY_COUNTERS])
{
	struct v8_code_question *q = ctx;
	struct v8_epochs now;

	if (v8_epochs_now(q->v, q->memory, q->made->heap, &now))
		return -EFAULT;
	counters[0] = q->epoch = now.epoch;
	return 0;
}

/*
 * Code on the heap is freed or moved only between two epochs: what was known in a former one is described anew. None is left
 * of a heap whose isolate has ended.
 */
static int v8_code_read(void *ctx)
{
	const struct v8_code_question *q = ctx;
	int err;

	memset(&q->made->code, 0, sizeof(q->made->code));
	if (q->made->heap && !q->epoch && !q->v->isolate)
		return -ESTALE;
	err = v8_builtin_copied(q->v, q->memory, q->pc, q->epoch, q->made);
	if (err == -ENOENT)
		err = v8_code_outside(q->v, q->memory, q->pc, q->made);
	return err == -ENOENT ? v8_code_on_heap(q->v, q->memory, q->pc, q->epoch, q->made) : err;
}

int v8_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret)
{
	struct v8_code_question q = {.v = v8_of(a), .memory = m, .pc = pc, .made = ret};

	if (pc >= q.v->builtins && pc < q.v->builtins_end)
		return v8_builtin_of_file(q.v, m, pc, ret);
	return steady_read(&(struct steady){.count = v8_code_count, .read = v8_code_read, .ctx = &q});
}
