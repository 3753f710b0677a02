/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer with a bound. An append past the bound, or without
 * memory, sets failed and changes nothing else; callers check once at the end.
 * Lifetime: embed, buf_init (or zero: unbounded), buf_done. Not thread-safe.
 */
#ifndef OTP_BASE_BUF_H
#define OTP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	size_t max; /* 0: no bound */
	bool failed;
	bool secret; /* its memory is base/secret.h's */
};

void buf_init(struct buf *b, size_t max);
void buf_init_secret(struct buf *b, size_t max); /* for stack bytes of others */
void buf_done(struct buf *b); /* zeroed again */
void buf_reset(struct buf *b); /* keeps the memory */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_str(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for len more bytes at the end, or NULL; take it with buf_commit. */
void *buf_reserve(struct buf *b, size_t len);
int buf_refusal(const struct buf *b, size_t len); /* why that many could not be appended: -EFBIG, -ENOMEM */
void buf_commit(struct buf *b, size_t len);
/* NUL-terminated view, borrowed until the next change; "" where it failed early. */
const char *buf_cstr(struct buf *b);

#endif
