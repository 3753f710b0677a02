// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kallsyms_open.h"

Suite *kallsyms_open_suite(void);

#define PLACE 4097 /* a position by which a descriptor is recognised */

static int input_before;

static void setup(void)
{
	input_before = dup(STDIN_FILENO);
}

static void teardown(void)
{
	if (input_before < 0) {
		close(STDIN_FILENO);
		return;
	}
	dup2(input_before, STDIN_FILENO);
	close(input_before);
}

static void give_input(const char *path)
{
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(lseek(fd, PLACE, SEEK_SET), PLACE);
	if (fd == STDIN_FILENO)
		return;
	ck_assert_int_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	close(fd);
}

static bool opens_input(void)
{
	_cleanup_(closep) int fd = kallsyms_open();

	ck_assert_int_ge(fd, 0);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return lseek(fd, 0, SEEK_CUR) == PLACE;
}

START_TEST(symbols_on_standard_input_are_taken)
{
	give_input("/proc/kallsyms");
	ck_assert(opens_input());
	/* Looking at it has not moved it. */
	ck_assert_int_eq(lseek(STDIN_FILENO, 0, SEEK_CUR), PLACE);
}
END_TEST

static const char *const others[] = {"/bin/sh", "/proc/cpuinfo", "/proc/self/maps", "/proc/self/status"};

START_TEST(another_standard_input_is_left_alone)
{
	if (_i < (int)ARRAY_SIZE(others))
		give_input(others[_i]);
	else
		close(STDIN_FILENO);
	ck_assert(!opens_input());
}
END_TEST

Suite *kallsyms_open_suite(void)
{
	Suite *s = suite_create("kallsyms_open");
	TCase *t = tcase_create("input");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, symbols_on_standard_input_are_taken);
	tcase_add_loop_test(t, another_standard_input_is_left_alone, 0, ARRAY_SIZE(others) + 1);
	suite_add_tcase(s, t);
	return s;
}
