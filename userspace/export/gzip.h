/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses into one gzip member, level 6, and expands one: requests and
 * answers. Called by the exporter, and by the hub's receiver. Cost of compressing: some 270 KiB of memory
 * while it runs, and the result.
 */
#ifndef OTP_EXPORT_GZIP_H
#define OTP_EXPORT_GZIP_H

#include <stddef.h>
#include <stdint.h>

/* ret_data: owned, at its exact size. -ENOMEM; -EFBIG where the result would exceed max. */
int gzip_compress(const void *data, size_t len, size_t max, void **ret_data, size_t *ret_len);

struct buf;
/* Appends what one gzip member holds, up to the bound of to. -EBADMSG: it is cut or none; -EFBIG, -ENOMEM. */
int gzip_expand(const void *data, size_t len, struct buf *to);

#endif
