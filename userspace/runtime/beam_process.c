// SPDX-License-Identifier: Apache-2.0
/*
 * Which process of Erlang runs, as a label of its samples: its registered name,
 * else the function that it began with. That of a process that proc_lib began, as
 * nearly all of OTP's are, is in its dictionary, under '$initial_call'. The terms
 * are copied in the tick; atoms are never freed, so their text is read later.
 *
 * The dictionary is a hash table (struct proc_dict, erts/emulator/beam/
 * erl_process_dict.[ch]): an array of 8 slots, or more as it grows, where an atom's
 * hash is its number; in a slot is a pair, or a list of pairs. The walk follows the
 * list of the slot that '$initial_call' has in a dictionary of this size. Its number
 * is another one each time that the system starts: modules are loaded by several
 * processes, and their atoms counted as they come.
 * Read from processes of OTP 23, 25, 27 and 29.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define KEY	   "$initial_call"
#define SPAWNER	   "proc_lib"
#define PURGER	   "erts_code_purger" /* erts/preloaded/src/erts_code_purger.erl */
#define DICT_SIZE  0 /* sizeMask, usedSlots */
#define DICT_DATA  24
#define LIST_MAX   4u	/* pairs of a slot that are looked at */
#define TERM_TAGS  3	/* bits of a term that are not part of its pointer */

#define REGISTERED_OWNER 16 /* struct reg_proc: p, pt, name (erts/emulator/beam/register.h) */

/* As the root keeps them. */
enum { ROOT_MODULE, ROOT_FUNCTION, ROOT_ARITY, ROOT_OWNER, ROOT_PORT, ROOT_NAME, ROOT_WORDS };
_Static_assert(ROOT_WORDS == ROOT_OWNER + OTP_WALK_ROOT_MORE, "the last ones are those of its object");

/*
 * As a frame keeps them, behind its address. It is a pair in a slot: its header, key and value; or a cell of a list, whose
 * first word leads to a pair.
 */
enum { PAIR_HEADER, PAIR_KEY, PAIR_VALUE };
enum { TUPLE_HEADER, TUPLE_MODULE, TUPLE_FUNCTION, TUPLE_ARITY, TUPLE_WORDS };
enum {
	FRAME_PAIR = 1,
	FRAME_LISTED = FRAME_PAIR + PAIR_VALUE,
	FRAME_LISTED_CALL = FRAME_LISTED + PAIR_VALUE,
	FRAME_CALL = FRAME_LISTED_CALL + TUPLE_WORDS,
	FRAME_WORDS = FRAME_CALL + TUPLE_WORDS,
};
#define KEEP_PAIR  ((1u << PAIR_VALUE) - 1)
#define KEEP_TUPLE ((1u << TUPLE_WORDS) - 1)

/* --- the plan --- */

#define SEGMENT_ATOMS 1024u
#define ATOM_BYTES    255u /* of the longest atom of one-byte letters */
#define SEGMENTS_SEEN 8u /* proc_lib's atoms are among the first 6000 */

struct beam_atom_head { uint64_t len, text; }; /* the length in the lowest 16 bits */

static bool beam_atom_is(const struct beam *b, struct memory *m, const struct beam_atom_head *head, const char *text)
{
	char have[ATOM_BYTES];
	size_t len = strlen(text);

	return len <= sizeof(have) && (uint16_t)head->len == len && memory_read(m, head->text + b->text, have, len) == 0 && !memcmp(have, text, len);
}

/* The atoms that are needed, among the first ones. */
static void beam_find_atoms(struct beam *b, struct memory *m)
{
	uint64_t segments, segment, atom[SEGMENT_ATOMS];
	struct beam_atom_head head;

	if (memory_u64(m, b->atoms, &segments))
		return;
	for (uint32_t i = 0; i < SEGMENTS_SEEN * SEGMENT_ATOMS && !(b->initial_call && b->spawner && b->purger); i++) {
		if (!(i % SEGMENT_ATOMS) && (memory_u64(m, segments + 8ULL * (i / SEGMENT_ATOMS), &segment) || !segment ||
					     memory_read(m, segment, atom, sizeof(atom))))
			return;
		if (!atom[i % SEGMENT_ATOMS])
			return;
		if (memory_read(m, atom[i % SEGMENT_ATOMS] + BEAM_ATOM_LENGTH, &head, sizeof(head)))
			continue;
		if (beam_atom_is(b, m, &head, KEY))
			b->initial_call = beam_atom_term(i);
		else if (beam_atom_is(b, m, &head, SPAWNER))
			b->spawner = beam_atom_term(i);
		else if (beam_atom_is(b, m, &head, PURGER))
			b->purger = beam_atom_term(i);
	}
}

/* The first walk's steps up to the process, which is the root; then its dictionary, and what is in the key's slot. */
static void beam_plan_process(const struct beam *b, const struct otp_walk *stack, struct otp_walk *w)
{
	const struct beam_row *row = &beam_rows[b->row];

	*w = (struct otp_walk){.start = stack->start, .step = OTP_WALK_LINK, .base = stack->base, .nr_chain = stack->nr_chain,
			       .root_at = stack->root_at, .root_off = row->initial, .root_keep = (1u << ROOT_OWNER) - 1,
			       .via = row->registered, .via_at = REGISTERED_OWNER, .tag = TERM_TAGS, .link = 1,
			       .keep = KEEP_PAIR, .frames_max = LIST_MAX, .nr_subs = 3,
			       .hashed = {.hash = b->initial_call >> BEAM_ATOM_BITS, .size = DICT_SIZE, .slots = DICT_DATA}};
	memcpy(w->chain, stack->chain, sizeof(w->chain));
	w->chain[w->nr_chain++] = row->dictionary;
	w->sub[0] = (struct otp_walk_sub){.at = 0, .tag = TERM_TAGS, .keep = KEEP_PAIR};
	w->sub[1] = (struct otp_walk_sub){.from = 1, .at = PAIR_VALUE, .tag = TERM_TAGS, .keep = KEEP_TUPLE};
	w->sub[2] = (struct otp_walk_sub){.at = PAIR_VALUE, .tag = TERM_TAGS, .keep = KEEP_TUPLE};
}

int beam_attach_process(struct memory *m, struct beam *b, struct runtime_attached *ret)
{
	if (ret->walk.start == OTP_WALK_NONE || ret->walk.nr_chain + 1 > OTP_WALK_CHAIN)
		return 0;
	beam_find_atoms(b, m);
	if (b->initial_call && b->spawner)
		beam_plan_process(b, &ret->walk, &ret->more);
	else if (beam_is_starting(b, m))
		return -EAGAIN;
	return 0;
}

/* --- what was copied --- */

/* While it is collected, an object's first word is a pointer to its copy, and the others stay. */
static bool beam_is_tuple(uint64_t header, uint32_t arity)
{
	return header == (uint64_t)arity << BEAM_ATOM_BITS || (header & TERM_TAGS) == BEAM_BOXED_TAG;
}

/* A function by its terms: the arity as a number. */
static bool beam_name_function(uint64_t module, uint64_t function, uint64_t arity, struct runtime_frame *ret)
{
	if (!beam_is_atom(module) || !beam_is_atom(function) || arity > UINT8_MAX)
		return false;
	*ret = (struct runtime_frame){.key = module, .cookie = {function, arity, 1}};
	return true;
}

static bool beam_name_tuple(const uint64_t tuple[TUPLE_WORDS], struct runtime_frame *ret)
{
	return beam_is_tuple(tuple[TUPLE_HEADER], 3) && (tuple[TUPLE_ARITY] & BEAM_SMALL_TAG) == BEAM_SMALL_TAG &&
	       beam_name_function(tuple[TUPLE_MODULE], tuple[TUPLE_FUNCTION], tuple[TUPLE_ARITY] >> BEAM_SMALL_BITS, ret);
}

static bool beam_is_key(const struct beam *b, const uint64_t *pair)
{
	return beam_is_tuple(pair[PAIR_HEADER], 2) && pair[PAIR_KEY] == b->initial_call;
}

static bool beam_name_initial_call(const struct beam *b, const struct runtime_copied *w, struct runtime_frame *ret)
{
	if (w->frame_words != FRAME_WORDS)
		return false;
	for (uint32_t i = 0; i < w->nr_frames; i++) {
		const uint64_t *f = w->frames + (size_t)i * FRAME_WORDS;

		if (beam_is_key(b, f + FRAME_PAIR))
			return beam_name_tuple(f + FRAME_CALL, ret);
		if (beam_is_key(b, f + FRAME_LISTED))
			return beam_name_tuple(f + FRAME_LISTED_CALL, ret);
	}
	return false;
}

/* A port may be registered too. */
static bool beam_name_registered(const uint64_t root[ROOT_WORDS], struct runtime_frame *ret)
{
	if (!root[ROOT_OWNER] || root[ROOT_PORT] || !beam_is_atom(root[ROOT_NAME]))
		return false;
	*ret = (struct runtime_frame){.key = root[ROOT_NAME]};
	return true;
}

void beam_context(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret)
{
	const struct beam *b = beam_of(a);
	const uint64_t *root = w->root;

	if (w->nr_root != ROOT_WORDS)
		return;
	if (beam_name_registered(root, &ret->named) || beam_name_initial_call(b, w, &ret->named))
		return;
	/* What proc_lib began with says nothing. */
	if (root[ROOT_MODULE] == b->spawner ||
	    !beam_name_function(root[ROOT_MODULE], root[ROOT_FUNCTION], root[ROOT_ARITY], &ret->named))
		ret->labels_left++;
}

/* --- its text --- */

int beam_decode_process(const struct beam *b, struct memory *m, const struct runtime_frame *f, struct runtime_function *ret)
{
	char first[BEAM_ATOM_MAX], function[BEAM_ATOM_MAX];
	int err = beam_atom(b, m, f->key, first);

	if (err >= 0 && f->cookie[2])
		err = beam_atom(b, m, f->cookie[0], function);
	if (err < 0)
		return err;
	if (f->cookie[2])
		beam_write(first, function, (uint32_t)f->cookie[1], ret->name);
	else
		beam_write_name(first, ret->name);
	return 0;
}
