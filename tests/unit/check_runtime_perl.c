// SPDX-License-Identifier: Apache-2.0
/* Perl's runtime over a made-up memory, in the layout of each version, with threads and without. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/world.h"

#include "runtime/perl.h"
#include "tests/lib/perl_file.h"

Suite *runtime_perl_suite(void);

static void put_text(uint64_t at, const char *text)
{
	put(at, text, strlen(text) + 1);
}

/* --- what lies in it --- */

enum {
	FILE_AT = 0,	     /* symbols at PERL_FILE_DATA */
	THREAD = 0x2000,     /* what the thread pointer points to; keys behind */
	INTERPRETER = 0x4000,
	NODES = 0x6000,	     /* stackinfos, 0x100 each */
	CONTEXTS = 0x8000,   /* 0x1000 for each stackinfo */
	COPS = 0x10000,	     /* 0x80 each */
	CVS = 0x20000,	     /* 0x200 each: head, body at 0x40, GV at 0xc0, its body at 0x100, GP at 0x180 */
	STASHES = 0x30000,   /* 0x200 each: head, body at 0x40, array at 0x100 */
	STRINGS = 0x40000,   /* 0x200 each */
};

static const uint32_t versions[] = {28, 30, 32, 34, 36, 38, 40, 42};
static const struct perl_layout *layout;
static struct runtime_attached attached;
static struct otp_walker walker;
static struct runtime_function function;
static bool threads;
static uint64_t thread_pointer;
static uint32_t nr_strings;

static uint64_t at(uint64_t offset)
{
	return WORLD + offset;
}

static uint64_t symbol_at(int i)
{
	return at(FILE_AT + PERL_FILE_DATA + 16u * (uint32_t)i);
}

static uint64_t put_string(const char *text)
{
	uint64_t s = at(STRINGS + 0x200ULL * nr_strings++);

	put_text(s, text);
	return s;
}

static uint64_t put_hek(const char *text)
{
	uint64_t hek = at(STRINGS + 0x200ULL * nr_strings++);

	put32(hek + PERL_HEK_LEN, (uint32_t)strlen(text));
	put_text(hek + PERL_HEK_TEXT, text);
	return hek;
}

static uint64_t put_stash(uint32_t i, const char *name)
{
	uint64_t hv = at(STASHES + 0x200ULL * i), body = hv + 0x40, aux = body + layout->stash_aux;

	put64(hv, body);
	put32(hv + PERL_SV_FLAGS, PERL_SVT_HV | PERL_SVF_OOK);
	put64(hv + PERL_SV_U, hv + 0x100);
	put64(body + PERL_HV_MAX, 7);
	if (!layout->stash_aux)
		aux = hv + 0x100 + 8 * 8;
	put64(aux, put_hek(name));
	return hv;
}

static void put_gv(uint64_t gv, uint64_t stash, const char *name)
{
	put64(gv, gv + 0x40);
	put32(gv + PERL_SV_FLAGS, PERL_SVT_GV);
	put64(gv + PERL_SV_U, gv + 0xc0);
	put64(gv + 0x40 + PERL_GV_HEK, put_hek(name));
	put64(gv + 0x40 + PERL_GV_STASH, stash);
}

/* A file as COPs have it. */
static uint64_t put_file(const char *name)
{
	static char full[64];
	uint64_t gv;

	if (threads)
		return put_string(name);
	gv = at(STRINGS + 0x200ULL * nr_strings++);
	snprintf(full, sizeof(full), "_<%s", name);
	put_gv(gv, at(STASHES), full);
	return gv;
}

static uint64_t cop_at(uint32_t i)
{
	return at(COPS + 0x80ULL * i);
}

static uint64_t put_cop(uint32_t i, uint64_t file, uint32_t line)
{
	uint64_t cop = cop_at(i);

	put32(cop + PERL_OP_TYPE, layout->nextstate);
	put32(cop + PERL_OP_TYPE + 4, line);
	put64(cop + PERL_COP_FILE, file);
	put32(cop + PERL_COP_HINTS + 4, 1000 + i);
	return cop;
}

static uint64_t cv_at(uint32_t i)
{
	return at(CVS + 0x200ULL * i);
}

static uint64_t gv_at(uint32_t i)
{
	return cv_at(i) + 0xc0;
}

static uint64_t put_cv(uint32_t i, uint64_t stash, uint64_t start, const char *name, uint32_t flags)
{
	uint64_t cv = cv_at(i), body = cv + 0x40;

	put64(cv, body);
	put32(cv + PERL_SV_FLAGS, PERL_SVT_CV);
	put64(body + PERL_CV_STASH, stash);
	put64(body + PERL_CV_START, start);
	put32(body + PERL_CV_FLAGS, flags);
	put32(body + PERL_CV_FLAGS + 4, 1);
	if (flags & PERL_CVF_NAMED) {
		put64(body + PERL_CV_GV, put_hek(name));
		return cv;
	}
	put64(body + PERL_CV_GV, gv_at(i));
	put_gv(gv_at(i), stash, name);
	put64(gv_at(i) + 0xc0 + PERL_GP_CV, cv);
	return cv;
}

static uint64_t context_at(uint32_t node, uint32_t i)
{
	return at(CONTEXTS + 0x1000ULL * node) + (uint64_t)i * layout->context;
}

static void put_context(uint32_t node, uint32_t i, uint32_t type, uint64_t oldcop, uint64_t retop, uint64_t cv)
{
	uint64_t cx = context_at(node, i); /* the topmost one from now on */

	put32(cx + PERL_CX_TYPE, type);
	put64(cx + PERL_CX_OLDCOP, oldcop);
	put64(cx + PERL_CX_RETOP, retop);
	put64(cx + layout->context_cv, cv);
	put32(at(NODES + 0x100ULL * node) + PERL_SI_CXIX, i);
}

static uint64_t put_node(uint32_t i)
{
	uint64_t node = at(NODES + 0x100ULL * i);

	put64(node, node);
	put64(node + PERL_SI_CXSTACK, context_at(i, 0));
	put64(node + PERL_SI_PREV, i ? node - 0x100 : 0);
	put32(node + PERL_SI_CXIX, (uint32_t)-1);
	put32(node + PERL_SI_CXIX + 4, 20);
	put64(threads ? at(INTERPRETER) + layout->curstackinfo : symbol_at(S_CURSTACKINFO), node);
	return node;
}

static void put_curcop(uint64_t cop)
{
	put64(threads ? at(INTERPRETER) + layout->curcop : symbol_at(S_CURCOP), cop);
}

/* --- a program: main line 3 calls Foo::one, in a loop; its line 12 calls main::two, which is at line 22 --- */

enum { CX_NULL = PERL_CX_NULL, CX_BLOCK = PERL_CX_BLOCK, CX_LOOP = 4, CX_SUB = PERL_CX_SUB, CX_EVAL = PERL_CX_EVAL };
#define RETOP 0x7f00000ff000ULL

static void program(uint32_t version, bool with_threads)
{
	uint64_t file;

	memset(world, 0, sizeof(world));
	nr_strings = 0;
	thread_pointer = at(THREAD);
	threads = with_threads;
	layout = perl_layout_of(version);
	world[symbol_at(S_REVISION) - WORLD] = 5;
	world[symbol_at(S_VERSION) - WORLD] = (uint8_t)version;
	world[symbol_at(S_SUBVERSION) - WORLD] = 1;
	if (threads) {
		put64(symbol_at(S_CURINTERP), at(INTERPRETER));
		put32(symbol_at(S_THR_KEY), 2);
		put64(at(THREAD) + 0x310 + 2 * 16 + 8, at(INTERPRETER));
	}
	put_node(0);
	file = put_file("/srv/app.pl");
	for (uint32_t i = 0; i < 30; i++)
		put_cop(i, file, i);
	put64(threads ? at(INTERPRETER) + layout->main_start : symbol_at(S_MAIN_START), cop_at(1));
	put_cv(0, put_stash(0, "Foo"), cop_at(11), "one", 0);
	put_cv(1, put_stash(1, "main"), cop_at(21), "two", PERL_CVF_NAMED);
	put_context(0, 0, CX_BLOCK, cop_at(1), RETOP, 0);
	put_context(0, 1, CX_SUB, cop_at(3), RETOP, cv_at(0));
	put_context(0, 2, CX_LOOP, cop_at(11), 0, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	put_curcop(cop_at(22));
}

static int attach(uint16_t machine, const char *needed, char why[RUNTIME_WHY_MAX])
{
	struct runtime_file file = {.binary = perl_file(threads, machine, needed), .bias = WORLD + FILE_AT,
				    .thread = thread_pointer};
	int r;

	attached = (struct runtime_attached){0};
	why[0] = '\0';
	memory_question(&memory);
	r = runtime_perl.attach(&file, &memory, &attached, why);
	binary_put(file.binary);
	return r;
}

static void walk(void)
{
	otp_walk_prepare(&walker.ready, &attached.walk);
	walker.taken = 0;
	otp_walk_run(&walker, thread_pointer, 1, 0);
}

static void attach_and_walk(void)
{
	char why[RUNTIME_WHY_MAX];

	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), 0);
	walk();
}

static void start(uint32_t version, bool with_threads)
{
	program(version, with_threads);
	attach_and_walk();
}

static int frame(uint32_t i, struct runtime_frame *ret)
{
	uint32_t words = walker.ready.words;
	const uint64_t *word = (const void *)&walker.out[3 + i * words];
	struct runtime_words w = {.address = *word & OTP_WALK_ADDRESS, .missing = (uint32_t)(*word >> 56),
				  .count = words - 1, .word = word + 1, .root = (const void *)&walker.out[2], .nr_root = 1,
				  .index = i, .nr_outer = walker.frames - 1 - i,
				  .last = i + 1 == walker.frames && walker.end == OTP_WALK_END_DONE};

	*ret = (struct runtime_frame){0};
	return runtime_perl.frame(&attached, &w, ret);
}

static int decode(const struct runtime_frame *f)
{
	memory_question(&memory);
	return runtime_perl.decode(&attached, &memory, f, &function);
}

static void expect(uint32_t i, const char *name, const char *file, uint32_t line)
{
	struct runtime_frame f;

	ck_assert_int_eq(frame(i, &f), 0);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, name);
	ck_assert_str_eq(function.file, file);
	ck_assert_uint_eq(f.flags & RUNTIME_LINE ? f.position : function.nr_lines ? function.lines[0].line : 0, line);
}

static uint32_t flags_of(uint32_t i)
{
	struct runtime_frame f;

	ck_assert_int_eq(frame(i, &f), 0);
	return f.flags & (RUNTIME_ENTRY | RUNTIME_HIDDEN);
}

/* --- names and lines --- */

static void expect_program(void)
{
	ck_assert_uint_eq(walker.frames, 4);
	ck_assert_uint_eq(walker.end, OTP_WALK_END_DONE);
	expect(0, "main::two", "/srv/app.pl", 22);
	ck_assert_uint_eq(function.start_line, 21);
	ck_assert_uint_eq(flags_of(1), RUNTIME_HIDDEN);
	expect(2, "Foo::one", "/srv/app.pl", 12);
	expect(3, "(main)", "/srv/app.pl", 3);
	ck_assert_uint_eq(flags_of(3), RUNTIME_ENTRY);
}

START_TEST(each_version_is_walked_and_named)
{
	start(versions[_i], true);
	expect_program();
	start(versions[_i], false);
	expect_program();
}
END_TEST

/* arm64's programs lie in the upper half of 48 bits. */
START_TEST(a_sub_may_lie_above_47_bits)
{
	uint32_t words;

	start(36, true);
	words = walker.ready.words;
	walker.out[3 + 2 * words + 1 + PERL_CV] = 0xaaaac0de0000ULL;
	ck_assert_uint_eq(flags_of(2), 0);
	walker.out[3 + 2 * words + 1 + PERL_CV] = 1ULL << 48;
	ck_assert_int_eq(frame(2, &(struct runtime_frame){0}), -EBADMSG);
}
END_TEST

START_TEST(a_walk_that_was_cut_has_no_main_program)
{
	start(36, true);
	walker.end = OTP_WALK_END_BYTES;
	ck_assert_uint_eq(flags_of(3), RUNTIME_HIDDEN);
}
END_TEST

START_TEST(a_lexical_sub_has_no_package)
{
	start(36, true);
	put32(cv_at(1) + 0x40 + PERL_CV_FLAGS, PERL_CVF_NAMED | PERL_CVF_LEXICAL);
	expect(0, "two", "/srv/app.pl", 22);
}
END_TEST

/* For an instant, the topmost context is not what it says. */
START_TEST(a_sub_that_has_not_begun_is_left_out)
{
	program(36, true);
	put_curcop(cop_at(12));
	attach_and_walk();
	ck_assert_uint_eq(flags_of(0), RUNTIME_HIDDEN);
	expect(2, "Foo::one", "/srv/app.pl", 12);
	/* It has returned, or is another one that is to be filled. */
	put_curcop(cop_at(22));
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, 0);
	walk();
	ck_assert_uint_eq(flags_of(0), RUNTIME_HIDDEN);
	expect(2, "Foo::one", "/srv/app.pl", 0);
}
END_TEST

/* The interpreter is still at the last COP of the sub. */
START_TEST(a_sub_that_returns_is_kept_up_to_its_cv)
{
	start(36, true);
	put32(cv_at(1) + 0x40 + PERL_CV_FLAGS + 4, 0); /* depth */
	walk();
	expect(0, "main::two", "/srv/app.pl", 22);
	expect(2, "Foo::one", "/srv/app.pl", 12);
}
END_TEST

START_TEST(a_sub_that_calls_itself_is_kept)
{
	program(36, true);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(0));
	put_curcop(cop_at(12));
	attach_and_walk();
	expect(0, "Foo::one", "/srv/app.pl", 12);
	expect(2, "Foo::one", "/srv/app.pl", 12);
}
END_TEST

START_TEST(the_innermost_line_is_of_the_functions_own_file)
{
	start(36, true);
	put64(cop_at(22) + PERL_COP_FILE, put_file("/srv/other.pl"));
	expect(0, "main::two", "/srv/app.pl", 0);
	put32(cop_at(22) + PERL_OP_TYPE, 511);
	expect(0, "main::two", "/srv/app.pl", 0);
}
END_TEST

/* # line: half of a sub that was made from a template, say. */
START_TEST(a_caller_is_of_the_file_of_its_statement)
{
	struct runtime_frame f;

	start(36, true);
	put64(cop_at(12) + PERL_COP_FILE, put_file("/srv/template"));
	expect(2, "Foo::one", "/srv/template", 12);
	ck_assert_uint_eq(function.start_line, 0);
	put64(cop_at(3) + PERL_COP_FILE, put_file("/srv/template"));
	expect(3, "(main)", "/srv/template", 3);
	/* Another one is there by now. */
	frame(2, &f);
	put32(cop_at(12) + PERL_COP_HINTS + 4, 7);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, "Foo::one");
	ck_assert_str_eq(function.file, "");
	/* The compiler's is in no file. */
	put_context(0, 1, CX_SUB, cop_at(25), RETOP, cv_at(0));
	put32(cop_at(25) + PERL_OP_TYPE, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	walk();
	expect(3, "(main)", "/srv/app.pl", 25);
}
END_TEST

START_TEST(an_eval_may_say_which_file_it_is)
{
	start(36, true);
	put_context(0, 1, CX_EVAL | 0x20, cop_at(3), RETOP, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	put64(cop_at(12) + PERL_COP_FILE, put_file("(eval 17)"));
	walk();
	expect(2, "(eval)", "(eval)", 12);
	put64(cop_at(12) + PERL_COP_FILE, put_file("/srv/template"));
	expect(2, "(eval)", "/srv/template", 12);
}
END_TEST

START_TEST(evals_and_files_are_frames)
{
	start(38, true);
	put_context(0, 1, CX_EVAL, cop_at(3), RETOP, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	walk();
	expect(2, "require app.pl", "/srv/app.pl", 12);
	put_context(0, 1, CX_EVAL | 0x40, cop_at(3), RETOP, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	walk();
	ck_assert_uint_eq(flags_of(2), RUNTIME_HIDDEN);
	expect(3, "(main)", "/srv/app.pl", 12);
}
END_TEST

/* --- loops --- */

START_TEST(what_has_no_op_to_return_to_enters_a_loop)
{
	start(36, true);
	ck_assert_uint_eq(flags_of(0), 0);
	put_context(0, 3, CX_SUB, cop_at(12), 0, cv_at(1));
	walk();
	ck_assert_uint_eq(flags_of(0), RUNTIME_ENTRY);
}
END_TEST

START_TEST(the_block_of_a_sort_enters_a_loop)
{
	start(36, true);
	put_node(1);
	put_context(1, 0, CX_NULL, cop_at(22), 0, 0);
	put_context(1, 1, CX_SUB, cop_at(23), 0, cv_at(0));
	put_curcop(cop_at(13));
	walk();
	ck_assert_uint_eq(walker.frames, 6);
	expect(0, "Foo::one", "/srv/app.pl", 13);
	ck_assert_uint_eq(flags_of(0), 0);
	ck_assert_uint_eq(flags_of(1), RUNTIME_ENTRY | RUNTIME_HIDDEN);
	expect(2, "main::two", "/srv/app.pl", 23);
}
END_TEST

START_TEST(an_eval_below_a_call_from_c_enters_a_loop)
{
	start(36, true);
	put_context(0, 3, CX_SUB, cop_at(12), 0, cv_at(1));
	put_context(0, 4, CX_EVAL | 0x40, cop_at(22), RETOP, 0);
	put_context(0, 5, CX_EVAL | 0x40, cop_at(22), RETOP, 0);
	walk();
	ck_assert_uint_eq(flags_of(0), RUNTIME_HIDDEN);
	ck_assert_uint_eq(flags_of(1), RUNTIME_HIDDEN | RUNTIME_ENTRY);
	/* Unless C catches what it throws. */
	put_context(0, 2, CX_EVAL | 0x40, cop_at(12), 0, 0);
	put_context(0, 5, CX_EVAL | 0x40, cop_at(22), RETOP, 0);
	walk();
	ck_assert_uint_eq(flags_of(1), RUNTIME_HIDDEN);
	ck_assert_uint_eq(flags_of(3), RUNTIME_HIDDEN);
}
END_TEST

/* --- what is there later --- */

START_TEST(a_sub_that_was_replaced_is_stale)
{
	struct runtime_frame f;

	start(36, true);
	frame(0, &f);
	put64(cv_at(1) + 0x40 + PERL_CV_START, cop_at(15));
	ck_assert_int_eq(decode(&f), -ESTALE);
	frame(2, &f);
	put64(cv_at(0) + 0x40 + PERL_CV_START, cop_at(15));
	ck_assert_int_eq(decode(&f), -ESTALE);
}
END_TEST

START_TEST(a_closure_that_was_freed_is_named)
{
	struct runtime_frame f;

	program(36, true);
	put_cv(0, at(STASHES), cop_at(11), "__ANON__", 0);
	attach_and_walk();
	frame(2, &f);
	put32(cv_at(0) + PERL_SV_FLAGS, 0);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, "Foo::__ANON__");
}
END_TEST

/* Its ops are freed with it: what lies there is another's. */
START_TEST(a_begin_block_that_has_run_has_a_name_alone)
{
	struct runtime_frame f;

	program(36, true);
	put_cv(0, at(STASHES), cop_at(11), "BEGIN", 0);
	attach_and_walk();
	frame(2, &f);
	put32(cv_at(0) + PERL_SV_FLAGS, 0);
	put64(gv_at(0) + 0xc0 + PERL_GP_CV, 0);
	put32(cop_at(12) + PERL_COP_HINTS + 4, 7);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, "Foo::BEGIN");
	ck_assert_str_eq(function.file, "");
	ck_assert_uint_eq(function.start_line, 0);
}
END_TEST

START_TEST(a_sub_whose_name_still_means_it_is_named)
{
	struct runtime_frame f;

	start(36, true);
	frame(2, &f);
	f.key = PERL_FUNCTION | cv_at(5);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, "Foo::one");
	put32(gv_at(0) + PERL_SV_FLAGS, PERL_SVT_HV);
	ck_assert_int_eq(decode(&f), -ESTALE);
}
END_TEST

START_TEST(a_file_whose_code_was_freed_has_no_name)
{
	struct runtime_frame f;

	start(36, true);
	put_context(0, 1, CX_EVAL, cop_at(3), RETOP, 0);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	walk();
	frame(2, &f);
	put32(cop_at(12) + PERL_COP_HINTS + 4, 7);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_str_eq(function.name, "(require)");
	ck_assert_str_eq(function.file, "");
}
END_TEST

/* --- attaching --- */

START_TEST(a_version_that_is_not_known_is_refused)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	world[symbol_at(S_VERSION) - WORLD] = 37;
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -ENOTSUP);
	ck_assert_str_eq(why, "Perl 5.37.1 is not known");
	world[symbol_at(S_VERSION) - WORLD] = 36;
	world[symbol_at(S_REVISION) - WORLD] = 7;
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -ENOTSUP);
}
END_TEST

START_TEST(a_perl_that_has_not_started_is_asked_again)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put64(symbol_at(S_CURINTERP), 0);
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -EAGAIN);
	program(36, true);
	put64(at(INTERPRETER) + layout->curstackinfo, 0);
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -EAGAIN);
}
END_TEST

START_TEST(an_interpreter_of_another_shape_is_refused)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put32(at(NODES) + PERL_SI_CXIX, 21);
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why, "5.36.1"));
	program(36, true);
	put64(at(INTERPRETER) + layout->curstackinfo, 0x1000);
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -ENOTSUP);
}
END_TEST

START_TEST(the_threads_value_of_a_key_is_found)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put32(symbol_at(S_THR_KEY), 70);
	put64(at(THREAD) + 0x510 + 2 * 8, at(THREAD) + 0x800);
	put64(at(THREAD) + 0x800 + 6 * 16 + 8, at(INTERPRETER));
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), 0);
	walk();
	ck_assert_uint_eq(walker.frames, 4);
	put64(at(THREAD) + 0x80, at(THREAD) + 0x900);
	put64(at(THREAD) + 0x900 + 70 * 8, at(INTERPRETER));
	ck_assert_int_eq(attach(EM_X86_64, "libc.musl-x86_64.so.1", why), 0);
	walk();
	ck_assert_uint_eq(walker.frames, 4);
	put32(symbol_at(S_THR_KEY), 5000);
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), -ENOTSUP);
}
END_TEST

/* glibc's struct pthread has its first block at 0x110 on arm64, and ends where the thread pointer points to. */
START_TEST(on_arm64_a_threads_values_are_found_in_its_memory)
{
	static const uint32_t sizes[] = {0x6f0, 0x740, 0x820, 0xbf8};
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put64(at(THREAD) + 0x310 + 2 * 16 + 8, 0);
	put64(at(THREAD) + 0x310, at(THREAD) + 0x110);
	put64(at(THREAD) + 0x110 + 2 * 16 + 8, at(INTERPRETER));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		thread_pointer = at(THREAD) + sizes[i];
		ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), 0);
		walk();
		expect_program();
	}
	put32(symbol_at(S_THR_KEY), 70);
	put64(at(THREAD) + 0x310 + 2 * 8, at(THREAD) + 0xc00);
	put64(at(THREAD) + 0xc00 + 6 * 16 + 8, at(INTERPRETER));
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), 0);
	walk();
	expect_program();
	/* What lies before may not be there. */
	memmove(world, world + THREAD, 0x1000);
	put64(WORLD + 0x310, WORLD + 0x110);
	put64(WORLD + 0x110 + 2 * 16 + 8, at(INTERPRETER));
	thread_pointer = WORLD + 0x6f0;
	put32(symbol_at(S_THR_KEY), 2);
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), 0);
}
END_TEST

START_TEST(on_arm64_no_other_memory_is_taken_for_a_thread)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put64(at(THREAD) + 0x310, at(THREAD) + 0x118);
	thread_pointer = at(THREAD) + 0x6f0;
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why, "pthread key 2"));
	put64(at(THREAD) + 0x310, at(THREAD) + 0x110);
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), 0);
	ck_assert_int_eq(attach(EM_RISCV, "libc.so.6", why), -ENOTSUP);
	thread_pointer += 4;
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), -ENOTSUP);
	thread_pointer = 0x1000;
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), -ENOTSUP);
	thread_pointer = 0;
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so.6", why), -ENOTSUP);
	ck_assert_int_eq(attach(EM_AARCH64, "libc.so", why), 0); /* musl's is of one size */
	ck_assert_int_eq(attached.walk.chain[0], 0x70 - 0xc8);
	ck_assert_int_eq(attached.walk.chain[1], 8 * 2);
}
END_TEST

START_TEST(the_loop_in_use_is_known)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put64(at(INTERPRETER) + layout->runops, at(0x77));
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), 0);
	ck_assert_uint_eq(attached.nr_loops, 3);
	ck_assert_uint_eq(attached.loop[2], at(0x77));
}
END_TEST

/* --- hostile memory --- */

START_TEST(lists_without_an_end_are_bounded)
{
	char why[RUNTIME_WHY_MAX];

	program(36, true);
	put64(at(NODES) + PERL_SI_PREV, at(NODES));
	ck_assert_int_eq(attach(EM_X86_64, "libc.so.6", why), 0);
	walk();
	ck_assert_uint_ne(walker.end, OTP_WALK_END_DONE);
	for (uint32_t i = 0; i < walker.frames; i++)
		flags_of(i);
}
END_TEST

START_TEST(names_of_any_length_are_cut)
{
	struct runtime_frame f;
	uint64_t hek;

	start(36, true);
	frame(0, &f);
	hek = f.cookie[1];
	memset(world + (hek + PERL_HEK_TEXT - WORLD), 'x', 8192);
	put32(hek + PERL_HEK_LEN, 8000);
	ck_assert_int_eq(decode(&f), 0);
	ck_assert_uint_lt(strlen(function.name), RUNTIME_NAME_MAX);
	put32(hek + PERL_HEK_LEN, UINT32_MAX);
	ck_assert_int_eq(decode(&f), -EBADMSG);
	put32(hek + PERL_HEK_LEN, 0);
	ck_assert_int_eq(decode(&f), -EBADMSG);
	put32(hek + PERL_HEK_LEN, 3);
	put_text(hek + PERL_HEK_TEXT, "");
	ck_assert_int_eq(decode(&f), -EBADMSG);
}
END_TEST

START_TEST(pointers_into_nowhere_fail)
{
	struct runtime_frame f;

	start(34, true);
	frame(2, &f);
	put64(at(STASHES) + 0x40 + PERL_HV_MAX, UINT64_MAX);
	ck_assert_int_lt(decode(&f), 0);
	put64(at(STASHES), 0x1000);
	ck_assert_int_eq(decode(&f), -EFAULT);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, 3);
	walk();
	ck_assert_uint_eq(flags_of(0), RUNTIME_HIDDEN);
	put_context(0, 1, CX_SUB, cop_at(12), RETOP, 3);
	put_context(0, 3, CX_SUB, cop_at(12), RETOP, cv_at(1));
	walk();
	ck_assert_int_eq(frame(2, &f), -EBADMSG);
	f = (struct runtime_frame){.key = 7};
	ck_assert_int_eq(decode(&f), -EBADMSG);
}
END_TEST

Suite *runtime_perl_suite(void)
{
	Suite *s = suite_create("runtime_perl");
	TCase *tc = tcase_create("perl");

	tcase_add_loop_test(tc, each_version_is_walked_and_named, 0, (int)ARRAY_SIZE(versions));
	tcase_add_test(tc, a_sub_may_lie_above_47_bits);
	tcase_add_test(tc, a_walk_that_was_cut_has_no_main_program);
	tcase_add_test(tc, a_lexical_sub_has_no_package);
	tcase_add_test(tc, a_sub_that_has_not_begun_is_left_out);
	tcase_add_test(tc, a_sub_that_returns_is_kept_up_to_its_cv);
	tcase_add_test(tc, a_sub_that_calls_itself_is_kept);
	tcase_add_test(tc, the_innermost_line_is_of_the_functions_own_file);
	tcase_add_test(tc, a_caller_is_of_the_file_of_its_statement);
	tcase_add_test(tc, an_eval_may_say_which_file_it_is);
	tcase_add_test(tc, evals_and_files_are_frames);
	tcase_add_test(tc, what_has_no_op_to_return_to_enters_a_loop);
	tcase_add_test(tc, the_block_of_a_sort_enters_a_loop);
	tcase_add_test(tc, an_eval_below_a_call_from_c_enters_a_loop);
	tcase_add_test(tc, a_sub_that_was_replaced_is_stale);
	tcase_add_test(tc, a_closure_that_was_freed_is_named);
	tcase_add_test(tc, a_begin_block_that_has_run_has_a_name_alone);
	tcase_add_test(tc, a_sub_whose_name_still_means_it_is_named);
	tcase_add_test(tc, a_file_whose_code_was_freed_has_no_name);
	tcase_add_test(tc, a_version_that_is_not_known_is_refused);
	tcase_add_test(tc, a_perl_that_has_not_started_is_asked_again);
	tcase_add_test(tc, an_interpreter_of_another_shape_is_refused);
	tcase_add_test(tc, the_threads_value_of_a_key_is_found);
	tcase_add_test(tc, on_arm64_a_threads_values_are_found_in_its_memory);
	tcase_add_test(tc, on_arm64_no_other_memory_is_taken_for_a_thread);
	tcase_add_test(tc, the_loop_in_use_is_known);
	tcase_add_test(tc, lists_without_an_end_are_bounded);
	tcase_add_test(tc, names_of_any_length_are_cut);
	tcase_add_test(tc, pointers_into_nowhere_fail);
	suite_add_tcase(s, tc);
	return s;
}
