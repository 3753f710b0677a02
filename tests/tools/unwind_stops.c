// SPDX-License-Identifier: Apache-2.0
/*
 * Unwinds the stops that tests/e2e/gdb_stops.py wrote and compares each stack,
 * address by address, with gdb's at the same stop.
 *
 *   unwind_stops DIR [-v]
 *
 * Exit status: 0 all equal, 1 differences, 2 unreadable input.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/tools/callsites.h"
#include "tests/tools/space_file.h"
#include "unwind/unwind.h"

#define STACK_MAX (512u << 10)
#define WARM 20 /* a clock read costs as much as some frames */
#define STOPS_OF_GENERATED "generated code" /* gdb_stops.py: instead of gdb's reason; with more words: only up to the next */

struct stop {
	unsigned number;
	uint64_t reg[OTP_REGS_X86_64];
	uint64_t stack_addr;
	uint32_t stack_len;
	uint64_t base_addr; /* the outermost bytes of the thread's stack, where it had left that */
	uint32_t base_len;
	uint64_t *pcs; /* gdb's */
	size_t nr_pcs;
	char why[128]; /* gdb's reason for the end */
};

struct session {
	const char *dir;
	bool verbose;
	struct space *space;
	struct unwinder *unwinder;
	struct unwind_stack *out;
	uint8_t *stack, *base;
	uint8_t *vdso;
	size_t vdso_len;
	FILE *bytes;
	unsigned stops, equal, ends[UNWIND_END_NR];
	struct callsite_counts calls;
	uint64_t frames, ns;
};

static FILE *open_in(const char *dir, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fopen(path, "rb");
}

static void load_vdso(struct session *s)
{
	_cleanup_(fclosep) FILE *f = open_in(s->dir, "vdso");

	s->vdso = calloc(1, 65536);
	if (f && s->vdso)
		s->vdso_len = fread(s->vdso, 1, 65536, f);
}

static int load_maps(struct session *s, const char *name)
{
	_cleanup_(fclosep) FILE *f = open_in(s->dir, name);
	struct space *fresh = space_new();
	char line[4352];

	if (!f || !fresh)
		return -ENOENT;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (space_add_line(&fresh, line, s->vdso_len ? s->vdso : NULL, s->vdso_len) < 0)
			return -EBADMSG;
	}
	space_put(s->space);
	s->space = fresh;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void unwind_stop(struct session *s, const struct stop *stop)
{
	struct unwind_input in = {
		.arch = OTP_ARCH_X86_64,
		.space = s->space,
		.valid = (1u << OTP_REGS_X86_64) - 1,
		.reg = stop->reg,
		.stack_addr = stop->stack_addr,
		.stack = s->stack,
		.stack_len = stop->stack_len,
		.base_addr = stop->base_addr,
		.base = stop->base_len ? s->base : NULL,
		.base_len = stop->base_len,
		.stack_end = stop->base_addr + stop->base_len,
		.short_read = stop->stack_len < STACK_MAX,
	};
	const struct mapping *wait;
	uint64_t begin;

	unwind_user(s->unwinder, &in, true, s->out, &wait);
	begin = now_ns(); /* again, warm */
	for (unsigned i = 0; i < WARM; i++)
		unwind_user(s->unwinder, &in, true, s->out, &wait);
	s->ns += (now_ns() - begin) / WARM;
	s->frames += s->out->count;
}

static void print_difference(const struct session *s, const struct stop *stop)
{
	size_t n = MAX(stop->nr_pcs, (size_t)s->out->count);

	printf("stop %u: ours ends with %s, gdb with %s\n", stop->number, unwind_end_name(s->out->end), stop->why);
	for (size_t i = 0; i < n; i++) {
		uint64_t ours = i < s->out->count ? s->out->frames[i].pc : 0;
		uint64_t theirs = i < stop->nr_pcs ? stop->pcs[i] : 0;
		const struct mapping *m = i < s->out->count ? s->out->frames[i].map : NULL;

		printf("  %3zu %16" PRIx64 " %16" PRIx64 " %s %s+0x%" PRIx64 "\n", i, ours, theirs,
		       ours == theirs ? " " : "*", m ? str_c(m->file->path) : "",
		       m ? mapping_address(m, ours) : 0);
	}
}

/* The witness of generated code sees one frame of it, the innermost; ours are passed over where it has none. */
static bool stop_passes_over(const struct frame *ours, uint64_t theirs)
{
	return ours->pc != theirs && ours->map && mapped_file_is_generated(ours->map->file);
}

static bool stop_is_equal(const struct session *s, const struct stop *stop)
{
	const bool generated = !strncmp(stop->why, STOPS_OF_GENERATED, strlen(STOPS_OF_GENERATED));
	size_t at = 0;

	for (uint32_t i = 0; i < s->out->count; i++) {
		const struct frame *f = &s->out->frames[i];
		const uint64_t theirs = at < stop->nr_pcs ? stop->pcs[at] : 0;

		if (generated && stop_passes_over(f, theirs))
			continue;
		if (at == stop->nr_pcs)
			return generated && stop->why[strlen(STOPS_OF_GENERATED)];
		if (f->pc != theirs)
			return false;
		at++;
	}
	return at == stop->nr_pcs;
}

static void compare(struct session *s, const struct stop *stop)
{
	bool equal;

	unwind_stop(s, stop);
	equal = stop_is_equal(s, stop);
	s->stops++;
	s->equal += equal;
	s->ends[s->out->end]++;
	callsites_check(s->out->frames, s->out->count, &s->calls);
	if (!equal || s->verbose)
		print_difference(s, stop);
}

static int read_regs(const char *p, struct stop *stop)
{
	char *end;

	for (unsigned i = 0; i < OTP_REGS_X86_64; i++, p = end) {
		stop->reg[i] = strtoull(p, &end, 16);
		if (end == p)
			return -EBADMSG;
	}
	return 0;
}

static int read_bytes(struct session *s, const char *p, uint8_t *bytes, uint64_t *addr, uint32_t *len)
{
	uint64_t offset;

	if (sscanf(p, "%" SCNx64 " %" SCNx32 " %" SCNx64, addr, len, &offset) != 3 || *len > STACK_MAX ||
	    fseek(s->bytes, (long)offset, SEEK_SET) < 0)
		return -EBADMSG;
	return fread(bytes, 1, *len, s->bytes) == *len ? 0 : -EBADMSG;
}

static void read_pcs(const char *p, struct stop *stop)
{
	char *end;

	stop->nr_pcs = 0;
	for (;; p = end) {
		uint64_t pc = strtoull(p, &end, 16);

		if (end == p || stop->nr_pcs == UNWIND_FRAMES_MAX)
			return;
		stop->pcs[stop->nr_pcs++] = pc;
	}
}

/* The lines of one stop: maps, regs, stack, base if any, why, pcs; the last one completes it. */
static int take_line(struct session *s, struct stop *stop, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "stop ", 5)) {
		stop->number = (unsigned)strtoul(line + 5, NULL, 10);
		stop->base_addr = stop->base_len = 0;
	} else if (!strncmp(line, "maps ", 5))
		return load_maps(s, line + 5);
	else if (!strncmp(line, "regs ", 5))
		return read_regs(line + 5, stop);
	else if (!strncmp(line, "stack ", 6))
		return read_bytes(s, line + 6, s->stack, &stop->stack_addr, &stop->stack_len);
	else if (!strncmp(line, "base ", 5))
		return read_bytes(s, line + 5, s->base, &stop->base_addr, &stop->base_len);
	else if (!strncmp(line, "why ", 4))
		snprintf(stop->why, sizeof(stop->why), "%.100s", line + 4);
	else if (!strncmp(line, "pcs ", 4)) {
		read_pcs(line + 4, stop);
		compare(s, stop);
	}
	return 0;
}

static void print_summary(const struct session *s)
{
	printf("%u stops, %u equal; %" PRIu64 " frames, %.0f ns a frame when warm\n", s->stops, s->equal, s->frames,
	       s->frames ? (double)s->ns / (double)s->frames : 0);
	for (unsigned i = 0; i < UNWIND_END_NR; i++)
		if (s->ends[i])
			printf("  end %s: %u\n", unwind_end_name(i), s->ends[i]);
	if (s->calls.checked)
		printf("  call sites: %" PRIu64 " of %" PRIu64 " after a call, %" PRIu64 " of %" PRIu64
		       " direct calls to the callee\n",
		       s->calls.after_call, s->calls.checked, s->calls.direct_fits, s->calls.direct);
}

static int run(struct session *s)
{
	_cleanup_(fclosep) FILE *f = open_in(s->dir, "stops");
	_cleanup_(freep) char *line = NULL;
	struct stop stop = {0};
	size_t cap = 0;
	int err = 0;

	s->bytes = open_in(s->dir, "stacks");
	s->stack = malloc(STACK_MAX);
	s->base = malloc(STACK_MAX);
	s->out = malloc(sizeof(*s->out));
	stop.pcs = calloc(UNWIND_FRAMES_MAX, sizeof(*stop.pcs));
	if (!f || !s->bytes || !s->stack || !s->base || !s->out || !stop.pcs || unwinder_new(NULL, &s->unwinder) < 0)
		return -ENOENT;
	load_vdso(s);
	while (!err && getline(&line, &cap, f) > 0)
		err = take_line(s, &stop, line);
	free(stop.pcs);
	return err;
}

int main(int argc, char **argv)
{
	struct session s = {0};

	if (argc < 2)
		return 2;
	s.dir = argv[1];
	s.verbose = argc > 2 && !strcmp(argv[2], "-v");
	if (run(&s) < 0) {
		fprintf(stderr, "unwind_stops: %s cannot be read\n", s.dir);
		return 2;
	}
	print_summary(&s);
	return s.stops && s.equal == s.stops ? 0 : 1;
}
