// SPDX-License-Identifier: Apache-2.0
/*
 * Split DWARF: a skeleton unit in the file, its tree in a .dwo file (or in the
 * .dwp package beside the file), its addresses and its lines in the file.
 *
 * libdw would open the other half by itself, by a path that the file names; a
 * process that may open nothing hands it over, and thus reads what refers to
 * the skeleton's sections here: addresses by index and lists of ranges.
 * Formats: DWARF 5 sections 2.17.3, 3.1.2, 7.25, 7.27, 7.28; for version 4
 * GNU's extension (GCC wiki, DebugFission).
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "symbol/build_dwarf.h"
#include "symbol/bytes.h"
#include "symbol/split_package.h"

#ifndef DW_FORM_GNU_addr_index
#define DW_FORM_GNU_addr_index 0x1f01
#endif
#define ADDR_HEAD  8
#define LISTS_HEAD 12 /* of .debug_rnglists.dwo: where the offsets begin */
#define WIDER_HEAD 8  /* of 64-bit DWARF, whose lengths are that much longer */
#define RANGES_MAX 65536
#define UNITS_MAX  65536

struct split {
	struct image own; /* of a .dwo */
	const struct image *image;
	Dwarf *dwarf;
	unsigned version;
	uint8_t offset_size; /* 8 in 64-bit DWARF */
	uint64_t addr_base, ranges_base, lists_base, low_pc;
	struct image_part addr, ranges, lists;
};

/* --- the skeleton --- */

static bool attribute(Dwarf_Die *die, unsigned int name, unsigned int older, Dwarf_Attribute *ret)
{
	return dwarf_attr(die, name, ret) || dwarf_attr(die, older, ret);
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name, unsigned int older, uint64_t otherwise)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return attribute(die, name, older, &a) && dwarf_formudata(&a, &v) == 0 ? v : otherwise;
}

bool split_is(struct dwarf_build *d, Dwarf_Die *cu)
{
	Dwarf_Attribute a;

	return attribute(cu, DW_AT_dwo_name, DW_AT_GNU_dwo_name, &a) && !dwarf_haschildren(cu);
}

/* Version 5 has it in the unit's head, right before the first entry. */
static uint64_t unit_id(const struct image_part *info, Dwarf_Die *cu, unsigned version)
{
	uint64_t at = dwarf_dieoffset(cu), id = 0;

	if (version < 5)
		return number_of(cu, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id, 0);
	if (at >= sizeof(id) && at <= info->len)
		memcpy(&id, info->data + at - sizeof(id), sizeof(id));
	return id;
}

static size_t offset_bytes(const struct split *s)
{
	return s->offset_size == 8 ? 8 : 4;
}

static uint64_t head_of(const struct split *s, uint64_t bytes)
{
	return offset_bytes(s) == 8 ? bytes + WIDER_HEAD : bytes;
}

static void skeleton_read(struct dwarf_build *d, Dwarf_Die *cu, struct split *s)
{
	uint64_t addr_base = s->version < 5 ? 0 : head_of(s, ADDR_HEAD);
	Dwarf_Addr low = 0;

	s->addr_base = number_of(cu, DW_AT_addr_base, DW_AT_GNU_addr_base, addr_base);
	s->ranges_base = number_of(cu, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base, 0);
	s->low_pc = dwarf_lowpc(cu, &low) == 0 ? low : 0;
	image_section(d->image, ".debug_addr", &s->addr);
	image_section(d->image, ".debug_ranges", &s->ranges);
}

/* --- the other half --- */

static const char *text_of(Dwarf_Die *die, unsigned int name, unsigned int older)
{
	Dwarf_Attribute a;

	return attribute(die, name, older, &a) ? dwarf_formstring(&a) : NULL;
}

static int open_path(struct dwarf_build *d, const char *path, struct image *ret)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r = debug_open_any(d->b->job, path, &fd);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADMSG;
	return image_open(fd, 0, (uint64_t)st.st_size, &d->b->scratch, ret);
}

/* Where it was made, then where the program is. */
static int open_dwo(struct dwarf_build *d, Dwarf_Die *cu, struct image *ret)
{
	const char *name = text_of(cu, DW_AT_dwo_name, DW_AT_GNU_dwo_name), *base, *slash;
	const char *dir = text_of(cu, DW_AT_comp_dir, DW_AT_comp_dir);
	char path[4096];
	int r;

	if (!name || strlen(name) < 5 || strcmp(name + strlen(name) - 4, ".dwo") != 0)
		return -ENOENT;
	if (*name == '/' || !dir)
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "%s/%s", dir, name);
	r = open_path(d, path, ret);
	if (r == 0)
		return 0;
	base = strrchr(name, '/');
	slash = strrchr(d->b->job->path, '/');
	if (!slash)
		return -ENOENT;
	snprintf(path, sizeof(path), "%.*s/%s", (int)MIN(slash - d->b->job->path, 4000), d->b->job->path,
		 base ? base + 1 : name);
	return open_path(d, path, ret);
}

/* The tree of the unit with this id. */
static bool find_tree(struct split *s, uint64_t id, Dwarf_Die *ret)
{
	Dwarf_Off offset = 0, next;
	struct image_part info;
	Dwarf_Half version;
	size_t head;

	if (!image_section(s->image, ".debug_info.dwo", &info))
		return false;
	for (uint32_t i = 0; i < UNITS_MAX; i++, offset = next) {
		if (dwarf_next_unit(s->dwarf, offset, &next, &head, &version, NULL, NULL, NULL, NULL, NULL) != 0 ||
		    next <= offset)
			return false;
		if (dwarf_offdie(s->dwarf, offset + head, ret) && dwarf_tag(ret) == DW_TAG_compile_unit &&
		    unit_id(&info, ret, version) == id)
			return true;
	}
	return false;
}

static int read_tree(struct dwarf_build *d, struct split *s, uint64_t id)
{
	Dwarf_Die tree;
	int r = 0;

	s->dwarf = dwarf_begin_elf(s->image->elf, DWARF_C_READ, NULL);
	if (!s->dwarf || !find_tree(s, id, &tree)) {
		d->b->flags |= INDEX_SPLIT_MISSING;
		return 0;
	}
	image_section(s->image, ".debug_rnglists.dwo", &s->lists);
	s->lists_base = head_of(s, LISTS_HEAD);
	/* What is remembered by address was in another file. */
	memset(d->known, 0, KNOWN_FUNCTIONS * sizeof(*d->known));
	d->split = s;
	r = dwarf_build_tree(d, &tree);
	d->split = NULL;
	memset(d->known, 0, KNOWN_FUNCTIONS * sizeof(*d->known));
	return r;
}

static void split_free(struct split *s)
{
	dwarf_end(s->dwarf);
	image_close(&s->own);
}

int split_unit(struct dwarf_build *d, Dwarf_Die *cu)
{
	_cleanup_(split_free) struct split s = {.image = NULL};
	struct image_part info;
	Dwarf_Half version = 0;
	uint64_t id;

	if (!dwarf_cu_die(cu->cu, cu, &version, NULL, NULL, &s.offset_size, NULL, NULL) ||
	    !image_section(d->image, ".debug_info", &info))
		return 0;
	s.version = version;
	id = unit_id(&info, cu, version);
	skeleton_read(d, cu, &s);
	s.image = split_package_unit(d, id);
	if (!s.image && open_dwo(d, cu, &s.own) == 0)
		s.image = &s.own;
	if (!s.image) {
		d->b->flags |= INDEX_SPLIT_MISSING;
		return 0;
	}
	return read_tree(d, &s, id);
}

/*
 * Lists of ranges of an ordinary unit: libdw (0.188) takes an empty range for
 * the end of the list, so they are read here too.
 */
int plain_begin(struct dwarf_build *d, Dwarf_Die *cu)
{
	struct split *s = d->plain ? d->plain : calloc(1, sizeof(*s));
	Dwarf_Half version = 0;
	Dwarf_Die die;

	if (!s)
		return -ENOMEM;
	d->plain = s;
	*s = (struct split){.image = d->image};
	if (dwarf_cu_die(cu->cu, &die, &version, NULL, NULL, &s->offset_size, NULL, NULL))
		s->version = version;
	skeleton_read(d, cu, s);
	s->ranges_base = 0; /* of its other half alone */
	s->lists_base = number_of(cu, DW_AT_rnglists_base, DW_AT_rnglists_base, head_of(s, LISTS_HEAD));
	image_section(d->image, ".debug_rnglists", &s->lists);
	return 0;
}

void split_done(struct dwarf_build *d)
{
	free(d->plain);
	d->plain = NULL;
	d->package = split_package_free(d->package);
}

/* --- addresses and ranges --- */

static uint64_t address(const struct split *s, uint64_t number)
{
	uint64_t at, v;

	if (__builtin_mul_overflow(number, sizeof(v), &at) || __builtin_add_overflow(at, s->addr_base, &at) ||
	    at > s->addr.len || s->addr.len - at < sizeof(v))
		return 0;
	memcpy(&v, s->addr.data + at, sizeof(v));
	return v;
}

/* An attribute's own bytes, within the other half's mapping. */
static struct bytes bytes_of(const struct split *s, const Dwarf_Attribute *a)
{
	const uint8_t *end = s->image->base + s->image->len;

	return (struct bytes){.p = a->valp, .end = end, .bad = a->valp < s->image->base || a->valp >= end};
}

static bool take_address(const struct split *s, Dwarf_Attribute *a, uint64_t *ret)
{
	struct bytes b = bytes_of(s, a);

	if (b.bad)
		return false;
	switch (dwarf_whatform(a)) {
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		*ret = address(s, bytes_uleb(&b));
		break;
	case DW_FORM_addrx1:
		*ret = address(s, bytes_take(&b, 1));
		break;
	case DW_FORM_addrx2:
		*ret = address(s, bytes_take(&b, 2));
		break;
	case DW_FORM_addrx3:
		*ret = address(s, bytes_take(&b, 3));
		break;
	case DW_FORM_addrx4:
		*ret = address(s, bytes_take(&b, 4));
		break;
	case DW_FORM_addr:
		*ret = bytes_take(&b, 8);
		break;
	default:
		return false;
	}
	return !b.bad;
}

struct split_put {
	struct dwarf_build *d;
	uint32_t node;
	unsigned depth;
	split_range_fn *fn;
};

static int split_put_range(const struct split_put *p, uint64_t start, uint64_t end)
{
	return p->fn(p->d, start, end, p->node, p->depth);
}

/* One entry of version 5; 1: the list goes on. */
static int list_entry(const struct split *s, const struct split_put *p, struct bytes *b, uint64_t *base)
{
	uint64_t x, y;

	switch (bytes_take(b, 1)) {
	case DW_RLE_base_addressx:
		*base = address(s, bytes_uleb(b));
		return b->bad ? 0 : 1;
	case DW_RLE_startx_endx:
		x = address(s, bytes_uleb(b));
		y = address(s, bytes_uleb(b));
		break;
	case DW_RLE_startx_length:
		x = address(s, bytes_uleb(b));
		y = x + bytes_uleb(b);
		break;
	case DW_RLE_offset_pair:
		x = *base + bytes_uleb(b);
		y = *base + bytes_uleb(b);
		break;
	case DW_RLE_base_address:
		*base = bytes_take(b, 8);
		return b->bad ? 0 : 1;
	case DW_RLE_start_end:
		x = bytes_take(b, 8);
		y = bytes_take(b, 8);
		break;
	case DW_RLE_start_length:
		x = bytes_take(b, 8);
		y = x + bytes_uleb(b);
		break;
	default:
		return 0;
	}
	if (b->bad)
		return 0;
	return split_put_range(p, x, y) < 0 ? -ENOMEM : 1;
}

static int list_5(const struct split *s, const struct split_put *p, uint64_t offset)
{
	uint64_t base = s->low_pc;
	struct bytes b;
	int r = 1;

	if (offset >= s->lists.len)
		return 0;
	b = (struct bytes){s->lists.data + offset, s->lists.data + s->lists.len, false};
	for (uint32_t i = 0; r == 1 && i < RANGES_MAX; i++)
		r = list_entry(s, p, &b, &base);
	return MIN(r, 0);
}

static int list_4(const struct split *s, const struct split_put *p, uint64_t offset)
{
	uint64_t base = s->low_pc, x, y;
	struct bytes b;
	int r = 0;

	if (offset >= s->ranges.len)
		return 0;
	b = (struct bytes){s->ranges.data + offset, s->ranges.data + s->ranges.len, false};
	for (uint32_t i = 0; r == 0 && i < RANGES_MAX; i++) {
		x = bytes_take(&b, 8);
		y = bytes_take(&b, 8);
		if (b.bad || (!x && !y))
			break;
		if (x == UINT64_MAX)
			base = y;
		else
			r = split_put_range(p, base + x, base + y);
	}
	return r;
}

/* The number-th offset in front of the lists, which counts from there too. */
static int list_numbered(const struct split *s, const struct split_put *p, uint64_t number)
{
	uint64_t size = offset_bytes(s), offset = 0;

	if (s->lists_base > s->lists.len || number >= (s->lists.len - s->lists_base) / size)
		return 0;
	memcpy(&offset, s->lists.data + s->lists_base + number * size, size);
	return offset < s->lists.len ? list_5(s, p, s->lists_base + offset) : 0;
}

static int by_list(const struct split *s, const struct split_put *p, Dwarf_Attribute *a)
{
	struct bytes b = bytes_of(s, a);
	uint64_t v;

	if (b.bad)
		return 0;
	switch (dwarf_whatform(a)) {
	case DW_FORM_rnglistx:
		v = bytes_uleb(&b);
		return b.bad ? 0 : list_numbered(s, p, v);
	case DW_FORM_sec_offset:
	case DW_FORM_data4:
		v = bytes_take(&b, dwarf_whatform(a) == DW_FORM_data4 ? 4 : offset_bytes(s));
		if (b.bad)
			return 0;
		return s->version < 5 ? list_4(s, p, s->ranges_base + v) : list_5(s, p, v);
	default:
		return 0;
	}
}

int split_ranges(struct dwarf_build *d, Dwarf_Die *die, uint32_t node, unsigned depth, split_range_fn *fn)
{
	const struct split_put p = {d, node, depth, fn};
	const struct split *s = d->split ? d->split : d->plain;
	uint64_t start, end;
	Dwarf_Attribute a;
	Dwarf_Word len;

	if (dwarf_attr(die, DW_AT_ranges, &a))
		return by_list(s, &p, &a);
	if (!dwarf_attr(die, DW_AT_low_pc, &a) || !take_address(s, &a, &start) || !start ||
	    !dwarf_attr(die, DW_AT_high_pc, &a))
		return 0;
	if (take_address(s, &a, &end))
		return split_put_range(&p, start, end);
	return dwarf_formudata(&a, &len) == 0 ? split_put_range(&p, start, start + len) : 0;
}
