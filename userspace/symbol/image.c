// SPDX-License-Identifier: Apache-2.0
#include "symbol/image.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "symbol/unpack.h"

#define PAGE		   4096u
#define SECTIONS_MAX	   65536u
#define NAMES_MAX	   (1u << 20) /* of sections: 65536 of them have less */
#define UNPACKED_MAX	   (1ull << 30)
/* zlib packs zeros 1032 : 1 at best; real sections reach 10 : 1. */
#define UNPACKED_RATIO_MAX 1040

static uint64_t up(uint64_t n)
{
	return ALIGN_UP(n, (uint64_t)PAGE);
}

static bool lies_within(const struct image *m, uint64_t offset, uint64_t len)
{
	return offset <= m->len && len <= m->len - offset;
}

static bool is_aligned(const void *p, size_t to)
{
	return (uintptr_t)p % to == 0;
}

static int find_sections(struct image *m)
{
	const Elf64_Ehdr *h = (const void *)m->base;
	const Elf64_Shdr *first;
	uint64_t n, strings;

	if (m->len < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB)
		return -EBADMSG;
	if (!h->e_shoff || h->e_shentsize != sizeof(*first) || !lies_within(m, h->e_shoff, sizeof(*first)) ||
	    !is_aligned(m->base + h->e_shoff, 8))
		return 0; /* no sections, so nothing to learn */
	first = (const void *)(m->base + h->e_shoff);
	n = h->e_shnum ? h->e_shnum : first->sh_size;
	strings = h->e_shstrndx == SHN_XINDEX ? first->sh_link : h->e_shstrndx;
	if (n > SECTIONS_MAX || !lies_within(m, h->e_shoff, n * sizeof(*first)))
		return -EBADMSG;
	m->sections = first;
	m->nr_sections = (uint32_t)n;
	if (strings < n && lies_within(m, first[strings].sh_offset, first[strings].sh_size) &&
	    first[strings].sh_type != SHT_NOBITS) {
		m->names = (const char *)m->base + first[strings].sh_offset;
		m->names_len = first[strings].sh_size;
	}
	return 0;
}

const char *image_section_name(const struct image *m, const Elf64_Shdr *s)
{
	if (s->sh_name >= m->names_len || !memchr(m->names + s->sh_name, '\0', m->names_len - s->sh_name))
		return "";
	return m->names + s->sh_name;
}

bool image_part(const struct image *m, const Elf64_Shdr *s, struct image_part *ret)
{
	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL || s->sh_flags & SHF_COMPRESSED ||
	    !lies_within(m, s->sh_offset, s->sh_size))
		return false;
	*ret = (struct image_part){m->base + s->sh_offset, s->sh_size};
	return true;
}

bool image_section(const struct image *m, const char *name, struct image_part *ret)
{
	for (uint32_t i = 0; i < m->nr_sections; i++)
		if (!strcmp(image_section_name(m, &m->sections[i]), name) && image_part(m, &m->sections[i], ret))
			return true;
	return false;
}

size_t image_build_id(const struct image *m, uint8_t to[64])
{
	struct image_part p;
	Elf64_Nhdr n;

	if (!image_section(m, ".note.gnu.build-id", &p) || p.len < sizeof(n))
		return 0;
	memcpy(&n, p.data, sizeof(n));
	if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz != 4 || n.n_descsz > 64 || p.len < sizeof(n) + 4 + n.n_descsz)
		return 0;
	memcpy(to, p.data + sizeof(n) + 4, n.n_descsz);
	return n.n_descsz;
}

/* --- compressed sections --- */

/* .zdebug_*, as GNU tools packed before SHF_COMPRESSED: "ZLIB", then the size as 8 bytes, big-endian. */
#define GNU_HEADER 12

static bool is_gnu_packed(const struct image *m, const Elf64_Shdr *s)
{
	return s->sh_type != SHT_NOBITS && s->sh_size > GNU_HEADER && lies_within(m, s->sh_offset, s->sh_size) &&
	       !strncmp(image_section_name(m, s), ".zdebug_", 8) && !memcmp(m->base + s->sh_offset, "ZLIB", 4);
}

static bool is_packed(const struct image *m, const Elf64_Shdr *s)
{
	if (is_gnu_packed(m, s))
		return true;
	return s->sh_flags & SHF_COMPRESSED && s->sh_type != SHT_NOBITS && s->sh_size > sizeof(Elf64_Chdr) &&
	       lies_within(m, s->sh_offset, s->sh_size) && !strncmp(image_section_name(m, s), ".debug_", 7);
}

/* How, and how much will come out. Returns the header's length. */
static size_t packed_header(const struct image *m, const Elf64_Shdr *s, Elf64_Chdr *ret)
{
	const uint8_t *from = m->base + s->sh_offset;
	uint64_t size;

	if (!is_gnu_packed(m, s)) {
		memcpy(ret, from, sizeof(*ret));
		return sizeof(*ret);
	}
	memcpy(&size, from + 4, sizeof(size));
	*ret = (Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = __builtin_bswap64(size)};
	return GNU_HEADER;
}

static bool any_packed(const struct image *m)
{
	for (uint32_t i = 0; i < m->nr_sections; i++)
		if (is_packed(m, &m->sections[i]))
			return true;
	return false;
}

/* Unpacks into the scratch file; the new header says where, counted from the mapping's base. */
static int unpack_one(const struct image *m, struct scratch *scratch, uint64_t shift, Elf64_Shdr *s)
{
	uint64_t offset, packed;
	const uint8_t *from;
	Elf64_Chdr c;
	size_t head;
	int r;

	head = packed_header(m, s, &c);
	from = m->base + s->sh_offset + head;
	packed = s->sh_size - head;
	if (c.ch_size > UNPACKED_MAX || c.ch_size / UNPACKED_RATIO_MAX > packed)
		return -EFBIG;
	r = scratch_take(scratch, c.ch_size, &offset);
	if (r == 0)
		r = unpack_section(c.ch_type, from, packed, scratch->fd, offset, c.ch_size);
	if (r < 0)
		return r;
	s->sh_offset = offset + shift;
	s->sh_size = c.ch_size;
	s->sh_addralign = 1;
	s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	return 0;
}

static int unpack_all(const struct image *m, struct scratch *scratch, uint64_t shift, Elf64_Shdr *table)
{
	for (uint32_t i = 0; i < m->nr_sections; i++) {
		int r = is_packed(m, &m->sections[i]) ? unpack_one(m, scratch, shift, &table[i]) : 0;

		if (r == -ENOMEM)
			return r;
		/* A section that does not unpack is one that is not there. */
		if (r < 0)
			table[i].sh_type = SHT_NULL;
	}
	return 0;
}

static int map_at(uint8_t *at, uint64_t len, int fd, uint64_t offset)
{
	void *p;

	if (!len)
		return 0;
	p = mmap(at, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)offset);
	return p == MAP_FAILED ? -errno : 0;
}

static size_t renamed_bytes(const struct image *m)
{
	return m->names_len <= NAMES_MAX ? m->names_len : 0;
}

/* Behind the new table: the names, with .zdebug_info as .debug_info. */
static void rename_sections(const struct image *m, uint8_t *base, uint64_t table_at, uint64_t names_at)
{
	Elf64_Shdr *table = (void *)(base + table_at);
	char *names = (char *)base + names_at;
	uint64_t at;

	if (!renamed_bytes(m))
		return;
	at = (uint64_t)(m->names - (const char *)m->base);
	memcpy(names, m->names, m->names_len);
	for (uint32_t i = 0; i < m->nr_sections; i++) {
		if (m->sections[i].sh_offset == at)
			table[i].sh_offset = names_at;
		if (is_gnu_packed(m, &m->sections[i]))
			names[++table[i].sh_name] = '.';
	}
}

/* The file, the unpacked sections, the new table: one behind the other. */
static int lay_over(struct image *m, int fd, uint64_t file_offset, const struct scratch *scratch, uint64_t from,
		    const Elf64_Shdr *table)
{
	uint64_t file = up(m->len), unpacked = scratch->end - from, bytes = m->nr_sections * sizeof(*table);
	uint64_t own = up(bytes + renamed_bytes(m)), total = file + unpacked + own;
	uint8_t *base = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (base == MAP_FAILED)
		return -errno;
	r = map_at(base, m->len, fd, file_offset);
	if (r == 0)
		r = map_at(base + file, unpacked, scratch->fd, from);
	if (r == 0 && (mprotect(base + file + unpacked, own, PROT_READ | PROT_WRITE) < 0 ||
		       mprotect(base, PAGE, PROT_READ | PROT_WRITE) < 0))
		r = -errno;
	if (r < 0) {
		munmap(base, total);
		return r;
	}
	memcpy(base + file + unpacked, table, bytes);
	rename_sections(m, base, file + unpacked, file + unpacked + bytes);
	((Elf64_Ehdr *)(void *)base)->e_shoff = file + unpacked;
	munmap(m->base, m->len);
	m->base = base;
	m->patched = file + unpacked;
	m->len = total;
	return 0;
}

static int unpack_image(struct image *m, int fd, uint64_t file_offset, struct scratch *scratch)
{
	_cleanup_(freep) Elf64_Shdr *table = malloc(m->nr_sections * sizeof(*table));
	uint64_t from = scratch->end;
	int r;

	if (!table)
		return -ENOMEM;
	memcpy(table, m->sections, m->nr_sections * sizeof(*table));
	r = unpack_all(m, scratch, up(m->len) - from, table);
	if (r == 0)
		r = lay_over(m, fd, file_offset, scratch, from, table);
	return r < 0 ? r : find_sections(m);
}

int image_reopen(struct image *m)
{
	if (m->elf)
		elf_end(m->elf);
	m->elf = elf_memory((char *)m->base, m->len);
	return m->elf ? 0 : -EBADMSG;
}

static int open_as(int fd, uint64_t offset, uint64_t len, bool over, struct scratch *scratch, struct image *ret)
{
	_cleanup_(image_close) struct image m = {.len = len};
	int r;

	if (!len || (m.base = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, (off_t)offset)) == MAP_FAILED) {
		m.base = NULL;
		return len ? -errno : -EBADMSG;
	}
	m.patched = len;
	r = find_sections(&m);
	if (r == 0 && m.nr_sections && (over || any_packed(&m)))
		r = unpack_image(&m, fd, offset, scratch);
	if (r == 0)
		r = image_reopen(&m);
	if (r < 0)
		return r;
	*ret = m;
	m = (struct image){0};
	return 0;
}

int image_open(int fd, uint64_t offset, uint64_t len, struct scratch *scratch, struct image *ret)
{
	return open_as(fd, offset, len, false, scratch, ret);
}

int image_open_over(int fd, uint64_t len, struct scratch *scratch, struct image *ret)
{
	int r = open_as(fd, 0, len, true, scratch, ret);

	if (r == 0 && ret->sections != image_table(ret)) {
		image_close(ret);
		return -EBADMSG;
	}
	return r;
}

Elf64_Shdr *image_table(struct image *m)
{
	return (Elf64_Shdr *)(void *)(m->base + m->patched);
}

void image_close(struct image *m)
{
	if (m->elf)
		elf_end(m->elf);
	if (m->base)
		munmap(m->base, m->len);
	*m = (struct image){0};
}

/* The first page may be ours, the table behind is: both stay. */
void image_trim(const struct image *m)
{
	size_t end = m->patched - m->patched % PAGE;

	if (end > PAGE)
		madvise(m->base + PAGE, end - PAGE, MADV_DONTNEED);
}
