// SPDX-License-Identifier: Apache-2.0
/* Format: DWARF 5 section 7.3.5; version 2 is GNU's for DWARF 4 (GCC wiki, DebugFissionDWP). */
#include "symbol/split_package.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define COLUMNS_MAX 16
#define SLOTS_MAX   (1u << 24)
#define HEAD_BYTES  16

struct package_index {
	uint32_t columns, units, slots;
	const uint8_t *ids, *rows, *kinds, *offsets, *sizes;
};

struct split_package {
	bool missing; /* looked for, and not there */
	struct image image;
	Elf64_Shdr *whole; /* the section table as the file has it; owned */
	struct package_index index;
	uint32_t version;
};

static uint32_t read_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t read_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The section that a column tells of; the numbers differ between the versions. */
static const char *column_section(uint32_t version, uint32_t kind)
{
	switch (kind) {
	case 1:
		return ".debug_info.dwo";
	case 3:
		return ".debug_abbrev.dwo";
	case 4:
		return ".debug_line.dwo";
	case 6:
		return ".debug_str_offsets.dwo";
	case 8:
		return version == 5 ? ".debug_rnglists.dwo" : NULL;
	default:
		return NULL;
	}
}

static int read_index(struct split_package *p)
{
	struct package_index *x = &p->index;
	struct image_part part;
	uint64_t need;

	if (!image_section(&p->image, ".debug_cu_index", &part) || part.len < HEAD_BYTES)
		return -EBADMSG;
	p->version = read_u32(part.data) & 0xffff;
	x->columns = read_u32(part.data + 4);
	x->units = read_u32(part.data + 8);
	x->slots = read_u32(part.data + 12);
	if ((p->version != 2 && p->version != 5) || !x->columns || x->columns > COLUMNS_MAX || !x->slots ||
	    x->slots > SLOTS_MAX || x->slots & (x->slots - 1) || x->units > x->slots)
		return -EBADMSG;
	need = HEAD_BYTES + (uint64_t)x->slots * 12 + x->columns * 4ull + 8ull * x->columns * x->units;
	if (need > part.len)
		return -EBADMSG;
	x->ids = part.data + HEAD_BYTES;
	x->rows = x->ids + (size_t)x->slots * 8;
	x->kinds = x->rows + (size_t)x->slots * 4;
	x->offsets = x->kinds + x->columns * 4ul;
	x->sizes = x->offsets + (size_t)x->columns * x->units * 4;
	return 0;
}

static int keep_table(struct split_package *p)
{
	size_t bytes = p->image.nr_sections * sizeof(*p->whole);

	p->whole = malloc(bytes);
	if (!p->whole)
		return -ENOMEM;
	memcpy(p->whole, p->image.sections, bytes);
	return 0;
}

static int open_package(struct dwarf_build *d, struct split_package *p)
{
	const struct index_job *job = d->b->job;
	_cleanup_(closep) int fd = -1;
	char path[4100];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%.4090s.dwp", job->path);
	r = debug_open_any(job, path, &fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = image_open_over(fd, (uint64_t)st.st_size, &d->b->scratch, &p->image);
	if (r == 0)
		r = keep_table(p);
	return r < 0 ? r : read_index(p);
}

static struct split_package *get(struct dwarf_build *d)
{
	if (d->package)
		return d->package;
	d->package = calloc(1, sizeof(*d->package));
	if (d->package)
		d->package->missing = open_package(d, d->package) < 0;
	return d->package;
}

/* Open addressing; the second hash is the id's upper half, odd. */
static uint32_t find_row(const struct package_index *x, uint64_t id)
{
	uint32_t mask = x->slots - 1, at = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < x->slots; i++, at = (at + step) & mask) {
		uint32_t row = read_u32(x->rows + (size_t)at * 4);

		if (!row)
			return 0;
		if (read_u64(x->ids + (size_t)at * 8) == id)
			return row <= x->units ? row : 0;
	}
	return 0;
}

/* The part must lie within the whole. */
static void narrow(struct split_package *p, const char *name, uint32_t offset, uint32_t size)
{
	Elf64_Shdr *table = image_table(&p->image);

	for (uint32_t i = 0; i < p->image.nr_sections; i++) {
		const Elf64_Shdr *whole = &p->whole[i];

		if (strcmp(image_section_name(&p->image, whole), name) != 0 || offset > whole->sh_size ||
		    size > whole->sh_size - offset)
			continue;
		table[i].sh_offset = whole->sh_offset + offset;
		table[i].sh_size = size;
		table[i].sh_addralign = 1;
	}
}

/* libdw takes a file for plain that has any debug section without .dwo in its name. */
static void hide_indexes(struct split_package *p)
{
	Elf64_Shdr *table = image_table(&p->image);

	for (uint32_t i = 0; i < p->image.nr_sections; i++) {
		const char *name = image_section_name(&p->image, &p->whole[i]);

		if (strcmp(name, ".debug_cu_index") != 0 && strcmp(name, ".debug_tu_index") != 0)
			continue;
		table[i].sh_type = SHT_NULL;
		table[i].sh_name = 0;
	}
}

const struct image *split_package_unit(struct dwarf_build *d, uint64_t id)
{
	struct split_package *p = get(d);
	uint32_t row = p && !p->missing ? find_row(&p->index, id) : 0;

	if (!row)
		return NULL;
	memcpy(image_table(&p->image), p->whole, p->image.nr_sections * sizeof(*p->whole));
	hide_indexes(p);
	for (uint32_t c = 0; c < p->index.columns; c++) {
		const char *name = column_section(p->version, read_u32(p->index.kinds + c * 4ul));
		size_t cell = ((size_t)(row - 1) * p->index.columns + c) * 4;

		if (name)
			narrow(p, name, read_u32(p->index.offsets + cell), read_u32(p->index.sizes + cell));
	}
	return image_reopen(&p->image) < 0 ? NULL : &p->image;
}

struct split_package *split_package_free(struct split_package *p)
{
	if (p) {
		image_close(&p->image);
		free(p->whole);
		free(p);
	}
	return NULL;
}
