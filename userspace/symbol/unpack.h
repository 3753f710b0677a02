/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking into a file, stream by stream: the packed bytes lie in memory, the
 * unpacked ones never do. What grows past its bound is given up (-EFBIG), what
 * is damaged is -EBADMSG, what needs a larger window than is sane -ENOMEM.
 * from lies in a mapping of a file: pages that were read are let go.
 */
#ifndef OTP_SYMBOL_UNPACK_H
#define OTP_SYMBOL_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#define UNPACK_WINDOW_MAX (16u << 20)

/* A section with SHF_COMPRESSED: type is ELFCOMPRESS_*; exactly size bytes must come out. */
int unpack_section(uint32_t type, const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t size);
/* A stream of xz; at most max bytes. */
int unpack_xz(const uint8_t *from, size_t len, int fd, uint64_t offset, uint64_t max, uint64_t *ret_size);

#endif
