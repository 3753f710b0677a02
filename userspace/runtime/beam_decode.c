// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a function: module, function and arity, as Erlang writes them, or
 * as Elixir does where the module is one of Elixir. Atoms are numbered objects
 * with their text (erts/emulator/beam/atom.h).
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define ATOM_MAX     256 /* bytes of text, its NUL included */
#define ATOM_LENGTH  24
#define ATOM_TEXT    32
#define ATOMS_MAX    (1u << 27)
#define SEGMENT_BITS 10
#define LIST_TAG     1
#define SMALL_BITS   4
#define SMALL_TAG    0xf
#define ELIXIR	     "Elixir."

static int beam_atom(const struct beam *b, struct memory *m, uint64_t term, char to[ATOM_MAX])
{
	uint64_t segments, segment, atom, text, i = term >> BEAM_ATOM_BITS;
	uint16_t len;

	if (!beam_is_atom(term) || i >= ATOMS_MAX)
		return -EBADMSG;
	if (memory_u64(m, b->atoms, &segments) || memory_u64(m, segments + 8 * (i >> SEGMENT_BITS), &segment) ||
	    memory_u64(m, segment + 8 * (i & ((1u << SEGMENT_BITS) - 1)), &atom) ||
	    memory_read(m, atom + ATOM_LENGTH, &len, sizeof(len)) || memory_u64(m, atom + ATOM_TEXT, &text))
		return -EFAULT;
	len = MIN(len, ATOM_MAX - 1);
	to[len] = '\0';
	return len ? memory_read(m, text, to, len) : 0;
}

/* A string is a list of its characters. Cut at the end of to, or at what is none. */
static void beam_string(struct memory *m, uint64_t term, char *to, size_t size)
{
	uint64_t cell[2];
	size_t n = 0;

	while (n + 1 < size && (term & 3) == LIST_TAG && memory_read(m, term - LIST_TAG, cell, sizeof(cell)) == 0 &&
	       (cell[0] & ((1u << SMALL_BITS) - 1)) == SMALL_TAG && cell[0] >> SMALL_BITS < 128) {
		to[n++] = (char)(cell[0] >> SMALL_BITS);
		term = cell[1];
	}
	to[n] = '\0';
}

static bool beam_is_plain(const char *s)
{
	if (!islower((unsigned char)*s))
		return false;
	while (isalnum((unsigned char)*s) || *s == '_' || *s == '@')
		s++;
	return !*s;
}

static void beam_write(const char *module, const char *function, uint32_t arity, char to[RUNTIME_NAME_MAX])
{
	const char *m = beam_is_plain(module) ? "" : "'", *f = beam_is_plain(function) ? "" : "'";

	if (!strncmp(module, ELIXIR, strlen(ELIXIR)))
		snprintf(to, RUNTIME_NAME_MAX, "%.250s.%.250s/%u", module + strlen(ELIXIR), function, arity);
	else
		snprintf(to, RUNTIME_NAME_MAX, "%s%.240s%s:%s%.240s%s/%u", m, module, m, f, function, f, arity);
}

int beam_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret)
{
	const struct beam *b = beam_of(a);
	char module[ATOM_MAX], function[ATOM_MAX];
	uint64_t mfa[3];
	int err = memory_read(m, f->key + BEAM_INFO_MFA, mfa, sizeof(mfa));

	if (!err && (mfa[0] != f->cookie[0] || mfa[1] != f->cookie[1] || (uint32_t)mfa[2] != (uint32_t)f->cookie[2]))
		err = -ESTALE;
	if (!err)
		err = beam_atom(b, m, mfa[0], module);
	if (!err)
		err = beam_atom(b, m, mfa[1], function);
	if (err)
		return err;
	beam_write(module, function, (uint32_t)mfa[2], ret->name);
	ret->start_line = (uint32_t)(f->cookie[2] >> 32);
	ret->nr_lines = 0;
	if (f->cookie[3])
		beam_string(m, f->cookie[3], ret->file, sizeof(ret->file));
	else
		snprintf(ret->file, sizeof(ret->file), "%s.erl", module);
	return 0;
}
