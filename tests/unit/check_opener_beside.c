// SPDX-License-Identifier: Apache-2.0
/* Which portable PDBs an opener passes to a decoder: questions about processes of this test, as root. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"
#include "process/beside.h"
#include "process/host.h"
#include "tests/lib/remove_tree.h"

Suite *opener_beside_suite(void);

#define PAGE   4096u
#define NOBODY 65534u

static struct opener o;
static char dir[64], app[80], pdb[80];
static uint8_t *mapped;

static void write_file(const char *path, const char *head, off_t size, mode_t mode)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, head, strlen(head)), (ssize_t)strlen(head));
	ck_assert_int_eq(ftruncate(fd, size), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* For reading only, as the runtime maps an assembly. */
static uint8_t *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	return at;
}

static void setup(void)
{
	o = (struct opener){.monitor = -1};
	snprintf(dir, sizeof(dir), "/tmp/otprof-check-beside-%d", (int)getpid());
	snprintf(app, sizeof(app), "%s/app.dll", dir);
	snprintf(pdb, sizeof(pdb), "%s/app.pdb", dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	write_file(app, "MZ", PAGE, 0644);
	write_file(pdb, "BSJB", 100, 0644);
	mapped = map_file(app);
}

static void teardown(void)
{
	munmap(mapped, PAGE);
	remove_tree(AT_FDCWD, dir);
}

/* A process of this user, with the mappings that this one has now, perhaps with another root. */
static pid_t process_in(uid_t uid, const char *root)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (root && (chroot(root) || chdir("/")))
			_exit(1);
		if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static struct ipc_ask about(pid_t pid, const void *at)
{
	struct proc_stat stat;

	ck_assert_int_eq(proc_stat_read((uint32_t)pid, &stat), 0);
	return (struct ipc_ask){.kind = HOST_OPEN_BESIDE, .pid = (uint32_t)pid,
				.pid_start_ns = proc_stat_start_ns(&stat), .start = (uintptr_t)at};
}

/* 0, with a descriptor of the PDB that can only be read; else the error. */
static int opened_by(const struct ipc_ask *ask, const char *name)
{
	char head[4] = "";
	int fd = -1, err;

	o.ask = ask;
	err = opener_beside(&o, ask, name, &fd);
	ck_assert_int_eq(fd >= 0, err == 0);
	if (fd >= 0) {
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
		ck_assert_int_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
		ck_assert_mem_eq(head, "BSJB", sizeof(head));
	}
	closep(&fd);
	return err;
}

static int opened(const void *at, const char *name)
{
	const struct ipc_ask ask = about(getpid(), at);

	return opened_by(&ask, name);
}

START_TEST(the_pdb_beside_a_mapped_file_is_passed)
{
	ck_assert_int_eq(opened(mapped, "app.pdb"), 0);
	ck_assert_int_eq(opened(mapped + PAGE - 1, "app.pdb"), 0);
	ck_assert_int_eq(opened(mapped, "other.pdb"), -ENOENT);
}
END_TEST

START_TEST(only_names_leave_the_directory_that_are_sound)
{
	char other[96];

	snprintf(other, sizeof(other), "%s/app.txt", dir);
	write_file(other, "BSJB", 100, 0644);
	ck_assert_int_eq(opened(mapped, "app.txt"), -EPERM);
	ck_assert_int_eq(opened(mapped, "../app.pdb"), -EPERM);
	ck_assert_int_eq(opened(mapped, pdb), -EPERM);
	ck_assert_int_eq(opened(mapped, ""), -EPERM);
}
END_TEST

START_TEST(memory_without_a_file_has_nothing_beside_it)
{
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_int_eq(opened(at, "app.pdb"), -ENOENT);
	munmap(at, PAGE);
	ck_assert_int_eq(opened(at, "app.pdb"), -ENOENT);
	ck_assert_int_eq(opened((void *)UINTPTR_MAX, "app.pdb"), -ENOENT);
}
END_TEST

/* Where the path leads by now is no directory of the mapped file. */
START_TEST(a_mapped_file_that_was_moved_or_replaced_has_nothing_beside_it)
{
	char moved[96];

	snprintf(moved, sizeof(moved), "%s/moved.dll", dir);
	ck_assert_int_eq(rename(app, moved), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), 0); /* the kernel follows it */
	write_file(app, "MZ", PAGE, 0644);
	ck_assert_int_eq(rename(app, moved), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -ENOENT);
	/* As the kernel writes the name of one that is gone. */
	snprintf(moved, sizeof(moved), "%s/moved.dll (deleted)", dir);
	write_file(moved, "MZ", PAGE, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -ENOENT);
}
END_TEST

static const struct {
	const char *what;
	mode_t mode;
	uid_t owner, of;
	int err;
} modes[] = {
	{"of root, for all", 0644, 0, NOBODY, 0},
	{"of root, for root's process", 0600, 0, 0, 0},
	{"of root, for another user's", 0600, 0, NOBODY, -EACCES},
	{"of root, to be executed only", 0711, 0, NOBODY, -EACCES},
	{"of its user", 0600, NOBODY, NOBODY, 0},
	{"of its user, who may not read it", 0044, NOBODY, NOBODY, -EACCES},
	{"of another user", 0600, NOBODY - 1, NOBODY, -EACCES},
};

START_TEST(what_the_process_may_not_read_is_refused)
{
	pid_t of = process_in(modes[_i].of, NULL);
	const struct ipc_ask ask = about(of, mapped);
	int err;

	ck_assert_int_eq(chown(pdb, modes[_i].owner, modes[_i].owner), 0);
	ck_assert_int_eq(chmod(pdb, modes[_i].mode), 0);
	err = opened_by(&ask, "app.pdb");
	ck_assert_msg(err == modes[_i].err, "%s: %d", modes[_i].what, err);
	kill(of, SIGKILL);
	waitpid(of, NULL, 0);
}
END_TEST

/* The mapped file is root's, for all to read. */
START_TEST(lines_that_others_may_have_written_are_refused)
{
	ck_assert_int_eq(chown(pdb, 12345, 12345), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EPERM);
	ck_assert_int_eq(chown(app, 12345, 12345), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), 0);
	ck_assert_int_eq(chmod(pdb, 0646), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EPERM);
	ck_assert_int_eq(chmod(pdb, 0664), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EPERM);
	ck_assert_int_eq(chmod(app, 0664), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), 0);
}
END_TEST

START_TEST(links_and_what_is_no_file_are_refused)
{
	char target[96];

	snprintf(target, sizeof(target), "%s/target", dir);
	ck_assert_int_eq(rename(pdb, target), 0);
	ck_assert_int_eq(symlink(target, pdb), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -ELOOP);
	ck_assert_int_eq(unlink(pdb), 0);
	ck_assert_int_eq(mkfifo(pdb, 0644), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EPERM);
	ck_assert_int_eq(unlink(pdb), 0);
	ck_assert_int_eq(mkdir(pdb, 0755), 0);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EPERM);
}
END_TEST

START_TEST(another_file_system_mounted_there_is_refused)
{
	char other[96];
	int err;

	snprintf(other, sizeof(other), "%s/other", dir);
	write_file(other, "BSJB", 100, 0644);
	if (mount(other, pdb, NULL, MS_BIND, NULL)) {
		printf("skip - opener_beside: no mounts can be made: %s\n", strerror(errno));
		return;
	}
	err = opened(mapped, "app.pdb");
	ck_assert_int_eq(umount2(pdb, MNT_DETACH), 0);
	ck_assert_int_eq(err, -EXDEV);
}
END_TEST

START_TEST(what_is_no_portable_pdb_is_refused)
{
	write_file(pdb, "secret", 100, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EBADMSG);
	write_file(pdb, "", 0, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EBADMSG);
	write_file(pdb, "BSJ", 3, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EBADMSG);
}
END_TEST

START_TEST(one_that_is_too_large_is_refused)
{
	write_file(pdb, "BSJB", BESIDE_BYTES_MAX, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), 0);
	write_file(pdb, "BSJB", BESIDE_BYTES_MAX + 1, 0644);
	ck_assert_int_eq(opened(mapped, "app.pdb"), -EFBIG);
}
END_TEST

START_TEST(another_start_is_another_process)
{
	struct ipc_ask ask = about(getpid(), mapped);

	ask.pid_start_ns += 1000000000;
	ck_assert_int_eq(opened_by(&ask, "app.pdb"), -ESRCH);
	ask.pid_start_ns = 0; /* not known: nothing is opened */
	ck_assert_int_eq(opened_by(&ask, "app.pdb"), -ESRCH);
}
END_TEST

START_TEST(a_process_with_a_root_of_its_own_has_its_files)
{
	pid_t inside = process_in(0, dir), elsewhere;
	struct ipc_ask ask = about(inside, mapped);
	char other[96];

	ck_assert_int_eq(opened_by(&ask, "app.pdb"), 0);
	kill(inside, SIGKILL);
	waitpid(inside, NULL, 0);
	/* What it has mapped lies outside of its root: nobody knows where, from there. */
	snprintf(other, sizeof(other), "%s/root", dir);
	ck_assert_int_eq(mkdir(other, 0755), 0);
	elsewhere = process_in(0, other);
	ask = about(elsewhere, mapped);
	ck_assert_int_eq(opened_by(&ask, "app.pdb"), -ENOENT);
	kill(elsewhere, SIGKILL);
	waitpid(elsewhere, NULL, 0);
}
END_TEST

START_TEST(files_for_a_banned_user_are_not_touched)
{
	pid_t of = process_in(NOBODY, NULL);
	const struct ipc_ask ask = about(of, mapped);
	struct stat st;

	ck_assert_int_eq(stat(app, &st), 0);
	o.bans.count = 1;
	o.bans.ban[0] = (struct blame){.uid = NOBODY, .dev = st.st_dev};
	ck_assert_int_eq(opened_by(&ask, "app.pdb"), -EHOSTDOWN);
	kill(of, SIGKILL);
	waitpid(of, NULL, 0);
}
END_TEST

Suite *opener_beside_suite(void)
{
	Suite *s = suite_create("opener_beside");
	TCase *t = tcase_create("opener_beside");

	suite_add_tcase(s, t);
	if (geteuid()) {
		printf("skip - opener_beside: only root sees /proc/PID/map_files\n");
		return s;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_pdb_beside_a_mapped_file_is_passed);
	tcase_add_test(t, only_names_leave_the_directory_that_are_sound);
	tcase_add_test(t, memory_without_a_file_has_nothing_beside_it);
	tcase_add_test(t, a_mapped_file_that_was_moved_or_replaced_has_nothing_beside_it);
	tcase_add_loop_test(t, what_the_process_may_not_read_is_refused, 0, (int)ARRAY_SIZE(modes));
	tcase_add_test(t, lines_that_others_may_have_written_are_refused);
	tcase_add_test(t, links_and_what_is_no_file_are_refused);
	tcase_add_test(t, another_file_system_mounted_there_is_refused);
	tcase_add_test(t, what_is_no_portable_pdb_is_refused);
	tcase_add_test(t, one_that_is_too_large_is_refused);
	tcase_add_test(t, another_start_is_another_process);
	tcase_add_test(t, a_process_with_a_root_of_its_own_has_its_files);
	tcase_add_test(t, files_for_a_banned_user_are_not_touched);
	return s;
}
