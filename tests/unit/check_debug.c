// SPDX-License-Identifier: Apache-2.0
/* An index that is replaced while it is in use: this program's own, first without and then with lines. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "process/host.h"
#include "symbol/index_build.h"
#include "symbol/symbol.h"

Suite *debug_suite(void);

/* A host that keeps the question until the test answers it. */
static host_answer_fn *answer_fn;
static void *answer_ctx;
static int asked;

static int on_ask(struct host *h, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	ck_assert_uint_eq(req->kind, HOST_OPEN_INDEX);
	ck_assert_uint_eq(req->pid_start_ns, 5);
	ck_assert_uint_eq(req->group, 9);
	asked++;
	answer_fn = fn;
	answer_ctx = ctx;
	return 0;
}

static void on_cancel(struct host *h, void *ctx)
{
	answer_fn = NULL;
}

static const struct host_ops ops = {.ask = on_ask, .cancel = on_cancel};
static struct host host = {.ops = &ops};
static struct symbolizer *s;
static struct binary *b;
static const struct symbol_asker asker = {.pid = 1, .pid_start_ns = 5, .cgroup_id = 9, .now_ns = NSEC_PER_SEC};

static int no_file(void *ctx, enum index_root root, const char *path, int *ret_fd)
{
	return -ENOENT;
}

static int index_with(bool lines)
{
	int elf = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), scratch = memfd_create("check", MFD_CLOEXEC);
	struct index_job job = {.elf_fd = elf, .out_fd = memfd_create("check", MFD_CLOEXEC), .scratch_fd = scratch,
				.path = "/check", .debug_dirs = "", .inlines = lines, .lines = lines,
				.symbols_only = !lines, .open = no_file};
	struct index_report report;

	ck_assert_int_eq(index_build(&job, &report), 0);
	close(elf);
	close(scratch);
	return job.out_fd;
}

static void answer(int err, int fd)
{
	host_answer_fn *fn = answer_fn;

	answer_fn = NULL;
	ck_assert_ptr_nonnull(fn);
	fn(answer_ctx, err, fd, NULL, 0);
}

/* The line of a function of this file, 0: unknown. */
__attribute__((noinline)) static uint32_t line_here(void)
{
	uint64_t pc = (uint64_t)(uintptr_t)__builtin_return_address(0), vaddr = 0;
	extern const char __executable_start;
	struct symbol_result r = {0};
	uint32_t line;

	ck_assert(binary_offset_to_vaddr(b, 0, &vaddr));
	symbol_find(s, b, "", pc - 1 - (uint64_t)(uintptr_t)&__executable_start + vaddr, &r);
	ck_assert_str_ne(str_c(r.lines[0].name), "");
	line = r.lines[0].line;
	symbol_result_done(&r);
	return line;
}

static struct symbol_state state(void)
{
	struct symbol_state st;

	symbol_state(s, b, &st);
	return st;
}

static void ask_first(void)
{
	const struct symbol_limits limits = {.host = &host, .inlines = true, .lines = true, .wait_ns = NSEC_PER_SEC};

	asked = 0;
	ck_assert_int_eq(symbolizer_new(&limits, &s), 0);
	ck_assert_int_eq(binary_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/check", &b), 0);
	ck_assert(symbol_want(s, b, &asker));
}

static void set_up(void)
{
	ask_first();
	answer(0, index_with(false));
	ck_assert(!symbol_want(s, b, &asker));
	ck_assert_int_eq(asked, 1);
}

static void tear_down(void)
{
	binary_put(b);
	symbolizer_free(s);
	ck_assert_ptr_null(answer_fn);
}

START_TEST(better_index_takes_the_place_of_the_one_in_use)
{
	ck_assert_uint_eq(line_here(), 0);
	symbol_set_fetch(s, b->htlhash, 7, true);
	ck_assert_uint_eq(state().fetch, 7);
	/* Nobody waits for it, and what there is serves on. */
	ck_assert(!symbol_want(s, b, &asker));
	ck_assert_int_eq(asked, 2);
	ck_assert(!symbol_want(s, b, &asker));
	ck_assert_int_eq(asked, 2);
	ck_assert_int_eq(state().index, SYMBOL_INDEX_READY);
	ck_assert_uint_eq(line_here(), 0);
	answer(0, index_with(true));
	ck_assert(state().dwarf);
	ck_assert_uint_gt(line_here(), 0);
	ck_assert(!symbol_want(s, b, &asker));
	ck_assert_int_eq(asked, 2);
}
END_TEST

START_TEST(index_in_use_stays_where_there_is_no_better_one)
{
	symbol_set_fetch(s, b->htlhash, 7, true);
	symbol_want(s, b, &asker);
	answer(-ENODATA, -1);
	ck_assert_int_eq(state().index, SYMBOL_INDEX_READY);
	symbol_set_fetch(s, b->htlhash, 7, true);
	symbol_want(s, b, &asker);
	answer(0, memfd_create("empty", MFD_CLOEXEC));
	ck_assert_int_eq(state().index, SYMBOL_INDEX_READY);
	ck_assert_uint_eq(line_here(), 0);
}
END_TEST

START_TEST(binary_may_go_while_a_better_index_is_asked_for)
{
	symbol_set_fetch(s, b->htlhash, 7, true);
	symbol_want(s, b, &asker);
	ck_assert_ptr_nonnull(answer_fn);
}
END_TEST

START_TEST(news_of_other_files_change_nothing)
{
	uint8_t other[16];

	memcpy(other, b->htlhash, sizeof(other));
	other[15] ^= 1;
	symbol_set_fetch(s, other, 7, true);
	symbol_want(s, b, &asker);
	ck_assert_int_eq(asked, 1);
	ck_assert_uint_eq(state().fetch, 0);
	symbol_set_fetch(s, b->htlhash, 9, false);
	symbol_want(s, b, &asker);
	ck_assert_int_eq(asked, 1);
	ck_assert_uint_eq(state().fetch, 9);
}
END_TEST

START_TEST(news_of_all_are_for_those_without_debug_information)
{
	symbol_set_fetch(s, NULL, 0, true);
	symbol_want(s, b, &asker);
	ck_assert_int_eq(asked, 2);
	answer(0, index_with(true));
	symbol_set_fetch(s, NULL, 0, true);
	symbol_want(s, b, &asker);
	ck_assert_int_eq(asked, 2);
}
END_TEST

/* As where other files of its owner fill the owner's part of the host's queue. */
START_TEST(names_wait_for_an_index_that_the_host_has_no_room_for)
{
	struct symbol_asker later = asker;

	answer(-EBUSY, -1);
	later.now_ns += NSEC_PER_SEC / 2;
	ck_assert(symbol_want(s, b, &later));
	ck_assert(symbol_waits(s, later.now_ns));
	later.now_ns += NSEC_PER_SEC;
	ck_assert(!symbol_want(s, b, &later));
	ck_assert_int_eq(asked, 1);
	later.now_ns += 5 * NSEC_PER_SEC;
	ck_assert(!symbol_want(s, b, &later));
	ck_assert_int_eq(asked, 2);
	answer(-ENODATA, -1);
	ck_assert(!symbol_waits(s, asker.now_ns));
}
END_TEST

Suite *debug_suite(void)
{
	Suite *suite = suite_create("debug");
	TCase *t = tcase_create("renewal");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, better_index_takes_the_place_of_the_one_in_use);
	tcase_add_test(t, index_in_use_stays_where_there_is_no_better_one);
	tcase_add_test(t, binary_may_go_while_a_better_index_is_asked_for);
	tcase_add_test(t, news_of_other_files_change_nothing);
	tcase_add_test(t, news_of_all_are_for_those_without_debug_information);
	suite_add_tcase(suite, t);
	t = tcase_create("first");
	tcase_add_checked_fixture(t, ask_first, tear_down);
	tcase_add_test(t, names_wait_for_an_index_that_the_host_has_no_room_for);
	suite_add_tcase(suite, t);
	return suite;
}
