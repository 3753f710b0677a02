// SPDX-License-Identifier: Apache-2.0
#include <acl/libacl.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/sandbox/access.h"

Suite *access_suite(void);

#define NET 64742u

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
	err = access_let_read(fd, NET);
	list = acl_get_fd(fd);
	if (err)
		ck_assert_int_eq(err, -EOPNOTSUPP);
	else
		is_now("u::rw-,u:64742:r--,g::---,m::r--,o::---");
	close(fd);
	unlink(file);
	ck_assert_int_eq(access_let_read(-1, NET), -EBADF);
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
	suite_add_tcase(s, t);
	return s;
}
