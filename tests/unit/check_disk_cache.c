// SPDX-License-Identifier: Apache-2.0
/* What a cache on disk may take, with many files. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/cache/fetch_cache.h"
#include "daemon/cache/index_cache.h"

Suite *disk_cache_suite(void);

#define BLOCK  4096u
#define BLOCKS 64u

static char top[64];
static char why[SAFE_PATH_WHY];
static struct disk_cache cache;

static void set_up(void)
{
	snprintf(top, sizeof(top), "/tmp/otprof-cache-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(disk_cache_open(top, why, &cache), 0);
	disk_cache_limit(&cache, BLOCKS * BLOCK);
}

static void tear_down(void)
{
	char command[128];

	disk_cache_close(&cache);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

static void put(const char *name)
{
	int fd = disk_cache_put(&cache, name);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void keep(const char *name, size_t bytes)
{
	_cleanup_(closep) int fd = disk_cache_new(&cache, ".making");

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
	ck_assert_int_eq(disk_cache_keep(&cache, ".making", name), 0);
}

#define LINKS_MAX 40000u /* file systems have a bound */

/* Without the cache, as another monitor does: names of a few files, which takes less time than as many files. */
static void make_many(unsigned int n)
{
	char first[32], name[32];

	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		if (i % LINKS_MAX == 0) {
			int fd = openat(cache.dir, strcpy(first, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

			ck_assert_int_ge(fd, 0);
			close(fd);
		} else {
			ck_assert_int_eq(linkat(cache.dir, first, cache.dir, name, 0), 0);
		}
	}
}

static void set_age(const char *name, time_t age)
{
	const struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_nsec = UTIME_OMIT}};

	ck_assert_int_eq(utimensat(cache.dir, name, times, 0), 0);
}

static bool is_there(const char *name)
{
	return faccessat(cache.dir, name, F_OK, 0) == 0;
}

/* Counted anew, without a limit. */
static struct disk_cache what_there_is(void)
{
	struct disk_cache c;

	ck_assert_int_eq(disk_cache_open(top, why, &c), 0);
	disk_cache_limit(&c, UINT64_MAX);
	disk_cache_close(&c);
	return c;
}

static void expect_totals_are_true(void)
{
	struct disk_cache c = what_there_is();

	ck_assert_uint_eq(cache.bytes, c.bytes);
	ck_assert_uint_eq(cache.files, c.files);
}

START_TEST(totals_follow_each_change)
{
	keep("a", 3 * BLOCK);
	keep("b", 1);
	put("c");
	ck_assert_uint_ge(cache.bytes, 5 * BLOCK);
	ck_assert_uint_eq(cache.files, 3);
	expect_totals_are_true();
	keep("a", 2 * BLOCK);
	put("b");
	disk_cache_remove(&cache, "c");
	disk_cache_remove(&cache, "there is none");
	expect_totals_are_true();
	put("d.none");
	disk_cache_drop(&cache, ".none");
	ck_assert_uint_eq(cache.files, 2);
	expect_totals_are_true();
}
END_TEST

START_TEST(trim_leaves_an_eighth_free)
{
	char name[32];

	for (unsigned int i = 0; i < BLOCKS; i++) {
		snprintf(name, sizeof(name), "%u", i);
		put(name);
		set_age(name, 1000 - (time_t)i);
	}
	ck_assert_uint_eq(cache.files, BLOCKS);
	put("last");
	ck_assert_uint_eq(cache.files, BLOCKS / 8 * 7);
	ck_assert(!is_there("0") && !is_there("8") && is_there("9") && is_there("last"));
	expect_totals_are_true();
}
END_TEST

/* What another monitor adds is found late: so nothing is listed for each file. */
START_TEST(files_are_listed_once_an_eighth_was_added)
{
	make_many(2 * BLOCKS);
	for (unsigned int i = 0; i < BLOCKS / 8; i++)
		put("same");
	ck_assert(is_there("file0"));
	ck_assert_uint_eq(cache.files, 1);
	put("same");
	ck_assert_uint_le(cache.files, BLOCKS);
	expect_totals_are_true();
}
END_TEST

static uint64_t refuse_indexes(unsigned int n)
{
	char key[INDEX_KEY_MAX];

	disk_cache_close(&cache);
	ck_assert_int_eq(index_cache_open(top, why, &cache), 0);
	disk_cache_limit(&cache, BLOCKS * BLOCK);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%064u", i);
		index_cache_refuse(&cache, key);
	}
	ck_assert_int_eq(index_cache_find(&cache, key, (uint64_t)time(NULL)), -ENODATA);
	return cache.files;
}

static uint64_t refuse_fetches(unsigned int n)
{
	char id[FETCH_ID_MAX];

	disk_cache_close(&cache);
	ck_assert_int_eq(fetch_cache_open(top, why, &cache), 0);
	fetch_cache_limit(&cache, BLOCKS * BLOCK, 3600);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "%040u", i);
		fetch_cache_refuse(&cache, id, FETCH_NOT_FOUND);
	}
	ck_assert_int_eq(fetch_cache_refused(&cache, id, (uint64_t)time(NULL)), FETCH_NOT_FOUND);
	return cache.files;
}

/* As of one who makes programs of which no index can be made. */
START_TEST(refusals_take_no_more_than_the_cache_may)
{
	uint64_t files = (_i ? refuse_fetches : refuse_indexes)(16 * BLOCKS);

	ck_assert_uint_le(files, BLOCKS);
	ck_assert_uint_ge(files, BLOCKS / 2);
	expect_totals_are_true();
}
END_TEST

START_TEST(refusals_over_age_are_removed)
{
	time_t made = time(NULL);

	cache.refusals = ".none";
	cache.refusal_age_s = 3600;
	put("a.none");
	put("b");
	disk_cache_limit(&cache, BLOCKS * BLOCK);
	ck_assert(is_there("a.none"));
	cache.refusal_age_s = 0;
	while (time(NULL) <= made + 1)
		usleep(50000);
	disk_cache_limit(&cache, BLOCKS * BLOCK);
	ck_assert(!is_there("a.none") && is_there("b"));
	expect_totals_are_true();
}
END_TEST

START_TEST(refusal_over_age_is_removed_where_it_is_found)
{
	ck_assert_uint_eq(refuse_indexes(1), 1);
	ck_assert_int_eq(index_cache_find(&cache, "0000000000000000000000000000000000000000000000000000000000000000",
					  (uint64_t)time(NULL) + 90000), -ENOENT);
	ck_assert_uint_eq(cache.files, 0);
	expect_totals_are_true();
}
END_TEST

/* As of an earlier version, or of other monitors: a list has no room for all. */
START_TEST(directory_with_too_many_files_shrinks)
{
	disk_cache_limit(&cache, UINT64_MAX);
	make_many(DISK_CACHE_FILES_MAX + 10000);
	disk_cache_limit(&cache, UINT64_MAX);
	ck_assert_uint_lt(cache.files, DISK_CACHE_FILES_MAX);
	put("new");
	ck_assert(is_there("new"));
	put("newer");
	ck_assert(!cache.cut);
	ck_assert_uint_le(cache.files, DISK_CACHE_FILES_MAX);
	expect_totals_are_true();
}
END_TEST

Suite *disk_cache_suite(void)
{
	Suite *s = suite_create("disk_cache");
	TCase *t = tcase_create("disk_cache");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, totals_follow_each_change);
	tcase_add_test(t, trim_leaves_an_eighth_free);
	tcase_add_test(t, files_are_listed_once_an_eighth_was_added);
	tcase_add_loop_test(t, refusals_take_no_more_than_the_cache_may, 0, 2);
	tcase_add_test(t, refusals_over_age_are_removed);
	tcase_add_test(t, refusal_over_age_is_removed_where_it_is_found);
	tcase_add_test(t, directory_with_too_many_files_shrinks);
	suite_add_tcase(s, t);
	return s;
}
