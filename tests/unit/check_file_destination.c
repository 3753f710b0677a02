// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "tests/lib/counts.h"

Suite *file_destination_suite(void);

#define NAMES_MAX 32

static char dir[64], endpoint[128];
static struct export_config config;
static struct ledger_net ledger;
static struct exporter *exporter;
static char names[NAMES_MAX][NAME_MAX + 1];

static void on_changed(void *ctx)
{
	const struct ledger_destination *d = &ledger.dest[0];
	uint64_t sum = d->exported.of[0] + d->unconfirmed.of[0] + d->queued.of[0] + d->sending.of[0];

	for (int reason = 0; reason < OTP_LOSS_MAX; reason++)
		sum += d->lost[reason].of[0];
	ck_assert_uint_eq(sum, ledger.received.of[0]);
}

static void start(uint32_t file_keep)
{
	config = (struct export_config){
		.name = "files",
		.endpoint = endpoint,
		.compression = EXPORT_CODING_GZIP, /* of no meaning here */
		.retry_initial_ns = 10 * NSEC_PER_MSEC,
		.retry_max_ns = 20 * NSEC_PER_MSEC,
		.retry_elapsed_ns = 200 * NSEC_PER_MSEC,
		.queue_bytes = 1 << 20,
		.file_keep = file_keep,
	};
	ck_assert_int_eq(exporter_new(&config, 1, &ledger, on_changed, NULL, &exporter), 0);
}

static void setup(void)
{
	memset(&ledger, 0, sizeof(ledger));
	strcpy(dir, "/tmp/otprof-check-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(endpoint, sizeof(endpoint), "file://%s", dir);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int list(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && n < NAMES_MAX)
			strcpy(names[n++], entry->d_name);
	if (d)
		closedir(d);
	qsort(names, (size_t)n, sizeof(names[0]), by_name);
	return n;
}

static const char *path(const char *name)
{
	static char full[sizeof(dir) + 1 + NAME_MAX + 1];

	snprintf(full, sizeof(full), "%s/%.*s", dir, NAME_MAX, name);
	return full;
}

static void put(const char *name)
{
	int fd = open(path(name), O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void clear(void)
{
	int n = list();

	for (int i = 0; i < n; i++)
		unlink(path(names[i]));
	rmdir(dir);
}

static void teardown(void)
{
	exporter = exporter_free(exporter);
	clear();
}

static void submit(uint64_t id, const char *text, uint64_t samples)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct export_request *r;
	size_t len = strlen(text);

	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
	ck_assert_int_eq(export_request_new(fd, id, COUNTS(samples), len, &r), 0);
	exporter_submit(exporter, r);
	export_request_put(r);
}

static void run(void)
{
	uint64_t end = clock_now_ns() + 10 * NSEC_PER_SEC;
	int ms;

	while (!exporter_idle(exporter) && clock_now_ns() < end) {
		ms = exporter_timeout_ms(exporter);
		poll(NULL, 0, MIN(ms, 20));
		exporter_run(exporter);
	}
	ck_assert(exporter_idle(exporter));
}

START_TEST(a_request_becomes_a_file_of_its_bytes)
{
	char text[16] = "", name[NAME_MAX + 1];
	uint64_t ms = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_MSEC;
	unsigned long long at, id;
	int fd;

	start(0);
	submit(42, "profile", 7);
	run();
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 7);
	ck_assert_uint_eq(ledger.dest[0].bytes, 7);
	ck_assert_int_eq(list(), 1);
	ck_assert_int_eq(sscanf(names[0], "otprof-%13llu-%8llu.otlp", &at, &id), 2);
	snprintf(name, sizeof(name), "otprof-%013llu-00000042.otlp", at);
	ck_assert_str_eq(names[0], name);
	ck_assert_uint_ge(at, ms);
	ck_assert_uint_lt(at, ms + 20000);
	fd = open(path(names[0]), O_RDONLY);
	ck_assert_int_eq(read(fd, text, sizeof(text)), 7);
	ck_assert_str_eq(text, "profile");
	close(fd);
}
END_TEST

START_TEST(only_the_newest_files_are_kept_also_across_a_restart)
{
	start(3);
	for (uint64_t id = 1; id <= 5; id++)
		submit(id, "x", 1);
	run();
	ck_assert_int_eq(list(), 3);
	ck_assert_ptr_nonnull(strstr(names[0], "-00000003.otlp"));
	exporter = exporter_free(exporter);
	start(3);
	submit(6, "x", 1);
	run();
	ck_assert_int_eq(list(), 3);
	ck_assert_ptr_nonnull(strstr(names[0], "-00000004.otlp"));
	ck_assert_ptr_nonnull(strstr(names[2], "-00000006.otlp"));
}
END_TEST

START_TEST(a_smaller_bound_removes_what_is_too_much_at_start)
{
	put("otprof-1700000000001-00000001.otlp");
	put("otprof-1700000000002-00000001.otlp");
	put("otprof-1700000000002-123456789.otlp");
	start(1);
	ck_assert_int_eq(list(), 1);
	ck_assert_str_eq(names[0], "otprof-1700000000002-123456789.otlp");
}
END_TEST

START_TEST(files_of_others_are_left_alone)
{
	put("otprof-17-1.otlp");
	put("otprof-1700000000000-00000001.otlp.bak");
	put("notes.txt");
	start(1);
	submit(1, "x", 1);
	submit(2, "x", 1);
	run();
	ck_assert_int_eq(list(), 4);
}
END_TEST

START_TEST(what_a_killed_writer_left_half_written_is_removed)
{
	put(".otprof-1700000000000-00000001.otlp.tmp");
	start(0);
	ck_assert_int_eq(list(), 0);
}
END_TEST

START_TEST(a_missing_directory_is_a_counted_loss)
{
	rmdir(dir);
	start(0);
	submit(1, "x", 7);
	run();
	ck_assert_uint_eq(ledger.dest[0].lost[OTP_LOSS_WRITE].of[0], 7);
	ck_assert_ptr_nonnull(strstr(ledger.dest[0].last_error, "No such file"));
}
END_TEST

START_TEST(a_directory_that_comes_later_is_used)
{
	rmdir(dir);
	start(0);
	submit(1, "x", 7);
	for (int i = 0; i < 3; i++)
		exporter_run(exporter);
	ck_assert_uint_eq(ledger.dest[0].queued.of[0], 7);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	run();
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 7);
}
END_TEST

/* The nearest thing to a full disk that needs no mount: a write that ends in the middle. */
START_TEST(a_file_that_cannot_be_written_whole_leaves_nothing_behind)
{
	static char big[40001];
	struct rlimit old, small = {.rlim_cur = 20000};

	memset(big, 'x', sizeof(big) - 1);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	start(0);
	signal(SIGXFSZ, SIG_IGN);
	submit(1, big, 7);
	submit(2, "small", 5);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	run();
	setrlimit(RLIMIT_FSIZE, &old);
	ck_assert_uint_eq(ledger.dest[0].lost[OTP_LOSS_WRITE].of[0], 7);
	ck_assert_uint_eq(ledger.dest[0].exported.of[0], 5);
	ck_assert_int_eq(list(), 1);
}
END_TEST

START_TEST(a_stop_does_not_wait_for_a_disk)
{
	uint64_t begin = clock_now_ns();

	rmdir(dir);
	start(0);
	config.retry_elapsed_ns = 600 * NSEC_PER_SEC;
	submit(1, "x", 7);
	submit(2, "x", 5);
	exporter_stop(exporter, begin + 10 * NSEC_PER_SEC);
	run();
	ck_assert_uint_lt(clock_now_ns() - begin, 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(ledger.dest[0].lost[OTP_LOSS_WRITE].of[0], 12);
}
END_TEST

Suite *file_destination_suite(void)
{
	Suite *s = suite_create("file_destination");
	TCase *t = tcase_create("file_destination");

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_request_becomes_a_file_of_its_bytes);
	tcase_add_test(t, only_the_newest_files_are_kept_also_across_a_restart);
	tcase_add_test(t, a_smaller_bound_removes_what_is_too_much_at_start);
	tcase_add_test(t, files_of_others_are_left_alone);
	tcase_add_test(t, what_a_killed_writer_left_half_written_is_removed);
	tcase_add_test(t, a_missing_directory_is_a_counted_loss);
	tcase_add_test(t, a_directory_that_comes_later_is_used);
	tcase_add_test(t, a_file_that_cannot_be_written_whole_leaves_nothing_behind);
	tcase_add_test(t, a_stop_does_not_wait_for_a_disk);
	suite_add_tcase(s, t);
	return s;
}
