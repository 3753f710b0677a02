// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of keys. The name is the label of ruby's own backtraces, with the
 * method's class as backtraces of 3.4 print it: "Shop::Cart#add", "block in
 * Shop::Cart#add", "Shop::Cart.load"; before 3.4 it stands in the label of that
 * version, which also names rescue and ensure.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define DECODE_BODY	 24 /* words of an iseq's body that are read */
#define DECODE_PARENTS_MAX 64

struct decode_iseq {
	uint64_t at, body;
	uint64_t word[DECODE_BODY];
};

static uint32_t decode_type(const struct decode_iseq *i)
{
	return (uint32_t)i->word[0];
}

static int decode_iseq(const struct ruby *r, uint64_t at, struct decode_iseq *ret)
{
	uint64_t head[3];
	int err = ruby_is_object(at) ? ruby_words(r, at, head, ARRAY_SIZE(head)) : -ESTALE;

	if (err < 0)
		return err;
	if (!ruby_is_imemo(head[0], RUBY_IMEMO_ISEQ))
		return -ESTALE;
	ret->at = at;
	ret->body = head[RUBY_ISEQ_BODY / 8];
	return ruby_words(r, ret->body, ret->word, DECODE_BODY);
}

/* Words of a method entry, and its owner; -ESTALE: there is none now. */
static int decode_entry(const struct ruby *r, uint64_t at, uint64_t entry[5])
{
	int err = ruby_is_object(at) ? ruby_words(r, at, entry, 5) : -ESTALE;

	if (err < 0)
		return err;
	return ruby_is_imemo(entry[0], RUBY_IMEMO_ENTRY) ? 0 : -ESTALE;
}

/* --- C functions --- */

static int decode_native_name(const struct ruby *r, const uint64_t *entry, char *to, size_t size)
{
	uint64_t id;
	size_t used;
	int err = memory_u64(r->memory, entry[RUBY_ENTRY_DEFINITION / 8] + RUBY_DEFINITION_ID, &id);

	if (err == 0) {
		err = ruby_owner_name(r, entry[RUBY_ENTRY_OWNER / 8], to, size / 2);
		if (err == -ENOENT)
			to[0] = '\0', err = 0;
	}
	if (err < 0)
		return err;
	used = strlen(to);
	return ruby_id_name(r, id, to + used, size - used);
}

static int decode_native_check(const struct ruby *r, const struct runtime_frame *f, uint64_t entry[5])
{
	int err = decode_entry(r, f->key, entry);

	if (err < 0)
		return err;
	return entry[RUBY_ENTRY_DEFINITION / 8] == f->cookie[RUBY_COOKIE_CODE] &&
	       entry[RUBY_ENTRY_CLASS / 8] == f->cookie[RUBY_COOKIE_MORE] ? 0 : -ESTALE;
}

static int decode_native(const struct ruby *r, const struct runtime_frame *f, struct runtime_function *ret)
{
	uint64_t entry[5];
	int err = decode_native_check(r, f, entry);

	if (err == 0)
		err = decode_native_name(r, entry, ret->name, sizeof(ret->name));
	return err == 0 ? decode_native_check(r, f, entry) : err;
}

/* --- iseqs --- */

/* Whether the iseq is the one that the frame had; *owner is the class of its method, 0 if unknown. */
static int decode_owner(const struct ruby *r, const struct decode_iseq *i, const struct runtime_frame *f, uint64_t *owner)
{
	uint64_t entry[5] = {0}, label = i->word[RUBY_BODY_LABEL / 8], code;
	int err;

	*owner = 0;
	if (i->word[RUBY_BODY_ENCODED / 8] != f->cookie[RUBY_COOKIE_CODE])
		return -ESTALE;
	if (!f->cookie[RUBY_COOKIE_ENTRY])
		return label == f->cookie[RUBY_COOKIE_MORE] ? 0 : -ESTALE;
	err = decode_entry(r, f->cookie[RUBY_COOKIE_ENTRY], entry);
	if (err == -ESTALE && label == f->cookie[RUBY_COOKIE_MORE])
		return 0; /* an svar's cref */
	if (err < 0)
		return err;
	if (ruby_mix(label, entry[RUBY_ENTRY_DEFINITION / 8]) != f->cookie[RUBY_COOKIE_MORE]) {
		/* The entry's words were not copied: it must be that of the iseq's method. */
		if (label != f->cookie[RUBY_COOKIE_MORE])
			return -ESTALE;
		err = memory_u64(r->memory, entry[RUBY_ENTRY_DEFINITION / 8] + RUBY_DEFINITION_ISEQ, &code);
		if (err < 0 || code != i->word[r->layout->local_iseq / 8])
			return err;
	}
	*owner = entry[RUBY_ENTRY_OWNER / 8];
	return 0;
}

/* The iseq whose label stands for this one's. */
static int decode_labelled(const struct ruby *r, const struct decode_iseq *from, struct decode_iseq *ret)
{
	*ret = *from;
	if (r->layout->version < RUBY_LABELS_BY_OWNER)
		return 0;
	for (int n = 0; n < DECODE_PARENTS_MAX; n++) {
		uint32_t type = decode_type(ret);
		int err;

		if (type != RUBY_ISEQ_RESCUE && type != RUBY_ISEQ_ENSURE && type != RUBY_ISEQ_EVAL)
			return 0;
		err = decode_iseq(r, ret->word[r->layout->parent_iseq / 8], ret);
		if (err < 0)
			return err;
	}
	return -EBADMSG;
}

/* The method's name, with which the labels of its blocks end; -ENOENT: it is no method's. */
static int decode_method(const struct ruby *r, const struct decode_iseq *i, char *to, size_t size)
{
	struct decode_iseq local;
	int err = decode_iseq(r, i->word[r->layout->local_iseq / 8], &local);

	if (err < 0)
		return err;
	if (decode_type(&local) != RUBY_ISEQ_METHOD)
		return -ENOENT;
	return ruby_string(r, local.word[RUBY_BODY_LABEL / 8], to, size);
}

/* "block in add" and "Cart#": "block in Cart#add". */
static void decode_qualify(char *name, size_t size, const char *method, const char *owner)
{
	size_t len = strlen(name), tail = strlen(method), more = strlen(owner);

	if (tail > len || strcmp(name + len - tail, method) != 0 || len + more >= size)
		return;
	memmove(name + len - tail + more, name + len - tail, tail + 1);
	memcpy(name + len - tail, owner, more);
}

static int decode_name(const struct ruby *r, const struct decode_iseq *i, uint64_t owner, char *to, size_t size)
{
	char method[RUNTIME_NAME_MAX], class[RUNTIME_NAME_MAX];
	struct decode_iseq labelled;
	int err = decode_labelled(r, i, &labelled);

	if (err == 0)
		err = ruby_string(r, labelled.word[RUBY_BODY_LABEL / 8], to, size);
	if (err < 0 || !owner)
		return err;
	err = decode_method(r, &labelled, method, sizeof(method));
	if (err == 0)
		err = ruby_owner_name(r, owner, class, sizeof(class));
	if (err == 0)
		decode_qualify(to, size, method, class);
	return err == -ENOENT ? 0 : err;
}

/* A string, or an array of the path as it was given and its real one. */
static int decode_file(const struct ruby *r, uint64_t path, char *to, size_t size)
{
	uint64_t given;
	int err = ruby_array_at(r, path, 0, &given);

	return ruby_string(r, err == 0 ? given : path, to, size);
}

static uint32_t decode_first_line(const struct ruby *r, const struct decode_iseq *i)
{
	uint64_t line = i->word[RUBY_BODY_FIRST_LINE / 8];

	return (uint32_t)(r->layout->line_is_fixnum ? line >> 1 : line);
}

static int decode_function(const struct ruby *r, const struct decode_iseq *i, uint64_t owner, struct runtime_function *ret)
{
	int err = decode_name(r, i, owner, ret->name, sizeof(ret->name));

	if (err == 0)
		err = decode_file(r, i->word[RUBY_BODY_PATH / 8], ret->file, sizeof(ret->file));
	ret->start_line = decode_first_line(r, i);
	return err == 0 ? ruby_lines(r, i->word, ret) : err;
}

/* Checked again when all was read: nothing in between belonged to another function. */
static int decode_code(const struct ruby *r, const struct runtime_frame *f, struct runtime_function *ret)
{
	struct decode_iseq i;
	uint64_t owner, again;
	int err = decode_iseq(r, f->key, &i);

	if (err == 0)
		err = decode_owner(r, &i, f, &owner);
	if (err == 0)
		err = decode_function(r, &i, owner, ret);
	if (err == 0)
		err = decode_iseq(r, f->key, &i);
	if (err == 0)
		err = decode_owner(r, &i, f, &again);
	return err == 0 && owner != again ? -ESTALE : err;
}

int ruby_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret)
{
	const struct ruby r = {.layout = ruby_layout_find((uint32_t)a->param[RUBY_PARAM_VERSION]), .attached = a, .memory = m};

	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (!r.layout)
		return -ENOTSUP;
	if (f->cookie[RUBY_COOKIE_ENTRY] == RUBY_COOKIE_NATIVE)
		return decode_native(&r, f, ret);
	return decode_code(&r, f, ret);
}
