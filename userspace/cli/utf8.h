/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from elsewhere made safe to show: valid UTF-8 without control
 * characters. Called by the reader for every string, by the renderers for
 * text that must fit. Pure functions.
 */
#ifndef OTP_CLI_UTF8_H
#define OTP_CLI_UTF8_H

#include <stddef.h>

#include "base/buf.h"

/* Appends s; what is no UTF-8, a control character or no character in XML becomes U+FFFD. */
void utf8_clean(struct buf *out, const char *s, size_t len);
/* The same in place; what is not to be shown becomes '?'. */
void utf8_fix(char *s);
/* Number of characters of valid UTF-8. */
size_t utf8_count(const char *s);
/* Bytes of the first n characters. */
size_t utf8_bytes(const char *s, size_t n);
/* Appends s with the characters that mean something in XML escaped. */
void xml_escape(struct buf *out, const char *s, size_t len);

#endif
