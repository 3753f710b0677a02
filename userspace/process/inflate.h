/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a compressed section (SHF_COMPRESSED: zlib, zstd; and .zdebug_* of
 * older GNU tools) into memory: for small sections with random access. Large
 * ones are unpacked into files, by another process (symbol/).
 *
 * Called by unwind/, once per file. Bounds: max bytes packed and max unpacked,
 * both in memory while it runs; a header with a larger size than its bytes can
 * unpack to is refused.
 * Failure: -ENOENT not compressed, -EFBIG beyond max, -ENOTSUP, -EBADMSG, -ENOMEM.
 */
#ifndef OTP_PROCESS_INFLATE_H
#define OTP_PROCESS_INFLATE_H

#include "process/binary.h"

int section_inflate(struct binary *b, const struct binary_section *s, size_t max, uint8_t **ret, size_t *ret_len);

#endif
