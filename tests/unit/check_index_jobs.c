// SPDX-License-Identifier: Apache-2.0
/* The monitor's part in making an index: what an indexer may choose of a debug file, and whose file is next. The test plays the indexer. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "process/host.h"
#include "symbol/index_build.h"

Suite *index_jobs_suite(void);

#define PROGRAM "/usr/bin/program"
#define PID	4711

static struct monitor *m;
static struct ipc_message message;
static struct ipc_ask *const ask = (void *)message.data;
static char top[64];
static int elf;

static void put_question(const struct ipc_ask *head, const char *path, size_t len)
{
	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	*ask = *head;
	ask->path_len = (uint32_t)len;
	memcpy(ask + 1, path, len);
	message.head = (struct ipc_head){.type = IPC_ASK, .len = (uint32_t)(sizeof(*ask) + len)};
}

static void set_up(void)
{
	struct {
		struct ticket file;
		char path[sizeof(PROGRAM) - 1];
	} of = {.path = PROGRAM};
	const struct ipc_ask index = {.kind = HOST_OPEN_INDEX, .pid = PID};
	struct stat st;
	struct config *c = NULL;
	char text[128];

	log_init("check", LOG_LEVEL_ERROR);
	snprintf(top, sizeof(top), "/tmp/otprof-jobs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(text, sizeof(text), "[symbols]\ncache_dir = %s/symbols\n", top);
	ck_assert_int_eq(config_parse("check", text, strlen(text), NULL, NULL, &c), 0);
	m = calloc(1, sizeof(*m));
	m->config = c;
	workers_init(&m->workers);
	ck_assert_int_eq(index_jobs_open(m), 0);
	elf = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(fstat(elf, &st), 0);
	ticket_file_of(&st, &of.file.file);
	ticket_sign(&of.file, m->ticket_key);
	put_question(&index, (const char *)&of, sizeof(of.file) + sizeof(of.path));
	ask->path_len = sizeof(of.path);
	index_jobs_ask(m, &message);
	ck_assert(index_jobs_wait(m));
}

static void tear_down(void)
{
	char command[128];

	index_jobs_close(m);
	config_free(m->config);
	free(m);
	close(elf);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

static void indexer_asks(uint32_t root, const char *path, size_t len)
{
	const struct ipc_ask forged = {.kind = HOST_OPEN_DEBUG, .pid = 7, .alternate_pid = 8, .len = root,
				       .program = {.dev = 1, .ino = 2, .uid = 3, .gid = 4, .mode = 0777}};

	put_question(&forged, path, len);
	index_jobs_set_root(m, &message);
}

START_TEST(process_and_program_are_those_of_the_index)
{
	struct stat st;

	ck_assert_int_eq(fstat(elf, &st), 0);
	indexer_asks(INDEX_ROOT_TARGET, "/a", 2);
	ck_assert_uint_eq(ask->pid, PID);
	ck_assert_uint_eq(ask->alternate_pid, 0);
	ck_assert_uint_eq(ask->len, 0);
	ck_assert(ask->program.dev == st.st_dev && ask->program.ino == st.st_ino);
	ck_assert(ask->program.uid == st.st_uid && ask->program.gid == st.st_gid && ask->program.mode == st.st_mode);
	ck_assert_uint_eq(ask->path_len, 3 + strlen(PROGRAM));
	ck_assert_uint_eq(message.head.len, sizeof(*ask) + ask->path_len);
	ck_assert_mem_eq(ask + 1, "/a\0" PROGRAM, ask->path_len);
}
END_TEST

START_TEST(any_other_root_is_the_hosts)
{
	static const uint32_t roots[] = {INDEX_ROOT_HOST, INDEX_ROOT_FETCHED, 77};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		indexer_asks(roots[i], "/a", 2);
		ck_assert_uint_eq(ask->pid, 1);
	}
}
END_TEST

START_TEST(path_of_the_program_cannot_be_forged)
{
	indexer_asks(INDEX_ROOT_TARGET, "/a\0/b", 5);
	ck_assert_uint_eq(ask->path_len, 3 + strlen(PROGRAM));
	ck_assert_mem_eq(ask + 1, "/a\0" PROGRAM, ask->path_len);
}
END_TEST

START_TEST(paths_that_are_too_long_are_no_question_for_a_file)
{
	static char longest[HOST_PATH_MAX];

	memset(longest, 'a', sizeof(longest));
	indexer_asks(INDEX_ROOT_TARGET, longest, sizeof(longest) - strlen(PROGRAM) - 2);
	ck_assert_uint_eq(ask->path_len, HOST_PATH_MAX - 1);
	indexer_asks(INDEX_ROOT_TARGET, longest, sizeof(longest) - strlen(PROGRAM) - 1);
	ck_assert_uint_eq(ask->path_len, 0);
	ck_assert_uint_eq(message.head.len, sizeof(*ask));
}
END_TEST

/* --- whose file is next --- */

#define USER	1000
#define BUSY	2000
#define MINUTE	(60 * NSEC_PER_SEC)

static int engine_side, indexer_side;
static uint32_t symbols_only; /* of the file that the indexer got last */
static uint64_t next_ino;

static void set_up_turns(void)
{
	int pair[2];

	set_up();
	index_jobs_engine_died(m); /* drops the first question */
	ck_assert(!index_jobs_wait(m));
	ck_assert_int_eq(ipc_pair(pair), 0);
	m->workers.engine.sock = pair[0];
	engine_side = pair[1];
	ck_assert_int_eq(ipc_pair(pair), 0);
	m->workers.indexer.sock = pair[0];
	indexer_side = pair[1];
	m->public_config_fd = -1;
	next_ino = 1;
}

static void tear_down_turns(void)
{
	close(m->workers.engine.sock);
	close(m->workers.indexer.sock);
	close(engine_side);
	close(indexer_side);
	tear_down();
}

/* The question for a new file of this owner. */
static void ask_for(uint32_t uid, const char *name)
{
	const struct ipc_ask index = {.kind = HOST_OPEN_INDEX, .pid = PID};
	size_t len = strlen(name);
	struct {
		struct ticket file;
		char path[16];
	} of = {.file.file = {.dev = 7, .ino = next_ino++, .size = 4096, .uid = uid, .mode = S_IFREG | 0755}};

	ck_assert_uint_lt(len, sizeof(of.path));
	memcpy(of.path, name, len);
	ticket_sign(&of.file, m->ticket_key);
	put_question(&index, (const char *)&of, sizeof(of.file) + len);
	ask->path_len = (uint32_t)len;
	index_jobs_ask(m, &message);
}

/* How many questions were refused since. */
static int refused(void)
{
	int n = 0;

	while (ipc_receive(engine_side, &message) == 1)
		if (message.head.type == IPC_ANSWER) {
			ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, -EBUSY);
			n++;
		} else {
			ipc_close_fds(&message);
		}
	return n;
}

/* The path of the file that the indexer gets. */
static const char *indexed(void)
{
	static char path[16];
	const struct ipc_index *head = (const void *)message.data;

	ck_assert_int_eq(index_jobs_hand_over(m), 0);
	while (ipc_receive(indexer_side, &message) == 1) {
		ipc_close_fds(&message);
		if (message.head.type == IPC_INDEX) {
			symbols_only = head->symbols_only;
			snprintf(path, sizeof(path), "%.*s", (int)head->path_len, (const char *)(head + 1));
		}
	}
	return path;
}

static void indexer_ends_with(int err)
{
	const struct ipc_indexed result = {.err = err};

	message.head = (struct ipc_head){.type = IPC_INDEXED, .len = sizeof(result)};
	memcpy(message.data, &result, sizeof(result));
	index_jobs_indexed(m, &message);
	index_jobs_indexer_ended(m);
}

/* After which the file is done with: the engine has no use for the index. */
static void indexer_ends(void)
{
	indexer_ends_with(-EAGAIN);
}

START_TEST(one_owner_has_a_quarter_of_the_queue)
{
	for (int i = 0; i < 70; i++)
		ask_for(BUSY, "/busy");
	ck_assert_int_eq(refused(), 70 - 16);
	for (int i = 0; i < 10; i++)
		ask_for(USER, "/user");
	for (int i = 0; i < 10; i++)
		ask_for(0, "/root");
	ck_assert_int_eq(refused(), 0);
}
END_TEST

START_TEST(owner_who_used_the_indexer_waits_for_the_others)
{
	for (int i = 0; i < 3; i++)
		ask_for(BUSY, "/busy");
	ck_assert_str_eq(indexed(), "/busy");
	ask_for(USER, "/user");
	usleep(10000);
	indexer_ends();
	ck_assert_str_eq(indexed(), "/user");
	indexer_ends();
	ck_assert_str_eq(indexed(), "/busy");
	indexer_ends();
	ck_assert_str_eq(indexed(), "/busy");
	indexer_ends();
	ck_assert(!index_jobs_wait(m));
}
END_TEST

/* Until the process is killed, or one second has passed. */
static bool is_killed(pid_t pid)
{
	for (int i = 0; i < 100; i++) {
		int status = 0;

		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		usleep(10000);
	}
	return false;
}

static pid_t slow_indexer(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	m->workers.indexer.pid = pid;
	return pid;
}

START_TEST(file_that_others_wait_for_has_a_minute)
{
	pid_t pid = slow_indexer();
	uint64_t now = clock_now_ns();

	ask_for(BUSY, "/busy");
	ask_for(BUSY, "/busy");
	ck_assert_str_eq(indexed(), "/busy");
	index_jobs_run(m, now + 9 * MINUTE);
	ck_assert_uint_gt(index_jobs_next_ns(m), now + 9 * MINUTE);
	ck_assert_uint_eq(m->workers.indexer.killed_ns, 0);
	ask_for(USER, "/user");
	ck_assert_uint_lt(index_jobs_next_ns(m), now + 2 * MINUTE);
	index_jobs_run(m, now + MINUTE - NSEC_PER_SEC);
	ck_assert_uint_eq(m->workers.indexer.killed_ns, 0);
	index_jobs_run(m, now + MINUTE + NSEC_PER_SEC);
	ck_assert(is_killed(pid));
	m->workers.indexer.pid = 0;
	index_jobs_indexer_ended(m);
	/* Then it is the other's turn, and after that the first file's, with its symbols alone. */
	ck_assert_str_eq(indexed(), "/user");
	indexer_ends();
	ck_assert_str_eq(indexed(), "/busy");
	ck_assert_uint_eq(symbols_only, 1);
}
END_TEST

START_TEST(a_result_with_a_positive_error_is_none)
{
	ask_for(BUSY, "/busy");
	ck_assert_str_eq(indexed(), "/busy");
	ck_assert_uint_eq(symbols_only, 0);
	indexer_ends_with(EIO);
	ck_assert_str_eq(indexed(), "/busy");
	ck_assert_uint_eq(symbols_only, 1); /* as of an indexer that died */
}
END_TEST

START_TEST(file_that_nobody_waits_for_has_ten_minutes)
{
	pid_t pid = slow_indexer();
	uint64_t now = clock_now_ns();

	ask_for(BUSY, "/busy");
	ck_assert_str_eq(indexed(), "/busy");
	index_jobs_run(m, now + 9 * MINUTE);
	ck_assert_uint_eq(m->workers.indexer.killed_ns, 0);
	index_jobs_run(m, now + 11 * MINUTE);
	ck_assert(is_killed(pid));
	m->workers.indexer.pid = 0;
}
END_TEST

Suite *index_jobs_suite(void)
{
	Suite *s = suite_create("index_jobs");
	TCase *t = tcase_create("indexer");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, process_and_program_are_those_of_the_index);
	tcase_add_test(t, any_other_root_is_the_hosts);
	tcase_add_test(t, path_of_the_program_cannot_be_forged);
	tcase_add_test(t, paths_that_are_too_long_are_no_question_for_a_file);
	suite_add_tcase(s, t);
	t = tcase_create("turns");
	tcase_add_checked_fixture(t, set_up_turns, tear_down_turns);
	tcase_add_test(t, one_owner_has_a_quarter_of_the_queue);
	tcase_add_test(t, owner_who_used_the_indexer_waits_for_the_others);
	tcase_add_test(t, file_that_others_wait_for_has_a_minute);
	tcase_add_test(t, a_result_with_a_positive_error_is_none);
	tcase_add_test(t, file_that_nobody_waits_for_has_ten_minutes);
	suite_add_tcase(s, t);
	return s;
}
