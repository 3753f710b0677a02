// SPDX-License-Identifier: Apache-2.0
/*
 * Names, files and lines of Perl's functions. Code of a file that was required,
 * and of a string, is freed when it has run, and the next one takes its place: it
 * gets a file only where its COP proves to be the same one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/perl.h"

#define PACKAGE_MAX   256
#define START_OPS_MAX 16 /* from a body's first op to its first statement */
#define HASH_MAX      (1u << 30)

struct perl_decoding {
	const struct runtime_attached *a;
	const struct perl_layout *layout;
	struct memory *m;
	const struct runtime_frame *f;
	struct runtime_function *to;
};

struct perl_cop { uint64_t next, sibling, code, target, type, stash, file, seq; };
_Static_assert(offsetof(struct perl_cop, type) == PERL_OP_TYPE, "");
_Static_assert(offsetof(struct perl_cop, file) == PERL_COP_FILE, "");
_Static_assert(offsetof(struct perl_cop, seq) == PERL_COP_HINTS, "");

/* --- names --- */

/* A shared string; the words around it are cut to size. skip: bytes to leave out. */
static int perl_hek(struct memory *m, uint64_t hek, uint32_t skip, char *to, size_t size)
{
	uint32_t len, take;
	int r = memory_u32(m, hek + PERL_HEK_LEN, &len);

	if (r < 0)
		return r;
	if (len <= skip || len > INT32_MAX)
		return -EBADMSG;
	take = MIN(len - skip, (uint32_t)size - 1);
	r = memory_read(m, hek + PERL_HEK_TEXT + skip, to, take);
	if (r < 0)
		return r;
	to[take] = '\0';
	return to[0] ? 0 : -EBADMSG;
}

/* Type of the object, or negative errno; its body. */
static int perl_object(struct memory *m, uint64_t sv, uint64_t *ret_body, uint32_t *ret_flags)
{
	int r = memory_u32(m, sv + PERL_SV_FLAGS, ret_flags);

	r = r < 0 ? r : memory_u64(m, sv + PERL_SV_BODY, ret_body);
	return r < 0 ? r : (int)(*ret_flags & 0xff);
}

/* Where a hash has its name, and how many: before 5.36, behind its array. */
static int perl_hash_aux(const struct perl_decoding *d, uint64_t hv, uint64_t body, uint64_t *ret)
{
	uint64_t max, array;
	int r;

	if (d->layout->stash_aux) {
		*ret = body + d->layout->stash_aux;
		return 0;
	}
	r = memory_u64(d->m, body + PERL_HV_MAX, &max);
	r = r < 0 ? r : memory_u64(d->m, hv + PERL_SV_U, &array);
	if (r < 0)
		return r;
	*ret = array + 8 * (max + 1);
	return max < HASH_MAX ? 0 : -EBADMSG;
}

static int perl_package(const struct perl_decoding *d, uint64_t hv, char to[PACKAGE_MAX])
{
	uint64_t body, aux, name;
	uint32_t flags, count;
	int r = perl_object(d->m, hv, &body, &flags);

	if (r < 0)
		return r;
	if (r != PERL_SVT_HV || !(flags & PERL_SVF_OOK))
		return -ESTALE;
	r = perl_hash_aux(d, hv, body, &aux);
	r = r < 0 ? r : memory_u32(d->m, aux + PERL_AUX_COUNT, &count);
	r = r < 0 ? r : memory_u64(d->m, aux, &name);
	if (r == 0 && count) /* several names: the first one is its own */
		r = memory_u64(d->m, name, &name);
	return r < 0 ? r : perl_hek(d->m, name, 0, to, PACKAGE_MAX);
}

static int perl_qualify(const struct perl_decoding *d, uint64_t stash, const char *name)
{
	char package[PACKAGE_MAX];
	int r = perl_package(d, stash, package);

	if (r == 0)
		snprintf(d->to->name, sizeof(d->to->name), "%s::%s", package, name);
	return r;
}

/* --- statements --- */

static bool perl_is_statement(const struct perl_decoding *d, const struct perl_cop *c)
{
	uint32_t type = c->type & PERL_OP_TYPE_MASK;

	return type == d->layout->nextstate || type == d->layout->nextstate + 1u;
}

static int perl_cop(const struct perl_decoding *d, uint64_t at, struct perl_cop *ret)
{
	int r = memory_read(d->m, at, ret, sizeof(*ret));

	return r < 0 ? r : perl_is_statement(d, ret) ? 0 : -ESTALE;
}

/* The name of a GV, or without threads, of the GV that stands for a file: "_<" and its name. */
static int perl_gv_name(const struct perl_decoding *d, uint64_t gv, uint32_t skip, char *to, size_t size,
			uint64_t *ret_stash)
{
	uint64_t body, hek;
	uint32_t flags;
	int r = perl_object(d->m, gv, &body, &flags);

	if (r < 0)
		return r;
	if (r != PERL_SVT_GV)
		return -ESTALE;
	r = memory_u64(d->m, body + PERL_GV_HEK, &hek);
	r = r < 0 ? r : memory_u64(d->m, body + PERL_GV_STASH, ret_stash);
	return r < 0 ? r : perl_hek(d->m, hek, skip, to, size);
}

static int perl_file(const struct perl_decoding *d, const struct perl_cop *c, char to[RUNTIME_PATH_MAX])
{
	uint64_t stash;

	if (!c->file)
		return -ESTALE;
	if (d->a->param[PERL_THREADS])
		return memory_string(d->m, c->file, to, RUNTIME_PATH_MAX);
	return perl_gv_name(d, c->file, 2, to, RUNTIME_PATH_MAX, &stash);
}

/* File and first line of the code that begins at this op. */
static void perl_begin(const struct perl_decoding *d, uint64_t op)
{
	struct perl_cop c;

	for (int i = 0; op && i < START_OPS_MAX; i++, op = c.next) {
		int r = perl_cop(d, op, &c);

		if (r == 0 && perl_file(d, &c, d->to->file) == 0)
			d->to->start_line = (uint32_t)(c.type >> 32);
		else
			d->to->file[0] = '\0';
		if (r != -ESTALE)
			return;
	}
}

/* The innermost function's COP was not read with the sample: its file must begin with the same bytes as this one. */
static void perl_leaf(const struct perl_decoding *d, const char *file, size_t alike)
{
	char have[RUNTIME_PATH_MAX];
	struct perl_cop c;

	if (perl_cop(d, PERL_ADDRESS(d->f->cookie[PERL_COOKIE_COP]), &c) < 0 || perl_file(d, &c, have) < 0 ||
	    strncmp(have, file, alike) != 0)
		return;
	d->to->lines[0] = (struct runtime_line){.line = (uint32_t)(c.type >> 32)};
	d->to->nr_lines = 1;
}

/* The file of the statement that calls, which came with the sample and still is that one. */
static int perl_caller(const struct perl_decoding *d, char to[RUNTIME_PATH_MAX])
{
	struct perl_cop c;
	int r = perl_cop(d, PERL_ADDRESS(d->f->cookie[PERL_COOKIE_COP]), &c);

	if (r < 0)
		return r;
	if (c.type != d->f->cookie[PERL_COOKIE_LINE] || c.seq != d->f->cookie[PERL_COOKIE_SEQ])
		return -ESTALE;
	return perl_file(d, &c, to);
}

static bool perl_is_caller(const struct perl_decoding *d)
{
	return d->f->cookie[PERL_COOKIE_LINE];
}

/* `# line` makes a statement one of another file than the code around it: one that was freed may have been of any. */
static void perl_caller_file(const struct perl_decoding *d)
{
	char file[RUNTIME_PATH_MAX];
	int r = perl_caller(d, file);

	if (r == 0 && strcmp(file, d->to->file) == 0)
		return;
	snprintf(d->to->file, sizeof(d->to->file), "%s", r < 0 ? "" : file);
	d->to->start_line = 0;
}

static void perl_place(const struct perl_decoding *d)
{
	if (!perl_is_caller(d))
		perl_leaf(d, d->to->file, RUNTIME_PATH_MAX);
	else if (!PERL_IS_COMPILERS(d->f->cookie[PERL_COOKIE_LINE]))
		perl_caller_file(d);
}

/* --- subs --- */

struct perl_cv { uint64_t stash, start, root, gv, file, pad, outside, flags; };
_Static_assert(offsetof(struct perl_cv, gv) == PERL_CV_GV - PERL_CV_STASH, "");

/* Whether the CV is still the one of the sample; its body. */
static bool perl_cv_lives(const struct perl_decoding *d, uint64_t cv, struct perl_cv *ret)
{
	uint64_t body;
	uint32_t flags;
	int type = perl_object(d->m, cv, &body, &flags);

	return (type == PERL_SVT_CV || type == PERL_SVT_FORMAT) &&
	       memory_read(d->m, body + PERL_CV_STASH, ret, sizeof(*ret)) == 0 && ret->start == d->f->cookie[0] &&
	       ret->gv == d->f->cookie[1];
}

static int perl_name_of_string(const struct perl_decoding *d, const struct perl_cv *cv)
{
	char name[RUNTIME_NAME_MAX - PACKAGE_MAX - 2];
	int r = perl_hek(d->m, cv->gv, 0, name, sizeof(name));

	if (r < 0 || !(cv->flags >> 32 & PERL_CVF_LEXICAL))
		return r < 0 ? r : perl_qualify(d, cv->stash, name);
	snprintf(d->to->name, sizeof(d->to->name), "%s", name);
	return 0;
}

/* The sub that a GV has now begins as the one of the sample did. */
static bool perl_gv_holds(const struct perl_decoding *d, uint64_t gv)
{
	uint64_t gp, cv, body, start;
	uint32_t flags;

	return memory_u64(d->m, gv + PERL_SV_U, &gp) == 0 && memory_u64(d->m, gp + PERL_GP_CV, &cv) == 0 && cv &&
	       perl_object(d->m, cv, &body, &flags) == PERL_SVT_CV &&
	       memory_u64(d->m, body + PERL_CV_START, &start) == 0 && start == d->f->cookie[0];
}

/* What `use` is made of: freed, with its ops, as soon as it has run. The GV stays. */
static bool perl_is_begin(const char *name)
{
	const char *colon = strrchr(name, ':');

	return strcmp(colon ? colon + 1 : name, "BEGIN") == 0;
}

/* A closure is soon freed as well. Its GV is that of all closures of the package; others must prove to be the sub's. */
static int perl_name_of_gv(const struct perl_decoding *d, uint64_t gv, bool lives)
{
	char name[RUNTIME_NAME_MAX - PACKAGE_MAX - 2];
	uint64_t stash;
	int r = perl_gv_name(d, gv, 0, name, sizeof(name), &stash);

	if (r < 0)
		return r;
	if (!lives && strcmp(name, "__ANON__") != 0 && !perl_is_begin(name) && !perl_gv_holds(d, gv))
		return -ESTALE;
	return perl_qualify(d, stash, name);
}

static int perl_decode_sub(const struct perl_decoding *d)
{
	uint64_t gv = d->f->cookie[1];
	struct perl_cv cv;
	bool lives = perl_cv_lives(d, PERL_ADDRESS(d->f->key), &cv);
	int r;

	if (d->f->cookie[PERL_COOKIE_COP] & PERL_COOKIE_NAMED)
		r = lives ? perl_name_of_string(d, &cv) : -ESTALE;
	else if (gv)
		r = perl_name_of_gv(d, gv, lives);
	else /* its package was deleted */
		r = lives ? perl_qualify(d, cv.stash, "__ANON__") : -ESTALE;
	if (r < 0)
		return r;
	if (lives || !perl_is_begin(d->to->name))
		perl_begin(d, d->f->cookie[0]);
	perl_place(d);
	return 0;
}

/* --- code without a sub --- */

static int perl_decode_main(const struct perl_decoding *d)
{
	uint64_t start;
	int r = memory_u64(d->m, d->a->param[PERL_MAIN_START], &start);

	snprintf(d->to->name, sizeof(d->to->name), "(main)");
	if (r < 0)
		return r;
	perl_begin(d, start);
	d->to->start_line = 0; /* the first statement that runs is not the first line */
	perl_place(d);
	return 0;
}

/* A program may evaluate any number of strings: "(eval 17)" is one file for all of them, unless `# line` names another. */
static int perl_decode_eval(const struct perl_decoding *d)
{
	static const char name[] = "(eval)", numbered[] = "(eval ";

	memcpy(d->to->name, name, sizeof(name));
	if (!perl_is_caller(d))
		perl_leaf(d, numbered, sizeof(numbered) - 1);
	if (!perl_is_caller(d) || perl_caller(d, d->to->file) < 0 ||
	    strncmp(d->to->file, numbered, sizeof(numbered) - 1) == 0)
		memcpy(d->to->file, name, sizeof(name));
	return 0;
}

static int perl_decode_require(const struct perl_decoding *d)
{
	const char *base;

	snprintf(d->to->name, sizeof(d->to->name), "(require)");
	if (!perl_is_caller(d) || perl_caller(d, d->to->file) < 0) {
		d->to->file[0] = '\0';
		return 0;
	}
	base = strrchr(d->to->file, '/');
	snprintf(d->to->name, sizeof(d->to->name), "require %.*s", RUNTIME_NAME_MAX - 16, base ? base + 1 : d->to->file);
	return 0;
}

int perl_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret)
{
	struct perl_decoding d = {.a = a, .layout = perl_layout_of((uint32_t)a->param[PERL_VERSION]), .m = m, .f = f, .to = ret};

	ret->name[0] = ret->file[0] = '\0';
	ret->start_line = ret->nr_lines = 0;
	if (!d.layout)
		return -EBADMSG;
	switch (PERL_KIND(f->key)) {
	case PERL_FUNCTION:
		return perl_decode_sub(&d);
	case PERL_MAIN:
		return perl_decode_main(&d);
	case PERL_EVAL:
		return perl_decode_eval(&d);
	case PERL_REQUIRE:
		return perl_decode_require(&d);
	default:
		return -EBADMSG;
	}
}
