// SPDX-License-Identifier: Apache-2.0
#include <acl/libacl.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/sandbox/access.h"

Suite *access_suite(void);

#define NET 64742u
#define CANNOT 99

static acl_t list;

static void teardown(void)
{
	if (list)
		acl_free(list);
	list = NULL;
}

static void begin(const char *text)
{
	teardown();
	list = acl_from_text(text);
	ck_assert_ptr_nonnull(list);
}

static void is_now(const char *want)
{
	char *text = acl_to_any_text(list, NULL, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS);

	ck_assert_str_eq(text, want);
	acl_free(text);
}

static bool lets(uid_t owner, gid_t group)
{
	return access_lets_write(list, &(struct access_ids){owner, group, NET, NET});
}

static const struct {
	const char *before;
	uid_t uid;
	unsigned int access;
	const char *after;
} grants[] = {
	/* A private directory gets one entry and a mask. */
	{"u::rwx,g::---,o::---", NET, ACCESS_ALL, "u::rwx,u:64742:rwx,g::---,m::rwx,o::---"},
	{"u::rwx,g::r-x,o::r-x", NET, ACCESS_ALL, "u::rwx,u:64742:rwx,g::r-x,m::rwx,o::r-x"},
	{"u::rw-,g::---,o::---", NET, ACCESS_READ, "u::rw-,u:64742:r--,g::---,m::r--,o::---"},
	/* A wider mask gives nobody else more: user 1000 and the group keep what the old one left them. */
	{"u::rwx,u:1000:rwx,g::rwx,m::r-x,o::---", NET, ACCESS_ALL, "u::rwx,u:1000:r-x,u:64742:rwx,g::r-x,m::rwx,o::---"},
	{"u::rwx,g::rwx,g:7:rwx,m::---,o::---", NET, ACCESS_READ, "u::rwx,u:64742:r--,g::---,g:7:---,m::r--,o::---"},
	/* Users stay in order and are named once. */
	{"u::rwx,u:1000:r-x,g::---,m::r-x,o::---", 500, ACCESS_ALL, "u::rwx,u:500:rwx,u:1000:r-x,g::---,m::rwx,o::---"},
	{"u::rwx,u:64742:rwx,g::---,m::r-x,o::---", NET, ACCESS_ALL, "u::rwx,u:64742:rwx,g::---,m::rwx,o::---"},
};

START_TEST(grant_is_for_one_user_alone)
{
	begin(grants[_i].before);
	ck_assert_int_eq(access_grant(&list, grants[_i].uid, grants[_i].access), 0);
	is_now(grants[_i].after);
	ck_assert_int_eq(access_grant(&list, grants[_i].uid, grants[_i].access), 0);
	is_now(grants[_i].after);
}
END_TEST

static const struct {
	const char *list;
	uid_t owner;
	gid_t group;
	bool writes;
} writers[] = {
	{"u::---,g::rwx,o::rwx", NET, 0, false},
	{"u::rwx,g::---,o::---", NET, 0, true},
	{"u::rwx,g::---,o::rwx", 0, NET, false},
	{"u::rwx,g::---,o::rwx", 0, 0, true},
	{"u::---,g::rwx,o::---", 0, NET, true},
	{"u::rwx,g::rw-,o::rw-", 0, 0, false}, /* to write is not enough without passing */
	{"u::rwx,g::rwx,m::r-x,o::---", 0, NET, false}, /* by the mask */
	{"u::rwx,u:64742:rwx,g::---,m::rwx,o::---", 0, 0, true},
	{"u::rwx,u:64742:---,g::rwx,m::rwx,o::rwx", 0, NET, false},
	{"u::rwx,g::---,g:64742:rwx,m::rwx,o::---", 0, 0, true},
	{"u::rwx,g::---,g:7:rwx,m::rwx,o::---", 0, 0, false},
};

START_TEST(the_first_class_that_fits_decides)
{
	begin(writers[_i].list);
	ck_assert_msg(lets(writers[_i].owner, writers[_i].group) == writers[_i].writes, "%s", writers[_i].list);
}
END_TEST

/* libacl refuses it, whoever wrote it there. */
START_TEST(list_that_is_not_whole_takes_nobody)
{
	acl_entry_t e;

	begin("u::rwx,g::---,o::---");
	ck_assert_int_eq(acl_get_entry(list, ACL_FIRST_ENTRY, &e), 1);
	ck_assert_int_eq(acl_delete_entry(list, e), 0);
	ck_assert_int_eq(access_grant(&list, NET, ACCESS_ALL), -EINVAL);
}
END_TEST

/* On real ones; a file system without lists, or without the right to them, shows its refusal. */
START_TEST(a_directory_is_opened_to_one_user)
{
	char dir[] = "/tmp/otprof-acl-XXXXXX";
	const char *how = NULL;
	struct stat st;
	int fd, err;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = access_let_write(fd, NET, NET, &how);
	list = acl_get_file(dir, ACL_TYPE_ACCESS);
	if (!err && !strcmp(how, "an access list entry")) {
		is_now("u::rwx,u:64742:rwx,g::---,m::rwx,o::---");
		ck_assert_int_eq(access_let_write(fd, NET, NET, &how), 0);
		ck_assert_ptr_null(how);
	} else if (!err) {
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_uint_eq(st.st_gid, NET);
	} else {
		ck_assert_int_eq(err, -EPERM);
	}
	close(fd);
	rmdir(dir);
}
END_TEST

START_TEST(a_file_is_read_by_one_user_more)
{
	char file[] = "/tmp/otprof-acl-XXXXXX";
	int fd = mkstemp(file), err;

	ck_assert_int_ge(fd, 0);
	err = access_let_read(fd, NET, NET);
	list = acl_get_fd(fd);
	if (err)
		ck_assert_int_eq(err, -EOPNOTSUPP);
	else
		is_now("u::rw-,u:64742:r--,g::---,m::r--,o::---");
	close(fd);
	unlink(file);
	ck_assert_int_eq(access_let_read(-1, NET, NET), -EBADF);
}
END_TEST

/* ramfs has no access lists. */
static bool enter_file_system_without_lists(const char *dir)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("ramfs", dir, "ramfs", 0, "mode=0755") == 0 && chdir(dir) == 0;
}

static bool drop_chown(void)
{
	const cap_value_t cap = CAP_CHOWN;
	cap_t caps = cap_get_proc();
	bool dropped = cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_CLEAR) == 0 && cap_set_proc(caps) == 0;

	cap_free(caps);
	return dropped && chown(".", NET, (gid_t)-1) < 0;
}

static bool has(int fd, gid_t group, mode_t mode)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == 0 && st.st_gid == group && (st.st_mode & 07777) == mode;
}

/* Numbers tell which fact does not hold. */
static int without_lists(const char *dir)
{
	gid_t groups[2] = {1, 7};
	const char *how = NULL;
	int file, sub;

	if (setgroups(2, groups) < 0 || !enter_file_system_without_lists(dir) || !drop_chown())
		return CANNOT;
	file = open("key", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	mkdir("sub", 0755);
	sub = open("sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (access_let_read(file, NET, NET) || !has(file, NET, 0640))
		return 1;
	if (access_let_write(sub, NET, NET, &how) || !how || !has(sub, NET, 0775))
		return 2;
	/* The group of others stays. */
	if (access_let_read(file, NET + 1, NET + 1) != -EPERM || !has(file, NET, 0640))
		return 3;
	return getgroups(2, groups) == 2 && groups[0] == 1 && groups[1] == 7 ? 0 : 4;
}

START_TEST(without_lists_the_group_is_enough_and_no_right_to_change_owners)
{
	char dir[] = "/tmp/otprof-acl-XXXXXX";
	int status;
	pid_t pid;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	pid = fork();
	if (pid == 0)
		_exit(without_lists(dir));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	if (WEXITSTATUS(status) == CANNOT)
		puts("skip - a file system without access lists: mounting one needs root");
	else
		ck_assert_int_eq(status, 0);
}
END_TEST

Suite *access_suite(void)
{
	Suite *s = suite_create("access");
	TCase *t = tcase_create("lists");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, grant_is_for_one_user_alone, 0, ARRAY_SIZE(grants));
	tcase_add_loop_test(t, the_first_class_that_fits_decides, 0, ARRAY_SIZE(writers));
	tcase_add_test(t, list_that_is_not_whole_takes_nobody);
	tcase_add_test(t, a_directory_is_opened_to_one_user);
	tcase_add_test(t, a_file_is_read_by_one_user_more);
	tcase_add_test(t, without_lists_the_group_is_enough_and_no_right_to_change_owners);
	suite_add_tcase(s, t);
	return s;
}
