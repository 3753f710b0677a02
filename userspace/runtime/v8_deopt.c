// SPDX-License-Identifier: Apache-2.0
/*
 * Deoptimization data of optimized code: for each place where it may be left,
 * how its frame is turned back into those of unoptimized code: which functions,
 * at which of their bytecodes (V8, deoptimization-data.h, translation-opcode.h,
 * frame-translation-builder.cc). A translation may repeat instructions of one
 * before it.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

#define ENTRY_WORDS	 3
#define INSTRUCTIONS_MAX 4096 /* of one translation */

/* Indices of the data, behind the table of inlinings. */
enum { EXITS_START = 1, EAGER_NR, LAZY_NR, ENTRIES };

static int v8_deopt_smi(uint64_t word, int32_t *ret)
{
	if ((uint32_t)word)
		return -EBADMSG;
	*ret = (int32_t)(word >> 32);
	return 0;
}

static int v8_deopt_header(const struct v8 *v, struct memory *m, uint64_t data, struct v8_deopt *d)
{
	uint64_t word[ENTRIES];
	int32_t length, start, eager, lazy;
	uint64_t at = data - 1 + v->array_data + 8ULL * v8_row(v)->deopt_inlining;
	int err = v8_length(v, m, data, v->array_length, &length);

	if (!err && length < v8_row(v)->deopt_inlining + ENTRIES)
		err = -EBADMSG;
	if (!err)
		err = memory_read(m, at, word, sizeof(word));
	if (err || v8_deopt_smi(word[EXITS_START], &start) || v8_deopt_smi(word[EAGER_NR], &eager) ||
	    v8_deopt_smi(word[LAZY_NR], &lazy))
		return err ? err : -EBADMSG;
	if (start < 0 || eager < 0 || lazy < 0 || eager > (int32_t)V8_DEOPT_MAX - lazy)
		return -E2BIG;
	d->exits = (uint32_t)start;
	d->eager = (uint32_t)eager;
	d->nr = (uint32_t)(eager + lazy);
	if (length < v8_row(v)->deopt_inlining + ENTRIES + ENTRY_WORDS * (int32_t)d->nr)
		return -EBADMSG;
	return memory_read(m, at + 8 * ENTRIES, d->entry, 8ULL * ENTRY_WORDS * d->nr);
}

int v8_deopt_open(const struct v8 *v, struct memory *m, uint64_t data, struct v8_deopt *d)
{
	uint64_t bytes;
	int32_t length;
	int err = v8_deopt_header(v, m, data, d);

	if (!err)
		err = v8_field(m, data, v->array_data, &bytes);
	if (!err)
		err = v8_length(v, m, bytes, v->array_length, &length);
	if (err)
		return err;
	if (length < 0 || length > (int32_t)sizeof(d->bytes))
		return -E2BIG;
	d->how = &v8_row(v)->translation;
	d->len = (uint32_t)length;
	return memory_read(m, bytes - 1 + v->array_data, d->bytes, d->len);
}

int v8_deopt_place(const struct v8_deopt *d, uint32_t entry, int32_t *ret)
{
	return v8_deopt_smi(d->entry[ENTRY_WORDS * entry + 2], ret);
}

/* --- translations --- */

struct v8_translating {
	const struct v8_deopt *d;
	uint32_t at, before; /* of the translation; of the one that it repeats */
	uint32_t behind;     /* instructions that the other is behind */
	uint32_t repeats;    /* as many are still to be repeated */
	bool has_before;
};

static int v8_translating_number(const struct v8_deopt *d, uint32_t *at, uint32_t *ret)
{
	uint32_t n = 0;

	for (unsigned shift = 0; shift < 35 && *at < d->len; shift += 7) {
		uint8_t byte = d->bytes[(*at)++];

		n |= (uint32_t)(byte & 0x7f) << (shift % 32);
		if (byte & 0x80)
			continue;
		*ret = n;
		return 0;
	}
	return -EBADMSG;
}

/* Before V8 11 it is a number with a sign, as all others. */
static int v8_translating_opcode(const struct v8_deopt *d, uint32_t *at, uint32_t *ret)
{
	if (*at >= d->len)
		return -ENOENT;
	*ret = d->bytes[(*at)++];
	if (d->how->signed_opcodes)
		*ret = *ret & 0x81 ? UINT32_MAX : *ret >> 1;
	return 0;
}

static int v8_translating_skip(const struct v8_deopt *d, uint32_t *at, uint32_t opcode)
{
	uint32_t ignored;
	int err = opcode < d->how->nr ? 0 : -EBADMSG;

	for (uint32_t i = 0; !err && i < d->how->operands[opcode]; i++)
		err = v8_translating_number(d, at, &ignored);
	return err;
}

static bool v8_translating_begins(const struct v8_translation *how, uint32_t opcode)
{
	return opcode == how->begin[0] || opcode == how->begin[1];
}

/* Of the translation before; *ret_at: its operands. */
static int v8_translating_repeat(struct v8_translating *t, uint32_t *ret, uint32_t *ret_at)
{
	int err = t->has_before ? 0 : -EBADMSG;

	for (; !err && t->behind; t->behind--) {
		err = v8_translating_opcode(t->d, &t->before, ret);
		err = err ? err : v8_translating_skip(t->d, &t->before, *ret);
	}
	if (!err)
		err = v8_translating_opcode(t->d, &t->before, ret);
	*ret_at = t->before;
	t->repeats--;
	return err ? err : v8_translating_skip(t->d, &t->before, *ret);
}

/* The next instruction, wherever it is. */
static int v8_translating_next(struct v8_translating *t, uint32_t *ret, uint32_t *ret_at)
{
	const struct v8_translation *how = t->d->how;
	int err = 0;

	if (!t->repeats) {
		err = v8_translating_opcode(t->d, &t->at, ret);
		if (!err && how->repeat && *ret > how->nr && *ret <= UINT8_MAX)
			t->repeats = *ret - how->nr; /* a short form */
		else if (!err && how->repeat && *ret == how->repeat)
			err = v8_translating_number(t->d, &t->at, &t->repeats);
		if (err)
			return err;
	}
	if (t->repeats)
		return v8_translating_repeat(t, ret, ret_at);
	*ret_at = t->at;
	t->behind++;
	return v8_translating_skip(t->d, &t->at, *ret);
}

static int v8_translating_begin(struct v8_translating *t, const struct v8_deopt *d, uint32_t index)
{
	uint32_t opcode, back, at = index;
	int err = v8_translating_opcode(d, &at, &opcode);

	*t = (struct v8_translating){.d = d, .at = at, .behind = 1};
	if (err || !v8_translating_begins(d->how, opcode))
		return err ? err : -EBADMSG;
	if (d->how->repeat) {
		err = v8_translating_number(d, &at, &back);
		if (err || back > index)
			return err ? err : -EBADMSG;
		t->has_before = back != 0;
		t->before = index - back;
	}
	return v8_translating_skip(d, &t->at, opcode);
}

static int v8_translating_frame(const struct v8_deopt *d, uint32_t at, struct v8_deopt_frame *ret)
{
	uint32_t bytecode = 0, literal = 0;
	int err = v8_translating_number(d, &at, &bytecode);

	if (!err)
		err = v8_translating_number(d, &at, &literal);
	ret->bytecode = (int32_t)(bytecode >> 1) * (bytecode & 1 ? -1 : 1);
	ret->literal = (int32_t)(literal >> 1);
	return err ? err : (literal & 1 ? -EBADMSG : 0);
}

int v8_deopt_frames(const struct v8_deopt *d, uint32_t entry, struct v8_deopt_frame ret[RUNTIME_CODE_DEPTH])
{
	struct v8_translating t;
	int32_t index;
	int nr = 0, err = v8_deopt_smi(d->entry[ENTRY_WORDS * entry + 1], &index);

	if (!err)
		err = index < 0 ? -EBADMSG : v8_translating_begin(&t, d, (uint32_t)index);
	for (uint32_t i = 0, opcode, at; !err && i < INSTRUCTIONS_MAX; i++) {
		err = v8_translating_next(&t, &opcode, &at);
		if (err || v8_translating_begins(d->how, opcode))
			break;
		if (opcode != d->how->frame[0] && opcode != d->how->frame[1])
			continue;
		err = nr == RUNTIME_CODE_DEPTH ? -E2BIG : v8_translating_frame(d, at, &ret[nr++]);
	}
	return err && err != -ENOENT ? err : nr;
}
