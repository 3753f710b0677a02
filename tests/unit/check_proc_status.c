// SPDX-License-Identifier: Apache-2.0
/* Whose process it is, by the text of /proc/PID/status. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/proc_status.h"

Suite *proc_status_suite(void);

static const char usual[] = "Name:\tcat\nUmask:\t0022\nTgid:\t41\nUid:\t1000\t1001\t1002\t1003\n"
			    "Gid:\t100\t101\t102\t103\nGroups:\t4 24 4294967295 \nNSpid:\t41\t7\nVmPeak:\t5000 kB\n";

START_TEST(the_effective_user_and_the_innermost_pid_count)
{
	struct proc_status s;

	ck_assert_int_eq(proc_status_parse(usual, &s), 0);
	ck_assert_uint_eq(s.uid, 1001);
	ck_assert_uint_eq(s.real_uid, 1000);
	ck_assert_uint_eq(s.gid, 101);
	ck_assert_uint_eq(s.inner_pid, 7);
}
END_TEST

START_TEST(groups_are_its_own_and_the_supplementary_ones)
{
	struct proc_status s;

	ck_assert_int_eq(proc_status_parse(usual, &s), 0);
	ck_assert(proc_status_has_group(&s, 101));
	ck_assert(proc_status_has_group(&s, 24));
	ck_assert(proc_status_has_group(&s, UINT32_MAX));
	ck_assert(!proc_status_has_group(&s, 100)); /* the real one */
	ck_assert(!proc_status_has_group(&s, 41));  /* of the next line */
	ck_assert(!proc_status_has_group(&s, 2));
}
END_TEST

START_TEST(a_key_counts_at_the_beginning_of_a_line_only)
{
	struct proc_status s;

	ck_assert_int_eq(proc_status_parse("Name:\tUid:\\nUid:\t0\t0\nUid:\t5\t6\nGid:\t7\t8\n", &s), 0);
	ck_assert_uint_eq(s.uid, 6);
	ck_assert_uint_eq(s.inner_pid, 0);
	ck_assert(!proc_status_has_group(&s, 5));
}
END_TEST

static const char *const bad[] = {
	"", "\n", "Uid:", "Uid:\t1\nGid:\t1\t1\n", "Uid:\t1\t2\n", "Gid:\t1\t2\n", "Uid:\t1\tx\nGid:\t1\t2\n",
	"Uid:\t1\t-2\nGid:\t1\t2\n", "Uid:\t1\t4294967296\nGid:\t1\t2\n", "Uid:\t1\t2\nGid:\t1\t99999999999999999999999\n",
};

START_TEST(a_text_without_user_or_group_is_refused)
{
	struct proc_status s = {.uid = 42};

	ck_assert_int_eq(proc_status_parse(bad[_i], &s), -EBADMSG);
	ck_assert_uint_eq(s.uid, 42);
}
END_TEST

Suite *proc_status_suite(void)
{
	Suite *s = suite_create("proc_status");
	TCase *t = tcase_create("proc_status");

	tcase_add_test(t, the_effective_user_and_the_innermost_pid_count);
	tcase_add_test(t, groups_are_its_own_and_the_supplementary_ones);
	tcase_add_test(t, a_key_counts_at_the_beginning_of_a_line_only);
	tcase_add_loop_test(t, a_text_without_user_or_group_is_refused, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, t);
	return s;
}
