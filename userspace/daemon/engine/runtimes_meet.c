// SPDX-License-Identifier: Apache-2.0
/*
 * How a process is found to run a runtime: by a file of a sample's stack, which
 * holds one. Where code has no known maker, by the name of a library that is
 * mapped, or by the file whose own code it is.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/decode.h"
#include "daemon/engine/runtimes_state.h"

/* --- by a file of a stack --- */

/*
 * A place for this file's runtime; NULL: the process has that runtime, or too many. A file that has a marker and not
 * the runtime, as a program that embeds it from a library, leaves its place to the next file.
 */
static struct runtime_slot *runtime_process_place(struct runtime_process *p, const struct runtime_ops *ops,
						  const struct binary *b)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		struct runtime_slot *s = &p->slot[i];

		if (s->ops != ops)
			continue;
		if (s->state != SLOT_REFUSED || !(p->all->now_ns >= s->again_ns || (s->err == -ENOENT && s->binary != b)))
			return NULL;
		runtime_slot_done(s);
		return s;
	}
	return p->nr < OTP_WALK_PLANS ? &p->slot[p->nr++] : NULL;
}

/*
 * Mappings of one file in one process may differ in how it is known: by its build-id, or, where that was not in memory at
 * that moment, by device and inode; and of which container it is, which is learnt after the first mappings of a process.
 */
static bool runtimes_is_same_file(const struct mapped_file *a, const struct mapped_file *b)
{
	if (a->kind != b->kind || a->deleted != b->deleted || a->path->len != b->path->len ||
	    memcmp(a->path->s, b->path->s, a->path->len))
		return false;
	if (a->ino && b->ino && (a->dev != b->dev || a->ino != b->ino))
		return false;
	return !a->build_id_len || !b->build_id_len ||
	       (a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, a->build_id_len));
}

/*
 * That of m's file from which the file's bias follows: V8 maps its builtins a second time, somewhere else. Such a copy is
 * of a part of the file's code.
 */
static const struct mapping *runtimes_first_of_file(const struct space *space, const struct mapping *m)
{
	for (uint32_t i = 0; i < space->count; i++)
		if (runtimes_is_same_file(space->maps[i].file, m->file) && space->maps[i].offset < m->offset)
			m = &space->maps[i];
	return m;
}

static void runtimes_add_slot(struct runtime_process *p, const struct runtime_ops *ops, const struct space *space,
			      const struct mapping *m)
{
	struct runtime_slot *s = runtime_process_place(p, ops, m->file->binary);
	const struct mapping *first;
	struct decoder *d;

	if (!s)
		return;
	first = runtimes_first_of_file(space, m);
	*s = (struct runtime_slot){.of = p, .ops = ops, .binary = binary_ref(m->file->binary), .start = first->start,
				   .end = first->end};
	/* In a replay the answer arrives during the call. */
	d = runtimes_ask(s);
	if (s->state == SLOT_ASKED || (d && s->state == SLOT_READY))
		s->decoder = d;
	if (!d && s->state == SLOT_ASKED)
		runtimes_refuse(s, -EBUSY, "too many processes are being decoded");
}

/* The runtime of a file, kept with it: its index in runtime_list, or -1. */
static int runtimes_of(struct binary *b)
{
	if (!b->runtime)
		b->runtime = (int8_t)(MAX(decode_runtime_of_file(b), -1) + 2);
	return b->runtime - 2;
}

static int runtimes_of_mapping(const struct mapping *m)
{
	return m->file->state == MAPPED_READY && m->file->binary ? runtimes_of(m->file->binary) : -1;
}

/* Of decoders that have not attached yet: perhaps this sample shows what the former ones did not. Not of each sample. */
static void runtimes_show(struct runtimes *r, struct runtime_process *p, uint64_t now_ns)
{
	struct runtime_seen seen;

	if (!p || now_ns < p->show_ns)
		return;
	p->show_ns = now_ns + SHOW_NS;
	for (uint32_t i = 0; i < p->nr; i++) {
		struct runtime_slot *s = &p->slot[i];

		if (s->state != SLOT_ASKED || !s->decoder || decoder_is_attached(s->decoder))
			continue;
		runtimes_see(r, s, &seen);
		decoder_set_seen(s->decoder, &seen);
	}
}

void runtimes_meet_mapping(struct runtimes *r, const struct process *p, const struct mapping *m)
{
	int index = runtimes_of_mapping(m);
	struct runtime_process *have;

	if (index < 0)
		return;
	have = runtimes_find(r, p);
	if (!have)
		have = runtime_process_add(r, p);
	if (!have)
		return;
	if (r->stack_process == p)
		have->thread = r->stack_sample->head.tls_base;
	runtimes_add_slot(have, decode_runtime((uint32_t)index), p->space, m);
}

static bool runtimes_is_worth(const struct process *p, uint64_t now_ns)
{
	return now_ns >= runtimes_worth_from(p);
}

void runtimes_meet(struct runtimes *r, const struct process *p, const struct unwind_stack *stack, uint64_t now_ns)
{
	const uint64_t worth_from = runtimes_worth_from(p);
	const struct mapping *before = NULL;

	r->now_ns = now_ns;
	if (!r->cfg.decoders || p->exit_time_ns)
		return;
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct mapping *m = stack->frames[i].map;

		if (m && m != before && now_ns >= worth_from)
			runtimes_meet_mapping(r, p, m);
		else if (m && m != before && runtimes_of_mapping(m) >= 0)
			r->expected_ns = MAX(r->expected_ns, worth_from);
		before = m;
	}
	if (now_ns >= worth_from)
		runtimes_show(r, runtimes_find(r, p), now_ns);
}

bool runtimes_is_expecting(const struct runtimes *r, uint64_t now_ns)
{
	return now_ns < r->expected_ns;
}

/* --- by code without a known maker --- */

bool runtimes_makes_code(const struct runtime_slot *s)
{
	return s->ops->code && !s->ops->knows_all;
}

bool runtimes_has_code(const struct runtime_process *p)
{
	for (uint32_t i = 0; p && i < p->nr; i++)
		if (runtimes_makes_code(&p->slot[i]) && p->slot[i].state != SLOT_REFUSED)
			return true;
	return false;
}

/* A program's name, or that of the library that a distribution has made of it, as libnode.so.115. */
static bool runtimes_is_library_name(const char *name, const char *library)
{
	const size_t len = strlen(library);

	return !strcmp(name, library) ||
	       (!strncmp(name, "lib", 3) && !strncmp(name + 3, library, len) && !strncmp(name + 3 + len, ".so", 3));
}

static bool runtimes_is_library(const struct mapping *m)
{
	const char *path = m->file->kind == MAPPED_FILE ? str_c(m->file->path) : "", *slash = strrchr(path, '/');
	const struct runtime_ops *ops;

	for (uint32_t i = 0; slash && (ops = decode_runtime(i)); i++)
		if (ops->library && runtimes_is_library_name(slash + 1, ops->library))
			return true;
	return false;
}

/*
 * Runtimes' files that no sample has met yet, as their code calls none of them. A program may have only the name of one, and
 * call its library. 0; -EAGAIN: the file of *ret_wait is to be opened.
 */
static int runtimes_meet_libraries(struct runtimes *r, const struct process *p, const struct mapping **ret_wait)
{
	const struct mapping *m;

	for (uint32_t i = 0; i < p->space->count && !runtimes_has_code(r->stack_of); i++) {
		m = &p->space->maps[i];
		if (m->file->state == MAPPED_FAILED || !runtimes_is_library(m))
			continue;
		if (m->file->state != MAPPED_READY) {
			*ret_wait = m;
			return -EAGAIN;
		}
		runtimes_meet_mapping(r, p, m);
		r->stack_of = runtimes_find(r, p);
	}
	return 0;
}

int runtimes_meet_library(struct runtimes *r, const struct mapping **ret_wait)
{
	const struct process *p = r->stack_process;
	int err;

	if (r->library_sought == p->space->generation + 1ULL || runtimes_has_code(r->stack_of) ||
	    !runtimes_is_worth(p, r->now_ns))
		return 0;
	err = runtimes_meet_libraries(r, p, ret_wait);
	if (!err)
		r->library_sought = p->space->generation + 1ULL;
	return err;
}

void runtimes_meet_brought(struct runtimes *r, const struct mapping *m)
{
	if (runtimes_has_code(r->stack_of) || !runtimes_is_worth(r->stack_process, r->now_ns))
		return;
	runtimes_meet_mapping(r, r->stack_process, m);
	r->stack_of = runtimes_find(r, r->stack_process);
}
