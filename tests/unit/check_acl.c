// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/sandbox/acl.h"

Suite *acl_suite(void);

#define NET 64742u

/* Version, then tag, permissions, id. */
#define ENTRY(tag, perm, id) tag, 0, perm, 0, (id)&0xff, (id) >> 8 & 0xff, (id) >> 16 & 0xff, (uint32_t)(id) >> 24
#define NOBODY 0xffffffffu

static const uint8_t with_net[] = {2, 0, 0, 0, ENTRY(0x01, 7, NOBODY), ENTRY(0x02, 7, NET), ENTRY(0x04, 0, NOBODY),
				   ENTRY(0x10, 7, NOBODY), ENTRY(0x20, 0, NOBODY)};
/* User 1000 is named with all rights, of which the mask leaves reading. */
static const uint8_t masked[] = {2, 0, 0, 0, ENTRY(0x01, 7, NOBODY), ENTRY(0x02, 7, 1000), ENTRY(0x04, 7, NOBODY),
				 ENTRY(0x10, 5, NOBODY), ENTRY(0x20, 0, NOBODY)};

static bool lets(const struct acl *a, uid_t owner, gid_t group)
{
	return acl_lets_write(a, &(struct acl_ids){owner, group, NET, NET});
}

START_TEST(a_private_directory_gets_one_entry_and_a_mask)
{
	uint8_t bytes[ACL_BYTES_MAX];
	struct acl a;

	acl_from_mode(S_IFDIR | 0700, &a);
	ck_assert(!lets(&a, 0, 0));
	ck_assert_int_eq(acl_grant(&a, NET), 0);
	ck_assert_uint_eq(acl_write(&a, bytes), sizeof(with_net));
	ck_assert_mem_eq(bytes, with_net, sizeof(with_net));
	ck_assert(lets(&a, 0, 0));
}
END_TEST

START_TEST(what_was_written_reads_back)
{
	struct acl a, b;
	uint8_t bytes[ACL_BYTES_MAX];

	acl_from_mode(0755, &a);
	ck_assert_int_eq(acl_grant(&a, NET), 0);
	ck_assert_int_eq(acl_read(bytes, acl_write(&a, bytes), &b), 0);
	ck_assert_uint_eq(b.nr, 5);
	ck_assert_mem_eq(a.entry, b.entry, a.nr * sizeof(a.entry[0]));
}
END_TEST

START_TEST(a_wider_mask_gives_nobody_else_more)
{
	struct acl a;

	ck_assert_int_eq(acl_read(masked, sizeof(masked), &a), 0);
	ck_assert_int_eq(acl_grant(&a, NET), 0);
	ck_assert_uint_eq(a.nr, 6);
	ck_assert_uint_eq(a.entry[1].id, 1000);
	ck_assert_uint_eq(a.entry[1].perm, 5);
	ck_assert_uint_eq(a.entry[2].id, NET);
	ck_assert_uint_eq(a.entry[3].perm, 5);
	ck_assert_uint_eq(a.entry[4].perm, 7);
}
END_TEST

START_TEST(users_stay_in_order_and_are_named_once)
{
	struct acl a;

	ck_assert_int_eq(acl_read(masked, sizeof(masked), &a), 0);
	ck_assert_int_eq(acl_grant(&a, 500), 0);
	ck_assert_int_eq(acl_grant(&a, NET), 0);
	ck_assert_int_eq(acl_grant(&a, NET), 0);
	ck_assert_uint_eq(a.nr, 7);
	ck_assert_uint_eq(a.entry[1].id, 500);
	ck_assert_uint_eq(a.entry[2].id, 1000);
	ck_assert_uint_eq(a.entry[3].id, NET);
}
END_TEST

START_TEST(a_full_list_takes_no_more)
{
	struct acl a;

	acl_from_mode(0700, &a);
	for (uint32_t uid = 1; a.nr + 2 <= ACL_ENTRIES_MAX; uid++)
		ck_assert_int_eq(acl_grant(&a, uid), 0);
	ck_assert_int_eq(acl_grant(&a, NET), -E2BIG);
}
END_TEST

START_TEST(the_first_class_that_fits_decides)
{
	struct acl a;

	acl_from_mode(0077, &a);
	ck_assert(!lets(&a, NET, 0));
	acl_from_mode(0707, &a);
	ck_assert(!lets(&a, 0, NET));
	ck_assert(lets(&a, 0, 0));
	acl_from_mode(0070, &a);
	ck_assert(lets(&a, 0, NET));
	acl_from_mode(0766, &a); /* to write is not enough without passing */
	ck_assert(!lets(&a, 0, 0));
	ck_assert_int_eq(acl_read(masked, sizeof(masked), &a), 0);
	ck_assert(!lets(&a, 0, NET)); /* by the mask */
}
END_TEST

static const struct {
	size_t len;
	uint8_t bytes[48];
} broken[] = {
	{0, {0}},
	{4, {2, 0, 0, 0}},
	{4, {1, 0, 0, 0}},
	{12, {2, 0, 0, 0, ENTRY(0x01, 7, NOBODY)}},
	{27, {2, 0, 0, 0, ENTRY(0x01, 7, NOBODY), ENTRY(0x04, 0, NOBODY), ENTRY(0x20, 0, NOBODY)}},
	{28, {2, 0, 0, 0, ENTRY(0x04, 7, NOBODY), ENTRY(0x01, 0, NOBODY), ENTRY(0x20, 0, NOBODY)}},
	{36, {2, 0, 0, 0, ENTRY(0x01, 7, NOBODY), ENTRY(0x02, 7, NET), ENTRY(0x04, 0, NOBODY), ENTRY(0x20, 0, NOBODY)}},
};

START_TEST(what_is_no_whole_list_is_refused)
{
	struct acl a;

	ck_assert_int_eq(acl_read(broken[_i].bytes, broken[_i].len, &a), -EBADMSG);
}
END_TEST

START_TEST(a_list_without_end_is_refused)
{
	static uint8_t bytes[ACL_BYTES_MAX + 8] = {2};
	struct acl a;

	ck_assert_int_eq(acl_read(bytes, sizeof(bytes), &a), -E2BIG);
}
END_TEST

/* On a real directory; without the right or a file system with lists only the refusal can be seen. */
START_TEST(a_directory_is_opened_to_one_user)
{
	char dir[] = "/tmp/otprof-acl-XXXXXX", link[64];
	uint8_t bytes[ACL_BYTES_MAX];
	const char *how = NULL;
	struct stat st;
	int err;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s.link/", dir);
	link[strlen(link) - 1] = '\0';
	ck_assert_int_eq(symlink(dir, link), 0);
	strcat(link, "/");
	ck_assert_int_eq(acl_let_write(link, NET, NET, &how), -ELOOP);
	err = acl_let_write(dir, NET, NET, &how);
	if (!err && getxattr(dir, ACL_XATTR, bytes, sizeof(bytes)) > 0) {
		ck_assert_mem_eq(bytes, with_net, sizeof(with_net));
		ck_assert_ptr_nonnull(how);
		ck_assert_int_eq(acl_let_write(dir, NET, NET, &how), 0);
		ck_assert_ptr_null(how);
		ck_assert_int_eq(acl_let_write(link, NET, NET, &how), 0); /* nothing has to be granted */
	} else if (!err) {
		ck_assert_int_eq(stat(dir, &st), 0);
		ck_assert_uint_eq(st.st_gid, NET);
	}
	link[strlen(link) - 1] = '\0';
	unlink(link);
	rmdir(dir);
	ck_assert_int_eq(acl_let_write(dir, NET, NET, &how), -ENOENT);
}
END_TEST

Suite *acl_suite(void)
{
	Suite *s = suite_create("acl");
	TCase *t = tcase_create("acl");

	tcase_add_test(t, a_private_directory_gets_one_entry_and_a_mask);
	tcase_add_test(t, what_was_written_reads_back);
	tcase_add_test(t, a_wider_mask_gives_nobody_else_more);
	tcase_add_test(t, users_stay_in_order_and_are_named_once);
	tcase_add_test(t, a_full_list_takes_no_more);
	tcase_add_test(t, the_first_class_that_fits_decides);
	tcase_add_loop_test(t, what_is_no_whole_list_is_refused, 0, ARRAY_SIZE(broken));
	tcase_add_test(t, a_list_without_end_is_refused);
	tcase_add_test(t, a_directory_is_opened_to_one_user);
	suite_add_tcase(s, t);
	return s;
}
