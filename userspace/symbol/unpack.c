// SPDX-License-Identifier: Apache-2.0
#include "symbol/unpack.h"

#include <elf.h>
#include <lzma.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbol/spool.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* gABI, section compression */
#endif
#define OUT_BYTES 65536
#define SLICE	  (1u << 20)
#define PAGE	  4096u
#define WINDOW_LOG_MAX 24

/* Input in slices, so that what was read need not stay in memory. */
struct source {
	const uint8_t *begin, *p, *end;
};

static const uint8_t *next_slice(struct source *s, size_t *ret_len)
{
	const uint8_t *slice = s->p;
	uintptr_t from = ALIGN_UP((uintptr_t)s->begin, (uintptr_t)PAGE), to = (uintptr_t)slice & ~(uintptr_t)(PAGE - 1);

	/* Whole pages of this input only. */
	if (to > from)
		madvise((void *)from, to - from, MADV_DONTNEED);
	*ret_len = MIN((size_t)(s->end - slice), (size_t)SLICE);
	s->p += *ret_len;
	return slice;
}

/* Where unpacked bytes go; shared by the three. */
struct sink {
	struct spool to;
	uint8_t out[OUT_BYTES];
};

static struct sink *sink_new(int fd, uint64_t offset, uint64_t size)
{
	struct sink *s = malloc(sizeof(*s));

	if (s)
		spool_init(&s->to, fd, offset, offset + size);
	return s;
}

static int sink_end(struct sink *s, uint64_t *ret_size)
{
	int r = spool_flush(&s->to);

	*ret_size = s->to.end - s->to.start;
	return r;
}

static int inflate_all(z_stream *z, struct source *from, struct sink *s)
{
	int r = Z_OK;

	while (r == Z_OK && !s->to.error) {
		if (!z->avail_in) {
			size_t n;

			z->next_in = (Bytef *)(uintptr_t)next_slice(from, &n);
			z->avail_in = (uInt)n;
		}
		z->next_out = s->out;
		z->avail_out = sizeof(s->out);
		r = inflate(z, Z_NO_FLUSH);
		spool_add(&s->to, s->out, sizeof(s->out) - z->avail_out);
	}
	if (s->to.error)
		return s->to.error;
	return r == Z_STREAM_END ? 0 : -EBADMSG;
}

static int unpack_zlib(const uint8_t *from, size_t len, struct sink *s)
{
	struct source in = {from, from, from + len};
	z_stream z = {.next_in = NULL};
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = inflate_all(&z, &in, s);
	inflateEnd(&z);
	return r;
}

static int zstd_all(ZSTD_DStream *z, struct source *from, struct sink *s)
{
	ZSTD_inBuffer in = {NULL, 0, 0};
	size_t left = 1;

	while (left && !s->to.error) {
		ZSTD_outBuffer out = {s->out, sizeof(s->out), 0};

		if (in.pos == in.size) {
			in.src = next_slice(from, &in.size);
			in.pos = 0;
		}
		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left) || (left && !out.pos && !in.size))
			return -EBADMSG;
		spool_add(&s->to, s->out, out.pos);
	}
	return s->to.error;
}

static int unpack_zstd(const uint8_t *from, size_t len, struct sink *s)
{
	struct source in = {from, from, from + len};
	ZSTD_DStream *z = ZSTD_createDStream();
	int r = -ENOMEM;

	if (z && !ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		r = zstd_all(z, &in, s);
	ZSTD_freeDStream(z);
	return r;
}

int unpack_section(uint32_t type, const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t size)
{
	_cleanup_(freep) struct sink *s = sink_new(fd, offset, size);
	uint64_t have = 0;
	int r = s ? 0 : -ENOMEM;

	if (r == 0 && type == ELFCOMPRESS_ZLIB)
		r = unpack_zlib(from, len, s);
	else if (r == 0 && type == ELFCOMPRESS_ZSTD)
		r = unpack_zstd(from, len, s);
	else if (r == 0)
		r = -ENOTSUP;
	if (r == 0)
		r = sink_end(s, &have);
	return r == 0 && have != size ? -EBADMSG : r;
}

static int xz_all(lzma_stream *z, struct source *from, struct sink *s)
{
	lzma_ret r = LZMA_OK;

	while (r == LZMA_OK && !s->to.error) {
		if (!z->avail_in)
			z->next_in = next_slice(from, &z->avail_in);
		z->next_out = s->out;
		z->avail_out = sizeof(s->out);
		r = lzma_code(z, from->p == from->end ? LZMA_FINISH : LZMA_RUN);
		spool_add(&s->to, s->out, sizeof(s->out) - z->avail_out);
	}
	if (s->to.error)
		return s->to.error;
	if (r == LZMA_MEMLIMIT_ERROR || r == LZMA_MEM_ERROR)
		return -ENOMEM;
	return r == LZMA_STREAM_END ? 0 : -EBADMSG;
}

int unpack_xz(const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t max, uint64_t *ret_size)
{
	_cleanup_(freep) struct sink *s = sink_new(fd, offset, max);
	lzma_stream z = LZMA_STREAM_INIT;
	int r = -ENOMEM;

	if (s && lzma_stream_decoder(&z, UNPACK_WINDOW_MAX, 0) == LZMA_OK) {
		struct source in = {from, from, from + len};

		r = xz_all(&z, &in, s);
	}
	lzma_end(&z);
	return r < 0 ? r : sink_end(s, ret_size);
}
