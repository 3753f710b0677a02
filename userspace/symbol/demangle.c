// SPDX-License-Identifier: Apache-2.0
/*
 * Readable names by libiberty's demanglers, under bounds.
 *
 * Template arguments stay, parameters and return types go: that is the form
 * that people know from flame graphs, and overloads fold into one node.
 *
 * A name of a few hundred bytes can expand to gigabytes, because each
 * substitution may be used twice by the next one. The callback interface gives
 * the text piece by piece, and both demanglers work on the stack alone while
 * they print, so a jump out of the callback ends such a name for good.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>
#undef ARRAY_SIZE /* libiberty has one too */

#include "base/cleanup.h"
#include "symbol/symbol.h"

#define DEMANGLE_IN_MAX  4096
#define DEMANGLE_OUT_MAX 16384
/* Pieces that print nothing, or a byte each, are bounded too. */
#define DEMANGLE_PIECES_MAX 65536

struct demangle {
	jmp_buf too_much;
	size_t len;
	uint32_t pieces;
	char out[DEMANGLE_OUT_MAX + 1];
};

static void demangle_take(const char *text, size_t len, void *ctx)
{
	struct demangle *d = ctx;

	if (len > DEMANGLE_OUT_MAX - d->len || ++d->pieces > DEMANGLE_PIECES_MAX)
		longjmp(d->too_much, 1);
	if (len)
		memcpy(d->out + d->len, text, len);
	d->len += len;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Rust's demangler holds memory of its own while it prints a punycode
 * identifier (u, then its length), which a jump would leak. Only back
 * references (B) can make a name explode, so the two together are refused.
 */
static bool rust_may_leak(const char *name)
{
	bool punycode = false;

	for (const char *p = name; p[0] && p[1]; p++)
		punycode |= p[0] == 'u' && is_digit(p[1]);
	return punycode && strchr(name, 'B');
}

/*
 * A function's or trait's type may bind lifetimes (F or D, then G and how many). The demangler counts through them, also where
 * it prints nothing, so that no callback ends it: up to 62, a number of one digit, are taken.
 */
static bool rust_binds_many(const char *name)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (const char *p = name; p[0] && p[1]; p++) {
		size_t n = (p[0] == 'F' || p[0] == 'D') && p[1] == 'G' ? strspn(p + 2, digits) : 0;

		if (n > 1 && p[2 + n] == '_')
			return true;
	}
	return false;
}

static bool demangle_run(struct demangle *d, const char *name)
{
	d->len = 0;
	d->pieces = 0;
	if (setjmp(d->too_much))
		return false;
	if (name[1] == 'R')
		return !rust_may_leak(name) && !rust_binds_many(name) &&
		       rust_demangle_callback(name, DMGL_ANSI, demangle_take, d);
	if (rust_demangle_callback(name, DMGL_ANSI, demangle_take, d))
		return true;
	d->len = 0;
	return cplus_demangle_v3_callback(name, DMGL_ANSI, demangle_take, d);
}

char *symbol_demangle(const char *name)
{
	_cleanup_(freep) struct demangle *d = NULL;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, DEMANGLE_IN_MAX + 1) > DEMANGLE_IN_MAX)
		return NULL;
	d = malloc(sizeof(*d));
	if (!d || !demangle_run(d, name) || !d->len)
		return NULL;
	d->out[d->len] = '\0';
	return strdup(d->out);
}
