// SPDX-License-Identifier: Apache-2.0
/* The spool as files: order, checksums, torn ends, positions, full disks. */
#include "export/spool.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/origin.h"
#include "export/spool_record.h"
#include "export/spool_sync.h"
#include "tests/lib/counts.h"
#include "tests/lib/remove_tree.h"

Suite *spool_suite(void);

#define MAX_BYTES (8u << 20)

static char top[64];
static struct export_spool place;
static struct spool *spool;
static struct spool_sync *syncing; /* NULL: none */

static void setup(void)
{
	strcpy(top, "/tmp/otprof-check-spool-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	memset(place.origins, SPOOL_NO_ORIGIN, sizeof(place.origins));
	place.origins[0] = OTP_ORIGIN_CPU_CLOCK;
	place.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	spool = NULL;
}

static void teardown(void)
{
	spool = spool_close(spool);
	closep(&place.dir);
	remove_tree(AT_FDCWD, top);
}

static void reopen(void)
{
	spool = spool_close(spool);
	ck_assert_int_eq(spool_open(&place, "sink", true, &spool), 0);
}

/* The request of a number: its bytes and length follow from it. */
static size_t content_of(uint64_t i, char *to)
{
	size_t len = 50 + i * 37 % 400;

	for (size_t k = 0; k < len; k++)
		to[k] = (char)(i * 31 + k);
	return len;
}

static int append_of(uint64_t i, uint64_t max)
{
	char data[512];
	struct spool_record r = {.id = i, .profiles = i + 2, .unix_ns = 1000 + i, .samples = *COUNTS(i),
					.coding = i % EXPORT_CODING_NR};

	r.len = content_of(i, data);
	return spool_append(spool, &r, data, max, syncing);
}

static void append(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++)
		ck_assert_int_eq(append_of(i, MAX_BYTES), 0);
}

/* The oldest is request i, whole. */
static void check_oldest(uint64_t i)
{
	char want[512], have[512];
	struct spool_record r;
	size_t len = content_of(i, want);

	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert_uint_eq(r.id, i);
	ck_assert_uint_eq(r.profiles, i + 2);
	ck_assert_uint_eq(r.unix_ns, 1000 + i);
	ck_assert_uint_eq(r.samples.of[0], i);
	ck_assert_uint_eq(r.coding, i % EXPORT_CODING_NR);
	ck_assert_uint_eq(r.len, len);
	ck_assert_int_eq(spool_read(spool, &r, have), 0);
	ck_assert_mem_eq(want, have, len);
}

static void take(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		check_oldest(i);
		spool_drop(spool);
	}
}

static uint64_t sum_of(uint64_t from, uint64_t to)
{
	return to < from ? 0 : (from + to) * (to - from + 1) / 2;
}

static void check_content(uint64_t from, uint64_t to)
{
	ck_assert_uint_eq(spool_content(spool)->records, to + 1 - from);
	ck_assert_uint_eq(spool_content(spool)->samples.of[0], sum_of(from, to));
}

static void check_empty(void)
{
	struct spool_record r;

	ck_assert_int_eq(spool_peek(spool, &r), 0);
	ck_assert_uint_eq(spool_content(spool)->records, 0);
	ck_assert_uint_eq(ledger_counts_total(&spool_content(spool)->samples), 0);
	ck_assert_uint_eq(spool_content(spool)->bytes, 0);
}

/* The names of the segments, in order; their number. */
static unsigned int segments(char names[][32], unsigned int max)
{
	char path[128];
	struct dirent **all;
	unsigned int count = 0;
	int n;

	snprintf(path, sizeof(path), "%s/sink", top);
	n = scandir(path, &all, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (strstr(all[i]->d_name, ".seg") && count < max)
			snprintf(names[count++], 32, "%.31s", all[i]->d_name);
		free(all[i]);
	}
	free(all);
	return count;
}

static int open_segment(unsigned int i, int flags)
{
	char names[64][32], path[128];

	ck_assert_uint_gt(segments(names, 64), i);
	snprintf(path, sizeof(path), "%s/sink/%s", top, names[i]);
	return open(path, flags | O_CLOEXEC);
}

/* --- order and content --- */

START_TEST(requests_come_back_in_their_order)
{
	reopen();
	check_empty();
	append(1, 300);
	check_content(1, 300);
	take(1, 300);
	check_empty();
}
END_TEST

START_TEST(requests_outlive_the_process_that_wrote_them)
{
	reopen();
	append(1, 100);
	take(1, 30);
	reopen();
	check_content(31, 100);
	take(31, 60);
	append(101, 150);
	reopen();
	check_content(61, 150);
	take(61, 150);
	check_empty();
}
END_TEST

START_TEST(an_empty_spool_holds_no_request_on_disk)
{
	char names[4][32];

	reopen();
	append(1, 10);
	take(1, 10);
	ck_assert_uint_eq(segments(names, 4), 0);
	append(11, 12);
	take(11, 12);
	reopen();
	check_empty();
}
END_TEST

START_TEST(segments_are_removed_as_they_are_taken)
{
	char names[64][32];
	unsigned int all;
	uint64_t bytes;

	reopen();
	/* 64 KiB at least. */
	append(1, 2000);
	all = segments(names, 64);
	ck_assert_uint_ge(all, 5);
	bytes = spool_content(spool)->bytes;
	take(1, 1000);
	ck_assert_uint_lt(segments(names, 64), all);
	ck_assert_uint_lt(spool_content(spool)->bytes, bytes);
	take(1001, 2000);
	check_empty();
}
END_TEST

START_TEST(what_a_try_may_have_delivered_is_known_to_the_next_process)
{
	struct spool_record r;

	reopen();
	append(1, 2);
	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert(!r.maybe);
	spool_mark(spool, true);
	reopen();
	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert(r.maybe);
	spool_mark(spool, false);
	reopen();
	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert(!r.maybe);
	spool_mark(spool, true);
	spool_drop(spool);
	reopen();
	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert_uint_eq(r.id, 2);
	ck_assert(!r.maybe);
}
END_TEST

START_TEST(samples_keep_their_origin_in_a_session_with_others)
{
	struct spool_record r = {.id = 1, .len = 1, .samples = {{5, 7, 11}}};

	place.origins[1] = 3;
	place.origins[2] = 4;
	reopen();
	ck_assert_int_eq(spool_append(spool, &r, "x", MAX_BYTES, NULL), 0);
	place.origins[1] = 4; /* and 3 is not sampled any more */
	place.origins[2] = SPOOL_NO_ORIGIN;
	reopen();
	ck_assert_int_eq(spool_peek(spool, &r), 1);
	ck_assert_uint_eq(r.samples.of[0], 5 + 7);
	ck_assert_uint_eq(r.samples.of[1], 11);
	ck_assert_uint_eq(r.samples.of[2], 0);
}
END_TEST

START_TEST(a_spool_has_one_process)
{
	struct spool *other;

	reopen();
	ck_assert_int_eq(spool_open(&place, "sink", true, &other), -EBUSY);
	ck_assert_int_eq(spool_open(&place, "other", true, &other), 0);
	spool_close(other);
	ck_assert_int_eq(spool_open(&place, "absent", false, &other), -ENOENT);
}
END_TEST

static const char *const bad_names[] = {"", ".", "..", ".x", "a/b", "/tmp"};

START_TEST(a_name_leads_nowhere_else)
{
	ck_assert_int_eq(spool_open(&place, bad_names[_i], true, &spool), -EINVAL);
}
END_TEST

/* --- torn and damaged --- */

#define CUT_RECORDS 4

/* For every length of the file: what was whole is read, what was not is counted as torn. */
START_TEST(a_cut_at_any_byte_leaves_every_earlier_request)
{
	char data[512], path[128], names[1][32];
	uint64_t end[CUT_RECORDS + 1] = {0}, whole;

	for (uint64_t i = 1; i <= CUT_RECORDS; i++)
		end[i] = end[i - 1] + spool_bytes_of(content_of(i, data));
	for (uint64_t cut = 0; cut <= end[CUT_RECORDS]; cut++) {
		reopen();
		append(1, CUT_RECORDS);
		ck_assert_uint_eq(segments(names, 1), 1);
		snprintf(path, sizeof(path), "%s/sink/%s", top, names[0]);
		spool = spool_close(spool);
		ck_assert_int_eq(truncate(path, (off_t)cut), 0);
		reopen();
		for (whole = 0; whole < CUT_RECORDS && end[whole + 1] <= cut;)
			whole++;
		ck_assert_uint_eq(spool_content(spool)->torn, cut != end[whole]);
		check_content(1, whole);
		reopen();
		ck_assert_uint_eq(spool_content(spool)->torn, 0);
		check_content(1, whole);
		append(CUT_RECORDS + 1, CUT_RECORDS + 2);
		take(1, whole);
		take(CUT_RECORDS + 1, CUT_RECORDS + 2);
		check_empty();
		spool = spool_close(spool);
		remove_tree(place.dir, "sink");
	}
}
END_TEST

/* For every byte of a record, changed: it is never returned as if it were whole. */
START_TEST(a_changed_byte_is_found)
{
	char data[512], have[512], byte;
	uint64_t from = spool_bytes_of(content_of(1, data)), to = from + spool_bytes_of(content_of(2, data));
	struct spool_record r;
	struct ledger_counts lost;

	for (uint64_t at = from; at < to; at++) {
		int fd;

		reopen();
		append(1, 3);
		fd = open_segment(0, O_RDWR);
		ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
		byte ^= 0x10;
		ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
		close(fd);
		take(1, 1);
		if (at < from + sizeof(struct spool_header)) {
			/* Where the next record begins is not known either. */
			ck_assert_int_eq(spool_peek(spool, &r), -EBADMSG);
			spool_drop_damaged(spool, &lost);
			ck_assert_uint_eq(lost.of[0], 2 + 3);
			ck_assert_uint_eq(spool_content(spool)->torn, 1);
		} else {
			ck_assert_int_eq(spool_peek(spool, &r), 1);
			ck_assert_int_eq(spool_read(spool, &r, have), -EBADMSG);
			spool_drop(spool);
			take(3, 3);
		}
		check_empty();
		spool = spool_close(spool);
		remove_tree(place.dir, "sink");
	}
}
END_TEST

START_TEST(a_torn_position_leaves_the_one_before)
{
	char path[128], junk[32];
	int fd;

	memset(junk, 'x', sizeof(junk));
	for (off_t at = 0; at <= 512; at += 512) {
		reopen();
		append(1, 5);
		take(1, 3);
		spool = spool_close(spool);
		snprintf(path, sizeof(path), "%s/sink/position", top);
		fd = open(path, O_RDWR | O_CLOEXEC);
		ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
		close(fd);
		reopen();
		/* One more than was left, at most: at least once. */
		ck_assert_uint_ge(spool_content(spool)->records, 2);
		ck_assert_uint_le(spool_content(spool)->records, 3);
		take(6 - spool_content(spool)->records, 5);
		spool = spool_close(spool);
		remove_tree(place.dir, "sink");
	}
}
END_TEST

START_TEST(without_a_position_everything_is_sent_again)
{
	char path[128];

	reopen();
	append(1, 5);
	take(1, 3);
	spool = spool_close(spool);
	snprintf(path, sizeof(path), "%s/sink/position", top);
	ck_assert_int_eq(unlink(path), 0);
	reopen();
	check_content(1, 5);
	take(1, 5);
}
END_TEST

START_TEST(a_segment_that_vanished_costs_its_requests_only)
{
	char names[64][32], path[128];

	reopen();
	append(1, 1000);
	spool = spool_close(spool);
	ck_assert_uint_ge(segments(names, 64), 3);
	snprintf(path, sizeof(path), "%s/sink/%s", top, names[1]);
	ck_assert_int_eq(unlink(path), 0);
	reopen();
	ck_assert_uint_lt(spool_content(spool)->records, 1000);
	for (uint64_t left = spool_content(spool)->records, before = 0; left; left--) {
		struct spool_record r;

		ck_assert_int_eq(spool_peek(spool, &r), 1);
		ck_assert_uint_gt(r.id, before);
		before = r.id;
		check_oldest(r.id);
		spool_drop(spool);
	}
	check_empty();
}
END_TEST

START_TEST(what_is_no_segment_of_ours_is_left_alone)
{
	char path[128], names[4][32];

	reopen();
	append(1, 2);
	for (int i = 0; i < 3; i++) {
		static const char *const strange[] = {"notes", "1.seg", "000000000000000G.seg"};

		snprintf(path, sizeof(path), "%s/sink/%s", top, strange[i]);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	reopen();
	take(1, 2);
	ck_assert_uint_eq(segments(names, 4), 2);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

/* --- a full disk --- */

/* In a mount namespace of its own: a tmpfs of 256 KiB at top. */
static bool on_a_small_disk(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("small", top, "tmpfs", 0, "size=256k") < 0)
		return false;
	closep(&place.dir);
	place.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return true;
}

static int full_disk(void)
{
	char data[512], names[64][32];
	uint64_t n = 0, bytes;
	int err;

	if (!on_a_small_disk())
		return 77;
	reopen();
	while (!(err = append_of(n + 1, MAX_BYTES)))
		n++;
	ck_assert_int_eq(err, -ENOSPC);
	ck_assert_uint_gt(n, 200);
	check_content(1, n);
	/* Nothing of the failed one is left, however often it is tried. */
	bytes = spool_content(spool)->bytes;
	ck_assert_int_eq(append_of(n + 1, MAX_BYTES), -ENOSPC);
	ck_assert_uint_eq(spool_content(spool)->bytes, bytes);
	reopen();
	ck_assert_uint_eq(spool_content(spool)->torn, 0);
	check_content(1, n);
	take(1, 400);
	ck_assert_uint_ge(segments(names, 64), 1);
	/* Room again. */
	append(n + 1, n + 100);
	reopen();
	take(401, n + 100);
	check_empty();
	(void)content_of(1, data);
	return 0;
}

START_TEST(a_full_disk_refuses_a_request_and_keeps_the_others)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(full_disk());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		puts("skip - a full disk: needs root and a mount");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* --- syncing --- */

START_TEST(a_spool_works_beside_the_thread_that_syncs_it)
{
	ck_assert_int_eq(spool_sync_new(&syncing), 0);
	ck_assert_int_eq(spool_open(&place, "sink", true, &spool), 0);
	append(1, 2000);
	take(1, 2000);
	append(2001, 2100);
	spool = spool_close(spool);
	syncing = spool_sync_free(syncing);
	reopen();
	take(2001, 2100);
}
END_TEST

Suite *spool_suite(void)
{
	Suite *s = suite_create("spool");
	TCase *t = tcase_create("spool");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, requests_come_back_in_their_order);
	tcase_add_test(t, requests_outlive_the_process_that_wrote_them);
	tcase_add_test(t, an_empty_spool_holds_no_request_on_disk);
	tcase_add_test(t, segments_are_removed_as_they_are_taken);
	tcase_add_test(t, what_a_try_may_have_delivered_is_known_to_the_next_process);
	tcase_add_test(t, samples_keep_their_origin_in_a_session_with_others);
	tcase_add_test(t, a_spool_has_one_process);
	tcase_add_loop_test(t, a_name_leads_nowhere_else, 0, ARRAY_SIZE(bad_names));
	tcase_add_test(t, a_cut_at_any_byte_leaves_every_earlier_request);
	tcase_add_test(t, a_changed_byte_is_found);
	tcase_add_test(t, a_torn_position_leaves_the_one_before);
	tcase_add_test(t, without_a_position_everything_is_sent_again);
	tcase_add_test(t, a_segment_that_vanished_costs_its_requests_only);
	tcase_add_test(t, what_is_no_segment_of_ours_is_left_alone);
	tcase_add_test(t, a_full_disk_refuses_a_request_and_keeps_the_others);
	tcase_add_test(t, a_spool_works_beside_the_thread_that_syncs_it);
	suite_add_tcase(s, t);
	return s;
}
