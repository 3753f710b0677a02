// SPDX-License-Identifier: Apache-2.0
/* Which debug files the opener opens for a program: in the host's root, and in that of a process of the test's own. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/config/config.h"
#include "daemon/disposable/opener.h"

Suite *opener_debug_suite(void);

#define HOST	1
#define USER	4711
#define NOT_ROOT "skip - debug files in another root: chroot and chown need root\n"

static char top[64];
static struct opener o;
static pid_t inside; /* its root is top */
static struct ipc_ask ask;

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(name);
}

static const char *at(const char *name)
{
	static char path[4][512];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s%s", top, name);
	return path[n];
}

static void put(const char *name, uid_t owner, mode_t mode)
{
	static const Elf64_Ehdr shared_object = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB}, .e_type = ET_DYN};

	char dir[512];

	snprintf(dir, sizeof(dir), "%s", at(name));
	*strrchr(dir, '/') = '\0';
	ck_assert_int_eq(file_make_dirs(dir, 0755, 0755), 0);
	ck_assert_int_eq(file_replace(AT_FDCWD, at(name), mode, &shared_object, sizeof(shared_object), NULL, NULL), 0);
	ck_assert_int_eq(chmod(at(name), mode), 0);
	ck_assert(owner == getuid() || chown(at(name), owner, owner) == 0);
}

/* /mounted is a file system of its own, which others cannot see. */
static void live_inside(int ready)
{
	int err = unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mkdir(at("/mounted"), 0755) ||
		  mount(at("/usr"), at("/mounted"), NULL, MS_BIND, NULL) || chroot(top) || chdir("/");

	if (write(ready, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	pause();
	_exit(0);
}

static void enter(void)
{
	int pair[2], err = -1;

	ck_assert_int_eq(pipe(pair), 0);
	inside = fork();
	if (!inside)
		live_inside(pair[1]);
	ck_assert_int_eq(read(pair[0], &err, sizeof(err)), sizeof(err));
	ck_assert_int_eq(err, 0);
	close(pair[0]);
	close(pair[1]);
}

static void describe(const char *program)
{
	struct stat st;

	ck_assert_int_eq(stat(at(program), &st), 0);
	ask.program = (struct ipc_program){.dev = st.st_dev, .ino = st.st_ino, .uid = st.st_uid, .gid = st.st_gid,
					   .mode = st.st_mode};
}

static void set_up(void)
{
	char text[128];

	snprintf(top, sizeof(top), "/tmp/otprof-debug-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chmod(top, 0755), 0);
	snprintf(text, sizeof(text), "[symbols]\ndebug_dirs = /nonexistent %s/usr/lib/debug\n", top);
	ck_assert_int_eq(config_parse("check", text, strlen(text), NULL, NULL, &o.config), 0);
	put("/usr/bin/program", getuid(), 0755);
	put("/usr/bin/program.debug", getuid(), 0644);
	put("/usr/lib/debug/some.debug", getuid(), 0644);
	describe("/usr/bin/program");
	inside = 0;
}

static void tear_down(void)
{
	if (inside) {
		kill(inside, SIGKILL);
		waitpid(inside, NULL, 0);
	}
	config_free(o.config);
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int opens(pid_t pid, const char *path, const char *program)
{
	_cleanup_(closep) int fd = -1;
	int err;

	ask.pid = (uint32_t)pid;
	err = opener_debug(&o, &ask, path, program, &fd);
	ck_assert_int_eq(!err, fd >= 0);
	return err;
}

static int opens_on_host(const char *path)
{
	return opens(HOST, at(path), at("/usr/bin/program"));
}

static int opens_inside(const char *path)
{
	return opens(inside, path, "/usr/bin/program");
}

START_TEST(file_beside_the_program_is_opened)
{
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), 0);
	ck_assert_int_eq(opens_on_host("/usr/bin/none.debug"), -ENOENT);
}
END_TEST

START_TEST(path_that_leads_to_another_program_opens_nothing)
{
	put("/srv/evil/program", getuid(), 0755);
	put("/srv/evil/program.debug", getuid(), 0644);
	ck_assert_int_eq(opens(HOST, at("/srv/evil/program.debug"), at("/srv/evil/program")), -ENOENT);
	ck_assert_int_eq(opens(HOST, at("/usr/bin/program.debug"), ""), -ENOENT);
	ck_assert_int_eq(opens(HOST, at("/usr/bin/program.debug"), "program"), -ENOENT);
}
END_TEST

START_TEST(debug_directories_of_the_host_hold_whatever_it_likes)
{
	put("/usr/lib/debug/some.debug", getuid(), 0666);
	ck_assert_int_eq(opens(HOST, at("/usr/lib/debug/some.debug"), "/nowhere"), 0);
	ck_assert_int_eq(opens(HOST, at("/usr/lib/debug/../../bin/program.debug"), "/nowhere"), -ENOENT);
	ck_assert_int_eq(opens(HOST, at("/usr/lib/debugger"), "/nowhere"), -ENOENT);
}
END_TEST

START_TEST(file_on_a_banned_file_system_is_not_opened)
{
	struct stat st;

	ck_assert_int_eq(stat(at("/usr/bin/program.debug"), &st), 0);
	o.bans = (struct ipc_bans){.count = 1, .ban = {{.dev = st.st_dev}}}; /* root's: it is asked for the host */
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), -EHOSTDOWN);
	ck_assert_int_eq(opens_on_host("/usr/lib/debug/some.debug"), -EHOSTDOWN);
	o.bans.count = 0;
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), 0);
}
END_TEST

START_TEST(file_that_others_may_write_is_not_opened)
{
	put("/usr/bin/program.debug", getuid(), 0646);
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), -EPERM);
	put("/usr/bin/program.debug", getuid(), 0664);
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), -EPERM);
	put("/usr/bin/program", getuid(), 0775);
	describe("/usr/bin/program");
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), 0);
}
END_TEST

START_TEST(owner_is_the_programs_or_root)
{
	if (geteuid()) {
		fputs(NOT_ROOT, stderr);
		return;
	}
	put("/usr/bin/program.debug", USER, 0644);
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), -EPERM);
	put("/usr/bin/program", USER, 0755);
	describe("/usr/bin/program");
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), 0);
	put("/usr/bin/program.debug", 0, 0644);
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), 0);
	put("/usr/bin/program.debug", USER + 1, 0644);
	ck_assert_int_eq(opens_on_host("/usr/bin/program.debug"), -EPERM);
}
END_TEST

START_TEST(process_has_debug_files_for_programs_of_its_own_root)
{
	if (geteuid()) {
		fputs(NOT_ROOT, stderr);
		return;
	}
	enter();
	ck_assert_int_eq(opens_inside("/usr/lib/debug/some.debug"), 0);
	ck_assert_int_eq(opens_inside("/usr/bin/program.debug"), 0);
	put("/usr/lib/debug/some.debug", USER, 0644);
	ck_assert_int_eq(opens_inside("/usr/lib/debug/some.debug"), -EPERM);
}
END_TEST

START_TEST(mounts_of_a_process_lead_to_no_debug_file)
{
	if (geteuid()) {
		fputs(NOT_ROOT, stderr);
		return;
	}
	ck_assert_int_eq(symlink("/mounted/lib/debug/some.debug", at("/usr/link.debug")), 0);
	enter();
	ck_assert_int_eq(opens_inside("/mounted/lib/debug/some.debug"), -EXDEV);
	ck_assert_int_eq(opens_inside("/usr/link.debug"), -EXDEV);
	ck_assert_int_eq(opens(inside, "/usr/lib/debug/some.debug", "/mounted/bin/program"), -ENOENT);
}
END_TEST

START_TEST(process_that_is_gone_has_no_debug_files)
{
	pid_t gone = fork();

	if (!gone)
		_exit(0);
	ck_assert_int_eq(waitpid(gone, NULL, 0), gone);
	ck_assert_int_eq(opens(gone, at("/usr/bin/program.debug"), at("/usr/bin/program")), -ESRCH);
}
END_TEST

Suite *opener_debug_suite(void)
{
	Suite *s = suite_create("opener_debug");
	TCase *t = tcase_create("opener_debug");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, file_beside_the_program_is_opened);
	tcase_add_test(t, path_that_leads_to_another_program_opens_nothing);
	tcase_add_test(t, debug_directories_of_the_host_hold_whatever_it_likes);
	tcase_add_test(t, file_on_a_banned_file_system_is_not_opened);
	tcase_add_test(t, file_that_others_may_write_is_not_opened);
	tcase_add_test(t, owner_is_the_programs_or_root);
	tcase_add_test(t, process_has_debug_files_for_programs_of_its_own_root);
	tcase_add_test(t, mounts_of_a_process_lead_to_no_debug_file);
	tcase_add_test(t, process_that_is_gone_has_no_debug_files);
	suite_add_tcase(s, t);
	return s;
}
