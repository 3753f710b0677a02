// SPDX-License-Identifier: Apache-2.0
#include "process/space.h"

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define SPACE_FIRST 16

/*
 * Room for mappings, in entries, over all spaces of the process. It is not the table's, because parked samples keep
 * spaces that the table has dropped, and the table's bound covers these as well. One thread.
 */
static size_t total;

struct space *space_new(void)
{
	struct space *s = calloc(1, sizeof(*s));

	if (s)
		s->refs = 1;
	return s;
}

struct space *space_ref(struct space *s)
{
	if (s)
		s->refs++;
	return s;
}

struct space *space_put(struct space *s)
{
	if (!s || --s->refs)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++)
		mapped_file_put(s->maps[i].file);
	total -= s->cap;
	free(s->maps);
	free(s);
	return NULL;
}

size_t space_total(void)
{
	return total;
}

static int space_reserve(struct space *s, uint32_t count)
{
	uint32_t cap = s->cap ? s->cap : SPACE_FIRST;
	struct mapping *maps;

	if (count <= s->cap)
		return 0;
	while (cap < count)
		cap *= 2;
	maps = realloc(s->maps, cap * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	total += cap - s->cap;
	s->maps = maps;
	s->cap = cap;
	return 0;
}

static struct space *space_copy(const struct space *from)
{
	struct space *s = space_new();

	if (!s || space_reserve(s, from->count) < 0)
		return space_put(s);
	if (from->count)
		memcpy(s->maps, from->maps, from->count * sizeof(*s->maps));
	s->count = from->count;
	s->generation = from->generation;
	for (uint32_t i = 0; i < s->count; i++)
		mapped_file_ref(s->maps[i].file);
	return s;
}

/* From here on *slot is this holder's alone. */
static int space_own(struct space **slot)
{
	struct space *copy;

	if ((*slot)->refs == 1)
		return 0;
	copy = space_copy(*slot);
	if (!copy)
		return -ENOMEM;
	space_put(*slot);
	*slot = copy;
	return 0;
}

/* Index of the first mapping that ends behind addr. */
static uint32_t space_seek(const struct space *s, uint64_t addr)
{
	return array_count_up_to(s->maps, s->count, sizeof(s->maps[0]), offsetof(struct mapping, end), addr);
}

const struct mapping *space_find(const struct space *s, uint64_t pc)
{
	uint32_t i = space_seek(s, pc);

	return i < s->count && s->maps[i].start <= pc ? &s->maps[i] : NULL;
}

static void space_insert(struct space *s, uint32_t at, const struct mapping *m)
{
	memmove(s->maps + at + 1, s->maps + at, (s->count - at) * sizeof(*s->maps));
	s->maps[at] = *m;
	s->count++;
	mapped_file_ref(m->file);
}

static void space_remove(struct space *s, uint32_t at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mapped_file_put(s->maps[at + i].file);
	memmove(s->maps + at, s->maps + at + n, (s->count - at - n) * sizeof(*s->maps));
	s->count -= n;
}

/* The range lies inside one mapping: what follows it becomes one of its own. */
static void space_split(struct space *s, uint32_t at, uint64_t start, uint64_t end)
{
	struct mapping tail = s->maps[at];

	tail.offset += end - tail.start;
	tail.start = end;
	s->maps[at].end = start;
	space_insert(s, at + 1, &tail);
}

/*
 * Makes [start, end) free; returns where a mapping at start belongs. The
 * caller has reserved room for one more mapping, should one be split.
 */
static uint32_t space_clear(struct space *s, uint64_t start, uint64_t end)
{
	uint32_t at = space_seek(s, start), n = 0;
	struct mapping *m;

	if (at < s->count && s->maps[at].start < start) {
		m = &s->maps[at];
		if (m->end > end) {
			space_split(s, at, start, end);
			return at + 1;
		}
		m->end = start;
		at++;
	}
	while (at + n < s->count && s->maps[at + n].end <= end)
		n++;
	space_remove(s, at, n);
	m = &s->maps[at];
	if (at < s->count && m->start < end) {
		m->offset += end - m->start;
		m->start = end;
	}
	return at;
}

/* The oldest without a file, as generated code comes and goes; else the oldest of all. */
static void space_drop_oldest(struct space *s)
{
	uint32_t oldest = 0;
	bool oldest_anon = false;

	for (uint32_t i = 0; i < s->count; i++) {
		bool anon = s->maps[i].file->kind == MAPPED_ANON;

		if (anon < oldest_anon)
			continue;
		if (anon > oldest_anon || s->maps[i].born < s->maps[oldest].born) {
			oldest = i;
			oldest_anon = anon;
		}
	}
	space_remove(s, oldest, 1);
}

static bool space_has(const struct space *s, uint64_t start, uint64_t end, uint64_t offset,
		      const struct mapped_file *file)
{
	const struct mapping *m = space_find(s, start);

	return m && m->start == start && m->end == end && m->offset == offset && m->file == file;
}

int space_map(struct space **slot, uint64_t start, uint64_t end, uint64_t offset, struct mapped_file *file)
{
	struct mapping m = {.start = start, .end = end, .offset = offset, .file = file};
	struct space *s;
	int r, dropped = 0;

	if (start >= end)
		return -EINVAL;
	/* Said twice, by the side-band and by /proc: not a change. */
	if (space_has(*slot, start, end, offset, file))
		return 0;
	r = space_own(slot);
	if (r < 0)
		return r;
	s = *slot;
	while (s->count + 2 > SPACE_MAPPINGS_MAX) {
		space_drop_oldest(s);
		dropped = 1;
	}
	r = space_reserve(s, s->count + 2);
	if (r < 0)
		return r;
	m.born = ++s->generation;
	/* Held first: clearing may drop the last other reference. */
	mapped_file_ref(file);
	space_insert(s, space_clear(s, start, end), &m);
	mapped_file_put(file);
	return dropped;
}

int space_unmap(struct space **slot, uint64_t start, uint64_t end)
{
	uint32_t at;
	int r;

	if (start >= end)
		return -EINVAL;
	at = space_seek(*slot, start);
	if (at >= (*slot)->count || (*slot)->maps[at].start >= end)
		return 0;
	r = space_own(slot);
	if (r == 0)
		r = space_reserve(*slot, (*slot)->count + 1);
	if (r < 0)
		return r;
	space_clear(*slot, start, end);
	(*slot)->generation++;
	return 0;
}

uint64_t mapping_address(const struct mapping *m, uint64_t pc)
{
	const struct binary *b = m->file->binary;
	uint64_t offset = pc - m->start, vaddr;

	if (m->file->kind == MAPPED_ANON || m->file->kind == MAPPED_VSYSCALL)
		return pc;
	/* The vDSO is its own file from its first byte on, whatever offset is told. */
	if (m->file->kind != MAPPED_VDSO)
		offset += m->offset;
	if (b && b->is_elf && binary_offset_to_vaddr(b, offset, &vaddr))
		return vaddr;
	return offset;
}

struct mapped_file *mapped_file_new(enum mapped_kind kind, const char *path, size_t path_len)
{
	struct mapped_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->refs = 1;
	f->kind = kind;
	f->path = str_get(path, path_len);
	return f->path ? f : mapped_file_put(f);
}

/* -ENOEXEC: the host has seen that it is mapped as code, and is no program. */
bool mapped_file_is_generated(const struct mapped_file *f)
{
	if (f->state == MAPPED_FAILED && f->error == -ENOEXEC)
		return true;
	return f->kind == MAPPED_ANON || (f->binary && !f->binary->is_elf);
}

/* What follows a program in its file, and is mapped all the same. */
static bool mapping_is_outside_segments(const struct mapping *m, uint64_t pc)
{
	const struct binary *b = m->file->binary;
	uint64_t vaddr;

	return m->file->kind == MAPPED_FILE && b && b->is_elf && !binary_offset_to_vaddr(b, pc - m->start + m->offset, &vaddr);
}

bool mapping_is_generated(const struct mapping *m, uint64_t pc)
{
	return mapped_file_is_generated(m->file) || mapping_is_outside_segments(m, pc);
}

struct mapped_file *mapped_file_ref(struct mapped_file *f)
{
	if (f)
		f->refs++;
	return f;
}

struct mapped_file *mapped_file_put(struct mapped_file *f)
{
	if (!f || --f->refs)
		return NULL;
	binary_put(f->binary);
	str_put(f->path);
	free(f);
	return NULL;
}
