// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/inflate.h"
#include "unwind/cfi.h"
#include "unwind/unwind.h"
#include "unwind/dwarf.h"

#define SHF_COMPRESSED 0x800
#define SANITY_PROBES 16

/* .eh_frame_hdr: pairs of function start and FDE address, sorted by the first. */
struct table {
	uint64_t base;  /* of datarel addresses: the header's own address */
	uint64_t first; /* address of the first pair */
	uint64_t count;
	uint8_t encoding;
	bool usable;
};

/* A section without a usable table. */
struct cfi_searched {
	struct cfi_section section;
	struct fde_table table;
	bool present;
	bool built;
};

/* State kept for a file. */
struct cfi_file {
	struct table table;
	struct cfi_section loaded; /* bounds of FDEs that the table names */
	struct cfi_searched eh;
	struct cfi_searched debug;
	const struct binary_section *packed; /* .debug_frame to be unpacked; borrowed from the binary */
	uint8_t *unpacked;		     /* owned; counted in the budget */
	size_t unpacked_len;
};

static void cfi_file_free(void *p)
{
	struct cfi_file *f = p;

	if (!f)
		return;
	fde_table_done(&f->eh.table);
	fde_table_done(&f->debug.table);
	cfi_budget_return(f->unpacked_len);
	free(f->unpacked);
	free(f);
}

static bool cfi_segment_bounds(const struct binary *b, uint64_t vaddr, struct cfi_section *ret)
{
	for (unsigned i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *s = &b->segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz || s->filesz > UINT64_MAX - s->vaddr)
			continue;
		*ret = (struct cfi_section){.start = s->vaddr, .end = s->vaddr + s->filesz};
		return true;
	}
	return false;
}

static int cfi_table_pair(const struct table *t, struct binary *b, uint64_t i, uint64_t *ret_start, uint64_t *ret_fde)
{
	unsigned size = 2 * encoded_size(t->encoding);
	uint64_t at = t->first + i * size;
	struct cfi_reader r;

	reader_init(&r, b, false, at, at + size);
	*ret_start = reader_encoded(&r, t->encoding, t->base);
	*ret_fde = reader_encoded(&r, t->encoding, t->base);
	return r.error;
}

/* The search would fail in an unsorted table; a few probes find most of them. */
static bool cfi_table_looks_sorted(const struct table *t, struct binary *b)
{
	uint64_t previous = 0, start, fde;

	for (unsigned i = 0; i < SANITY_PROBES; i++) {
		uint64_t at = t->count > SANITY_PROBES ? t->count / SANITY_PROBES * i : i;

		if (at >= t->count)
			break;
		if (cfi_table_pair(t, b, at, &start, &fde) < 0 || start < previous)
			return false;
		previous = start;
	}
	return true;
}

static bool cfi_table_read(struct binary *b, struct table *t, uint64_t *ret_eh_frame)
{
	uint64_t base = b->eh_frame_hdr, end, room;
	uint8_t frame_encoding, count_encoding;
	struct cfi_reader r;

	if (!base || __builtin_add_overflow(base, b->eh_frame_hdr_size, &end))
		return false;
	reader_init(&r, b, false, base, end);
	if (reader_uint(&r, 1) != 1)
		return false;
	frame_encoding = (uint8_t)reader_uint(&r, 1);
	count_encoding = (uint8_t)reader_uint(&r, 1);
	t->encoding = (uint8_t)reader_uint(&r, 1);
	if (frame_encoding == PE_OMIT)
		return false;
	*ret_eh_frame = reader_encoded(&r, frame_encoding, base);
	if (r.error)
		return false;
	if (count_encoding == PE_OMIT || t->encoding == PE_OMIT || !encoded_size(t->encoding))
		return true; /* no table, but the section's place is known */
	t->count = reader_encoded(&r, count_encoding, base);
	t->base = base;
	t->first = r.pos;
	room = (end - r.pos) / (2 * encoded_size(t->encoding));
	t->usable = !r.error && t->count && t->count <= room && cfi_table_looks_sorted(t, b);
	return true;
}

static void cfi_find_eh_section(struct binary *b, struct cfi_file *f, bool have_frame, uint64_t frame)
{
	const struct binary_section *s = binary_section(b, ".eh_frame");
	uint64_t end;

	if (s && s->addr && !__builtin_add_overflow(s->addr, s->size, &end)) {
		f->eh.section = (struct cfi_section){.start = s->addr, .end = end};
		f->eh.present = true;
	} else if (have_frame && cfi_segment_bounds(b, frame, &f->eh.section)) {
		f->eh.section.start = frame;
		f->eh.present = true;
	}
}

static void cfi_find_debug_section(struct binary *b, struct cfi_file *f)
{
	const struct binary_section *s = binary_section(b, ".debug_frame"), *old = binary_section(b, ".zdebug_frame");
	uint64_t end;

	if ((s && s->flags & SHF_COMPRESSED) || (!s && old)) {
		f->packed = s ? s : old;
		f->debug.present = true;
		return;
	}
	if (!s || __builtin_add_overflow(s->offset, s->size, &end))
		return;
	f->debug.section = (struct cfi_section){.start = s->offset, .end = end, .by_offset = true};
	f->debug.present = true;
}

/* Done for the first address that nothing else covers. If it cannot be unpacked, the section counts as absent. */
static int cfi_unpack_debug_section(struct binary *b, struct cfi_file *f)
{
	const struct binary_section *s = f->packed;
	size_t len;
	int r;

	f->packed = NULL;
	r = section_inflate(b, s, CFI_UNPACKED_MAX, &f->unpacked, &len);
	if (r == 0 && cfi_budget_take(len) < 0) {
		free(f->unpacked);
		f->unpacked = NULL;
		r = -ENOSPC;
	}
	if (r == -ENOMEM)
		f->packed = s;
	if (r < 0) {
		f->debug.present = r == -ENOMEM;
		return r;
	}
	f->unpacked_len = len;
	f->debug.section = (struct cfi_section){.end = len, .by_offset = true};
	return 0;
}

ssize_t cfi_read(struct binary *b, bool by_offset, uint64_t pos, void *to, size_t len)
{
	const struct cfi_file *f = b->slot[BINARY_SLOT_UNWIND];

	if (!by_offset)
		return binary_read_vaddr(b, pos, to, len);
	if (!f || !f->unpacked)
		return binary_read(b, pos, to, len);
	if (pos >= f->unpacked_len)
		return 0;
	len = MIN(len, f->unpacked_len - pos);
	memcpy(to, f->unpacked + pos, len);
	return (ssize_t)len;
}

static struct cfi_file *cfi_file(struct binary *b)
{
	struct cfi_file *f = b->slot[BINARY_SLOT_UNWIND];
	uint64_t frame = 0;
	bool have_frame;

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	have_frame = cfi_table_read(b, &f->table, &frame);
	if (f->table.usable && !cfi_segment_bounds(b, frame, &f->loaded))
		f->table.usable = false;
	cfi_find_eh_section(b, f, have_frame, frame);
	cfi_find_debug_section(b, f);
	b->slot[BINARY_SLOT_UNWIND] = f;
	b->slot_free[BINARY_SLOT_UNWIND] = cfi_file_free;
	return f;
}

/* The last pair at or below vaddr. */
static int cfi_table_search(const struct table *t, struct binary *b, uint64_t vaddr, uint64_t *ret_start,
			    uint64_t *ret_fde)
{
	uint64_t low = 0, high = t->count, middle, start, fde;
	int err;

	while (low < high) {
		middle = low + (high - low) / 2;
		err = cfi_table_pair(t, b, middle, &start, &fde);
		if (err < 0)
			return err;
		if (start <= vaddr) {
			low = middle + 1;
			*ret_start = start;
			*ret_fde = fde;
		} else {
			high = middle;
		}
	}
	return low ? 0 : -ENOENT;
}

/* -EBADMSG: the table is wrong. */
static int cfi_table_find(const struct cfi_file *f, struct binary *b, uint64_t vaddr, struct fde *ret)
{
	uint64_t start = 0, at = 0;
	int err = cfi_table_search(&f->table, b, vaddr, &start, &at);

	if (err < 0)
		return err;
	err = fde_parse(b, &f->loaded, at, NULL, ret, NULL);
	if (err == -ENOENT)
		return -EBADMSG;
	if (err < 0)
		return err;
	if (vaddr >= ret->start && vaddr < ret->end)
		return 0;
	/* A correct pair before a gap starts where its FDE does. */
	return ret->start == start ? -ENOENT : -EBADMSG;
}

static int cfi_searched_find(struct cfi_searched *x, struct binary *b, uint64_t vaddr, struct fde *ret)
{
	int err;

	if (!x->present)
		return -ENOENT;
	if (!x->built) {
		err = fde_table_build(b, &x->section, &x->table);
		if (err < 0)
			return err;
		x->built = true;
	}
	return fde_table_find(&x->table, b, &x->section, vaddr, ret);
}

static int cfi_debug_find(struct cfi_file *f, struct binary *b, uint64_t vaddr, struct fde *ret)
{
	int r = f->packed ? cfi_unpack_debug_section(b, f) : 0;

	return r == -ENOMEM ? r : cfi_searched_find(&f->debug, b, vaddr, ret);
}

int cfi_find(struct binary *b, uint64_t vaddr, struct fde *ret)
{
	struct cfi_file *f = cfi_file(b);
	int err = -EBADMSG;

	if (!f)
		return -ENOMEM;
	if (f->table.usable)
		err = cfi_table_find(f, b, vaddr, ret);
	if (err == -EBADMSG) {
		f->table.usable = false;
		err = cfi_searched_find(&f->eh, b, vaddr, ret);
	}
	return err == -ENOENT ? cfi_debug_find(f, b, vaddr, ret) : err;
}

unsigned cfi_has(struct binary *b)
{
	const struct cfi_file *f = b->is_elf ? cfi_file(b) : NULL;

	if (!f)
		return 0;
	return (f->table.usable ? CFI_TABLE : 0) | (f->eh.present ? CFI_EH_FRAME : 0) |
	       (f->debug.present ? CFI_DEBUG_FRAME : 0) | (f->eh.built ? CFI_EH_TABLE_BUILT : 0) |
	       (f->debug.built ? CFI_DEBUG_TABLE_BUILT : 0);
}

int cfi_row(struct binary *b, unsigned nr_regs, uint64_t vaddr, struct row *ret)
{
	struct fde f;
	int err = cfi_find(b, vaddr, &f);

	return err < 0 ? err : cfi_run(b, &f, nr_regs, vaddr, ret);
}

int unwind_function_start(struct binary *b, uint64_t vaddr, uint64_t *ret)
{
	struct fde f;
	int r = cfi_find(b, vaddr, &f);

	if (r == 0)
		*ret = f.start;
	return r;
}
