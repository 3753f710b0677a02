// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a function and its file. Atoms are numbered objects with their
 * text (erts/emulator/beam/atom.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define ATOM_TEXT    32
#define ATOMS_MAX    (1u << 27)
#define SEGMENT_BITS 10
#define BINARY_BYTES 16 /* header and size in bits, before the bytes */
#define LIST_TAG     1

int beam_atom(const struct beam *b, struct memory *m, uint64_t term, char to[BEAM_ATOM_MAX])
{
	uint64_t segments, segment, atom, text, i = term >> BEAM_ATOM_BITS;
	uint16_t len;

	if (!beam_is_atom(term) || i >= ATOMS_MAX)
		return -EBADMSG;
	if (memory_u64(m, b->atoms, &segments) || memory_u64(m, segments + 8 * (i >> SEGMENT_BITS), &segment) ||
	    memory_u64(m, segment + 8 * (i & ((1u << SEGMENT_BITS) - 1)), &atom) ||
	    memory_read(m, atom + BEAM_ATOM_LENGTH, &len, sizeof(len)) || memory_u64(m, atom + ATOM_TEXT, &text))
		return -EFAULT;
	len = MIN(len, BEAM_ATOM_MAX - 1);
	to[len] = '\0';
	if (len && memory_read(m, text + b->text, to, len))
		return -EFAULT;
	return len;
}

/* A pointer to the text, or from OTP 28 on a boxed binary, whose tag would be no use here: texts are not aligned. */
int beam_find_text(struct memory *m, struct beam *b)
{
	static const uint32_t offsets[] = {0, BINARY_BYTES - BEAM_BOXED_TAG};
	char text[BEAM_ATOM_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		b->text = offsets[i];
		if (beam_atom(b, m, BEAM_ATOM_TAG, text) >= 0 && strcmp(text, "false") == 0)
			return 0;
	}
	return -EAGAIN;
}

/* A string is a list of its characters. Cut at the end of to, or at what is none. */
static void beam_string(struct memory *m, uint64_t term, char *to, size_t size)
{
	uint64_t cell[2];
	size_t n = 0;

	while (n + 1 < size && (term & 3) == LIST_TAG && memory_read(m, term - LIST_TAG, cell, sizeof(cell)) == 0 &&
	       (cell[0] & BEAM_SMALL_TAG) == BEAM_SMALL_TAG && cell[0] >> BEAM_SMALL_BITS < 128) {
		to[n++] = (char)(cell[0] >> BEAM_SMALL_BITS);
		term = cell[1];
	}
	to[n] = '\0';
}

/* A file's name: an atom in OTP 23, a string in later ones. */
static void beam_file_name(const struct beam *b, struct memory *m, uint64_t term, struct runtime_function *ret)
{
	char text[BEAM_ATOM_MAX];

	if (!beam_is_atom(term))
		beam_string(m, term, ret->file, sizeof(ret->file));
	else if (beam_atom(b, m, term, text) >= 0)
		snprintf(ret->file, sizeof(ret->file), "%s", text);
}

/* Whether the function is still there; where it is not, neither is the text of its file's name. */
static bool beam_is_there(struct memory *m, const struct runtime_frame *f)
{
	uint64_t mfa[3];

	return !memory_read(m, f->key + BEAM_INFO_MFA, mfa, sizeof(mfa)) && mfa[0] == f->cookie[0] && mfa[1] == f->cookie[1] &&
	       (uint32_t)mfa[2] == (uint32_t)f->cookie[2];
}

/* Atoms are never freed: the name is that of the cookies, whatever lies at the key by now. */
int beam_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret)
{
	const struct beam *b = beam_of(a);
	char module[BEAM_ATOM_MAX], function[BEAM_ATOM_MAX];
	int err;

	if (beam_is_atom(f->key))
		return beam_decode_process(b, m, f, ret);
	err = beam_atom(b, m, f->cookie[0], module);
	if (err >= 0)
		err = beam_atom(b, m, f->cookie[1], function);
	if (err < 0)
		return err;
	beam_write(module, function, (uint32_t)f->cookie[2], ret->name);
	ret->start_line = (uint32_t)(f->cookie[2] >> 32);
	ret->nr_lines = 0;
	if (!f->cookie[3])
		snprintf(ret->file, sizeof(ret->file), "%s.erl", module);
	else if (beam_is_there(m, f))
		beam_file_name(b, m, f->cookie[3], ret);
	return 0;
}
