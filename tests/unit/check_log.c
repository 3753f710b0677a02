// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

Suite *log_suite(void);

static int journal, stream;
static char text[65536];

static void setup(void)
{
	int pair[2], pipes[2];

	unsetenv("JOURNAL_STREAM");
	log_init("otprofd", LOG_LEVEL_INFO);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	ck_assert_int_eq(pipe(pipes), 0);
	log_set_journal(pair[0]);
	journal = pair[1];
	log_set_fd(pipes[1]);
	stream = pipes[0];
}

static void teardown(void)
{
	log_set_journal(-1);
	log_set_fd(STDERR_FILENO);
	close(journal);
	close(stream);
}

/* The next entry of the journal, or "". */
static const char *entry(void)
{
	ssize_t n = read(journal, text, sizeof(text) - 1);

	text[MAX(n, 0)] = '\0';
	return text;
}

static const char *written(void)
{
	ssize_t n = read(stream, text, sizeof(text) - 1);

	text[MAX(n, 0)] = '\0';
	return text;
}

START_TEST(journal_gets_fields)
{
	log_tagged(&(struct log_tag){.event = LOG_EVENT_DESTINATION_DOWN, .destination = "sink"}, LOG_LEVEL_WARN, "no %s", "way");
	ck_assert_str_eq(entry(), "PRIORITY=4\nSYSLOG_IDENTIFIER=otprofd\nMESSAGE=no way\nOTPROF_WORKER=monitor\n"
				  "OTPROF_DESTINATION=sink\nMESSAGE_ID=c110b56cc660466f9aac739e24b2687f\n");
}
END_TEST

START_TEST(worker_is_named)
{
	log_init("engine", LOG_LEVEL_INFO);
	log_notice("x");
	ck_assert_str_eq(entry(), "PRIORITY=5\nSYSLOG_IDENTIFIER=otprofd\nMESSAGE=engine: x\nOTPROF_WORKER=engine\n");
	log_tagged(&(struct log_tag){.worker = "net"}, LOG_LEVEL_WARN, "x");
	ck_assert_ptr_nonnull(strstr(entry(), "\nOTPROF_WORKER=net\n"));
}
END_TEST

START_TEST(line_is_one_line_whatever_it_holds)
{
	log_warn("a name\nPRIORITY=0\nof two lines");
	ck_assert_ptr_nonnull(strstr(entry(), "MESSAGE=a name PRIORITY=0 of two lines\n"));
}
END_TEST

START_TEST(line_holds_nothing_that_a_terminal_obeys)
{
	log_warn("a name \033[2J\033]0;owned\a of a file\r\xc2\x9b" "2J \x80 or \xc3\xa4");
	ck_assert_ptr_nonnull(strstr(entry(), "MESSAGE=a name ?[2J?]0;owned? of a file???2J ? or \xc3\xa4\n"));
	log_set_journal(-1);
	log_warn("\033c");
	ck_assert_str_eq(written(), "otprofd: ?c\n");
}
END_TEST

START_TEST(long_line_is_cut)
{
	char *longer = calloc(1, 4096);

	memset(longer, 'x', 4095);
	log_warn("%s", longer);
	free(longer);
	ck_assert_uint_lt(strlen(entry()), 1500);
	ck_assert_ptr_nonnull(strstr(text, "\nOTPROF_WORKER=monitor\n"));
}
END_TEST

START_TEST(without_journal_the_stream_gets_it)
{
	log_set_journal(-1);
	log_warn("x %d", 1);
	ck_assert_str_eq(written(), "otprofd: x 1\n");
}
END_TEST

START_TEST(journal_that_is_gone_is_no_loss)
{
	shutdown(journal, SHUT_RDWR);
	close(journal);
	journal = open("/dev/null", 0);
	log_warn("x");
	ck_assert_str_eq(written(), "otprofd: x\n");
}
END_TEST

START_TEST(kind_is_limited_and_says_so)
{
	int n = 0;

	for (int i = 0; i < 100; i++)
		log_warn("number %d", i);
	while (*entry())
		n++;
	ck_assert_int_eq(n, LOG_KIND_LINES);
	log_warn("another kind");
	ck_assert_ptr_nonnull(strstr(entry(), "another kind"));
}
END_TEST

static uint32_t said(struct log_rate *rate, uint64_t from_s, uint64_t to_s)
{
	uint32_t n = 0;

	for (uint64_t s = from_s; s < to_s; s += 5)
		n += log_rate_takes(rate, s * NSEC_PER_SEC);
	return n;
}

START_TEST(what_goes_on_is_said_ever_more_seldom)
{
	struct log_rate fixed = {0}, grows = {.grows = true};

	ck_assert_uint_eq(said(&fixed, 100, 3700), 360);
	ck_assert_uint_eq(said(&grows, 100, 130), 2); /* at 100 and 110 */
	ck_assert_uint_eq(said(&grows, 130, 730), 4); /* 130, 170, 250, 410; 730 is next */
	ck_assert_uint_eq(said(&grows, 730, 4330), 6);
	ck_assert_uint_eq(said(&grows, 10000, 10020), 2);
}
END_TEST

START_TEST(level_decides_first)
{
	log_debug("not wanted");
	ck_assert_str_eq(entry(), "");
	log_init("otprofd", LOG_LEVEL_DEBUG);
	log_debug("wanted");
	ck_assert_ptr_nonnull(strstr(entry(), "PRIORITY=7"));
}
END_TEST

START_TEST(stream_of_another_is_no_journal)
{
	log_set_journal(-1);
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_init("otprofd", LOG_LEVEL_INFO);
	log_info("x");
	ck_assert_str_eq(written(), "otprofd: x\n");
	unsetenv("JOURNAL_STREAM");
}
END_TEST

START_TEST(ids_are_those_of_one_event_each)
{
	static const char *const ids[] = {
#define X(NAME, id, what) id,
		LOG_EVENTS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		ck_assert_uint_eq(strspn(ids[i], "0123456789abcdef"), 32);
		ck_assert_uint_eq(strlen(ids[i]), 32);
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(ids[i], ids[j]);
	}
}
END_TEST

Suite *log_suite(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, journal_gets_fields);
	tcase_add_test(t, worker_is_named);
	tcase_add_test(t, line_is_one_line_whatever_it_holds);
	tcase_add_test(t, line_holds_nothing_that_a_terminal_obeys);
	tcase_add_test(t, long_line_is_cut);
	tcase_add_test(t, without_journal_the_stream_gets_it);
	tcase_add_test(t, journal_that_is_gone_is_no_loss);
	tcase_add_test(t, kind_is_limited_and_says_so);
	tcase_add_test(t, what_goes_on_is_said_ever_more_seldom);
	tcase_add_test(t, level_decides_first);
	tcase_add_test(t, stream_of_another_is_no_journal);
	tcase_add_test(t, ids_are_those_of_one_event_each);
	suite_add_tcase(s, t);
	return s;
}
