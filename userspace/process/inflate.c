// SPDX-License-Identifier: Apache-2.0
#include "process/inflate.h"

#include <elf.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* gABI, section compression */
#endif
/* zlib packs zeros 1032 : 1 at best, and no frame table is all zeros. */
#define RATIO_MAX 1040
#define GNU_HEADER 12 /* "ZLIB", and the size as 8 bytes, big-endian */

struct packed_section {
	uint32_t type;
	uint64_t offset, len; /* of the packed bytes */
	uint64_t size;	      /* of the unpacked bytes */
};

static int inflate_read_packed(struct binary *b, uint64_t offset, void *to, size_t len)
{
	return binary_read(b, offset, to, len) == (ssize_t)len ? 0 : -EBADMSG;
}

static int inflate_gnu_header(struct binary *b, const struct binary_section *s, struct packed_section *ret)
{
	uint8_t head[GNU_HEADER];
	uint64_t size;

	if (s->size <= sizeof(head) || inflate_read_packed(b, s->offset, head, sizeof(head)) < 0 ||
	    memcmp(head, "ZLIB", 4) != 0)
		return -EBADMSG;
	memcpy(&size, head + 4, sizeof(size));
	*ret = (struct packed_section){ELFCOMPRESS_ZLIB, s->offset + sizeof(head), s->size - sizeof(head),
				       __builtin_bswap64(size)};
	return 0;
}

static int inflate_gabi_header(struct binary *b, const struct binary_section *s, struct packed_section *ret)
{
	Elf64_Chdr c;

	if (!b->is_64 || s->size <= sizeof(c) || inflate_read_packed(b, s->offset, &c, sizeof(c)) < 0)
		return -EBADMSG;
	*ret = (struct packed_section){c.ch_type, s->offset + sizeof(c), s->size - sizeof(c), c.ch_size};
	return 0;
}

static int inflate_header(struct binary *b, const struct binary_section *s, struct packed_section *ret)
{
	if (s->offset > b->size || s->size > b->size - s->offset)
		return -EBADMSG;
	if (s->flags & SHF_COMPRESSED)
		return inflate_gabi_header(b, s, ret);
	return strncmp(s->name, ".zdebug_", 8) ? -ENOENT : inflate_gnu_header(b, s, ret);
}

/* Both decoders write no byte beyond size, and need no separate window. */
static int inflate_unpack(const struct packed_section *p, const uint8_t *from, uint8_t *to)
{
	uLongf n = (uLongf)p->size;
	int r;

	if (p->type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, p->size, from, p->len) == p->size ? 0 : -EBADMSG;
	if (p->type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	r = uncompress(to, &n, from, (uLong)p->len);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_OK && n == p->size ? 0 : -EBADMSG;
}

int section_inflate(struct binary *b, const struct binary_section *s, size_t max, uint8_t **ret, size_t *ret_len)
{
	_cleanup_(freep) uint8_t *from = NULL;
	_cleanup_(freep) uint8_t *to = NULL;
	struct packed_section p;
	int r = inflate_header(b, s, &p);

	if (r < 0)
		return r;
	if (p.len > max || p.size > max || p.size / RATIO_MAX > p.len)
		return -EFBIG;
	from = malloc(p.len);
	to = malloc(p.size ? p.size : 1);
	if (!from || !to)
		return -ENOMEM;
	r = inflate_read_packed(b, p.offset, from, p.len);
	if (r == 0)
		r = inflate_unpack(&p, from, to);
	if (r < 0)
		return r;
	*ret = steal_ptr(&to);
	*ret_len = p.size;
	return 0;
}
