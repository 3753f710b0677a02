// SPDX-License-Identifier: Apache-2.0
/*
 * Where beam.smp keeps its modules. Their table has no symbol, but looks like
 * nothing else in the file's data: counts and an array of ranges that ascend,
 * once for each of three code indexes (erts/emulator/beam/beam_ranges.c).
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define PIECE	     (64u << 10)
#define DATA_MAX     (2u << 20) /* of the file's data, OTP 29 has 350 KiB */
#define MODULES_MAX  (1u << 20)
#define MODULES_SEEN 64 /* whose headers are looked at */
#define HEADER_WORDS 32
#define FUNCTIONS_SEEN 8u

static bool beam_ranges_sound(const struct beam_ranges *r)
{
	return r->modules && r->modules % 8 == 0 && r->n && r->n <= r->allocated && r->allocated <= MODULES_MAX &&
	       r->middle >= r->modules && r->middle < r->modules + 16 * r->n && (r->middle - r->modules) % 16 == 0;
}

/*
 * Whether the first modules lie one behind the other. One that was purged has no bytes, until a table is made anew
 * (beam_ranges.c, erts_remove_from_ranges).
 */
static bool beam_ranges_ascend(struct memory *m, const struct beam_ranges *r)
{
	uint64_t range[2 * MODULES_SEEN], last = 0;
	uint64_t n = MIN(r->n, MODULES_SEEN);

	if (memory_read(m, r->modules, range, n * 16))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (range[2 * i] < last || range[2 * i + 1] < range[2 * i])
			return false;
		last = range[2 * i + 1];
	}
	return last > range[0];
}

/* The tables that begin in these bytes: their offset; -ENOENT. */
static ssize_t beam_ranges_in(struct memory *m, const uint8_t *bytes, size_t len)
{
	struct beam_ranges r[BEAM_INDEXES];

	for (size_t i = 0; i + sizeof(r) <= len; i += 8) {
		memcpy(r, bytes + i, sizeof(r));
		if (beam_ranges_sound(&r[0]) && beam_ranges_sound(&r[1]) && beam_ranges_sound(&r[2]) &&
		    beam_ranges_ascend(m, &r[0]))
			return (ssize_t)i;
	}
	return -ENOENT;
}

static int beam_find_ranges(struct memory *m, uint64_t from, uint64_t to, struct beam *b)
{
	uint8_t bytes[PIECE];
	uint64_t size;

	/* Tables may lie across pieces. */
	for (; to - from >= BEAM_INDEXES * sizeof(struct beam_ranges); from += size - BEAM_INDEXES * sizeof(struct beam_ranges) + 8) {
		ssize_t at;

		size = MIN(to - from, (uint64_t)sizeof(bytes));
		if (memory_read(m, from, bytes, size))
			return -EFAULT;
		at = beam_ranges_in(m, bytes, size);
		if (at >= 0) {
			b->ranges = from + (uint64_t)at;
			return 0;
		}
		if (size < sizeof(bytes))
			break;
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

/*
 * Behind three words of the line table are the places of each function: they do not descend. It lies behind the functions; in
 * OTP 23 the module's range ends with these. 0: not found.
 */
static uint32_t beam_header_lines(struct memory *m, const struct beam_module *of, const uint64_t word[HEADER_WORDS],
				  uint32_t functions)
{
	const uint64_t end = of->end + (of->end - of->start);
	uint64_t at[FUNCTIONS_SEEN], n = MIN(word[0], ARRAY_SIZE(at));

	for (uint32_t i = 1; i < functions / 8; i++) {
		uint64_t last = of->start, k = 0;

		if (word[i] <= of->start || word[i] >= end || memory_read(m, word[i] + 24, at, n * 8))
			continue;
		while (k < n && at[k] >= last && at[k] % 8 == 0 && at[k] <= end)
			last = at[k++];
		if (k == n && at[n - 1] > at[0])
			return i * 8;
	}
	return 0;
}

bool beam_is_starting(const struct beam *b, struct memory *m)
{
	struct beam_ranges r;

	return memory_read(m, b->ranges, &r, sizeof(r)) == 0 && r.n < MODULES_SEEN;
}

static int beam_find_header(struct memory *m, struct beam *b)
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
int beam_find_tables(struct memory *m, uint64_t from, uint64_t to, struct beam *b)
{
	uint64_t start = (from + 7) & ~7ULL;
	int err = to < start ? -ENOENT : beam_find_ranges(m, start, MIN(to, start + DATA_MAX), b);

	if (!err)
		err = beam_find_header(m, b);
	return err == -ENOENT ? -EAGAIN : err;
}
