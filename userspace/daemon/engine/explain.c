// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/fetch.h"
#include "daemon/report/json.h"
#include "daemon/report/quality.h"
#include "daemon/report/status.h"
#include "process/go_table.h"
#include "unwind/cfi.h"
#include "unwind/unwind.h"

_Static_assert(UNWIND_END_NR <= PROCESS_ENDS_MAX, "every end of a stack has a counter");

/* Mappings of one file. */
struct used {
	const struct mapped_file *file;
	uint32_t mappings;
	uint64_t bytes;
};

struct list {
	struct used files[EXPLAIN_FILES_MAX];
	uint32_t count, more; /* mappings of files beyond the bound */
};

static bool explain_is_same_file(const struct mapped_file *a, const struct mapped_file *b)
{
	return a == b || (a->kind == MAPPED_ANON && b->kind == MAPPED_ANON);
}

static void explain_add_mapping(struct list *l, const struct mapping *m)
{
	uint32_t i = 0;

	while (i < l->count && !explain_is_same_file(l->files[i].file, m->file))
		i++;
	if (i == EXPLAIN_FILES_MAX) {
		l->more++;
		return;
	}
	if (i == l->count)
		l->files[l->count++] = (struct used){.file = m->file};
	l->files[i].mappings++;
	l->files[i].bytes += m->end - m->start;
}

static const char *explain_kind_name(uint8_t kind)
{
	static const char *const names[] = {[MAPPED_FILE] = "file", [MAPPED_ANON] = "generated", [MAPPED_VDSO] = "vdso",
					    [MAPPED_MEMFD] = "memfd", [MAPPED_VSYSCALL] = "vsyscall"};

	return kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

static const char *explain_state_name(uint8_t state)
{
	static const char *const names[] = {[MAPPED_NEW] = "not met", [MAPPED_OPENING] = "being opened",
					    [MAPPED_READY] = "open", [MAPPED_FAILED] = "refused"};

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

static const char *explain_index_name(enum symbol_index state)
{
	static const char *const names[] = {[SYMBOL_INDEX_OFF] = "off", [SYMBOL_INDEX_NEW] = "not asked",
					    [SYMBOL_INDEX_ASKED] = "being made", [SYMBOL_INDEX_READY] = "ready",
					    [SYMBOL_INDEX_REFUSED] = "not to be had"};

	return (size_t)state < ARRAY_SIZE(names) ? names[state] : "?";
}

static void explain_build_id(struct json *j, const uint8_t *id, uint8_t len)
{
	char hex[2 * BINARY_BUILD_ID_MAX + 1] = "";

	for (uint8_t i = 0; i < MIN(len, BINARY_BUILD_ID_MAX); i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	json_text(j, "build_id", hex);
}

/* The first way to unwind its code; frame pointers are used where tables do not cover an address. */
static const char *explain_unwind_name(unsigned has)
{
	if (has & CFI_TABLE)
		return "eh_frame_hdr";
	if (has & CFI_EH_FRAME)
		return "eh_frame";
	return has & CFI_DEBUG_FRAME ? "debug_frame" : "frame_pointers";
}

static void explain_unwinding(struct json *j, struct binary *b)
{
	unsigned has = cfi_has(b);

	json_open(j, "unwind");
	json_text(j, "by", !b->is_64 ? "nothing" : go_table_get(b) ? "gopclntab" : explain_unwind_name(has));
	json_bool(j, "debug_frame", has & CFI_DEBUG_FRAME);
	json_bool(j, "table_built", has & (CFI_EH_TABLE_BUILT | CFI_DEBUG_TABLE_BUILT));
	json_close(j);
}

static void explain_names(struct json *j, const struct explain *x, const struct binary *b)
{
	struct symbol_state s;

	symbol_state(x->symbols, b, &s);
	json_open(j, "names");
	json_text(j, "index", explain_index_name(s.index));
	json_text(j, "error", s.error ? strerrordesc_np(-s.error) : "");
	json_bool(j, "dwarf", s.dwarf);
	json_bool(j, "gopclntab", s.go);
	json_bool(j, "debug_symbols", s.debug_symbols);
	json_bool(j, "gnu_debugdata", s.packed);
	json_bool(j, "incomplete", s.incomplete);
	json_bool(j, "fetched", s.fetched);
	json_text(j, "debuginfod", fetch_state_name(s.fetch));
	json_text(j, "debuginfod_says", fetch_state_text(s.fetch));
	json_bool(j, "own_dwarf", s.own_dwarf);
	json_bool(j, "symtab", s.symtab);
	json_bool(j, "dynsym", s.dynsym);
	json_close(j);
}

static void explain_binary(struct json *j, const struct explain *x, struct binary *b)
{
	json_number(j, "dev", b->dev);
	json_number(j, "ino", b->ino);
	json_bool(j, "elf", b->is_elf);
	explain_build_id(j, b->build_id, b->build_id_len);
	if (!b->is_elf)
		return;
	json_number(j, "bits", b->is_64 ? 64 : 32);
	explain_unwinding(j, b);
	explain_names(j, x, b);
}

static const char *explain_error(const struct mapped_file *f)
{
	if (f->state != MAPPED_FAILED || !f->error)
		return "";
	return f->error == -EHOSTDOWN ? "its file system did not answer" : strerrordesc_np(-f->error);
}

static void explain_file(struct json *j, const struct explain *x, const struct used *u)
{
	const struct mapped_file *f = u->file;

	json_open(j, NULL);
	json_text(j, "path", f->kind == MAPPED_ANON ? "" : str_c(f->path));
	json_text(j, "kind", explain_kind_name(f->kind));
	json_text(j, "state", explain_state_name(f->state));
	json_text(j, "error", explain_error(f));
	json_bool(j, "deleted", f->deleted);
	json_number(j, "mappings", u->mappings);
	json_number(j, "bytes", u->bytes);
	if (f->state == MAPPED_READY && f->binary)
		explain_binary(j, x, f->binary);
	else
		explain_build_id(j, f->build_id, f->build_id_len);
	json_close(j);
}

static void explain_files(struct json *j, const struct explain *x)
{
	_cleanup_(freep) struct list *l = calloc(1, sizeof(*l));
	const struct space *s = x->process->space;

	for (uint32_t i = 0; l && i < s->count; i++)
		explain_add_mapping(l, &s->maps[i]);
	json_open_list(j, "files");
	for (uint32_t i = 0; l && i < l->count; i++)
		explain_file(j, x, &l->files[i]);
	json_close_list(j);
	json_number(j, "more_mappings", l ? l->more : s->count);
}

static void explain_guesses(struct json *j, const struct process_stacks *s)
{
	uint64_t frames = 0;

	json_open(j, "guessed");
	for (uint32_t i = 0; s && i < FRAME_GUESS_NR; i++) {
		frames += s->guessed[i];
		if (i != FRAME_SURE)
			json_number(j, frame_guess_name(i), s->guessed[i]);
	}
	json_close(j);
	json_number(j, "frames", frames);
}

static void explain_stacks(struct json *j, const struct process *p)
{
	uint64_t all = 0, complete = 0;

	json_open(j, "stacks");
	json_open(j, "cut");
	for (uint32_t end = 0; p->stacks && end < UNWIND_END_NR; end++) {
		uint32_t n = p->stacks->by_end[end];

		all += n;
		if (unwind_end_is_root((enum unwind_end)end))
			complete += n;
		else if (n)
			json_number(j, unwind_end_name((enum unwind_end)end), n);
	}
	json_close(j);
	json_number(j, "stacks", all);
	json_number(j, "complete", complete);
	explain_guesses(j, p->stacks);
	json_close(j);
}

static void explain_plan(struct json *j, const struct explain *x)
{
	const struct process *p = x->process;

	json_open(j, "plan");
	json_bool(j, "own", p->plan_gen);
	json_number(j, "generation", p->plan_gen);
	json_number(j, "stack_bytes", p->stack_bytes ? p->stack_bytes : x->config->stack_bytes);
	json_number(j, "default_stack_bytes", x->config->stack_bytes);
	json_number(j, "base_bytes", p->base_bytes);
	json_number(j, "stack_max_bytes", x->config->stack_max_bytes);
	json_close(j);
}

static void explain_workload(struct json *j, const struct explain *x)
{
	const struct process *p = x->process;
	const struct ledger_workload *w = quality_find(x->ledger, p->workload, p->exe);

	/* Quality is kept for each executable of a workload, or for the workload as a whole. */
	if (!w)
		w = quality_find(x->ledger, p->workload, NULL);
	json_open_list(j, "workload");
	if (w)
		status_quality(j, w);
	json_close_list(j);
}

static void explain_generated(struct json *j, const struct explain *x)
{
	uint32_t functions[JIT_KIND_NR] = {0};

	json_open(j, "generated_code");
	json_bool(j, "met", jit_functions(x->jit, x->process, functions));
	json_number(j, "perf_map_functions", functions[JIT_PERF_MAP]);
	json_number(j, "jitdump_functions", functions[JIT_DUMP]);
	json_close(j);
}

static void explain_runtimes(struct json *j, const struct explain *x)
{
	struct runtimes_state s;

	json_open_list(j, "runtimes");
	for (uint32_t i = 0; runtimes_state(x->runtimes, x->process, i, &s); i++) {
		json_open(j, NULL);
		json_text(j, "runtime", s.label);
		json_text(j, "version", s.version);
		json_bool(j, "walked", s.walked);
		json_text(j, "state", s.state);
		json_number(j, "functions", s.functions);
		json_number(j, "frames", s.frames);
		json_number(j, "frames_unknown", s.frames_unknown);
		json_close(j);
	}
	json_close_list(j);
}

static void explain_process(struct json *j, const struct explain *x)
{
	const struct process *p = x->process;

	json_text(j, "comm", p->comm ? str_c(p->comm) : "");
	json_text(j, "executable", p->exe ? str_c(p->exe) : "");
	json_text(j, "service", p->workload->service ? str_c(p->workload->service) : "");
	json_bool(j, "exited", p->exit_time_ns);
	json_bool(j, "kernel_thread", p->kernel);
	json_bool(j, "mappings_known", p->maps_known);
	json_number(j, "mappings", p->space->count);
	explain_plan(j, x);
	explain_stacks(j, p);
	explain_workload(j, x);
	explain_generated(j, x);
	explain_runtimes(j, x);
	explain_files(j, x);
}

void explain_json(const struct explain *x, struct buf *to)
{
	struct json j = {.to = to};

	json_open(&j, NULL);
	json_number(&j, "pid", x->pid);
	json_bool(&j, "known", x->process);
	if (x->process)
		explain_process(&j, x);
	json_close(&j);
}
