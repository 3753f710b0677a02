// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "process/proc_stat.h"

Suite *proc_stat_suite(void);

#define REST " 95 0 0 0 0 0 0 0 20 0 1 0 "

static const struct {
	const char *text;
	struct proc_stat want;
} sound[] = {
	{"12 (cat) R 7 12 7 34816 12 4194304" REST "55 5 6\n", {12, 7, 4194304, 'R', "cat", 55}},
	{"12 (a) (b) 1) S 8 0 0 0 -1 2097216" REST "9 0 0\n", {12, 8, 2097216, 'S', "a) (b) 1", 9}},
	{"1 ()) Z 4294967295 0 0 0 -1 0 0 0 0 0 0 0 0 0 -2 -20 1 0 18446744073", {1, UINT32_MAX, 0, 'Z', ")", 18446744073}},
	{"1 ( R 1 2) S 0 1 1 0 -1 4194560" REST "0", {1, 0, 4194560, 'S', " R 1 2", 0}},
};

START_TEST(fields_are_counted_from_the_last_bracket)
{
	const struct proc_stat *want = &sound[_i].want;
	struct proc_stat s;

	ck_assert_int_eq(proc_stat_parse(sound[_i].text, &s), 0);
	ck_assert_str_eq(s.comm, want->comm);
	ck_assert(s.pid == want->pid && s.ppid == want->ppid && s.flags == want->flags && s.state == want->state);
	ck_assert_uint_eq(s.start_ticks, want->start_ticks);
	ck_assert_uint_eq(proc_stat_start_ns(&s), want->start_ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK)));
}
END_TEST

static const char *const malformed[] = {
	"",
	")12(",
	"12 (cat",
	"12 cat) R 7",
	"12 (cat)",
	"12 (cat) ",
	"12 (cat) R",
	"12 (cat) R 7 12\n",
	"12 (cat)R 7 12 7 34816 12 4194304" REST "55 5 6\n",
	"x (cat) R 7 12 7 34816 12 4194304" REST "55 5 6\n",
	"4294967296 (cat) R 7 12 7 34816 12 4194304" REST "55 5 6\n",
	"12 (cat) R -7 12 7 34816 12 4194304" REST "55 5 6\n",
	"12 (cat) R 7 12 7 34816 12 4294967296" REST "55 5 6\n",
	"12 (cat) R 7 12 7 34816 12 4194304" REST "18446744073709551615 5 6\n",
	"12 (cat) R 7 12 7 34816 12 4194304" REST "18446744073709551616 5 6\n",
	"12 (cat) R 7 12 7 34816 12 4194304" REST "55x 5 6\n",
	"12 (cat) R 7 12 7 34816 12 4194304" REST "",
};

START_TEST(malformed_text_is_rejected_and_changes_nothing)
{
	struct proc_stat s = {.pid = 77};

	ck_assert_int_eq(proc_stat_parse(malformed[_i], &s), -EBADMSG);
	ck_assert_uint_eq(s.pid, 77);
}
END_TEST

START_TEST(name_that_is_too_long_is_cut)
{
	char text[300] = "1 (";
	struct proc_stat s;

	memset(text + 3, 'x', 200);
	strcpy(text + 203, ") R 7 12 7 34816 12 0" REST "55");
	ck_assert_int_eq(proc_stat_parse(text, &s), 0);
	ck_assert_uint_eq(strlen(s.comm), sizeof(s.comm) - 1);
	ck_assert_uint_eq(s.start_ticks, 55);
}
END_TEST

START_TEST(processes_of_this_host_are_read)
{
	pid_t child = fork();
	struct proc_stat s;

	if (!child)
		_exit(0);
	do
		ck_assert_int_eq(proc_stat_read((uint32_t)child, &s), 0);
	while (!proc_stat_is_zombie(&s));
	ck_assert(s.pid == (uint32_t)child && s.ppid == (uint32_t)getpid());
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_eq(proc_stat_read((uint32_t)child, &s), -ESRCH);
	ck_assert_int_eq(proc_stat_read((uint32_t)getpid(), &s), 0);
	ck_assert(!proc_stat_is_zombie(&s));
	ck_assert_uint_gt(s.start_ticks, 0);
}
END_TEST

Suite *proc_stat_suite(void)
{
	Suite *s = suite_create("proc_stat");
	TCase *t = tcase_create("text");

	tcase_add_loop_test(t, fields_are_counted_from_the_last_bracket, 0, ARRAY_SIZE(sound));
	tcase_add_loop_test(t, malformed_text_is_rejected_and_changes_nothing, 0, ARRAY_SIZE(malformed));
	tcase_add_test(t, name_that_is_too_long_is_cut);
	tcase_add_test(t, processes_of_this_host_are_read);
	suite_add_tcase(s, t);
	return s;
}
