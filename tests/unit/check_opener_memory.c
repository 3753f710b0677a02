// SPDX-License-Identifier: Apache-2.0
/* Whose memory an opener passes to a decoder: questions about a process of this test, as root. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"
#include "process/host.h"

Suite *opener_memory_suite(void);

static struct opener o;
static pid_t child;
static struct ipc_ask ask;
static const volatile uint64_t secret = 0x5ec7e7;

static void setup(void)
{
	struct proc_stat stat;
	struct stat st;

	child = fork();
	if (child == 0)
		while (true)
			pause();
	ck_assert_int_eq(proc_stat_read((uint32_t)child, &stat), 0);
	ck_assert_int_eq(fstatat(AT_FDCWD, "/proc/self/exe", &st, 0), 0);
	o = (struct opener){.monitor = -1};
	/* The code of this file: the child has the same mappings. */
	ask = (struct ipc_ask){.kind = HOST_OPEN_DECODER, .pid = (uint32_t)child, .pid_start_ns = proc_stat_start_ns(&stat),
			       .start = (uintptr_t)opener_memory_suite, .end = (uintptr_t)opener_memory_suite + 1,
			       .program = {.dev = st.st_dev, .ino = st.st_ino}};
	o.ask = &ask;
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int open_memory(struct decode_mapping *at, int *fd)
{
	_cleanup_(buf_done) struct buf to;
	int err;

	buf_init(&to, 4096);
	*fd = -1;
	err = opener_memory(&o, &ask, &to, fd);
	if (!err) {
		ck_assert_uint_eq(to.len, sizeof(*at));
		memcpy(at, to.data, sizeof(*at));
	}
	return err;
}

static int refusal(void)
{
	struct decode_mapping at;
	int fd, err = open_memory(&at, &fd);

	ck_assert_int_lt(fd, 0);
	return err;
}

START_TEST(memory_of_a_process_that_runs_the_file_is_passed)
{
	struct decode_mapping at;
	uint64_t word = 0;
	int fd;

	ck_assert_int_eq(open_memory(&at, &fd), 0);
	ck_assert_uint_le(at.start, ask.start);
	ck_assert_int_eq(at.start % 4096, 0);
	ck_assert_int_eq(pread(fd, &word, sizeof(word), (off_t)(uintptr_t)&secret), sizeof(word));
	ck_assert_uint_eq(word, secret);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}
END_TEST

START_TEST(another_start_is_another_process)
{
	ask.pid_start_ns += 1000000000;
	ck_assert_int_eq(refusal(), -ESRCH);
	ask.pid_start_ns = 0; /* not known: nothing is opened */
	ck_assert_int_eq(refusal(), -ESRCH);
}
END_TEST

START_TEST(another_file_is_refused)
{
	ask.program.ino++;
	ck_assert_int_eq(refusal(), -ESTALE);
	ask.program.ino--;
	ask.program.dev++;
	ck_assert_int_eq(refusal(), -ESTALE);
}
END_TEST

/* The same file, mapped there too, but to be read only; and memory without a file. */
START_TEST(a_mapping_that_is_no_code_is_refused)
{
	ask.start = (uintptr_t)&secret;
	ask.end = ask.start + 1;
	ck_assert_int_eq(refusal(), -EPERM);
	ask.start = (uintptr_t)&o;
	ask.end = ask.start + 1;
	ck_assert_int_eq(refusal(), -EPERM);
	ask.end = ask.start;
	ck_assert_int_eq(refusal(), -EPERM);
}
END_TEST

START_TEST(banned_memory_is_refused)
{
	o.bans.count = 1;
	o.bans.ban[0] = (struct blame){.uid = getuid(), .pid = (uint32_t)child};
	ck_assert_int_eq(refusal(), -EHOSTDOWN);
}
END_TEST

START_TEST(the_memory_ends_with_the_process)
{
	struct decode_mapping at;
	uint64_t word;
	int fd;

	ck_assert_int_eq(open_memory(&at, &fd), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert_int_le(pread(fd, &word, sizeof(word), (off_t)(uintptr_t)&secret), 0);
	close(fd);
	ck_assert_int_eq(refusal(), -ESRCH);
}
END_TEST

Suite *opener_memory_suite(void)
{
	Suite *s = suite_create("opener_memory");
	TCase *t = tcase_create("opener_memory");

	suite_add_tcase(s, t);
	if (geteuid()) {
		printf("skip - opener_memory: only root sees /proc/PID/map_files\n");
		return s;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, memory_of_a_process_that_runs_the_file_is_passed);
	tcase_add_test(t, another_start_is_another_process);
	tcase_add_test(t, another_file_is_refused);
	tcase_add_test(t, a_mapping_that_is_no_code_is_refused);
	tcase_add_test(t, banned_memory_is_refused);
	tcase_add_test(t, the_memory_ends_with_the_process);
	return s;
}
