/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of protobuf fields, for fields numbered 1 to 15 (one byte of tag).
 * A field of default value is not written at all. Used within profile/ only.
 */
#ifndef OTP_PROFILE_WIRE_SIZE_H
#define OTP_PROFILE_WIRE_SIZE_H

#include <stddef.h>
#include <stdint.h>

static inline size_t size_varint(uint64_t v)
{
	return (size_t)(64 - __builtin_clzll(v | 1) + 6) / 7;
}

static inline size_t size_number(uint64_t v)
{
	return v ? 1 + size_varint(v) : 0;
}

/* A message, string or bytes of this length, written even when empty. */
static inline size_t size_block(size_t len)
{
	return 1 + size_varint(len) + len;
}

#endif
