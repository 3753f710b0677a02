// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/cache/index_cache.h"

Suite *index_cache_suite(void);

#define LARGE (1u << 20)

static char path[] = "/tmp/otprof-index-XXXXXX";
static const char template[] = "/tmp/otprof-index-XXXXXX";
static char why[SAFE_PATH_WHY];
static struct disk_cache cache;

static void setup(void)
{
	strcpy(path, template);
	ck_assert_ptr_nonnull(mkdtemp(path));
	ck_assert_int_eq(index_cache_open(path, why, &cache), 0);
	disk_cache_limit(&cache, LARGE);
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void teardown(void)
{
	disk_cache_close(&cache);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* An index of these bytes under this key. 0 or an error. */
static int make(const char *key, const char *bytes)
{
	_cleanup_(closep) int index = -1, scratch = -1;
	int err = index_cache_new(&cache, &index, &scratch);

	if (!err && write(index, bytes, strlen(bytes)) != (ssize_t)strlen(bytes))
		err = -EIO;
	return err ? err : index_cache_keep(&cache, key, false);
}

/* 1: the index of this key has these bytes; 0: others, or it is not there. */
static int has(const char *key, const char *bytes)
{
	_cleanup_(closep) int fd = index_cache_find(&cache, key, (uint64_t)time(NULL));
	char text[64] = "";

	return fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) >= 0 && !strcmp(text, bytes);
}

static void put(const char *name)
{
	_cleanup_(closep) int fd = openat(cache.dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
}

static bool is_there(const char *name)
{
	return faccessat(cache.dir, name, F_OK, 0) == 0;
}

START_TEST(what_was_made_is_found)
{
	ck_assert_int_eq(make("a", "one"), 0);
	ck_assert(has("a", "one") && !has("b", "one"));
	index_cache_refuse(&cache, "b");
	ck_assert_int_eq(index_cache_find(&cache, "b", (uint64_t)time(NULL)), -ENODATA);
	index_cache_forget(&cache, "b");
	ck_assert_int_eq(index_cache_find(&cache, "b", (uint64_t)time(NULL)), -ENOENT);
}
END_TEST

START_TEST(what_is_too_large_is_not_kept)
{
	disk_cache_limit(&cache, 2);
	ck_assert_int_eq(make("a", "one"), -EFBIG);
	ck_assert(!has("a", "one"));
}
END_TEST

/* As of a recording beside the service: what one makes is not the other's, whoever is first. */
START_TEST(two_processes_make_two_indexes)
{
	_cleanup_(closep) int index = -1, scratch = -1;
	int status;
	pid_t pid;

	ck_assert_int_eq(index_cache_new(&cache, &index, &scratch), 0);
	ck_assert_int_eq(write(index, "ours", 4), 4);
	pid = fork();
	if (pid == 0)
		_exit(index_cache_open(path, why, &cache) || make("theirs", "theirs"));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(index_cache_keep(&cache, "ours", false), 0);
	ck_assert(has("ours", "ours") && has("theirs", "theirs"));
}
END_TEST

START_TEST(what_the_dead_left_is_removed)
{
	char name[32];
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	snprintf(name, sizeof(name), ".making-%d", pid);
	put(name);
	put(".making"); /* of an earlier version */
	put(".making-1");
	disk_cache_close(&cache);
	ck_assert_int_eq(index_cache_open(path, why, &cache), 0);
	ck_assert(!is_there(name) && !is_there(".making") && is_there(".making-1"));
}
END_TEST

START_TEST(what_is_not_finished_gives_its_room_back)
{
	_cleanup_(closep) int index = -1, scratch = -1;
	char name[32];

	ck_assert_int_eq(index_cache_new(&cache, &index, &scratch), 0);
	snprintf(name, sizeof(name), ".making-%d", getpid());
	ck_assert(is_there(name));
	index_cache_drop_new(&cache);
	ck_assert(!is_there(name));
}
END_TEST

static void key_of(const struct stat *st, char to[INDEX_KEY_MAX])
{
	static const uint64_t content[2] = {17, 18};

	struct ticket_file file;

	ticket_file_of(st, &file);
	index_cache_key(&file, content, "settings", to);
}

/* As after a user has put a file of the same size, time and samples where root's gets the inode next. */
START_TEST(file_of_another_owner_has_another_key)
{
	const struct stat file = {.st_ino = 7, .st_size = 8, .st_mode = S_IFREG | 0755};
	struct stat other[] = {file, file, file, file};
	char key[INDEX_KEY_MAX], others[INDEX_KEY_MAX];

	key_of(&file, key);
	other[0].st_uid = 65534;
	other[1].st_gid = 65534;
	other[2].st_mode |= S_IWOTH;
	other[3].st_mode |= S_IWGRP;
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		key_of(&other[i], others);
		ck_assert_str_ne(key, others);
	}
	other[0] = file;
	other[0].st_ctim.tv_sec = other[0].st_nlink = 9;
	key_of(&other[0], others);
	ck_assert_str_eq(key, others);
}
END_TEST

Suite *index_cache_suite(void)
{
	Suite *s = suite_create("index_cache");
	TCase *tc = tcase_create("index_cache");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_was_made_is_found);
	tcase_add_test(tc, what_is_too_large_is_not_kept);
	tcase_add_test(tc, two_processes_make_two_indexes);
	tcase_add_test(tc, what_the_dead_left_is_removed);
	tcase_add_test(tc, what_is_not_finished_gives_its_room_back);
	tcase_add_test(tc, file_of_another_owner_has_another_key);
	suite_add_tcase(s, tc);
	return s;
}
