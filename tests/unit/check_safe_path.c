// SPDX-License-Identifier: Apache-2.0
/* As root, with directories of a second user in between; as an ordinary user only what needs none. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/safe_path.h"

Suite *safe_path_suite(void);

#define OTHER 64742u

static char top[32], path[128], why[SAFE_PATH_WHY];

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static void setup(void)
{
	strcpy(top, "/tmp/otprof-path-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	strcpy(why, "");
}

static void teardown(void)
{
	nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *below(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void make(const char *name, mode_t mode, uid_t owner)
{
	ck_assert_int_eq(mkdir(below(name), 0700), 0);
	ck_assert_int_eq(lchown(below(name), owner, owner), 0);
	ck_assert_int_eq(chmod(below(name), mode), 0);
}

/* 0, or the error. */
static int opens(const char *name, enum safe_path_last last)
{
	_cleanup_(closep) int fd = safe_path_open(below(name), last, why);

	return MIN(fd, 0);
}

static int makes(const char *name, enum safe_path_last last)
{
	_cleanup_(closep) int fd = safe_path_make(below(name), last, 0700, why);

	return MIN(fd, 0);
}

static bool exists(const char *name)
{
	return faccessat(AT_FDCWD, below(name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(directories_of_our_own_are_opened_and_made)
{
	struct stat st;

	ck_assert_int_eq(opens("a", SAFE_PATH_OURS), -ENOENT);
	ck_assert_int_eq(makes("a/b//c/", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(opens("a/b/c", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(opens("a/./b/../b/c/..", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(stat(below("a/b/c"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(below("a/b"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0755);
}
END_TEST

START_TEST(path_of_no_directory_is_refused)
{
	int fd = safe_path_create(below("file"), 0600, why);
	static char long_name[5000];

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(opens("file", SAFE_PATH_ANYONES), -ENOTDIR);
	ck_assert_int_eq(makes("file/x", SAFE_PATH_ANYONES), -ENOTDIR);
	memset(long_name, 'a', sizeof(long_name) - 1);
	ck_assert_int_eq(safe_path_open(long_name, SAFE_PATH_ANYONES, why), -ENAMETOOLONG);
	ck_assert_int_eq(safe_path_create(long_name, 0600, why), -ENAMETOOLONG);
	long_name[300] = '\0';
	ck_assert_int_eq(safe_path_make(long_name, SAFE_PATH_ANYONES, 0700, why), -ENAMETOOLONG);
}
END_TEST

START_TEST(links_of_our_own_are_followed_and_bounded)
{
	ck_assert_int_eq(makes("a/b", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(symlink("a", below("relative")), 0);
	ck_assert_int_eq(symlink(top, below("absolute")), 0);
	ck_assert_int_eq(symlink("loop", below("loop")), 0);
	ck_assert_int_eq(opens("relative/b", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(opens("absolute/relative/b", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(opens("loop/b", SAFE_PATH_OURS), -ELOOP);
}
END_TEST

START_TEST(nothing_is_looked_up_in_a_directory_of_another)
{
	make("theirs", 0755, OTHER);
	make("theirs/ours", 0755, 0);
	ck_assert_int_eq(opens("theirs", SAFE_PATH_ANYONES), 0);
	ck_assert_int_eq(opens("theirs", SAFE_PATH_OURS), -EPERM);
	ck_assert_int_eq(opens("theirs/ours", SAFE_PATH_ANYONES), -EPERM);
	ck_assert_msg(strstr(why, "/theirs belongs to user 64742"), "%s", why);
	ck_assert_int_eq(makes("theirs/new", SAFE_PATH_ANYONES), -EPERM);
	ck_assert(!exists("theirs/new"));
}
END_TEST

START_TEST(nothing_is_looked_up_where_others_write)
{
	make("open", 0777, 0);
	make("group", 0775, 0);
	ck_assert_int_eq(chown(below("group"), 0, OTHER), 0);
	ck_assert_int_eq(opens("open", SAFE_PATH_OURS), -EPERM);
	ck_assert_int_eq(makes("open/a", SAFE_PATH_ANYONES), -EPERM);
	ck_assert_int_eq(makes("group/a", SAFE_PATH_ANYONES), -EPERM);
	ck_assert_msg(strstr(why, "/group can be written by other users"), "%s", why);
	ck_assert(!exists("open/a") && !exists("group/a"));
	ck_assert_int_eq(chown(below("group"), 0, 0), 0);
	ck_assert_int_eq(makes("group/a", SAFE_PATH_OURS), 0);
}
END_TEST

/* As /tmp: who made an entry can exchange it, nobody else. */
START_TEST(sticky_directory_serves_for_what_is_ours)
{
	make("sticky", 01777, 0);
	ck_assert_int_eq(makes("sticky/a/b", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(opens("sticky", SAFE_PATH_OURS), -EPERM);
	make("sticky/theirs", 0755, OTHER);
	ck_assert_int_eq(makes("sticky/theirs/b", SAFE_PATH_ANYONES), -EPERM);
	ck_assert_int_eq(symlink("a", below("sticky/link")), 0);
	ck_assert_int_eq(lchown(below("sticky/link"), OTHER, OTHER), 0);
	ck_assert_int_eq(opens("sticky/link/b", SAFE_PATH_ANYONES), -EPERM);
	ck_assert_msg(strstr(why, "/sticky/link is a symbolic link of user 64742"), "%s", why);
}
END_TEST

static int creates(const char *name)
{
	_cleanup_(closep) int fd = safe_path_create(below(name), 0600, why);

	return MIN(fd, 0);
}

/* Whoever has the old one open must not read the new one. */
START_TEST(created_file_is_a_new_one)
{
	int fd = open(below("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct stat old, new;

	ck_assert_int_eq(fchmod(fd, 0666), 0);
	ck_assert_int_eq(creates("file"), 0);
	ck_assert_int_eq(fstat(fd, &old), 0);
	ck_assert_int_eq(stat(below("file"), &new), 0);
	close(fd);
	ck_assert_uint_eq(old.st_nlink, 0);
	ck_assert_uint_eq(new.st_mode & 07777, 0600);
	ck_assert_uint_eq(new.st_uid, geteuid());
}
END_TEST

START_TEST(file_is_not_created_in_place_of_anything_else)
{
	ck_assert_int_eq(mkfifo(below("fifo"), 0600), 0);
	ck_assert_int_eq(symlink("/tmp/otprof-nowhere", below("link")), 0);
	ck_assert_int_eq(makes("directory", SAFE_PATH_OURS), 0);
	ck_assert_int_eq(creates("fifo"), -EEXIST);
	ck_assert_str_eq(why, "it exists and is no regular file");
	ck_assert_int_eq(creates("link"), -EEXIST);
	ck_assert_int_eq(creates("directory"), -EEXIST);
	ck_assert(exists("fifo") && exists("link") && exists("directory"));
	ck_assert_int_eq(creates("absent/file"), -ENOENT);
}
END_TEST

START_TEST(file_of_another_stays)
{
	int fd = open(below("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	ck_assert_int_eq(fchown(fd, OTHER, OTHER), 0);
	close(fd);
	ck_assert_int_eq(creates("file"), -EEXIST);
	ck_assert_str_eq(why, "it exists and belongs to user 64742");
	make("theirs", 0755, OTHER);
	ck_assert_int_eq(creates("theirs/file"), 0);
}
END_TEST

Suite *safe_path_suite(void)
{
	Suite *s = suite_create("safe_path");
	TCase *t = tcase_create("safe_path");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, directories_of_our_own_are_opened_and_made);
	tcase_add_test(t, path_of_no_directory_is_refused);
	tcase_add_test(t, links_of_our_own_are_followed_and_bounded);
	tcase_add_test(t, created_file_is_a_new_one);
	tcase_add_test(t, file_is_not_created_in_place_of_anything_else);
	if (geteuid() == 0) {
		tcase_add_test(t, nothing_is_looked_up_in_a_directory_of_another);
		tcase_add_test(t, nothing_is_looked_up_where_others_write);
		tcase_add_test(t, sticky_directory_serves_for_what_is_ours);
		tcase_add_test(t, file_of_another_stays);
	} else {
		puts("skip - directories of a second user: only root can make them");
	}
	suite_add_tcase(s, t);
	return s;
}
