// SPDX-License-Identifier: Apache-2.0
/* Bans of what openers hung on, and on whose behalf processes run. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/blame.h"
#include "daemon/disposable/owner.h"

Suite *blame_suite(void);

static struct bans bans;

static void setup(void)
{
	bans = (struct bans){0};
}

static bool banned(uint32_t uid, uint32_t pid, uint64_t dev)
{
	const struct blame who = {uid, pid, dev};

	return blame_is_banned(bans.ban, bans.count, &who);
}

static void add(uint32_t uid, uint32_t pid, uint64_t dev, uint64_t until)
{
	bans_add(&bans, &(struct blame){uid, pid, dev}, until);
}

START_TEST(file_system_is_banned_for_its_user)
{
	add(1000, 5, 77, 10);
	ck_assert(banned(1000, 0, 77));
	ck_assert(!banned(1000, 0, 78));
	ck_assert(!banned(1000, 5, 0));
	ck_assert(!banned(1001, 0, 77));
	ck_assert(!banned(0, 0, 77));
}
END_TEST

START_TEST(memory_of_a_process_is_banned_alone)
{
	add(1000, 5, 0, 10);
	ck_assert(banned(1000, 5, 0));
	ck_assert(!banned(1000, 6, 0));
	ck_assert(!banned(1000, 5, 77));
}
END_TEST

START_TEST(user_of_several_bans_is_banned_altogether)
{
	add(1000, 5, 0, 10);
	add(1000, 0, 77, 10);
	ck_assert(banned(1000, 6, 0));
	ck_assert(banned(1000, 0, 99));
	ck_assert(!banned(1001, 6, 0));
}
END_TEST

START_TEST(root_is_never_banned_altogether)
{
	for (uint32_t i = 1; i <= 2 * BLAME_MAX; i++)
		add(0, 0, i, i);
	ck_assert(!banned(0, 5, 0));
	ck_assert(!banned(0, 0, 1000));
	ck_assert(banned(0, 0, 2 * BLAME_MAX));
	ck_assert_uint_eq(bans.count, BLAME_MAX);
	ck_assert(!banned(0, 0, 1)); /* those that end first made room */
}
END_TEST

START_TEST(ban_ends)
{
	ck_assert_uint_eq(bans_next_ns(&bans), UINT64_MAX);
	add(1000, 5, 0, 10);
	add(1001, 5, 0, 20);
	ck_assert_uint_eq(bans_next_ns(&bans), 10);
	ck_assert(!bans_expire(&bans, 9));
	ck_assert(bans_expire(&bans, 10));
	ck_assert(!banned(1000, 5, 0));
	ck_assert(banned(1001, 5, 0));
	ck_assert(bans_expire(&bans, 20));
	ck_assert_uint_eq(bans.count, 0);
}
END_TEST

/* A child that makes a user namespace, in it another, as some user; ends when it is killed. */
static pid_t child(uid_t uid, int namespaces)
{
	int ready[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		c = setuid(uid) == 0;
		for (int i = 0; i < namespaces; i++)
			c = c && unshare(CLONE_NEWUSER) == 0;
		if (write(ready[1], &c, 1) == 1 && c)
			pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (c)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

static const struct {
	uid_t uid;
	int namespaces;
} owners[] = {{0, 0}, {65534, 0}, {65534, 1}, {65534, 3}, {0, 1}};

START_TEST(process_runs_for_the_user_who_made_its_namespace)
{
	pid_t pid = geteuid() == 0 ? child(owners[_i].uid, owners[_i].namespaces) : 0;
	uint32_t uid = 12345;

	if (!pid) {
		printf("skip - owner of a process of user %u in %d namespaces: it cannot be made here\n", owners[_i].uid,
		       owners[_i].namespaces);
		return;
	}
	ck_assert_int_eq(owner_of((uint32_t)pid, &uid), 0);
	ck_assert_uint_eq(uid, owners[_i].uid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(owner_of((uint32_t)pid, &uid), -ESRCH);
}
END_TEST

START_TEST(mount_of_our_own_namespace_is_ours)
{
	FILE *f = fopen("/proc/self/exe", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert(owner_made_mount((uint32_t)getpid(), fileno(f)));
	ck_assert(!owner_made_mount(0, fileno(f)));
	fclose(f);
}
END_TEST

Suite *blame_suite(void)
{
	Suite *s = suite_create("blame");
	TCase *t = tcase_create("bans");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, file_system_is_banned_for_its_user);
	tcase_add_test(t, memory_of_a_process_is_banned_alone);
	tcase_add_test(t, user_of_several_bans_is_banned_altogether);
	tcase_add_test(t, root_is_never_banned_altogether);
	tcase_add_test(t, ban_ends);
	suite_add_tcase(s, t);
	t = tcase_create("owner");
	tcase_add_loop_test(t, process_runs_for_the_user_who_made_its_namespace, 0, ARRAY_SIZE(owners));
	tcase_add_test(t, mount_of_our_own_namespace_is_ours);
	suite_add_tcase(s, t);
	return s;
}
