/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking into a file, as a stream: the packed bytes lie in memory, the
 * unpacked ones are written as they are made. -EFBIG: larger than its bound;
 * -EBADMSG: damaged; -ENOMEM: needs a window beyond UNPACK_WINDOW_MAX.
 * from lies in a mapping of a file: pages that were read are released.
 */
#ifndef OTP_SYMBOL_UNPACK_H
#define OTP_SYMBOL_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#define UNPACK_WINDOW_MAX (16u << 20)

/* A section with SHF_COMPRESSED: type is ELFCOMPRESS_*; it must unpack to exactly size bytes. */
int unpack_section(uint32_t type, const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t size);
/* A stream of xz; at most max bytes. */
int unpack_xz(const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t max, uint64_t *ret_size);

#endif
