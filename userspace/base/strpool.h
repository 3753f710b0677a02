/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings with reference counts: equal strings share one object, so
 * comparing pointers compares strings. Used for paths, names and identities
 * that many processes share. One thread.
 * Ownership: str_get returns a reference that the caller owns and drops with
 * str_put; NULL is passed through.
 */
#ifndef OTP_BASE_STRPOOL_H
#define OTP_BASE_STRPOOL_H

#include <stddef.h>
#include <stdint.h>

struct str {
	uint32_t refs;
	uint32_t len;
	uint64_t hash;
	uint8_t text; /* profile/'s own: the result of checking the bytes, made once; 0: not checked yet */
	char s[];     /* NUL-terminated; may hold any other byte */
};

struct str *str_get(const char *s, size_t len); /* NULL without memory */
struct str *str_get_c(const char *s);
struct str *str_ref(struct str *s);
struct str *str_put(struct str *s); /* returns NULL */
size_t str_count(void);             /* live strings */

static inline const char *str_c(const struct str *s)
{
	return s ? s->s : "";
}

#endif
