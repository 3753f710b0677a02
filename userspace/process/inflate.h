/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a compressed section (SHF_COMPRESSED: zlib, zstd; and .zdebug_*
 * as GNU tools had them), whole, in memory: for the few that are read here and
 * there and are small. Large ones go into files, in another process (symbol/).
 *
 * Called by unwind/, once per file. Bounds: max bytes packed and max unpacked,
 * held together while it runs; a header that promises more than its bytes can
 * hold is not believed.
 * Failure: -ENOENT not compressed, -EFBIG beyond max, -ENOTSUP, -EBADMSG, -ENOMEM.
 */
#ifndef OTP_PROCESS_INFLATE_H
#define OTP_PROCESS_INFLATE_H

#include "process/binary.h"

int section_inflate(struct binary *b, const struct binary_section *s, size_t max, uint8_t **ret, size_t *ret_len);

#endif
