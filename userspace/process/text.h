/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign bytes become text: UTF-8 that any receiver takes, bounded. What is
 * no UTF-8, and control characters, become U+FFFD; a cut falls between
 * characters. Pure.
 */
#ifndef OTP_PROCESS_TEXT_H
#define OTP_PROCESS_TEXT_H

#include <stddef.h>

#include "base/strpool.h"

/* Writes at most cap - 1 bytes and a terminator; returns the bytes. cap > 0. */
size_t text_clean(const char *from, size_t len, char *to, size_t cap);
/* The same, interned; owned. max: most bytes, up to TEXT_MAX. NULL without memory. */
struct str *text_str(const char *from, size_t len, size_t max);

#define TEXT_MAX 1024u

/* The part behind the last slash (trailing ones left out); borrowed from path. */
const char *text_basename(const char *path, size_t len, size_t *ret_len);

#endif
