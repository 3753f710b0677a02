// SPDX-License-Identifier: Apache-2.0
#include "export/zstd.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/buf.h"
#include "base/cleanup.h"

/*
 * On requests of the mixed load (27 of 57 KB, 20 Hz, CPU time of each): gzip as
 * in gzip.c 106.7 bytes a sample and 2.9 ms; zstd of level 3, 6, 12, 19 in whole
 * blocks 119.1, 110.4, 109.4, 106.3, and 0.4, 0.7, 1.6, 11.2 ms; in short ones,
 * so that numbers and text have codes of their own, 110.2, 103.1, 102.2, 102.2,
 * and 0.3, 0.6, 1.6, 6.5 ms.
 */
#define ZSTD_LEVEL	6
#define ZSTD_BLOCK	8192u
#define ZSTD_BLOCK_HEAD 3 /* RFC 8878, 3.1.1.2 */
#define ZSTD_WINDOW_LOG 20 /* at most; shorter input has a smaller window, and smaller tables */

static void zstd_cctxp(ZSTD_CCtx **z)
{
	ZSTD_freeCCtx(*z);
}

static void zstd_dctxp(ZSTD_DCtx **z)
{
	ZSTD_freeDCtx(*z);
}

static int zstd_error(size_t result)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_dstSize_tooSmall:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

/* len: the input's, which libzstd chooses its tables by. */
static ZSTD_CCtx *zstd_new(size_t len)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();

	if (z && !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, ZSTD_WINDOW_LOG)) &&
	    !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(z, len)))
		return z;
	ZSTD_freeCCtx(z);
	return NULL;
}

/* Each block has codes of its own, and refers to those before it. */
static int zstd_compress_all(ZSTD_CCtx *z, const char *data, size_t len, ZSTD_outBuffer *out)
{
	ZSTD_inBuffer in = {data, 0, 0};

	while (in.pos < len) {
		size_t left;

		in.size = MIN(len, in.pos + ZSTD_BLOCK);
		left = ZSTD_compressStream2(z, out, &in, in.size == len ? ZSTD_e_end : ZSTD_e_flush);
		if (ZSTD_isError(left))
			return zstd_error(left);
		/* The rest had no room. */
		if (left)
			return -EFBIG;
	}
	return 0;
}

int zstd_compress(const void *data, size_t len, size_t max, void **ret_data, size_t *ret_len)
{
	_cleanup_(zstd_cctxp) ZSTD_CCtx *z = zstd_new(len);
	ZSTD_outBuffer out = {NULL, max ? max : ZSTD_compressBound(len) + len / ZSTD_BLOCK * ZSTD_BLOCK_HEAD, 0};
	_cleanup_(freep) void *owned = malloc(out.size);
	void *fit;
	int rc;

	if (!z || !owned)
		return -ENOMEM;
	out.dst = owned;
	rc = zstd_compress_all(z, data, len, &out);
	if (rc < 0)
		return rc;
	fit = realloc(owned, out.pos);
	*ret_data = fit ? fit : owned;
	*ret_len = out.pos;
	owned = NULL;
	return 0;
}

/* 1: the end; 0: more. */
static int zstd_expand_step(ZSTD_DCtx *z, ZSTD_inBuffer *in, struct buf *to)
{
	uint8_t room[4096];
	ZSTD_outBuffer out = {room, sizeof(room), 0};
	size_t left = ZSTD_decompressStream(z, &out, in);

	if (ZSTD_isError(left))
		return zstd_error(left);
	buf_add(to, room, out.pos);
	if (to->failed)
		return buf_refusal(to, out.pos);
	if (!left)
		return in->pos == in->size ? 1 : -EBADMSG;
	return in->pos < in->size || out.pos == out.size ? 0 : -EBADMSG;
}

int zstd_expand(const void *data, size_t len, struct buf *to)
{
	_cleanup_(zstd_dctxp) ZSTD_DCtx *z = ZSTD_createDCtx();
	ZSTD_inBuffer in = {data, len, 0};
	int rc;

	if (!z || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
		return -ENOMEM;
	do {
		rc = zstd_expand_step(z, &in, to);
	} while (!rc);
	return rc < 0 ? rc : 0;
}
