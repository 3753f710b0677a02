/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up BEAM in the memory of a process: two modules of two functions each,
 * with lines, the atoms of their names, and what lies beneath the first module;
 * a thread that runs a process, which gen_server began.
 *
 * Included after put, put32 and put64 of WORLD are there (tests/lib/world.h).
 */
#ifndef OTP_TESTS_BEAM_WORLD_H
#define OTP_TESTS_BEAM_WORLD_H

#include <stdint.h>
#include <string.h>

#include "runtime/beam.h"

#define BW_RANGES    (WORLD + 0x8000)
#define BW_ACTIVE    (WORLD + 0x8064)
#define BW_MODULES   (WORLD + 0xa000)
#define BW_ATOMS     (WORLD + 0xc000)
#define BW_SEGMENTS  (WORLD + 0xc100)
#define BW_SEGMENT   (WORLD + 0xc200)
#define BW_ATOM(i)   (WORLD + 0xd000 + 0x100ULL * (i))
#define BW_TERM(i)   ((uint64_t)(i) << 6 | 0x0b)
#define BW_INITIAL_CALL 8
#define BW_PROC_LIB  9
#define BW_MODULE(i) (WORLD + 0x20000 + 0x800ULL * (i))
#define BW_INFO(i, f) (BW_MODULE(i) + 0x100 + 0x100ULL * (f))
#define BW_TABLE(i)  (BW_MODULE(i) + 0x400)
#define BW_PLACES(i) (BW_MODULE(i) + 0x480)
#define BW_LOCATIONS(i) (BW_MODULE(i) + 0x500)
#define BW_FILES(i)  (BW_MODULE(i) + 0x540)
#define BW_MD5(i)    (BW_MODULE(i) + 0x580)
#define BW_STRING    (WORLD + 0x30000) /* a list of characters */
#define BW_THREAD    (WORLD + 0x10000)
#define BW_SCHEDULER (WORLD + 0x10100)
#define BW_PROCESS   (WORLD + 0x10800)
#define BW_NAME	     (WORLD + 0x10f00) /* struct reg_proc */
#define BW_DICT	     (WORLD + 0x11000)
#define BW_HEAP(i)   (WORLD + 0x11800 + 0x40ULL * (i)) /* objects of the process: pairs, functions, cells */
#define BW_SHARED    (WORLD + 0x1f000)
#define BW_EXIT	     (BW_SHARED + BEAM_INFO_BYTES)
#define BW_EXIT_2    (BW_EXIT + 0x80)
#define BW_NAMES     (WORLD + 0x4800) /* the table of registered names */
#define BW_NAMES_SHIFT 63	      /* two slots */
#define BW_DATA	     (WORLD + 0x4000) /* the file's, with the tables of modules in it */
#define BW_DATA_END  (WORLD + 0x9000)

static inline void beam_put_atom(uint32_t i, const char *text)
{
	uint16_t len = (uint16_t)strlen(text);

	put64(BW_SEGMENT + 8 * i, BW_ATOM(i));
	put(BW_ATOM(i) + 24, &len, sizeof(len));
	put64(BW_ATOM(i) + 32, BW_ATOM(i) + 64);
	put(BW_ATOM(i) + 64, text, len);
}

static inline void beam_put_string(const char *text)
{
	for (uint64_t at = BW_STRING; *text; text++, at += 16) {
		put64(at, (uint64_t)(uint8_t)*text << 4 | 0xf);
		put64(at + 8, text[1] ? (at + 16) | 1 : 0x3b);
	}
}

/* Two places of each function: behind its info, and 0x40 on. */
static inline void beam_put_lines(uint32_t i)
{
	put64(BW_TABLE(i), BW_FILES(i));
	put32(BW_TABLE(i) + 8, 4);
	put64(BW_TABLE(i) + 16, BW_LOCATIONS(i));
	for (uint32_t f = 0; f < 2; f++) {
		put64(BW_TABLE(i) + 24 + 8 * f, BW_PLACES(i) + 16 * f);
		put64(BW_PLACES(i) + 16 * f, BW_INFO(i, f) + BEAM_INFO_BYTES);
		put64(BW_PLACES(i) + 16 * f + 8, BW_INFO(i, f) + 0x40);
		put32(BW_LOCATIONS(i) + 8 * f, f << 24 | (10 * f + 10));
		put32(BW_LOCATIONS(i) + 8 * f + 4, f << 24 | (10 * f + 12));
	}
	put64(BW_TABLE(i) + 24 + 16, BW_PLACES(i) + 32);
	put64(BW_FILES(i), BW_STRING | 1);
}

static inline void beam_put_module(uint32_t i)
{
	put64(BW_MODULES + 16 * i, BW_MODULE(i));
	put64(BW_MODULES + 16 * i + 8, BW_MODULE(i) + 0x800);
	put64(BW_MODULE(i), 2);
	put64(BW_MODULE(i) + 72, BW_TABLE(i));
	put64(BW_MODULE(i) + 80, BW_MD5(i));
	put64(BW_MD5(i), 0x1234 + i);
	for (uint32_t f = 0; f < 3; f++)
		put64(BW_MODULE(i) + 96 + 8 * f, BW_INFO(i, f));
	for (uint32_t f = 0; f < 2; f++) {
		put64(BW_INFO(i, f) + 16, BW_TERM(1 + i));
		put64(BW_INFO(i, f) + 24, BW_TERM(3 + f));
		put64(BW_INFO(i, f) + 32, f);
	}
	beam_put_lines(i);
}

/* Two functions to which those that are first return, and code that loads the index in force. */
static inline void beam_put_shared(void)
{
	static const uint8_t load[] = {0x48, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 3, 0, 0, 0, 0x44, 0x8b, 0x27};
	const uint64_t active = BW_ACTIVE;

	for (uint32_t i = 0; i < 2; i++) {
		put64(BW_SHARED + 0x80 * i + 16, BW_TERM(5));
		put64(BW_SHARED + 0x80 * i + 24, BW_TERM(6 + i));
	}
	put(BW_SHARED + 0x203, load, sizeof(load));
	put(BW_SHARED + 0x205, &active, sizeof(active));
}

/* As the dictionary's first slot has them: a pair of the key and value, a function. */
static inline uint64_t beam_put_pair(uint32_t i, uint64_t key, uint64_t value)
{
	put64(BW_HEAP(i), 0x80);
	put64(BW_HEAP(i) + 8, key);
	put64(BW_HEAP(i) + 16, value);
	return BW_HEAP(i) | BEAM_BOXED_TAG;
}

static inline uint64_t beam_put_function(uint32_t i, uint64_t module, uint64_t function, uint64_t arity)
{
	put64(BW_HEAP(i), 0xc0);
	put64(BW_HEAP(i) + 8, module);
	put64(BW_HEAP(i) + 16, function);
	put64(BW_HEAP(i) + 24, arity << 4 | 0xf);
	return BW_HEAP(i) | BEAM_BOXED_TAG;
}

static inline uint64_t beam_put_cell(uint32_t i, uint64_t head, uint64_t tail)
{
	put64(BW_HEAP(i), head);
	put64(BW_HEAP(i) + 8, tail);
	return BW_HEAP(i) | 1;
}

/* A dictionary of as many slots, which may grow to mask + 1: one of them has a term, the others nothing. */
static inline void beam_put_dictionary(uint32_t mask, uint32_t used, uint32_t slot, uint64_t term)
{
	put32(BW_DICT, mask);
	put32(BW_DICT + 4, used);
	for (uint32_t i = 0; i < used; i++)
		put64(BW_DICT + 24 + 8ULL * i, i == slot ? term : 0x3b);
}

/* In one of the first size. */
static inline void beam_put_slot(uint64_t term)
{
	beam_put_dictionary(15, 8, BW_INITIAL_CALL % 8, term);
}

static inline void beam_put_initial(uint64_t module, uint64_t function, uint64_t arity)
{
	const uint64_t mfa[3] = {module, function, arity};

	put(BW_PROCESS + (uint64_t)beam_rows[0].initial, mfa, sizeof(mfa));
}

static inline void beam_put_registered(uint64_t name, uint64_t port)
{
	put64(BW_PROCESS + (uint64_t)beam_rows[0].registered, BW_NAME);
	put64(BW_NAME + 16, BW_PROCESS);
	put64(BW_NAME + 24, port);
	put64(BW_NAME + 32, name);
}

static inline void beam_put_process(struct runtime_attached *a)
{
	put64(BW_THREAD + 0x20, BW_SCHEDULER);
	put64(BW_SCHEDULER + (uint64_t)beam_rows[0].process, BW_PROCESS);
	put64(BW_PROCESS + (uint64_t)beam_rows[0].dictionary, BW_DICT);
	beam_put_initial(BW_TERM(BW_PROC_LIB), BW_TERM(3), 5);
	beam_put_slot(beam_put_pair(0, BW_TERM(BW_INITIAL_CALL), beam_put_function(1, BW_TERM(2), BW_TERM(3), 1)));
	a->walk = (struct otp_walk){.start = OTP_WALK_TLS, .nr_chain = 2, .chain = {0x20, beam_rows[0].process}, .root_at = 2,
				    .frames_max = 1};
}

/* What context makes of a sample of that thread. */
static inline void beam_world_context(const struct runtime_attached *a, struct runtime_context *ret)
{
	static struct otp_walker w;
	const uint64_t *root = (const void *)&w.out[OTP_WALK_HEAD];
	struct otp_walked head;

	memset(&w, 0, sizeof(w));
	otp_walk_prepare(&w.ready, &a->more);
	otp_walk_run(&w, BW_THREAD, 1, 1);
	memcpy(&head, w.out, sizeof(head));
	*ret = (struct runtime_context){0};
	beam_context(a, &(struct runtime_copied){.root = root, .nr_root = head.root_words, .frames = root + head.root_words,
						 .nr_frames = head.frames, .frame_words = head.frame_words}, ret);
}

/* The table of registered names, in which BW_NAME is the only one; functions lie everywhere. */
static inline void beam_put_names(uint64_t name)
{
	put32(BW_NAMES + 56, 0);
	for (uint32_t i = 0; i < 7; i++)
		put64(BW_NAMES + 8 * i, WORLD + 0x100 * i);
	put(BW_NAMES + 112, "process_reg", 12);
	put64(BW_NAMES + 64, BW_NAMES + 112);
	put32(BW_NAMES + 72, BW_NAMES_SHIFT);
	put64(BW_NAMES + 96, BW_NAMES + 128);
	for (uint32_t i = 0; i < 2; i++)
		put64(BW_NAMES + 128 + 8 * i, BW_NAME);
	beam_put_registered(name, 0);
}

/* As attach finds it; the rest is for beam_world_find to find. */
static inline void beam_world_make(struct runtime_attached *a)
{
	static const char *const atoms[] = {"false", "lists", "Elixir.My.Module", "map", "-do it/1-", "erts_beamasm",
					    "normal_exit", "continue_exit", "$initial_call", "proc_lib", "my_server",
					    "Elixir.My.Server", "My server"};

	*a = (struct runtime_attached){0};
	*(struct beam *)a->param = (struct beam){.atoms = BW_ATOMS};
	beam_put_shared();
	put32(BW_ACTIVE, 1);
	for (uint32_t index = 0; index < 3; index++) {
		put64(BW_RANGES + 32 * index, BW_MODULES);
		put64(BW_RANGES + 32 * index + 8, 2);
		put64(BW_RANGES + 32 * index + 16, 4);
		put64(BW_RANGES + 32 * index + 24, BW_MODULES + 16);
	}
	put64(BW_ATOMS, BW_SEGMENTS);
	put64(BW_SEGMENTS, BW_SEGMENT);
	for (uint32_t i = 0; i < sizeof(atoms) / sizeof(atoms[0]); i++)
		beam_put_atom(i, atoms[i]);
	beam_put_string("src/my.ex");
	beam_put_module(0);
	beam_put_module(1);
	beam_put_process(a);
}

static inline int beam_world_find(struct memory *m, struct runtime_attached *a)
{
	struct beam *b = (void *)a->param;
	int err = beam_find_text(m, b);

	if (!err)
		err = beam_find_tables(m, BW_DATA, BW_DATA_END, b);
	if (!err)
		err = beam_find_shared(m, b);
	return err ? err : beam_attach_process(m, b, a);
}

#endif
