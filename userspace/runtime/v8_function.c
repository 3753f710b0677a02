// SPDX-License-Identifier: Apache-2.0
/*
 * Functions: names as DevTools shows them, scripts, and lines (V8,
 * shared-function-info.h, scope-info.tq, script.tq).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/steady.h"
#include "runtime/v8.h"

#define FUNCTION_TYPES 32    /* functions of classes, arrays, and so on have types of their own behind the first */
#define DEBUG_SHARED   8     /* of a DebugInfo: its function */
#define TOKEN_UNKNOWN  65535 /* distance from "function" to the parameters */

/* Of a ScopeInfo's flags. */
#define SCOPE_TYPE	 15u
#define SCOPE_HAS_SAVED	 (1u << 10)
#define SCOPE_VARIABLE	 (3u << 12)
#define SCOPE_INFERRED	 (1u << 14)
#define INLINED_NAMES	 75 /* as many locals have their names in a table */
#define LOCALS_MAX	 (1 << 20) /* a bundle may have all its modules' variables in one scope */

struct v8_scope { uint64_t name, inferred; int32_t start, end; };

/* --- scope information --- */

static int v8_scope_flags(const struct v8 *v, struct memory *m, uint64_t object, uint32_t *ret)
{
	const struct v8_row *row = v8_row(v);
	int32_t flags;
	int err;

	if (row->scope_raw)
		return memory_u32(m, object - 1 + row->scope_flags, ret);
	err = v8_smi(m, object, row->scope_flags, &flags);
	if (!err)
		*ret = (uint32_t)flags;
	return err;
}

/* Where its variable part has what is behind the names of locals, and what is known of each. */
static uint32_t v8_scope_behind_locals(const struct v8_row *row, uint32_t flags, uint32_t locals)
{
	uint32_t words = locals + (locals < INLINED_NAMES ? locals : 1);

	words += (flags & SCOPE_TYPE) == row->scope_module;
	words += !!(flags & SCOPE_HAS_SAVED);
	return row->scope_names + 8 * words;
}

/* Part after part. */
static int v8_scope_read(const struct v8 *v, struct memory *m, uint64_t object, struct v8_scope *ret)
{
	const struct v8_row *row = v8_row(v);
	uint32_t flags, at;
	int32_t locals;
	int err = v8_scope_flags(v, m, object, &flags);

	*ret = (struct v8_scope){.start = -1, .end = -1};
	if (!err)
		err = v8_smi(m, object, row->scope_locals, &locals);
	if (err || flags & row->scope_empty)
		return err;
	if (locals < 0 || locals > LOCALS_MAX)
		return -EBADMSG;
	at = v8_scope_behind_locals(row, flags, (uint32_t)locals);
	if (flags & SCOPE_VARIABLE) {
		err = v8_field(m, object, at, &ret->name);
		at += 16;
	}
	if (!err && flags & SCOPE_INFERRED) {
		err = v8_field(m, object, at, &ret->inferred);
		at += 8;
	}
	if (row->scope_positions)
		at = row->scope_positions;
	if (!err)
		err = v8_smi(m, object, at, &ret->start);
	return err ? err : v8_smi(m, object, at + 8, &ret->end);
}

/* --- functions --- */

/*
 * Of old versions, a function that is debugged, or whose blocks are counted, has its DebugInfo in the script's place, and the
 * script is there. 0: functions of node's own, in C++.
 */
static uint64_t v8_shared_script(const struct v8 *v, struct memory *m, const struct v8_shared *s)
{
	const uint8_t at = v8_row(v)->debug_script;
	uint64_t script, of;

	if (v8_is(v, m, s->script, v->type_script))
		return s->script;
	if (!at || v8_field(m, s->script, DEBUG_SHARED, &of) || of != s->address)
		return 0;
	return v8_field(m, s->script, at, &script) == 0 && v8_is(v, m, script, v->type_script) ? script : 0;
}

static int v8_shared_identity(const struct v8 *v, struct memory *m, struct v8_shared *s)
{
	uint32_t literal;
	int32_t id = 0;
	int err = memory_u32(m, s->address - 1 + v8_row(v)->shared_literal, &literal);

	if (err)
		return err;
	s->script = v8_shared_script(v, m, s);
	if (s->script)
		err = v8_smi(m, s->script, v8_row(v)->script_id, &id);
	s->identity = (uint64_t)(uint32_t)id << 32 | literal;
	return err;
}

/* The function's bytecodes: they are its data, or lie behind. */
static void v8_shared_bytecodes(const struct v8 *v, struct memory *m, uint64_t data, struct v8_shared *s)
{
	const struct v8_row *row = v8_row(v);

	for (int i = 0; i < 3; i++) {
		uint16_t type;

		if (v8_type(v, m, data, &type))
			return;
		if (type == v->type_bytecode)
			s->bytecodes = data;
		if (type != v->type_interpreter_data && type != v->type_code)
			return;
		if (v8_field(m, data, type == v->type_code ? row->code_interpreted : row->interpreter_bytecodes, &data))
			return;
	}
}

int v8_shared_read(const struct v8 *v, struct memory *m, uint64_t address, struct v8_shared *ret)
{
	const struct v8_row *row = v8_row(v);
	uint64_t data;
	int err = v8_is(v, m, address, v->type_shared) ? 0 : -ESTALE;

	*ret = (struct v8_shared){.address = address};
	if (!err)
		err = v8_field(m, address, row->shared_name, &ret->name);
	if (!err)
		err = v8_field(m, address, row->shared_script, &ret->script);
	if (!err)
		err = v8_field(m, address, row->shared_data, &data);
	if (err)
		return err;
	v8_shared_bytecodes(v, m, data, ret);
	return v8_shared_identity(v, m, ret);
}

int32_t v8_shared_start(const struct v8 *v, struct memory *m, const struct v8_shared *s)
{
	struct v8_scope scope;

	if (!v8_is(v, m, s->name, v->type_scope) || v8_scope_read(v, m, s->name, &scope))
		return -1;
	return scope.start;
}

/* What a frame calls its function may have been copied since, or something else lies there. */
static int v8_function_shared(const struct v8 *v, struct memory *m, uint64_t function, struct v8_shared *ret)
{
	uint64_t shared;
	uint16_t type;
	int err = v8_forward(m, function, &function);

	if (!err)
		err = v8_type(v, m, function, &type);
	if (err || type < v->type_function || type - v->type_function >= FUNCTION_TYPES)
		return err ? err : -ESTALE;
	err = v8_field(m, function, v->function_shared, &shared);
	return err ? err : v8_shared_read(v, m, shared, ret);
}

/* Whether it is the sample's, too. Where that is bounded, the bound has not passed. */
static bool v8_epoch_is_known(const struct runtime_frame *f, const struct v8_epochs *now)
{
	const uint64_t of = f->cookie[RUNTIME_COOKIE_EPOCH];

	return (uint32_t)of && (!(f->flags & RUNTIME_BOUND) || of == now->epoch);
}

/*
 * Bytecodes do not lead to their function. A closure does, as long as it lives, which may be for one call; else the isolate's
 * lists do, in the epoch of the sample, when bytecodes are what they were.
 */
static int v8_bytecodes_shared(const struct v8 *v, struct memory *m, const struct runtime_frame *f,
			       const struct v8_epochs *now, struct v8_shared *ret)
{
	if (v8_function_shared(v, m, f->cookie[RUNTIME_COOKIE_HINT], ret) == 0 && ret->bytecodes == f->key)
		return 0;
	return v8_epoch_is_known(f, now) ? v8_scripts_find(v, m, now->isolate, f->key, ret) : -ESTALE;
}

static int v8_frame_shared(const struct v8 *v, struct memory *m, const struct runtime_frame *f, const struct v8_epochs *now,
			   struct v8_shared *ret)
{
	int err;

	if (f->cookie[1] == V8_BY_BYTECODES)
		return v8_bytecodes_shared(v, m, f, now, ret);
	if (f->cookie[1] != V8_BY_SHARED)
		return v8_function_shared(v, m, f->key, ret);
	err = v8_shared_read(v, m, f->key, ret);
	return err ? err : (f->cookie[0] != ret->identity ? -ESTALE : 0);
}

/* --- texts --- */

static int v8_name(const struct v8 *v, struct memory *m, uint64_t string, char *to, size_t size)
{
	to[0] = '\0';
	return v8_is_object(string) && v8_is_string(v, m, string) ? v8_string(v, m, string, to, size) : 0;
}

/* The name; else the one that was inferred from where it is assigned to. */
static int v8_function_name(const struct v8 *v, struct memory *m, const struct v8_shared *s,
			    const struct v8_scope *scope, struct runtime_function *ret)
{
	int err = v8_name(v, m, scope->name ? scope->name : s->name, ret->name, sizeof(ret->name));

	if (!err && !ret->name[0] && scope->inferred)
		err = v8_name(v, m, scope->inferred, ret->name, sizeof(ret->name));
	if (!err && !ret->name[0])
		snprintf(ret->name, sizeof(ret->name), "(anonymous)");
	return err;
}

static bool v8_script_text(const struct v8 *v, struct memory *m, uint64_t script, uint16_t field, char to[RUNTIME_PATH_MAX])
{
	uint64_t string;

	if (v8_field(m, script, field, &string) || v8_name(v, m, string, to, RUNTIME_PATH_MAX))
		to[0] = '\0';
	return to[0];
}

/* A comment in the source may give it another name, as of what is evaluated (V8, Script::GetNameOrSourceURL). */
void v8_script_file(const struct v8 *v, struct memory *m, uint64_t script, char to[RUNTIME_PATH_MAX])
{
	static const char url[] = "file://";

	if (!v8_script_text(v, m, script, v8_row(v)->script_url, to))
		v8_script_text(v, m, script, v->script_name, to);
	if (!strncmp(to, url, sizeof(url) - 1))
		memmove(to, to + sizeof(url) - 1, strlen(to) - sizeof(url) + 2);
}

/* --- lines --- */

struct v8_span { struct v8_lines lines; int32_t first; /* of the script, in what it was read from */ };

static int v8_function_span(const struct v8 *v, struct memory *m, const struct v8_shared *s,
			    const struct v8_scope *scope, struct v8_span *ret, uint32_t *ret_start)
{
	uint16_t token = 0;
	struct v8_flat source;
	uint64_t string;
	int err = v8_field(m, s->script, v->script_source, &string);

	if (!err)
		err = v8_smi(m, s->script, v8_row(v)->script_line, &ret->first);
	if (!err)
		err = v8_flat(v, m, string, &source);
	if (!err)
		err = memory_read(m, s->address - 1 + v->shared_token, &token, sizeof(token));
	if (err || scope->start < 0 || scope->end < scope->start)
		return err ? err : -EBADMSG;
	if (token == TOKEN_UNKNOWN || token > scope->start)
		token = 0;
	*ret_start = (uint32_t)scope->start - token;
	return v8_lines_read(m, &source, s->identity >> 32, *ret_start, (uint32_t)scope->end, &ret->lines);
}

static uint32_t v8_span_line(const struct v8_span *span, uint32_t at)
{
	uint32_t line = v8_line_at(&span->lines, at);

	return line && span->first >= 0 ? line + (uint32_t)span->first : line;
}

/*
 * Positions of compiled code are places in the script, whose columns are known but for a script that begins within
 * a line of its file.
 */
static void v8_lines_by_place(const struct v8 *v, struct memory *m, const struct v8_shared *s, const struct v8_span *span,
			      struct runtime_function *ret)
{
	int32_t column;

	for (uint32_t i = 0; i < span->lines.nr; i++)
		ret->lines[ret->nr_lines++] = (struct runtime_line){V8_AT(span->lines.row[i].at),
								    v8_span_line(span, span->lines.row[i].at)};
	ret->has_columns = v8_smi(m, s->script, v8_row(v)->script_line + 8, &column) == 0 && !column;
}

/* Until its first place, a function is where it begins; no position is 0, which stands for one that is not known. */
static void v8_add_bytecode_line(struct runtime_function *ret, int32_t offset, uint32_t line)
{
	uint32_t position = V8_AT(offset);

	if (ret->nr_lines && ret->lines[ret->nr_lines - 1].position >= position)
		ret->nr_lines--;
	if (!ret->nr_lines)
		position = V8_AT(0);
	ret->lines[ret->nr_lines++] = (struct runtime_line){position, line};
}

/* Those of interpreted code are offsets of bytecodes: most functions have no table of them until an error is thrown. */
static void v8_lines_by_bytecode(const struct v8 *v, struct memory *m, uint64_t bytecodes, const struct v8_span *span,
				 struct runtime_function *ret)
{
	static struct v8_positions p;
	uint64_t table;

	if (v8_field(m, bytecodes, v8_row(v)->bytecode_positions, &table) || v8_positions_open(v, m, table, &p))
		return;
	while (ret->nr_lines < RUNTIME_LINES_MAX && v8_positions_next(&p) == 0) {
		int32_t at = v8_position_script(p.position);
		uint32_t line = at < 0 ? 0 : v8_span_line(span, (uint32_t)at);

		if (line && (!ret->nr_lines || ret->lines[ret->nr_lines - 1].line != line))
			v8_add_bytecode_line(ret, p.offset, line);
	}
	if (ret->nr_lines == RUNTIME_LINES_MAX)
		ret->lines[RUNTIME_LINES_MAX - 1].line = 0;
}

static void v8_function_lines(const struct v8 *v, struct memory *m, const struct runtime_frame *f,
			      const struct v8_shared *s, const struct v8_scope *scope, struct runtime_function *ret)
{
	static struct v8_span span;
	uint32_t start;

	if (v8_function_span(v, m, s, scope, &span, &start))
		return;
	ret->start_line = v8_span_line(&span, start);
	if (f->cookie[1] == V8_BY_SHARED)
		v8_lines_by_place(v, m, s, &span, ret);
	else if (s->bytecodes)
		v8_lines_by_bytecode(v, m, s->bytecodes, &span, ret);
}

static int v8_describe_function(const struct v8 *v, struct memory *m, const struct runtime_frame *f,
				const struct v8_shared *s, struct runtime_function *ret)
{
	struct v8_scope scope = {.start = -1, .end = -1};
	int err = v8_is(v, m, s->name, v->type_scope) ? v8_scope_read(v, m, s->name, &scope) : 0;

	if (!err)
		err = v8_function_name(v, m, s, &scope, ret);
	if (err || !s->script)
		return err;
	v8_script_file(v, m, s->script, ret->file);
	v8_function_lines(v, m, f, s, &scope, ret);
	return 0;
}

static int v8_decode_javascript(const struct v8 *v, struct memory *m, const struct runtime_frame *f,
				const struct v8_epochs *now, struct runtime_function *ret)
{
	struct v8_shared s, again;
	int err = v8_frame_shared(v, m, f, now, &s);

	if (err)
		return err;
	/* A closure may be moved and freed meanwhile; of what it leads to, the epoch tells. */
	if (now->epoch)
		memory_gather(m);
	err = v8_describe_function(v, m, f, &s, ret);
	memory_gather_done(m);
	/* It was there all the while. */
	if (!err)
		err = v8_frame_shared(v, m, f, now, &again);
	return err ? err : (again.identity != s.identity || again.name != s.name ? -ESTALE : 0);
}

/*
 * In a later epoch, a closure that was sampled may be dead, and still lead to its function, which is dead too: while others lie
 * where its bytecodes lay. All of a heap is dead when its isolate has ended. Where epochs are not known any more, as of
 * several isolates of which only one is looked at, time has to do.
 */
static bool v8_is_of_epoch(const struct v8 *v, const struct runtime_frame *f, const struct v8_epochs *now)
{
	const uint64_t of = f->cookie[RUNTIME_COOKIE_EPOCH];

	if (!now->epoch)
		return !of || v->isolate || !v->has_epochs;
	if (!(uint32_t)of || f->flags & RUNTIME_BOUND || !(f->flags & (RUNTIME_MOVED | RUNTIME_HINTED)))
		return true;
	return of == (f->flags & RUNTIME_MOVED ? now->moved : now->epoch);
}

struct v8_decode_question {
	const struct v8 *v;
	struct memory *memory;
	const struct runtime_frame *frame;
	struct runtime_function *function;
	struct v8_epochs now;
};

static int v8_decode_count(void *ctx, uint64_t counters[STEADY_COUNTERS])
{
	struct v8_decode_question *q = ctx;

	if (v8_epochs_now(q->v, q->memory, runtime_epoch_heap(q->frame->cookie[RUNTIME_COOKIE_EPOCH]), &q->now))
		return -EFAULT;
	counters[0] = q->now.epoch;
	counters[1] = q->frame->flags & RUNTIME_MOVED ? q->now.moved : 0;
	return 0;
}

static int v8_decode_read(void *ctx)
{
	const struct v8_decode_question *q = ctx;
	const uint64_t of = q->frame->cookie[RUNTIME_COOKIE_EPOCH];

	q->function->nr_lines = 0;
	q->function->epoch = (uint32_t)of && !(q->frame->flags & RUNTIME_BOUND) ? q->now.epoch : 0;
	if (!v8_is_of_epoch(q->v, q->frame, &q->now))
		return -ESTALE;
	return v8_decode_javascript(q->v, q->memory, q->frame, &q->now, q->function);
}

int v8_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
	      struct runtime_function *ret)
{
	struct v8_decode_question q = {.v = v8_of(a), .memory = m, .frame = f, .function = ret};

	if (f->cookie[1] == V8_BY_WASM)
		return v8_wasm_decode(q.v, m, f, ret);
	return steady_read(&(struct steady){.count = v8_decode_count, .read = v8_decode_read, .ctx = &q});
}
