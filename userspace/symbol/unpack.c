// SPDX-License-Identifier: Apache-2.0
#include "symbol/unpack.h"

#include <elf.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbol/spool.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* gABI, section compression */
#endif
#define OUT_BYTES 65536
#define WINDOW_LOG_MAX 24

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

static int inflate_all(z_stream *z, struct sink *s)
{
	int r = Z_OK;

	while (r == Z_OK && !s->to.error) {
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
	z_stream z = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)MIN(len, (size_t)UINT32_MAX)};
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = inflate_all(&z, s);
	inflateEnd(&z);
	return r;
}

static int zstd_all(ZSTD_DStream *z, const uint8_t *from, size_t len, struct sink *s)
{
	ZSTD_inBuffer in = {from, len, 0};
	size_t left = 1;

	while (left && !s->to.error) {
		ZSTD_outBuffer out = {s->out, sizeof(s->out), 0};
		size_t before = in.pos;

		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left) || (left && !out.pos && in.pos == before))
			return -EBADMSG;
		spool_add(&s->to, s->out, out.pos);
	}
	return s->to.error;
}

static int unpack_zstd(const uint8_t *from, size_t len, struct sink *s)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	int r = -ENOMEM;

	if (z && !ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		r = zstd_all(z, from, len, s);
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

static int xz_all(lzma_stream *z, struct sink *s)
{
	lzma_ret r = LZMA_OK;

	while (r == LZMA_OK && !s->to.error) {
		z->next_out = s->out;
		z->avail_out = sizeof(s->out);
		r = lzma_code(z, LZMA_FINISH);
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
		z.next_in = from;
		z.avail_in = len;
		r = xz_all(&z, s);
	}
	lzma_end(&z);
	return r < 0 ? r : sink_end(s, ret_size);
}
