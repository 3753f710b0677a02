// SPDX-License-Identifier: Apache-2.0
/*
 * Where beam.smp keeps its modules and atoms. The table of modules has no symbol,
 * but lies near the index of the one in force, and looks like nothing else:
 * counts and an array of ranges that ascend, once for each of three code
 * indexes (erts/emulator/beam/beam_ranges.c).
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"
#include "runtime/thread_key.h"

#define NEAR	     (16u << 10)
#define MODULES_MAX  (1u << 20)
#define MODULES_SEEN 64 /* whose headers are looked at */
#define HEADER_WORDS 32
#define FUNCTIONS_SEEN 8u
/* Of erts_atom_table, struct IndexTable: behind the hash table (erts/emulator/beam/{hash,index}.h). */
#define ATOM_SEGMENTS 0x78

static bool beam_ranges_sound(const struct beam_ranges *r)
{
	return r->modules && r->modules % 8 == 0 && r->n && r->n <= r->allocated && r->allocated <= MODULES_MAX &&
	       r->middle >= r->modules && r->middle < r->modules + 16 * r->n && (r->middle - r->modules) % 16 == 0;
}

/* Whether the first modules lie one behind the other. */
static bool beam_ranges_ascend(struct memory *m, const struct beam_ranges *r)
{
	uint64_t range[2 * MODULES_SEEN], last = 0;
	uint64_t n = MIN(r->n, MODULES_SEEN);

	if (memory_read(m, r->modules, range, n * 16))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (range[2 * i] < last || range[2 * i + 1] <= range[2 * i])
			return false;
		last = range[2 * i + 1];
	}
	return true;
}

static int beam_attach_ranges(struct memory *m, struct beam *b)
{
	uint8_t bytes[2 * NEAR];
	uint64_t from = (b->active & ~7ULL) - NEAR;
	struct beam_ranges r[BEAM_INDEXES];

	if (memory_read(m, from, bytes, sizeof(bytes)))
		return -EFAULT;
	for (size_t i = 0; i + sizeof(r) <= sizeof(bytes); i += 8) {
		memcpy(r, bytes + i, sizeof(r));
		if (!beam_ranges_sound(&r[0]) || !beam_ranges_sound(&r[1]) || !beam_ranges_sound(&r[2]) ||
		    !beam_ranges_ascend(m, &r[0]))
			continue;
		b->ranges = from + i;
		return memory_u64(m, r[0].modules, &b->low);
	}
	return -ENOENT;
}

/* --- members of a module's header --- */

/* Whether words ascend within the module. */
static bool beam_ascends(const struct beam_module *of, const uint64_t *word, uint64_t n)
{
	uint64_t last = of->start;

	for (uint64_t i = 0; i < n; i++) {
		if (word[i] <= last || word[i] > of->end)
			return false;
		last = word[i];
	}
	return true;
}

/* Whether infos of functions of one module lie there. */
static bool beam_are_functions(struct memory *m, const uint64_t *word, uint64_t n)
{
	uint64_t module, first = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (memory_u64(m, word[i] + BEAM_INFO_MFA, &module) || !beam_is_atom(module) || (i && module != first))
			return false;
		first = module;
	}
	return true;
}

/* Its functions lie one behind the other. 0: not found. */
static uint32_t beam_header_functions(struct memory *m, const struct beam_module *of, const uint64_t word[HEADER_WORDS])
{
	uint64_t n = MIN(word[0], FUNCTIONS_SEEN);

	for (uint32_t i = 4; n >= 2 && i + n <= HEADER_WORDS; i++)
		if (beam_ascends(of, word + i, n) && beam_are_functions(m, word + i, n))
			return i * 8;
	return 0;
}

/* Behind three words of the line table are the places of each function: they do not descend. 0: not found. */
static uint32_t beam_header_lines(struct memory *m, const struct beam_module *of, const uint64_t word[HEADER_WORDS],
				  uint32_t functions)
{
	uint64_t at[FUNCTIONS_SEEN], n = MIN(word[0], ARRAY_SIZE(at));

	for (uint32_t i = 1; i < functions / 8; i++) {
		uint64_t last = of->start, k = 0;

		if (word[i] <= of->start || word[i] >= of->end || memory_read(m, word[i] + 24, at, n * 8))
			continue;
		while (k < n && at[k] >= last && at[k] % 8 == 0 && at[k] <= of->end)
			last = at[k++];
		if (k == n && at[n - 1] > at[0])
			return i * 8;
	}
	return 0;
}

static int beam_attach_header(struct memory *m, struct beam *b)
{
	struct beam_ranges r;
	struct beam_module of;
	uint64_t word[HEADER_WORDS];
	int err = memory_read(m, b->ranges, &r, sizeof(r));

	for (uint64_t i = 0; !err && i < MIN(r.n, MODULES_SEEN) && !b->lines; i++) {
		uint32_t functions;

		if (memory_read(m, r.modules + sizeof(of) * i, &of, sizeof(of)) || memory_read(m, of.start, word, sizeof(word)))
			continue;
		functions = beam_header_functions(m, &of, word);
		if (!functions || (b->functions && functions != b->functions))
			continue;
		b->functions = functions;
		b->lines = beam_header_lines(m, &of, word, functions);
	}
	/* The first modules loaded stand for C functions, and have no lines. Attaching waits for one that has. */
	if (!err && (!b->functions || (!b->lines && r.n < MODULES_SEEN)))
		err = -ENOENT;
	return err;
}

/* Until the first modules are there, nothing looks like their table. */
int beam_find_tables(struct memory *m, struct beam *b)
{
	int err = beam_attach_ranges(m, b);

	if (!err)
		err = beam_attach_header(m, b);
	return err == -ENOENT ? -EAGAIN : err;
}

/* --- all --- */

static int beam_attach_exits(const struct runtime_file *file, struct memory *m, struct beam *b)
{
	static const char *const names[BEAM_EXITS] = {"beam_normal_exit", "beam_exit", "beam_continue_exit"};
	uint64_t at;

	for (uint32_t i = 0; i < BEAM_EXITS; i++) {
		int err = runtime_address(file, names[i], &at);

		if (!err)
			err = memory_u64(m, at, &b->exits[i]);
		if (err)
			return err;
		if (!b->exits[i])
			return -EAGAIN;
	}
	return 0;
}

static void beam_attach_version(const struct runtime_file *file, struct memory *m, char version[RUNTIME_VERSION_MAX])
{
	char erts[24] = "";
	uint64_t at;

	if (runtime_address(file, "etp_erts_version", &at) == 0 && memory_string(m, at, erts, sizeof(erts)) == 0 && *erts)
		snprintf(version, RUNTIME_VERSION_MAX, "ERTS %s", erts);
	else
		snprintf(version, RUNTIME_VERSION_MAX, "ERTS");
}

/* --- the stack of a process in C code --- */

/* Thread -> its scheduler's thread progress -> the current process, which knows its stack. */
static void beam_plan(const struct runtime_file *file, struct memory *m, uint32_t key, const struct beam_row *row, struct otp_walk *w)
{
	if (thread_key_chain(file, m, key, w)) {
		*w = (struct otp_walk){0};
		return;
	}
	w->chain[w->nr_chain++] = row->process;
	w->step = OTP_WALK_STACK;
	w->root_at = w->nr_chain;
	w->root_off = row->stop;
	w->root_keep = 1;
	w->low = row->heap;
	w->first.at = row->stop;
	w->last.at = row->end;
	w->stride = OTP_WALK_BLOCK;
	w->keep = (1u << OTP_WALK_WORDS) - 1;
	w->frames_max = OTP_WALK_BYTES / OTP_WALK_BLOCK;
}

/* Of a version that is not known, processes in C code have no callers. */
static void beam_attach_stack(const struct runtime_file *file, struct memory *m, struct beam *b,
			      struct runtime_attached *ret)
{
	unsigned int erts = 0;
	uint64_t at;
	uint32_t key;

	sscanf(ret->version, "ERTS %u", &erts);
	while (beam_rows[b->row].erts && beam_rows[b->row].erts != erts)
		b->row++;
	if (beam_rows[b->row].erts && runtime_address(file, "erts_thr_prgr_data_key__", &at) == 0 &&
	    memory_u32(m, at, &key) == 0)
		beam_plan(file, m, key, &beam_rows[b->row], &ret->walk);
}

static int beam_attach_all(const struct runtime_file *file, struct memory *m, struct beam *b, char why[RUNTIME_WHY_MAX])
{
	int err;

	if (runtime_address(file, "erts_atom_table", &b->atoms) ||
	    runtime_address(file, "the_active_code_index", &b->active)) {
		snprintf(why, RUNTIME_WHY_MAX, "it does not tell where its atoms and modules are");
		return -ENOTSUP;
	}
	b->atoms += ATOM_SEGMENTS;
	err = beam_attach_exits(file, m, b);
	if (err == -ENOENT) {
		snprintf(why, RUNTIME_WHY_MAX, "it has no JIT compiler");
		return -ENOTSUP;
	}
	return err ? err : beam_find_tables(m, b);
}

int beam_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret, char why[RUNTIME_WHY_MAX])
{
	int err;

	beam_attach_version(file, m, ret->version);
	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "its frames are known on x86-64 only");
		return -ENOTSUP;
	}
	err = beam_attach_all(file, m, (void *)ret->param, why);
	if (!err)
		beam_attach_stack(file, m, (void *)ret->param, ret);
	return err;
}
