/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses into one zstd frame (RFC 8878) and expands one, as gzip.h does for
 * gzip: requests. Called by the exporter. Cost of compressing: memory by the
 * input's size, at most some MiB while it runs, and the result.
 */
#ifndef OTP_EXPORT_ZSTD_H
#define OTP_EXPORT_ZSTD_H

#include <stddef.h>

/* ret_data: owned, at its exact size. -ENOMEM; -EFBIG where the result would exceed max. */
int zstd_compress(const void *data, size_t len, size_t max, void **ret_data, size_t *ret_len);

struct buf;
/* Appends what one frame holds, up to the bound of to. -EBADMSG: it is cut or none; -EFBIG, -ENOMEM. */
int zstd_expand(const void *data, size_t len, struct buf *to);

#endif
