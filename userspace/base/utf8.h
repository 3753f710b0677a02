/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8: the one decoder, and the one rule for text that others wrote (names
 * from files, processes, requests and configuration).
 *
 * Log lines are cleaned as a whole (base/log.c), JSON and the pages of otprof
 * where they are written.
 *
 * The rule: text holds printable characters only. Every byte that belongs to
 * none becomes '?': malformed sequences, control characters of C0 and C1, and
 * U+FFFE and U+FFFF, which XML excludes. So cleaned text is as long as before,
 * and can be cleaned in place.
 *
 * Called by everybody, any thread: pure functions. Cost: one pass.
 */
#ifndef OTP_BASE_UTF8_H
#define OTP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Bytes of the printable character at s, of which left bytes (at least one) exist; 0: there is none. */
size_t utf8_char(const char *s, size_t left);
bool utf8_is_clean(const char *s, size_t len);

/*
 * Copies from, cleaned, to at most cap bytes; a character that does not fit
 * whole ends the copy. Returns the bytes written, without a NUL. to may be from.
 */
size_t utf8_clean(char *to, size_t cap, const char *from, size_t len);
void utf8_clean_str(char *s);                                   /* in place */
void utf8_add_clean(struct buf *out, const char *s, size_t len); /* appends */

/* Of clean text: the number of characters, and the bytes of the first n characters. */
size_t utf8_count(const char *s);
size_t utf8_bytes(const char *s, size_t n);

#endif
