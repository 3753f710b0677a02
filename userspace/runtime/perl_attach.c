// SPDX-License-Identifier: Apache-2.0
/*
 * Which Perl a process runs, and the plan to walk it. Version and kind of build
 * are symbols that every Perl exports: PL_version; PL_thr_key where there are
 * threads, and an interpreter is a block of memory; PL_curstackinfo where there
 * are none, and its parts are variables of the program.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/perl.h"
#include "runtime/thread_key.h"

#define NODES_MAX    64	       /* of the list of stackinfos that are looked at */
#define CONTEXTS_MAX (1 << 24)
#define CHECKS_MAX   4

struct perl_attaching {
	const struct runtime_file *file;
	struct memory *m;
	struct runtime_attached *ret;
	const struct perl_layout *layout;
	uint64_t interpreter; /* the first one; 0: no threads */
	uint64_t stackinfo;   /* address of the pointer to the innermost one */
	uint64_t runops;      /* address of the pointer to the loop */
	char *why;
};

static int perl_symbol(const struct perl_attaching *p, const char *name, uint64_t *ret)
{
	return runtime_address(p->file, name, ret);
}

static int perl_byte(const struct perl_attaching *p, const char *name, uint8_t *ret)
{
	uint64_t at = 0;
	int r = perl_symbol(p, name, &at);

	return r < 0 ? r : memory_u8(p->m, at, ret);
}

static int perl_attach_version(struct perl_attaching *p)
{
	uint8_t revision, version, subversion;
	int r = perl_byte(p, "PL_revision", &revision);

	r = r < 0 ? r : perl_byte(p, "PL_version", &version);
	r = r < 0 ? r : perl_byte(p, "PL_subversion", &subversion);
	if (r < 0)
		return r;
	snprintf(p->ret->version, sizeof(p->ret->version), "%u.%u.%u", revision, version, subversion);
	p->layout = revision == 5 ? perl_layout_of(version) : NULL;
	if (p->layout)
		return 0;
	snprintf(p->why, RUNTIME_WHY_MAX, "Perl %s is not known", p->ret->version);
	return -ENOTSUP;
}

/* --- a build with threads --- */

static int perl_plan_threads(struct perl_attaching *p, uint64_t key_at)
{
	struct otp_walk *w = &p->ret->walk;
	uint32_t key;
	int r = memory_u32(p->m, key_at, &key);

	if (r < 0)
		return r;
	if (thread_key_chain(p->file, p->m, key, w) < 0) {
		snprintf(p->why, RUNTIME_WHY_MAX, "Perl %s: where this C library keeps pthread key %u is not known",
			 p->ret->version, key);
		return -ENOTSUP;
	}
	w->root_at = w->nr_chain;
	w->root_off = p->layout->curcop;
	w->chain[w->nr_chain++] = p->layout->curstackinfo;
	return 0;
}

static int perl_attach_threads(struct perl_attaching *p, uint64_t key_at)
{
	uint64_t first = 0;
	int r = perl_symbol(p, "PL_curinterp", &first);

	r = r < 0 ? r : memory_u64(p->m, first, &p->interpreter);
	if (r < 0)
		return r;
	if (!p->interpreter) /* the key is not made either */
		return -EAGAIN;
	p->stackinfo = p->interpreter + p->layout->curstackinfo;
	p->runops = p->interpreter + p->layout->runops;
	p->ret->param[PERL_MAIN_START] = p->interpreter + p->layout->main_start;
	p->ret->param[PERL_THREADS] = 1;
	return perl_plan_threads(p, key_at);
}

/* --- a build without --- */

static int perl_attach_global(struct perl_attaching *p)
{
	struct otp_walk *w = &p->ret->walk;
	uint64_t curcop = 0;
	int r = perl_symbol(p, "PL_curstackinfo", &p->stackinfo);

	r = r < 0 ? r : perl_symbol(p, "PL_curcop", &curcop);
	r = r < 0 ? r : perl_symbol(p, "PL_main_start", &p->ret->param[PERL_MAIN_START]);
	r = r < 0 ? r : perl_symbol(p, "PL_runops", &p->runops);
	if (r < 0)
		return r;
	w->start = OTP_WALK_AT;
	w->base = p->stackinfo;
	w->nr_chain = 1;
	w->root_off = (int32_t)(curcop - p->stackinfo);
	return 0;
}

/* --- both --- */

static void perl_plan_frames(struct perl_attaching *p)
{
	struct otp_walk *w = &p->ret->walk;

	w->step = OTP_WALK_ARRAY;
	w->root_keep = 1;
	w->frames_max = OTP_WALK_FRAMES;
	w->keep = (uint16_t)(1 << PERL_CX_TYPE / 8 | 1 << PERL_CX_OLDCOP / 8 | 1 << PERL_CX_RETOP / 8 |
			     1 << p->layout->context_cv / 8);
	w->stride = -(int32_t)p->layout->context;
	w->outer = PERL_SI_PREV;
	w->first = (struct otp_walk_edge){.at = PERL_SI_CXSTACK, .count_at = PERL_SI_CXIX, .scale = p->layout->context};
	w->last = (struct otp_walk_edge){.at = PERL_SI_CXSTACK};
	w->nr_subs = PERL_SUBS;
	w->kinds = PERL_KINDS;
	w->sub[PERL_SUB_COP] = (struct otp_walk_sub){.at = PERL_CX_OLDCOP / 8, .off = PERL_OP_TYPE,
						     .keep = 1 | 1 << (PERL_COP_HINTS - PERL_OP_TYPE) / 8};
	w->sub[PERL_SUB_HEAD] = (struct otp_walk_sub){.at = (uint8_t)(p->layout->context_cv / 8)};
	w->sub[PERL_SUB_BODY] = (struct otp_walk_sub){.from = 1 + PERL_SUB_HEAD, .off = PERL_CV_START,
						      .keep = 1 | 1 << (PERL_CV_GV - PERL_CV_START) / 8 |
							      1 << (PERL_CV_FLAGS - PERL_CV_START) / 8};
}

/* The innermost stackinfo, and those around it: they look as they should in any build whose offsets are these. */
static int perl_check_node(struct memory *m, uint64_t *node)
{
	struct { uint64_t stack, contexts, prev, next; int32_t ix, max; } si;
	int r = memory_read(m, *node, &si, sizeof(si));

	_Static_assert(offsetof(__typeof__(si), ix) == PERL_SI_CXIX, "");
	if (r < 0)
		return r;
	if (!si.stack || !si.contexts || si.ix < -1 || si.ix > si.max || si.max > CONTEXTS_MAX)
		return -EBADMSG;
	*node = si.prev;
	return 0;
}

static int perl_check_nodes(const struct perl_attaching *p)
{
	uint64_t node;
	int r = memory_u64(p->m, p->stackinfo, &node);

	if (r == 0 && !node)
		return -EAGAIN;
	for (int i = 0; r == 0 && node && i < NODES_MAX; i++)
		r = perl_check_node(p->m, &node);
	return r;
}

/* An interpreter that is just begun or ended is as unreadable as one of another shape, which is so each time. */
static int perl_check(struct perl_attaching *p)
{
	int r = -EFAULT;

	for (int i = 0; i < CHECKS_MAX && (r == -EFAULT || r == -EBADMSG); i++)
		r = perl_check_nodes(p);
	if (r != -EFAULT && r != -EBADMSG)
		return r;
	snprintf(p->why, RUNTIME_WHY_MAX, "Perl %s: its interpreter is not laid out as that version's", p->ret->version);
	return -ENOTSUP;
}

static void perl_add_loop(struct runtime_attached *a, uint64_t pc)
{
	for (uint32_t i = 0; i < a->nr_loops; i++)
		if (a->loop[i] == pc)
			return;
	if (pc && a->nr_loops < RUNTIME_LOOPS)
		a->loop[a->nr_loops++] = pc;
}

/* Modules (debuggers, profilers) put loops of their own into PL_runops. */
static void perl_attach_loops(struct perl_attaching *p)
{
	uint64_t pc;

	if (perl_symbol(p, "Perl_runops_standard", &pc) == 0)
		perl_add_loop(p->ret, pc);
	if (perl_symbol(p, "Perl_runops_debug", &pc) == 0)
		perl_add_loop(p->ret, pc);
	if (memory_u64(p->m, p->runops, &pc) == 0)
		perl_add_loop(p->ret, pc);
}

int perl_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		char why[RUNTIME_WHY_MAX])
{
	struct perl_attaching p = {.file = file, .m = m, .ret = ret, .why = why};
	uint64_t key_at;
	int r = perl_attach_version(&p);

	if (r < 0)
		return r;
	r = perl_symbol(&p, "PL_thr_key", &key_at) == 0 ? perl_attach_threads(&p, key_at) : perl_attach_global(&p);
	r = r < 0 ? r : perl_check(&p);
	if (r < 0)
		return r;
	perl_plan_frames(&p);
	perl_attach_loops(&p);
	ret->param[PERL_VERSION] = p.layout->version;
	return 0;
}
