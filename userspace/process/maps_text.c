// SPDX-License-Identifier: Apache-2.0
#include "process/maps_text.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *c, char want)
{
	if (c->at >= c->end || *c->at != want)
		return false;
	c->at++;
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static bool take_number(struct cursor *c, uint64_t base, uint64_t *ret)
{
	const char *from = c->at;
	uint64_t n = 0;

	for (; c->at < c->end && (uint64_t)digit(*c->at) < base; c->at++)
		if (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, (uint64_t)digit(*c->at), &n))
			return false;
	*ret = n;
	return c->at > from;
}

static bool take_range(struct cursor *c, struct maps_line *l)
{
	return take_number(c, 16, &l->start) && take_char(c, '-') && take_number(c, 16, &l->end) &&
	       take_char(c, ' ') && l->start < l->end;
}

static bool take_permissions(struct cursor *c, struct maps_line *l)
{
	if (c->end - c->at < 5)
		return false;
	l->exec = c->at[2] == 'x';
	c->at += 4;
	return take_char(c, ' ');
}

static bool take_file(struct cursor *c, struct maps_line *l)
{
	uint64_t major, minor;

	if (!take_number(c, 16, &l->offset) || !take_char(c, ' ') || !take_number(c, 16, &major) ||
	    !take_char(c, ':') || !take_number(c, 16, &minor) || !take_char(c, ' ') ||
	    !take_number(c, 10, &l->ino))
		return false;
	l->dev = makedev((unsigned int)major, (unsigned int)minor);
	return true;
}

static void take_name(struct maps_text *t, struct cursor *c, struct maps_line *l)
{
	size_t n = 0;

	while (take_char(c, ' '))
		;
	while (c->at < c->end && n < MAPS_NAME_MAX) {
		bool newline = c->end - c->at >= 4 && !memcmp(c->at, "\\012", 4);

		t->name[n++] = newline ? '\n' : *c->at;
		c->at += newline ? 4 : 1;
	}
	t->name[n] = '\0';
	l->name = t->name;
	l->name_len = n;
}

static bool take_line(struct maps_text *t, struct cursor *c, struct maps_line *l)
{
	*l = (struct maps_line){0};
	if (!take_range(c, l) || !take_permissions(c, l) || !take_file(c, l))
		return false;
	take_name(t, c, l);
	return true;
}

void maps_text_init(struct maps_text *t, const char *text, size_t len)
{
	t->at = text;
	t->end = text + len;
	t->bad_lines = 0;
}

bool maps_text_next(struct maps_text *t, struct maps_line *ret)
{
	while (t->at < t->end) {
		const char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
		struct cursor c = {t->at, newline ? newline : t->end};

		t->at = newline ? newline + 1 : t->end;
		if (take_line(t, &c, ret))
			return true;
		t->bad_lines++;
	}
	return false;
}
