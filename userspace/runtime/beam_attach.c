// SPDX-License-Identifier: Apache-2.0
/*
 * Attaching to beam.smp. Of what it exports, builds as of OTP 29 have no more
 * than the functions for extensions: where there is no symbol, the code of such
 * a function tells where a variable is.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"
#include "runtime/thread_key.h"

#define CODE_LEN     64u /* of a function that is looked at */
#define ERTS_MAX     24u
#define TITLE	     "[erts-" /* erts_system_version (erts/emulator/beam/erl_bif_info.c): Erlang/OTP 29 [erts-17.1.1] */
#define DIRTY_MAX    8192u
#define COMPILER     " [jit"	/* behind it, in builds with the compiler */
#define NATIVE	     " [jit:ns" /* of these, where the native stack is the process' */
#define GREETING_MAX 256u
#define TEXT_MAX     (2u << 20)
#define TEXT_PIECE   (32u << 10)
#define TEXT_OVERLAP 64u
/* Of erts_atom_table, struct IndexTable: behind the hash table (erts/emulator/beam/{hash,index}.h). */
#define ATOM_SEGMENTS 0x78

/* Where the instruction with these bytes is in code: its offset behind them; -ENOENT. */
static ssize_t beam_behind(const uint8_t code[CODE_LEN], const uint8_t *bytes, const uint8_t *mask, size_t len)
{
	for (size_t i = 0; i + len + sizeof(int32_t) <= CODE_LEN; i++) {
		size_t same = 0;

		while (same < len && (code[i + same] & mask[same]) == bytes[same])
			same++;
		if (same == len)
			return (ssize_t)(i + len);
	}
	return -ENOENT;
}

/* What the first such instruction of a function refers to, relative to its end: an address in the file; 0: none. */
static uint64_t beam_refers(struct binary *b, uint64_t function, const uint8_t *bytes, const uint8_t *mask, size_t len)
{
	uint8_t code[CODE_LEN];
	int32_t relative;
	ssize_t at;

	if (!function || binary_read_vaddr(b, function, code, sizeof(code)) != (ssize_t)sizeof(code))
		return 0;
	at = beam_behind(code, bytes, mask, len);
	if (at < 0)
		return 0;
	memcpy(&relative, code + at, sizeof(relative));
	return function + (uint64_t)at + sizeof(relative) + (uint64_t)(int64_t)relative;
}

/* Where the pointer to the atoms' segments is: in the table, or the first word that the length of an atom is read by. */
static int beam_attach_atoms(const struct runtime_file *file, struct memory *m, struct beam *b)
{
	static const uint8_t load[] = {0x48, 0x8b, 0x05}, any_register[] = {0xff, 0xff, 0xc7};
	struct runtime_symbol s;
	uint64_t at, segments;

	if (runtime_symbol(file->binary, "erts_atom_table", &s) == 0) {
		at = s.value + ATOM_SEGMENTS;
	} else {
		if (runtime_symbol(file->binary, "enif_get_atom_length", &s))
			return -ENOENT;
		at = beam_refers(file->binary, s.value, load, any_register, sizeof(load));
	}
	if (!at)
		return -ENOENT;
	b->atoms = file->bias + at;
	if (memory_u64(m, b->atoms, &segments))
		return -EFAULT;
	return segments ? beam_find_text(m, b) : -EAGAIN;
}

/* The key of a thread's scheduler: the function that asks for the kind of thread loads it, or calls who does. */
static uint64_t beam_key(const struct runtime_file *file)
{
	static const uint8_t load[] = {0x8b, 0x3d}, call[] = {0xe8}, all[] = {0xff, 0xff};
	struct runtime_symbol s;
	uint64_t at;

	if (runtime_symbol(file->binary, "enif_thread_type", &s))
		return 0;
	at = beam_refers(file->binary, s.value, load, all, sizeof(load));
	if (!at)
		at = beam_refers(file->binary, beam_refers(file->binary, s.value, call, all, sizeof(call)), load, all, sizeof(load));
	return at ? file->bias + at : 0;
}

/* --- the version --- */

/* The shell's greeting from TITLE on: a variable of the file. */
static void beam_find_greeting(struct binary *b, char ret[GREETING_MAX])
{
	const struct binary_section *s = binary_section(b, ".data");
	char text[TEXT_PIECE];
	ssize_t n = sizeof(text);

	*ret = '\0';
	for (uint64_t at = 0; s && n == (ssize_t)sizeof(text) && at < MIN(s->size, (uint64_t)TEXT_MAX); at += sizeof(text) - TEXT_OVERLAP) {
		const char *title;

		n = binary_read(b, s->offset + at, text, MIN(sizeof(text), s->size - at));
		title = n > 0 ? memmem(text, (size_t)n, TITLE, strlen(TITLE)) : NULL;
		if (!title)
			continue;
		at += (uint64_t)(title - text);
		n = binary_read(b, s->offset + at, ret, MIN(GREETING_MAX - 1, s->size - at));
		ret[MAX(n, 0)] = '\0';
		return;
	}
}

/* The number in it. */
static void beam_greeting_version(const char *greeting, char erts[ERTS_MAX])
{
	size_t n = 0;

	if (!*greeting)
		return;
	for (greeting += strlen(TITLE); n + 1 < ERTS_MAX && (isdigit((unsigned char)greeting[n]) || greeting[n] == '.'); n++)
		erts[n] = greeting[n];
	erts[n] = '\0';
}

#define ERTS_OF_23 11

/* The first number of ERTS: 0 unknown. */
static uint32_t beam_attach_version(const struct runtime_file *file, struct memory *m, const char *greeting,
				    char version[RUNTIME_VERSION_MAX])
{
	char erts[ERTS_MAX] = "";
	uint32_t first = 0;
	uint64_t at;

	if (runtime_address(file, "etp_erts_version", &at) || memory_string(m, at, erts, sizeof(erts)) || !*erts)
		beam_greeting_version(greeting, erts);
	sscanf(erts, "%u", &first);
	/* Each release counts both up. */
	if (first >= ERTS_OF_23 && first < 100)
		snprintf(version, RUNTIME_VERSION_MAX, "OTP %u (ERTS %.12s)", first + 12, erts);
	else
		snprintf(version, RUNTIME_VERSION_MAX, "ERTS %.12s", erts);
	return first;
}

/* --- the stack of a process in C code --- */

#define HELD_NEVER 1 /* any register: without an interpreter, none of its code runs */

/* Thread -> its scheduler's thread progress -> the current process, which knows its stack. */
static void beam_plan(const struct runtime_file *file, struct memory *m, uint32_t key, const struct beam *b, struct otp_walk *w)
{
	const struct beam_row *row = &beam_rows[b->row];

	if (thread_key_chain(file, m, key, w)) {
		*w = (struct otp_walk){0};
		return;
	}
	w->chain[w->nr_chain++] = row->process;
	w->step = OTP_WALK_STACK;
	w->root_at = w->nr_chain;
	w->root_off = row->stop;
	w->root_keep = 1;
	w->low = (int16_t)(row->stop - BEAM_TO_HEAP_END);
	w->first.at = row->stop;
	w->first.bias = b->framed ? 0 : -BEAM_GROWN;
	w->held.at_reg = HELD_NEVER; /* the copy begins where the heap ends, if that is nearer */
	w->last.at = row->end;
	w->stride = OTP_WALK_BLOCK;
	w->keep = (1u << OTP_WALK_WORDS) - 1;
	w->frames_max = OTP_WALK_BYTES / OTP_WALK_BLOCK;
	if (b->loop)
		beam_loop_plan(b, w);
}

/* Of a version that is not known, processes in C code have no callers. */
static void beam_attach_stack(const struct runtime_file *file, struct memory *m, uint32_t erts, struct beam *b,
			      struct runtime_attached *ret)
{
	uint64_t at = beam_key(file);
	uint32_t key;

	while (beam_rows[b->row].erts && beam_rows[b->row].erts != erts)
		b->row++;
	if (beam_rows[b->row].erts && at && memory_u32(m, at, &key) == 0)
		beam_plan(file, m, key, b, &ret->walk);
}

/* Its code has tables, which lead to where the thread began. */
static void beam_attach_dirty(const struct runtime_file *file, struct runtime_attached *ret)
{
	struct beam *b = (void *)ret->param;
	struct runtime_symbol s;

	if (ret->walk.start == OTP_WALK_NONE || runtime_symbol(file->binary, BEAM_DIRTY_NAME, &s) || !s.size ||
	    s.size > DIRTY_MAX)
		return;
	ret->code_vaddr = s.value;
	ret->code_start = b->dirty = file->bias + s.value;
	ret->code_end = b->dirty_end = b->dirty + s.size;
	ret->code_has_tables = 1;
}

/* --- all --- */

/* The file's data, in which the tables of modules are sought. */
static int beam_attach_tables(const struct runtime_file *file, struct memory *m, struct beam *b)
{
	const struct binary *f = file->binary;
	int err = -ENOENT;

	for (uint16_t i = 0; i < f->nr_segments && err; i++)
		if (f->segments[i].flags & PF_W)
			err = beam_find_tables(m, file->bias + f->segments[i].vaddr,
					       file->bias + f->segments[i].vaddr + f->segments[i].memsz, b);
	return err;
}

static int beam_attach_all(const struct runtime_file *file, struct memory *m, uint32_t erts, struct beam *b,
			   char why[RUNTIME_WHY_MAX])
{
	int err = beam_attach_atoms(file, m, b);

	if (err == -ENOENT) {
		snprintf(why, RUNTIME_WHY_MAX, "it does not tell where its atoms are");
		return -ENOTSUP;
	}
	if (!err)
		err = beam_attach_tables(file, m, b);
	if (err)
		return err;
	if (runtime_address(file, "the_active_code_index", &b->active))
		b->active = 0;
	/* That of later versions, where they are built without their compiler, is another one. */
	if (b->active && erts == ERTS_OF_23 && beam_find_loop(file, m, b) == 0)
		return 0;
	err = beam_find_shared(m, b);
	if (err == -ENOENT) {
		snprintf(why, RUNTIME_WHY_MAX, "it interprets its code by a loop that is not known");
		return -ENOTSUP;
	}
	return err;
}

int beam_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret, char why[RUNTIME_WHY_MAX])
{
	char greeting[GREETING_MAX];
	uint32_t erts;
	int err;

	beam_find_greeting(file->binary, greeting);
	erts = beam_attach_version(file, m, greeting, ret->version);

	if (file->binary->machine != EM_X86_64) {
		snprintf(why, RUNTIME_WHY_MAX, "its frames are known on x86-64 only");
		return -ENOTSUP;
	}
	/* Its processes' stack pointer is rbp, and what they have of themselves lies elsewhere: as it is built with musl. */
	if (strstr(greeting, COMPILER) && !strstr(greeting, NATIVE)) {
		snprintf(why, RUNTIME_WHY_MAX, "it is built without the native stack");
		return -ENOTSUP;
	}
	err = beam_attach_all(file, m, erts, (void *)ret->param, why);
	if (err)
		return err;
	beam_attach_stack(file, m, erts, (void *)ret->param, ret);
	if (beam_of(ret)->loop)
		beam_loop_attach(file, beam_of(ret), ret);
	else
		beam_attach_dirty(file, ret);
	err = beam_attach_process(m, (void *)ret->param, ret);
	if (!err)
		beam_epoch_attach(file, m, (void *)ret->param, &ret->walk);
	return err;
}
