// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/monitor/notify.h"

Suite *notify_suite(void);

static int listener;
static char text[512];

/* A name without a file, of this process. */
static void setup(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "otprof-check-notify-%d", getpid());
	char name[sizeof(at.sun_path) + 1];

	listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)), 0);
	snprintf(name, sizeof(name), "@%s", at.sun_path + 1);
	setenv("NOTIFY_SOCKET", name, 1);
}

static const char *hear(void)
{
	ssize_t n = recv(listener, text, sizeof(text) - 1, 0);

	if (n < 0)
		return NULL;
	text[n] = '\0';
	return text;
}

static void teardown(void)
{
	/* What a test left waiting is said, and heard by nobody. */
	for (int i = 0; i < 16; i++) {
		while (hear())
			;
		notify_run();
	}
	close(listener);
	unsetenv("NOTIFY_SOCKET");
}

/* Until its queue is full. */
static int fill(void)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un to;
	socklen_t len = sizeof(to);
	int n = 0;

	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &len), 0);
	while (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, len) == 1)
		n++;
	ck_assert_int_eq(errno, EAGAIN);
	return n;
}

START_TEST(messages_are_said_as_they_come)
{
	notify_ready("Sampling");
	ck_assert_str_eq(hear(), "READY=1\nSTATUS=Sampling");
	notify_alive();
	ck_assert_str_eq(hear(), "WATCHDOG=1");
	notify_stopping();
	ck_assert_str_eq(hear(), "STOPPING=1\nSTATUS=Exporting what is left");
	ck_assert_ptr_null(hear());
}
END_TEST

START_TEST(listener_that_does_not_read_costs_no_time)
{
	uint64_t before;

	fill();
	before = clock_now_ns();
	for (int i = 0; i < 100; i++) {
		notify_status("less");
		notify_alive();
		notify_run();
	}
	ck_assert_uint_lt(clock_now_ns() - before, NSEC_PER_SEC);
}
END_TEST

START_TEST(what_waited_is_said_in_order_and_the_last_status_only)
{
	fill();
	notify_ready("one");
	notify_status("two");
	notify_status("three");
	notify_alive();
	while (hear() && strcmp(text, "x") == 0)
		;
	ck_assert_ptr_null(hear());
	notify_run();
	ck_assert_str_eq(hear(), "READY=1\nSTATUS=one");
	ck_assert_str_eq(hear(), "STATUS=three");
	ck_assert_ptr_null(hear());
}
END_TEST

START_TEST(listener_that_is_gone_is_forgotten)
{
	fill();
	notify_ready("one");
	setenv("NOTIFY_SOCKET", "@otprof-nobody-listens-here", 1);
	notify_run();
	notify_status("two");
	setenv("NOTIFY_SOCKET", "", 1);
	notify_status("three");
	notify_run();
	while (hear() && strcmp(text, "x") == 0)
		;
	ck_assert_ptr_null(hear());
}
END_TEST

Suite *notify_suite(void)
{
	Suite *s = suite_create("notify");
	TCase *t = tcase_create("notify");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, messages_are_said_as_they_come);
	tcase_add_test(t, listener_that_does_not_read_costs_no_time);
	tcase_add_test(t, what_waited_is_said_in_order_and_the_last_status_only);
	tcase_add_test(t, listener_that_is_gone_is_forgotten);
	suite_add_tcase(s, t);
	return s;
}
