// SPDX-License-Identifier: Apache-2.0
/*
 * The function of bytecodes, by V8's own lists: an isolate has one of its scripts, a script one of its functions
 * (V8, heap.h, script_list; script.tq, shared_function_infos, later infos). Bytecodes do not lead to their function, and a
 * closure that was made for one call is dead soon after; the lists hold on. They are weak: a collection takes out of them
 * what is dead in the same pause in which it counts itself, before any of it is freed.
 * A search is bounded for one question. It begins with the youngest scripts, whose functions are most
 * likely to be met for the first time, and goes on where the last one ended. Where it met which bytecodes is kept: places in
 * the lists, which are looked at again before they are believed.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "runtime/v8.h"

#define SCRIPTS_MAX	(1u << 20)
#define FUNCTIONS_MAX	(1u << 20) /* of one script */
#define WEAK		3u	   /* the tag of a weak reference */
#define WEAK_BIT	2u
#define WEAK_CLEARED	3u /* its lower half */

#define PAGE  4096u
#define PAGES 64u /* that are held at a time */

#define PLACES 4096u /* buckets */
#define WAYS   4u

struct v8_place { uint64_t bytecodes; uint32_t script, function; /* indices */ };

/* What a question may have read, and looked at: from the youngest script on; in all. */
struct v8_bound { uint32_t pages, entries; /* of lists */ };
#define PAGES_ALL 600u
static const struct v8_bound bound_young = {400, 60000}, bound_all = {PAGES_ALL, 98304};
/* A name and lines are read for the same question. */
_Static_assert(PAGES_ALL * PAGE <= MEMORY_BYTES_MAX / 8 * 5, "something is left of a question's budget");

/* How many scripts are left, the oldest ones; of the last one of them, its functions from one on. */
struct v8_until { uint32_t scripts, function; };

/* What was met, by whatever search; it outlives a question. */
static struct {
	uint64_t isolate;
	struct v8_until next; /* where the last search ended */
	struct v8_place place[PLACES][WAYS];
} met;

/* What objects of a type begin with, once one was seen, and what some others do; 0: none yet. */
struct v8_maps {
	uint64_t own, other[8];
	uint32_t nr_other;
};

struct v8_search {
	const struct v8 *v;
	struct memory *memory;
	uint64_t bytecodes; /* sought */
	uint64_t list;
	uint32_t nr; /* scripts */
	struct { struct v8_maps bytecode, script, shared, code; } maps;
	struct v8_bound used, most;
	bool found;
	struct { uint64_t at; uint8_t bytes[PAGE]; } page[PAGES];
};

/* --- memory --- */

static int v8_search_page(struct v8_search *s, uint64_t at, const uint8_t **ret)
{
	uint32_t i = at / PAGE % PAGES;
	int err;

	*ret = s->page[i].bytes;
	if (s->page[i].at == at)
		return 0;
	if (s->used.pages >= s->most.pages)
		return -E2BIG;
	s->used.pages++;
	s->page[i].at = 0;
	err = memory_read(s->memory, at, s->page[i].bytes, PAGE);
	if (!err)
		s->page[i].at = at;
	return err;
}

/* A word of an object. They are aligned. */
static int v8_search_word(struct v8_search *s, uint64_t object, uint64_t offset, uint64_t *ret)
{
	uint64_t at = object - 1 + offset;
	const uint8_t *page;
	int err = v8_is_object(object) && at % 8 == 0 ? v8_search_page(s, at & ~(uint64_t)(PAGE - 1), &page) : -EBADMSG;

	if (!err)
		memcpy(ret, page + at % PAGE, sizeof(*ret));
	return err;
}

static int v8_search_length(struct v8_search *s, uint64_t object, uint64_t offset, uint32_t most, uint32_t *ret)
{
	const uint64_t in = offset % 8; /* 0, or of a number that shares a word with another one */
	uint64_t word;
	int err = v8_search_word(s, object, offset - in, &word);

	if (err)
		return err;
	if (!v8_row(s->v)->raw_lengths && (uint32_t)word)
		return -EBADMSG;
	*ret = (uint32_t)(v8_row(s->v)->raw_lengths ? word >> 8 * in : word >> 32);
	return *ret > most ? -EBADMSG : 0;
}

static bool v8_maps_differ(const struct v8_maps *maps, uint64_t map)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(maps->other); i++)
		if (maps->other[i] == map)
			return true;
	return false;
}

/* All objects of one of these types have one map. Of functions that were never compiled there are thousands. */
static int v8_search_is(struct v8_search *s, uint64_t object, uint16_t type, struct v8_maps *maps)
{
	uint64_t word;
	int err = v8_search_word(s, object, 0, &word);

	if (err || word == maps->own)
		return err;
	if (v8_maps_differ(maps, word))
		return -ENOENT;
	if (v8_is(s->v, s->memory, object, type)) {
		maps->own = word;
		return 0;
	}
	maps->other[maps->nr_other++ % ARRAY_SIZE(maps->other)] = word;
	return -ENOENT;
}

static bool v8_is_weak(uint64_t word)
{
	return (word & WEAK) == WEAK && (uint32_t)word != WEAK_CLEARED && v8_is_object(word & ~(uint64_t)WEAK_BIT);
}

/* The i-th of a list; 0: nothing, or what is dead. */
static int v8_search_entry(struct v8_search *s, uint64_t list, uint64_t data, uint32_t i, uint64_t *ret)
{
	int err;

	if (s->used.entries >= s->most.entries)
		return -E2BIG;
	s->used.entries++;
	err = v8_search_word(s, list, data + 8ULL * i, ret);
	if (!err)
		*ret = v8_is_weak(*ret) ? *ret & ~(uint64_t)WEAK_BIT : 0;
	return err;
}

/* --- places --- */

static struct v8_place *v8_places(uint64_t bytecodes)
{
	return met.place[hash_u64(bytecodes) % PLACES];
}

static void v8_place_keep(const struct v8_place *p)
{
	struct v8_place *way = v8_places(p->bytecodes);
	uint32_t i = 0;

	while (i < WAYS && way[i].bytecodes && way[i].bytecodes != p->bytecodes)
		i++;
	way[i < WAYS ? i : p->function % WAYS] = *p;
}

/* What lies in a list now; 0: nothing, or what is dead. */
static uint64_t v8_list_at(const struct v8 *v, struct memory *m, uint64_t list, uint16_t length, uint16_t data, uint32_t i)
{
	int32_t nr;
	uint64_t word;

	if (v8_length(v, m, list, length, &nr) || nr < 0 || i >= (uint32_t)nr ||
	    memory_u64(m, list - 1 + data + 8ULL * i, &word) || !v8_is_weak(word))
		return 0;
	return word & ~(uint64_t)WEAK_BIT;
}

/* Whether the function there has the bytecodes. */
static bool v8_place_is(const struct v8 *v, struct memory *m, uint64_t isolate, const struct v8_place *p, struct v8_shared *ret)
{
	const struct v8_row *row = v8_row(v);
	uint64_t list, script, functions;

	if (memory_u64(m, isolate + row->isolate_scripts, &list))
		return false;
	script = v8_list_at(v, m, list, row->list_length, row->list_data, p->script);
	if (!script || !v8_is(v, m, script, v->type_script) || v8_field(m, script, row->script_functions, &functions))
		return false;
	return v8_shared_read(v, m, v8_list_at(v, m, functions, v->array_length, v->array_data, p->function), ret) == 0 &&
	       ret->bytecodes == p->bytecodes;
}

static bool v8_place_find(const struct v8 *v, struct memory *m, uint64_t isolate, uint64_t bytecodes, struct v8_shared *ret)
{
	const struct v8_place *way = v8_places(bytecodes);

	for (uint32_t i = 0; i < WAYS; i++)
		if (way[i].bytecodes == bytecodes && v8_place_is(v, m, isolate, &way[i], ret))
			return true;
	return false;
}

/* --- a search --- */

/* The bytecodes of a function: its data, or what baseline code has, which is its data then. -ENOENT: there are none. */
static int v8_search_bytecodes(struct v8_search *s, uint64_t shared, uint64_t *ret)
{
	int err = v8_search_is(s, shared, s->v->type_shared, &s->maps.shared);

	if (!err)
		err = v8_search_word(s, shared, v8_row(s->v)->shared_data, ret);
	if (err || v8_search_is(s, *ret, s->v->type_bytecode, &s->maps.bytecode) == 0)
		return err;
	err = v8_search_is(s, *ret, s->v->type_code, &s->maps.code);
	return err ? err : v8_search_word(s, *ret, v8_row(s->v)->code_interpreted, ret);
}

/* Of a script, from a function on. -E2BIG: no more pages may be read; *function is where it was. */
static int v8_search_script(struct v8_search *s, uint32_t script, uint32_t *function)
{
	struct v8_place p = {.script = script};
	uint64_t entry, functions;
	uint32_t nr = 0;
	int err = v8_search_entry(s, s->list, v8_row(s->v)->list_data, script, &entry);

	if (!err)
		err = v8_search_is(s, entry, s->v->type_script, &s->maps.script);
	if (!err)
		err = v8_search_word(s, entry, v8_row(s->v)->script_functions, &functions);
	if (!err)
		err = v8_search_length(s, functions, s->v->array_length, FUNCTIONS_MAX, &nr);
	for (; err != -E2BIG && *function < nr && !s->found; *function += err != -E2BIG) {
		err = v8_search_entry(s, functions, s->v->array_data, *function, &entry);
		if (!err)
			err = v8_search_bytecodes(s, entry, &p.bytecodes);
		if (err)
			continue;
		p.function = *function;
		v8_place_keep(&p);
		s->found = p.bytecodes == s->bytecodes;
	}
	return err == -E2BIG ? err : 0;
}

/* From a place on to older scripts; where it ended. */
static struct v8_until v8_search_from(struct v8_search *s, struct v8_until at, struct v8_bound most)
{
	s->most = most;
	while (at.scripts && !s->found && v8_search_script(s, at.scripts - 1, &at.function) != -E2BIG) {
		at.scripts--;
		at.function = 0;
	}
	return at;
}

static int v8_search_open(struct v8_search *s, const struct v8 *v, struct memory *m, uint64_t isolate, uint64_t bytecodes)
{
	int err;

	memset(s, 0, offsetof(struct v8_search, page));
	for (uint32_t i = 0; i < PAGES; i++)
		s->page[i].at = 0;
	s->v = v;
	s->memory = m;
	s->bytecodes = bytecodes;
	s->most = bound_young;
	err = memory_u64(m, isolate + v8_row(v)->isolate_scripts, &s->list);
	return err ? err : v8_search_length(s, s->list, v8_row(v)->list_length, SCRIPTS_MAX, &s->nr);
}

/* Whether there is something left, and all of it is left of the other one too. */
static bool v8_until_is_older(struct v8_until a, struct v8_until b)
{
	return a.scripts && (a.scripts < b.scripts || (a.scripts == b.scripts && a.function > b.function));
}

static void v8_search(struct v8_search *s)
{
	struct v8_until young = v8_search_from(s, (struct v8_until){.scripts = s->nr}, bound_young);

	if (!s->found)
		met.next = v8_search_from(s, v8_until_is_older(met.next, young) ? met.next : young, bound_all);
}

int v8_scripts_find(const struct v8 *v, struct memory *m, uint64_t isolate, uint64_t bytecodes, struct v8_shared *ret)
{
	static struct v8_search s;

	if (!isolate || !v8_row(v)->isolate_scripts)
		return -ESTALE;
	if (v8_place_find(v, m, isolate, bytecodes, ret))
		return 0;
	if (met.isolate != isolate) {
		met.isolate = isolate;
		met.next = (struct v8_until){0};
	}
	if (v8_search_open(&s, v, m, isolate, bytecodes))
		return -ESTALE;
	v8_search(&s);
	return s.found && v8_place_find(v, m, isolate, bytecodes, ret) ? 0 : -ESTALE;
}
