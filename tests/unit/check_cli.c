// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/target_check.h"
#include "otlp_fixture.h"

Suite *cli_suite(void);

static void page_faults(struct fixture *f)
{
	f->strings[20] = (char *)"page_faults";
	f->sample_type.type_strindex = 20;
	f->period_type.type_strindex = 20;
	f->period_type.unit_strindex = 2;
}

static const struct { const char *in; int err; uint64_t ns; } times[] = {
	{"30", 0, 30 * NSEC_PER_SEC}, {"1.5s", 0, 1500 * NSEC_PER_MSEC}, {"500ms", 0, 500 * NSEC_PER_MSEC},
	{"2m", 0, 120 * NSEC_PER_SEC}, {"2min", 0, 120 * NSEC_PER_SEC}, {"1h", 0, 3600 * NSEC_PER_SEC},
	{".5", 0, 500 * NSEC_PER_MSEC}, {"", -EINVAL, 0}, {"-1", -EINVAL, 0}, {"0", -ERANGE, 0}, {"1x", -EINVAL, 0},
	{"1e3", -EINVAL, 0}, {"0x10", -EINVAL, 0}, {"1 s", -EINVAL, 0}, {"1.2.3", -EINVAL, 0}, {".", -EINVAL, 0},
	{"99999999999999999999", -ERANGE, 0}, {"nan", -EINVAL, 0}, {"inf", -EINVAL, 0},
};

START_TEST(times_are_read)
{
	uint64_t ns = 7;

	ck_assert_int_eq(cli_parse_time(times[_i].in, &ns), times[_i].err);
	ck_assert_uint_eq(ns, times[_i].err ? 7 : times[_i].ns);
}
END_TEST

/* A message may name a file or process of somebody else. */
START_TEST(messages_hold_nothing_that_a_terminal_obeys)
{
	int ends[2], err = dup(STDERR_FILENO);
	char text[128] = "";

	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	cli_error("%s: no such file", "a\033[2J\xc2\x9b" "b");
	dup2(err, STDERR_FILENO);
	close(ends[1]);
	ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, ": a?[2J??b: no such file\n"));
	close(ends[0]);
	close(err);
}
END_TEST

START_TEST(numbers_are_whole_and_in_range)
{
	uint64_t n = 7;

	ck_assert_int_eq(cli_parse_number("97", 1, 100, &n), 0);
	ck_assert_uint_eq(n, 97);
	ck_assert_int_eq(cli_parse_number("0", 1, 100, &n), -ERANGE);
	ck_assert_int_eq(cli_parse_number("101", 1, 100, &n), -ERANGE);
	ck_assert_int_eq(cli_parse_number("99999999999999999999", 1, UINT64_MAX, &n), -ERANGE);
	ck_assert_int_eq(cli_parse_number("+1", 1, 100, &n), -EINVAL);
	ck_assert_int_eq(cli_parse_number("1x", 1, 100, &n), -EINVAL);
	ck_assert_int_eq(cli_parse_number("", 0, 100, &n), -EINVAL);
	ck_assert_uint_eq(n, 97);
}
END_TEST

START_TEST(figures_are_readable)
{
	char t[48];

	ck_assert_str_eq(format_count(t, sizeof(t), 0), "0");
	ck_assert_str_eq(format_count(t, sizeof(t), 999), "999");
	ck_assert_str_eq(format_count(t, sizeof(t), 1234567), "1,234,567");
	ck_assert_str_eq(format_count(t, sizeof(t), UINT64_MAX), "18,446,744,073,709,551,615");
	ck_assert_str_eq(format_bytes(t, sizeof(t), 512), "512 B");
	ck_assert_str_eq(format_bytes(t, sizeof(t), 4u << 20), "4.0 MiB");
	ck_assert_str_eq(format_duration(t, sizeof(t), 12 * NSEC_PER_MSEC), "12 ms");
	ck_assert_str_eq(format_duration(t, sizeof(t), 1500 * NSEC_PER_MSEC), "1.50 s");
	ck_assert_str_eq(format_duration(t, sizeof(t), 125 * NSEC_PER_SEC), "2 min 5 s");
	ck_assert_str_eq(format_duration(t, sizeof(t), 7500 * NSEC_PER_SEC), "2 h 5 min");
	ck_assert_str_eq(format_time(t, sizeof(t), 1790000000ULL * NSEC_PER_SEC), "2026-09-21 14:13:20 UTC");
	ck_assert(format_percent(1, 0) == 0);
}
END_TEST

START_TEST(command_waits_to_be_started)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
	struct command c = {0};

	ck_assert_int_eq(command_create(&c, argv), 0);
	ck_assert_int_gt(c.pid, 0);
	usleep(20000);
	ck_assert(!command_poll(&c));
	ck_assert_int_eq(command_start(&c), 0);
	ck_assert_int_eq(command_wait(&c), 7);
	ck_assert(command_poll(&c));
	command_done(&c);
}
END_TEST

START_TEST(command_killed_has_the_status_of_a_shell)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"kill -TERM $$", NULL};
	struct command c = {0};

	ck_assert_int_eq(command_create(&c, argv), 0);
	ck_assert_int_eq(command_start(&c), 0);
	ck_assert_int_eq(command_wait(&c), 128 + 15);
	command_done(&c);
}
END_TEST

START_TEST(command_that_is_not_there_is_said)
{
	char *const argv[] = {(char *)"/nonexistent/command", NULL};
	struct command c = {0};

	ck_assert_int_eq(command_create(&c, argv), 0);
	ck_assert_int_eq(command_start(&c), -ENOENT);
	ck_assert_int_eq(command_wait(&c), CLI_NOT_FOUND);
	command_done(&c);
}
END_TEST

START_TEST(command_never_started_runs_nothing)
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 0", NULL};
	struct command c = {0};

	ck_assert_int_eq(command_create(&c, argv), 0);
	command_done(&c);
	ck_assert(c.ended);
	ck_assert_int_eq(c.status, CLI_RECORD_FAILED);
}
END_TEST

START_TEST(target_that_does_not_exist_is_absent)
{
	ck_assert_int_eq(target_check("exe", "no-program-of-that-name"), TARGET_ABSENT);
	ck_assert_int_eq(target_check("exe", "no-program-of-*-name"), TARGET_ABSENT);
	ck_assert_int_eq(target_check("exe", "/no/program"), TARGET_ABSENT);
	ck_assert_int_eq(target_check("exe", "[a-z]*"), TARGET_ABSENT); /* no class of characters */
	ck_assert_int_eq(target_check("unit", "no-unit-of-that-name"), TARGET_ABSENT);
	ck_assert_int_eq(target_check("user", "3999999999"), TARGET_ABSENT);
	ck_assert_int_eq(target_check("user", "no-user-of-that-name"), TARGET_ABSENT);
}
END_TEST

START_TEST(program_that_does_not_run_is_idle_until_it_does)
{
	char *const argv[] = {(char *)"sleep", (char *)"60", NULL};
	struct command c = {0};
	char path[] = "/tmp/otprof-check-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(target_check("exe", path), TARGET_IDLE);
	unlink(path);
	ck_assert_int_eq(target_check("exe", path), TARGET_ABSENT);
	ck_assert_int_eq(command_create(&c, argv), 0);
	ck_assert_int_eq(command_start(&c), 0);
	ck_assert_int_eq(target_check("exe", "slee?"), TARGET_RUNS);
	kill(c.pid, SIGKILL);
	command_wait(&c);
	command_done(&c);
}
END_TEST

START_TEST(output_is_refused_where_it_cannot_be_written)
{
	ck_assert_int_eq(output_check("/nonexistent/x.svg"), -ENOENT);
	ck_assert_int_eq(output_check("/tmp"), -EISDIR);
	ck_assert_int_eq(output_check("/dev/null"), -EINVAL);
	ck_assert_int_eq(output_check("/tmp/otprof-check.svg"), 0);
}
END_TEST

static int page_faults_only(struct recording *r)
{
	return fixture_read(page_faults, r);
}

static int both_types(struct recording *r)
{
	int e = fixture_read(page_faults, r);

	return e < 0 ? e : fixture_read(NULL, r);
}

static int no_samples(struct recording *r)
{
	(void)r;
	return 0;
}

/* Writes a recording as x.collapsed in dir; whether that file and x.TYPE.collapsed exist then, which are removed. */
static void write_types(const char *dir, int (*fill)(struct recording *r), const char *other, const char *plain,
			bool *ret_plain, bool *ret_other)
{
	struct recording *r = NULL;
	char path[64], named[128];
	struct output_options o = {.path = path, .plain = plain, .quiet = true};

	snprintf(path, sizeof(path), "%s/x.collapsed", dir);
	snprintf(named, sizeof(named), "%s/x.%s.collapsed", dir, other);
	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fill(r), 0);
	ck_assert_int_eq(output_write(r, &o), 0);
	*ret_plain = unlink(path) == 0;
	*ret_other = unlink(named) == 0;
	recording_free(r);
}

static const struct {
	int (*fill)(struct recording *r);
	const char *other, *type; /* type: the plain one */
	bool plain, named;        /* the files that are written */
} written[] = {
	{both_types, "page_faults", NULL, true, true},
	{both_types, "page_faults", "cpu", true, true},
	{both_types, "cpu", "page_faults", true, true},
	{page_faults_only, "page_faults", NULL, true, false},
	{page_faults_only, "page_faults", "cpu", false, true},
	{page_faults_only, "cpu", "page_faults", true, false},
	{no_samples, "samples", "cpu", true, false},
};

START_TEST(plain_file_has_the_type_that_was_chosen)
{
	char dir[] = "/tmp/otprof-check-XXXXXX";
	bool plain, other;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	write_types(dir, written[_i].fill, written[_i].other, written[_i].type, &plain, &other);
	ck_assert_int_eq(plain, written[_i].plain);
	ck_assert_int_eq(other, written[_i].named);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static int options_of(const char *events, const char *count, struct record_options *ret)
{
	const char *argv[] = {"otprof record", "-o", "/tmp/otprof-check.svg", "-e", events, "-c", count, NULL};

	optind = 0;
	return record_parse(ARRAY_SIZE(argv) - 1, (char **)argv, ret);
}

START_TEST(count_that_no_event_takes_is_refused)
{
	struct record_options o;

	ck_assert_int_eq(options_of("cpu-clock", "1000", &o), CLI_RECORD_FAILED);
	ck_assert_int_eq(options_of("page-faults/period=5/", "1000", &o), CLI_RECORD_FAILED);
	ck_assert_int_eq(options_of("cpu-clock, cs/freq=9/", "1000", &o), CLI_RECORD_FAILED);
	ck_assert_int_eq(geteuid() ? -1 : options_of("page-faults/period=5/, cs", "1000", &o), -1);
	ck_assert(geteuid() || (o.session.events.event[0].period == 5 && o.session.events.event[1].period == 1000));
}
END_TEST

/* A socket in a directory of its own that answers once with text. */
static pid_t serve(const char *dir, const char *text)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), client;
	pid_t pid;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/status.sock", dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	pid = fork();
	if (!pid) {
		client = accept(fd, NULL, NULL);
		_exit(write(client, text, strlen(text)) < 0);
	}
	close(fd);
	return pid;
}

static int ask(const char *text, json_t **ret)
{
	char dir[] = "/tmp/otprof-check-XXXXXX", path[64];
	pid_t pid;
	int e;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	pid = serve(dir, text);
	e = client_status(dir, ret);
	waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/status.sock", dir);
	unlink(path);
	rmdir(dir);
	return e;
}

START_TEST(status_is_read_by_path)
{
	json_t *s = NULL;

	ck_assert_int_eq(ask("{\"ledger\":{\"taken\":5,\"lost\":{\"a\":2,\"b\":1,\"c\":\"x\"}},\"top\":{\"name\":\"f\"}}", &s), 0);
	ck_assert_uint_eq(client_number(s, "ledger.taken"), 5);
	ck_assert_uint_eq(client_sum(s, "ledger.lost"), 3);
	ck_assert_uint_eq(client_number(s, "ledger.nothing"), 0);
	ck_assert_uint_eq(client_number(s, "top.name"), 0);
	ck_assert_uint_eq(client_number(s, "top.name.deeper"), 0);
	ck_assert_str_eq(client_text(s, "top.name"), "f");
	ck_assert_str_eq(client_text(s, "top.nothing"), "");
	json_decref(s);
}
END_TEST

START_TEST(samples_lost_are_those_of_the_destination_that_lost_most)
{
	json_t *s = NULL;

	ck_assert_int_eq(ask("{\"ledger\":{\"lost\":{\"a\":2},\"destinations\":{\"x\":{\"lost\":{\"a\":2,\"b\":3}},"
			     "\"y\":{\"lost\":{\"a\":2,\"b\":1}}}},\"none\":{\"lost\":{\"a\":2},\"destinations\":{}}}", &s), 0);
	ck_assert_uint_eq(client_lost(s, "ledger"), 5);
	ck_assert_uint_eq(client_lost(s, "none"), 2);
	ck_assert_uint_eq(client_lost(s, "nothing"), 0);
	json_decref(s);
}
END_TEST

START_TEST(status_that_is_no_object_is_refused)
{
	json_t *s = NULL;

	ck_assert_int_eq(ask("[1]", &s), -EBADMSG);
	ck_assert_int_eq(ask("", &s), -EBADMSG);
	ck_assert_int_eq(ask("{\"a\":", &s), -EBADMSG);
	ck_assert_int_eq(client_status("/nonexistent", &s), -ENOENT);
	ck_assert_ptr_null(s);
}
END_TEST

Suite *cli_suite(void)
{
	Suite *s = suite_create("cli");
	TCase *t = tcase_create("cli");

	tcase_add_loop_test(t, times_are_read, 0, ARRAY_SIZE(times));
	tcase_add_test(t, messages_hold_nothing_that_a_terminal_obeys);
	tcase_add_test(t, numbers_are_whole_and_in_range);
	tcase_add_test(t, figures_are_readable);
	tcase_add_test(t, target_that_does_not_exist_is_absent);
	tcase_add_test(t, program_that_does_not_run_is_idle_until_it_does);
	tcase_add_test(t, output_is_refused_where_it_cannot_be_written);
	tcase_add_loop_test(t, plain_file_has_the_type_that_was_chosen, 0, ARRAY_SIZE(written));
	tcase_add_test(t, count_that_no_event_takes_is_refused);
	tcase_add_test(t, command_waits_to_be_started);
	tcase_add_test(t, command_killed_has_the_status_of_a_shell);
	tcase_add_test(t, command_that_is_not_there_is_said);
	tcase_add_test(t, command_never_started_runs_nothing);
	tcase_add_test(t, status_is_read_by_path);
	tcase_add_test(t, samples_lost_are_those_of_the_destination_that_lost_most);
	tcase_add_test(t, status_that_is_no_object_is_refused);
	suite_add_tcase(s, t);
	return s;
}
