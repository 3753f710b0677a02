// SPDX-License-Identifier: Apache-2.0
/*
 * Which files an opener passes on: questions about processes of this test, as
 * root, because only root sees /proc/PID/map_files and other users' files.
 */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/disposable/opener.h"
#include "process/host.h"
#include "process/proc_stat.h"

Suite *opener_files_suite(void);

#define PAGE   4096u
#define NOBODY 65534u

static struct opener o;
static char dir[64], file[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/otprof-check-opener-%d", (int)getpid());
	snprintf(file, sizeof(file), "%s/file", dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
}

static void teardown(void)
{
	unlink(file);
	rmdir(dir);
}

/* Three pages of an ELF file of this type, or of text where type is ET_NONE. */
static void write_file(const char *path, uint16_t type, mode_t mode)
{
	const Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				 .e_type = type, .e_machine = EM_X86_64, .e_version = EV_CURRENT};
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 3 * PAGE), 0);
	if (type != ET_NONE)
		ck_assert_int_eq(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	else
		ck_assert_int_eq(pwrite(fd, "root:secret", 11, 0), 11);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void write_jitdump(const char *path)
{
	const uint32_t head[3] = {0x4A695444u, 1, 40};
	int fd;

	write_file(path, ET_NONE, 0600);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	close(fd);
}

static uint8_t *map_file(const char *path, int protection)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 3 * PAGE, protection, MAP_PRIVATE, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	return at;
}

static struct ipc_ask about(pid_t pid, const void *at)
{
	return (struct ipc_ask){.kind = HOST_OPEN_MAPPED, .pid = (uint32_t)pid, .start = (uintptr_t)at,
				.end = (uintptr_t)at + 3 * PAGE};
}

/* 0, with a descriptor that can only be read; else the error. */
static int opened(const struct ipc_ask *ask, const char *path)
{
	int fd = -1, err = opener_file(&o, ask, path, &fd);

	ck_assert_int_eq(fd >= 0, err == 0);
	if (fd >= 0)
		ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	closep(&fd);
	return err;
}

/* A process of this user, with the mappings that this one has now. */
static pid_t process_of(uid_t uid)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t start_of(pid_t pid)
{
	struct proc_stat stat;

	ck_assert_int_eq(proc_stat_read((uint32_t)pid, &stat), 0);
	return proc_stat_start_ns(&stat);
}

/* --- mapped files --- */

static const struct {
	const char *what;
	uint16_t type; /* ET_NONE: text */
	int protection, err;
} mapped[] = {
	{"a program", ET_EXEC, PROT_READ | PROT_EXEC, 0},
	{"a library", ET_DYN, PROT_READ | PROT_EXEC, 0},
	{"an object", ET_REL, PROT_READ | PROT_EXEC, 0},
	{"code that can be executed only", ET_DYN, PROT_EXEC, 0},
	{"a program as data", ET_DYN, PROT_READ, -EACCES},
	{"a program that cannot be accessed", ET_DYN, PROT_NONE, -EACCES},
	{"a core dump", ET_CORE, PROT_READ | PROT_EXEC, -ENOEXEC},
	{"a core dump as data", ET_CORE, PROT_READ, -EACCES},
	{"an ELF file of another type", 0xfe00, PROT_READ | PROT_EXEC, -ENOEXEC},
	{"text as code", ET_NONE, PROT_READ | PROT_EXEC, -ENOEXEC},
	{"text", ET_NONE, PROT_READ, -EACCES},
};

START_TEST(only_programs_that_are_mapped_executable_are_opened)
{
	struct ipc_ask ask;
	int err;

	write_file(file, mapped[_i].type, 0600);
	ask = about(getpid(), map_file(file, mapped[_i].protection));
	err = opened(&ask, file);
	ck_assert_msg(err == mapped[_i].err, "%s: %d", mapped[_i].what, err);
}
END_TEST

START_TEST(code_without_a_name_is_opened_by_a_part_of_its_mapping)
{
	struct ipc_ask ask;
	uint8_t *at;

	write_file(file, ET_DYN, 0600);
	at = map_file(file, PROT_READ | PROT_EXEC);
	ask = about(getpid(), at);
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(mprotect(at, PAGE, PROT_READ), 0);
	ck_assert_int_eq(opened(&ask, file), 0);
	ck_assert_int_eq(mprotect(at, 3 * PAGE, PROT_READ), 0);
	ck_assert_int_eq(opened(&ask, file), -ENOENT);
}
END_TEST

START_TEST(a_jitdump_belongs_to_the_user_of_its_process)
{
	struct ipc_ask ask;
	pid_t other;
	void *at;

	write_jitdump(file);
	at = map_file(file, PROT_READ | PROT_EXEC);
	ask = about(getpid(), at);
	ck_assert_int_eq(opened(&ask, file), 0);
	other = process_of(NOBODY);
	ask = about(other, at);
	ck_assert_int_eq(opened(&ask, file), -ENOEXEC);
	ck_assert_int_eq(chown(file, NOBODY, NOBODY), 0);
	ck_assert_int_eq(opened(&ask, file), 0);
	ask = about(getpid(), at);
	ck_assert_int_eq(opened(&ask, file), -ENOEXEC);
	end_process(other);
}
END_TEST

START_TEST(a_jitdump_as_data_is_not_opened)
{
	struct ipc_ask ask;

	write_jitdump(file);
	ask = about(getpid(), map_file(file, PROT_READ));
	ck_assert_int_eq(opened(&ask, file), -EACCES);
}
END_TEST

/* --- names --- */

static const struct {
	const char *what;
	uint16_t type;
	mode_t mode;
	uid_t owner, of; /* of: the process' user */
	int err;
} named[] = {
	{"a program", ET_DYN, 0755, 0, NOBODY, 0},
	{"a library", ET_DYN, 0644, 0, NOBODY, 0},
	{"root's own program", ET_DYN, 0700, 0, 0, 0},
	{"root's program, of another user's process", ET_DYN, 0700, 0, NOBODY, -EACCES},
	{"the user's own file", ET_DYN, 0600, NOBODY, NOBODY, 0},
	{"a program that its user may execute only", ET_DYN, 0711, 0, NOBODY, 0},
	{"root's data", ET_DYN, 0600, 0, 0, -EACCES},
	{"a core dump", ET_CORE, 0755, 0, 0, -EPERM},
	{"text", ET_NONE, 0755, 0, 0, -EPERM},
};

START_TEST(a_name_leads_to_programs_that_the_process_may_run)
{
	pid_t of = process_of(named[_i].of);
	const struct ipc_ask ask = {.kind = HOST_OPEN_MAPPED, .pid = (uint32_t)of};
	const struct ipc_ask debug = {.kind = HOST_OPEN_DEBUG, .pid = (uint32_t)of};
	int err, fd = -1;

	write_file(file, named[_i].type, named[_i].mode);
	ck_assert_int_eq(chown(file, named[_i].owner, named[_i].owner), 0);
	err = opened(&ask, file);
	ck_assert_msg(err == named[_i].err, "%s: %d", named[_i].what, err);
	err = opener_file(&o, &debug, file, &fd);
	closep(&fd);
	ck_assert_msg(err == named[_i].err, "%s, as a debug file: %d", named[_i].what, err);
	end_process(of);
}
END_TEST

START_TEST(the_neighbour_of_a_process_that_is_gone_opens_by_the_same_rule)
{
	pid_t gone = process_of(NOBODY), of = process_of(NOBODY);
	const struct ipc_ask ask = {.kind = HOST_OPEN_MAPPED, .pid = (uint32_t)gone, .alternate_pid = (uint32_t)of};

	end_process(gone);
	write_file(file, ET_DYN, 0700);
	ck_assert_int_eq(opened(&ask, file), -EACCES);
	ck_assert_int_eq(chmod(file, 0755), 0);
	ck_assert_int_eq(opened(&ask, file), 0);
	end_process(of);
}
END_TEST

/* --- perf maps --- */

static char perf_map[64];

static void write_perf_map(pid_t pid, uid_t owner)
{
	int fd;

	snprintf(perf_map, sizeof(perf_map), "/tmp/perf-%d.map", (int)pid);
	unlink(perf_map);
	fd = open(perf_map, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchown(fd, owner, owner), 0);
	close(fd);
}

static int opened_perf_map(pid_t pid, uint64_t start_ns)
{
	const struct ipc_ask ask = {.kind = HOST_OPEN_PERF_MAP, .pid = (uint32_t)pid, .pid_start_ns = start_ns};
	int fd = -1, err = opener_perf_map(&o, &ask, &fd);

	closep(&fd);
	return err;
}

static const struct {
	uid_t owner, of;
	int err;
} owners[] = {{NOBODY, NOBODY, 0}, {0, 0, 0}, {0, NOBODY, -EPERM}, {NOBODY, 0, -EPERM}, {NOBODY - 1, NOBODY, -EPERM}};

START_TEST(a_perf_map_belongs_to_the_user_of_its_process)
{
	pid_t of = process_of(owners[_i].of);
	int err;

	write_perf_map(of, owners[_i].owner);
	err = opened_perf_map(of, 0);
	unlink(perf_map);
	end_process(of);
	ck_assert_int_eq(err, owners[_i].err);
}
END_TEST

START_TEST(a_perf_map_with_another_name_is_not_opened)
{
	pid_t of = process_of(NOBODY);
	int linked, pointed;

	write_perf_map(of, NOBODY);
	ck_assert_int_eq(link(perf_map, file), 0);
	linked = opened_perf_map(of, 0);
	unlink(perf_map);
	ck_assert_int_eq(symlink(file, perf_map), 0);
	pointed = opened_perf_map(of, 0);
	unlink(perf_map);
	end_process(of);
	ck_assert_int_eq(linked, -EPERM);
	ck_assert_int_eq(pointed, -ELOOP);
}
END_TEST

/* --- bans --- */

START_TEST(files_for_a_banned_user_are_not_touched)
{
	struct ipc_ask by_mapping, by_name;
	int map, name, perf, walked;
	pid_t of;
	void *at;

	write_file(file, ET_DYN, 0755);
	at = map_file(file, PROT_READ | PROT_EXEC);
	of = process_of(NOBODY);
	by_mapping = about(of, at);
	by_name = (struct ipc_ask){.kind = HOST_OPEN_MAPPED, .pid = (uint32_t)of};
	o.bans = (struct ipc_bans){.count = (uint32_t)_i, .ban = {{.uid = NOBODY}}};
	map = opened(&by_mapping, "");
	name = opened(&by_name, file);
	write_perf_map(of, NOBODY);
	perf = opened_perf_map(of, 0);
	unlink(perf_map);
	walked = opened_perf_map(of, 0); /* nor are directories that lead there */
	o.bans.count = 0;
	end_process(of);
	ck_assert_int_eq(map, _i ? -EHOSTDOWN : 0);
	ck_assert_int_eq(name, _i ? -EHOSTDOWN : 0);
	ck_assert_int_eq(perf, _i ? -EHOSTDOWN : 0);
	ck_assert_int_eq(walked, _i ? -EHOSTDOWN : -ENOENT);
}
END_TEST

/* --- which process is meant --- */

START_TEST(a_pid_that_another_process_has_answers_nothing)
{
	pid_t of = process_of(NOBODY);
	uint64_t start = start_of(of), other = start + NSEC_PER_SEC;
	_cleanup_(buf_done) struct buf text;
	struct ipc_ask ask;
	int map, same;

	buf_init(&text, 1 << 20);
	write_file(file, ET_DYN, 0755);
	write_perf_map(of, NOBODY);
	same = opened_perf_map(of, start + NSEC_PER_SEC / 100);
	map = opened_perf_map(of, other);
	unlink(perf_map);
	ck_assert_int_eq(same, 0);
	ck_assert_int_eq(map, -ESRCH);
	ask = (struct ipc_ask){.kind = HOST_OPEN_MAPPED, .pid = (uint32_t)of, .pid_start_ns = other};
	ck_assert_int_eq(opened(&ask, file), -ESRCH);
	ck_assert_int_eq(opener_maps(&ask, &text), -ESRCH);
	ck_assert_int_eq(opener_identity(&o, &ask, &text), -ESRCH);
	ask.pid_start_ns = start;
	ck_assert_int_eq(opened(&ask, file), 0);
	ck_assert_int_eq(opener_maps(&ask, &text), 0);
	end_process(of);
}
END_TEST

START_TEST(a_process_that_ended_keeps_its_pid_for_the_question)
{
	struct opener_process p = {.dir = -1};
	pid_t of = process_of(0);

	ck_assert_int_eq(opener_process_open((uint32_t)of, 0, &p), 0);
	closep(&(int){opener_process_file(&p, "maps", O_RDONLY)});
	end_process(of);
	ck_assert_int_eq(opener_process_file(&p, "maps", O_RDONLY), -ESRCH);
	ck_assert_int_eq(opener_process_file(&p, "status", O_RDONLY), -ESRCH);
	opener_process_close(&p);
}
END_TEST

Suite *opener_files_suite(void)
{
	Suite *s = suite_create("opener_files");
	TCase *t = tcase_create("opener_files");

	suite_add_tcase(s, t);
	if (geteuid()) {
		printf("skip - opener_files: only root sees other users' files\n");
		return s;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, only_programs_that_are_mapped_executable_are_opened, 0, ARRAY_SIZE(mapped));
	tcase_add_test(t, code_without_a_name_is_opened_by_a_part_of_its_mapping);
	tcase_add_test(t, a_jitdump_belongs_to_the_user_of_its_process);
	tcase_add_test(t, a_jitdump_as_data_is_not_opened);
	tcase_add_loop_test(t, a_name_leads_to_programs_that_the_process_may_run, 0, ARRAY_SIZE(named));
	tcase_add_test(t, the_neighbour_of_a_process_that_is_gone_opens_by_the_same_rule);
	tcase_add_loop_test(t, a_perf_map_belongs_to_the_user_of_its_process, 0, ARRAY_SIZE(owners));
	tcase_add_test(t, a_perf_map_with_another_name_is_not_opened);
	tcase_add_loop_test(t, files_for_a_banned_user_are_not_touched, 0, 2);
	tcase_add_test(t, a_pid_that_another_process_has_answers_nothing);
	tcase_add_test(t, a_process_that_ended_keeps_its_pid_for_the_question);
	return s;
}
