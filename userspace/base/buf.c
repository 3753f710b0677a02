// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

#define BUF_FIRST 256

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_init_secret(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max, .secret = true};
}

void buf_done(struct buf *b)
{
	if (b->secret)
		secret_free(b->data, b->cap);
	else
		free(b->data);
	*b = (struct buf){.max = b->max, .secret = b->secret};
}

static uint8_t *resize(struct buf *b, size_t cap)
{
	if (!b->secret)
		return realloc(b->data, cap);
	return b->data ? secret_grow(b->data, b->cap, cap) : secret_new(cap);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void *buf_reserve(struct buf *b, size_t len)
{
	size_t need, cap = b->cap ? b->cap : BUF_FIRST;
	uint8_t *data;

	if (b->failed || __builtin_add_overflow(b->len, len, &need) || (b->max && need > b->max) ||
	    need > SIZE_MAX / 2) {
		b->failed = true;
		return NULL;
	}
	if (need <= b->cap && b->data)
		return b->data + b->len;
	while (cap < need)
		cap *= 2;
	data = resize(b, cap);
	if (!data) {
		b->failed = true;
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	return data + b->len;
}

int buf_refusal(const struct buf *b, size_t len)
{
	return b->max && len > b->max - b->len ? -EFBIG : -ENOMEM;
}

void buf_commit(struct buf *b, size_t len)
{
	b->len += len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	void *to = buf_reserve(b, len);

	if (!to || !len)
		return;
	memcpy(to, data, len);
	b->len += len;
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !(to = buf_reserve(b, (size_t)n + 1))) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
	char *end = buf_reserve(b, 1);

	if (!end)
		return "";
	*end = '\0';
	return (const char *)b->data;
}
