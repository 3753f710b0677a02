// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/host_live.h"

Suite *host_live_suite(void);

static struct host_live *live;
static int monitor = -1, sock = -1;
static struct ipc_message message;

static struct {
	int calls, err, fd;
	char data[64];
	size_t len;
} got;

static void on_answer(void *ctx, int err, int fd, const void *data, size_t len)
{
	got.calls++;
	got.err = err;
	got.fd = fd;
	got.len = len;
	if (data)
		memcpy(got.data, data, len < sizeof(got.data) ? len : sizeof(got.data));
}

static void setup(void)
{
	int pair[2];

	memset(&got, 0, sizeof(got));
	got.fd = -1;
	ck_assert_int_eq(ipc_pair(pair), 0);
	sock = pair[0];
	monitor = pair[1];
	ck_assert_int_eq(host_live_new(sock, NULL, NULL, &live), 0);
}

static void teardown(void)
{
	live = host_live_free(live);
	close(sock);
	close(monitor);
}

static int ask(uint32_t kind, const char *path, void *ctx)
{
	struct host_request q = {.kind = kind, .pid = 42, .start = 0x1000, .end = 0x2000, .path = path};

	return host_ask(host_live_host(live), &q, on_answer, ctx);
}

/* What the engine makes of an answer with this tag. */
static void answer(uint64_t tag, int err, const char *text, int fd)
{
	struct {
		struct ipc_answer head;
		char text[64];
	} a = {.head.err = err};

	strcpy(a.text, text);
	ck_assert_int_eq(ipc_send(monitor, IPC_ANSWER, tag, &a, sizeof(a.head) + strlen(text), &fd, fd >= 0), 0);
	ck_assert_int_eq(ipc_receive(sock, &message), 1);
	host_live_answer(live, &message);
	ipc_close_fds(&message);
}

START_TEST(a_question_travels_whole)
{
	struct ipc_ask a;

	ck_assert_int_eq(ask(HOST_OPEN_MAPPED, "/usr/bin/x", NULL), 0);
	ck_assert_int_eq(ipc_receive(monitor, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_ASK);
	memcpy(&a, message.data, sizeof(a));
	ck_assert_uint_eq(a.pid, 42);
	ck_assert_uint_eq(a.path_len, 10);
	ck_assert_uint_eq(message.head.len, sizeof(a) + 10);
	ck_assert_int_eq(memcmp(message.data + sizeof(a), "/usr/bin/x", 10), 0);
}
END_TEST

START_TEST(the_answer_reaches_its_asker_once)
{
	ask(HOST_READ_MAPS, NULL, NULL);
	answer(1, 0, "text", -1);
	ck_assert_int_eq(got.calls, 1);
	ck_assert_uint_eq(got.len, 4);
	ck_assert_int_eq(memcmp(got.data, "text", 4), 0);
	answer(1, 0, "again", -1); /* nobody waits for it any more */
	ck_assert_int_eq(got.calls, 1);
}
END_TEST

START_TEST(an_answer_with_a_positive_error_is_broken)
{
	ask(HOST_READ_MAPS, NULL, NULL);
	answer(1, EIO, "text", -1);
	ck_assert_int_eq(got.calls, 1);
	ck_assert_int_eq(got.err, -EBADMSG);
}
END_TEST

START_TEST(long_text_that_comes_as_a_file_is_bytes_to_the_asker)
{
	int fd = ipc_memfd("maps", "long text", 9);

	ask(HOST_READ_MAPS, NULL, NULL);
	answer(1, 0, "", fd);
	close(fd);
	ck_assert_int_eq(got.fd, -1);
	ck_assert_uint_eq(got.len, 9);
	ck_assert_int_eq(memcmp(got.data, "long text", 9), 0);
}
END_TEST

START_TEST(a_cancelled_answer_closes_its_file)
{
	int fd = ipc_memfd("file", "x", 1), taken;

	ask(HOST_OPEN_MAPPED, "/x", &got);
	host_cancel(host_live_host(live), &got);
	ck_assert_int_eq(ipc_send(monitor, IPC_ANSWER, 1, &(struct ipc_answer){0}, sizeof(struct ipc_answer), &fd, 1), 0);
	close(fd);
	ck_assert_int_eq(ipc_receive(sock, &message), 1);
	taken = message.fds[0];
	host_live_answer(live, &message);
	ipc_close_fds(&message);
	ck_assert_int_eq(got.calls, 0);
	ck_assert_int_eq(fcntl(taken, F_GETFD), -1);
}
END_TEST

START_TEST(questions_beyond_the_window_wait_their_turn)
{
	int sent = 0;

	for (int i = 0; i < HOST_LIVE_WINDOW + 5; i++)
		ck_assert_int_eq(ask(HOST_READ_MAPS, NULL, NULL), 0);
	while (ipc_receive(monitor, &message) == 1)
		sent++;
	ck_assert_int_eq(sent, HOST_LIVE_WINDOW);
	ck_assert_uint_eq(host_live_open(live), HOST_LIVE_WINDOW + 5);
	answer(1, -ESRCH, "", -1);
	ck_assert_int_eq(got.err, -ESRCH);
	ck_assert_int_eq(ipc_receive(monitor, &message), 1);
}
END_TEST

START_TEST(too_many_questions_are_refused)
{
	int r = 0;

	for (int i = 0; i < HOST_LIVE_QUEUE + HOST_LIVE_WINDOW + 1 && r == 0; i++)
		r = ask(HOST_READ_MAPS, NULL, NULL);
	ck_assert_int_eq(r, -EBUSY);
}
END_TEST

static void ask_of(uint64_t group)
{
	struct host_request q = {.kind = HOST_READ_MAPS, .pid = (uint32_t)group, .group = group};

	host_ask(host_live_host(live), &q, on_answer, NULL);
}

/* Whose question the monitor receives next; 0: none. */
static uint32_t monitor_receives(void)
{
	return ipc_receive(monitor, &message) == 1 ? ((struct ipc_ask *)(void *)message.data)->pid : 0;
}

/* One user's processes, thousands of them, whose questions are slow. */
START_TEST(groups_take_turns)
{
	for (int i = 0; i < HOST_LIVE_QUEUE; i++)
		ask_of(7);
	ask_of(8);
	for (int i = 0; i < HOST_LIVE_GROUP; i++)
		ck_assert_uint_eq(monitor_receives(), 7);
	ck_assert_uint_eq(monitor_receives(), 8);
	ck_assert_uint_eq(monitor_receives(), 0);
	ask_of(9);
	ck_assert_uint_eq(monitor_receives(), 9);
	answer(1, 0, "", -1); /* one of 7's */
	ck_assert_uint_eq(monitor_receives(), 7);
	ck_assert_uint_eq(monitor_receives(), 0);
}
END_TEST

START_TEST(group_leaves_half_of_the_queue_to_others)
{
	for (int i = 0; i < 2 * HOST_LIVE_QUEUE; i++)
		ask_of(7);
	ck_assert_uint_eq(host_live_open(live), HOST_LIVE_GROUP + HOST_LIVE_QUEUE / 2);
	for (uint64_t i = 100; i < 200; i++)
		ask_of(i);
	ck_assert_uint_eq(host_live_open(live), HOST_LIVE_GROUP + HOST_LIVE_QUEUE / 2 + 100);
}
END_TEST

static void ask_index_of(uint64_t group)
{
	static const struct host_ticket ticket;
	struct host_request q = {.kind = HOST_OPEN_INDEX, .pid = 1000, .elf_fd = sock, .ticket = &ticket, .group = group,
				 .path = "/bin/x"};

	host_ask(host_live_host(live), &q, on_answer, NULL);
}

/* An index may take minutes: while they are made, files and mappings of the same programs are needed. */
START_TEST(indexes_delay_no_other_question)
{
	for (int i = 0; i < 2 * HOST_LIVE_WINDOW; i++)
		ask_index_of(7);
	for (int i = 0; i < 2 * HOST_LIVE_WINDOW; i++)
		ck_assert_uint_eq(monitor_receives(), 1000);
	ask_of(7);
	ck_assert_uint_eq(monitor_receives(), 7);
	for (int i = 0; i < HOST_LIVE_QUEUE; i++)
		ask_of(7);
	ask_index_of(7);
	for (int i = 1; i < HOST_LIVE_GROUP; i++)
		ck_assert_uint_eq(monitor_receives(), 7);
	ck_assert_uint_eq(monitor_receives(), 1000);
	ck_assert_uint_eq(monitor_receives(), 0);
	answer(1, -ENODATA, "", -1); /* an index makes no room for a question */
	ck_assert_uint_eq(monitor_receives(), 0);
}
END_TEST

/* Its turn is over with its last question, and begins again with the next. */
START_TEST(group_that_returns_is_a_group_again)
{
	for (int round = 0; round < 3; round++) {
		ask_of(7);
		ck_assert_uint_eq(monitor_receives(), 7);
		answer(message.head.tag, 0, "", -1);
		ck_assert_uint_eq(host_live_open(live), 0);
	}
	ck_assert_int_eq(got.calls, 3);
}
END_TEST

START_TEST(freeing_answers_what_is_open)
{
	ask(HOST_READ_MAPS, NULL, NULL);
	live = host_live_free(live);
	ck_assert_int_eq(got.calls, 1);
	ck_assert_int_eq(got.err, -ECANCELED);
}
END_TEST

START_TEST(a_path_too_long_is_refused)
{
	char path[HOST_PATH_MAX + 1];

	memset(path, 'a', sizeof(path));
	path[HOST_PATH_MAX] = '\0';
	ck_assert_int_eq(ask(HOST_OPEN_MAPPED, path, NULL), -ENAMETOOLONG);
}
END_TEST

/* The file goes to the indexer's socket, which the monitor sends; a question that was cancelled has none. */
START_TEST(file_of_an_index_is_sent_where_it_is_wanted)
{
	static const struct host_ticket ticket = {{1, 2, 3}};
	struct host_request q = {.kind = HOST_OPEN_INDEX, .elf_fd = sock, .ticket = &ticket, .path = "/bin/x"};
	int pair[2];

	ck_assert_int_eq(host_ask(host_live_host(live), &q, on_answer, &got), 0);
	ck_assert_int_eq(ipc_receive(monitor, &message), 1);
	ck_assert_int_eq(ipc_nr_fds(&message), 0);
	ck_assert_uint_eq(message.head.len, sizeof(struct ipc_ask) + sizeof(ticket) + 6);
	ck_assert_mem_eq(message.data + sizeof(struct ipc_ask), &ticket, sizeof(ticket));
	ck_assert_mem_eq(message.data + sizeof(struct ipc_ask) + sizeof(ticket), "/bin/x", 6);
	ck_assert_int_eq(ipc_pair(pair), 0);
	message.head = (struct ipc_head){.type = IPC_FILE_WANTED, .tag = message.head.tag};
	message.fds[0] = pair[0];
	host_live_send_file(live, &message);
	host_cancel(host_live_host(live), &got);
	host_live_send_file(live, &message);
	ck_assert_int_eq(ipc_receive(pair[1], &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_FILE);
	ck_assert(ipc_fits(&message, 0, 1));
	ipc_close_fds(&message);
	ck_assert_int_eq(ipc_receive(pair[1], &message), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

Suite *host_live_suite(void)
{
	Suite *s = suite_create("host_live");
	TCase *t = tcase_create("host_live");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_question_travels_whole);
	tcase_add_test(t, the_answer_reaches_its_asker_once);
	tcase_add_test(t, long_text_that_comes_as_a_file_is_bytes_to_the_asker);
	tcase_add_test(t, an_answer_with_a_positive_error_is_broken);
	tcase_add_test(t, a_cancelled_answer_closes_its_file);
	tcase_add_test(t, questions_beyond_the_window_wait_their_turn);
	tcase_add_test(t, too_many_questions_are_refused);
	tcase_add_test(t, groups_take_turns);
	tcase_add_test(t, group_leaves_half_of_the_queue_to_others);
	tcase_add_test(t, indexes_delay_no_other_question);
	tcase_add_test(t, group_that_returns_is_a_group_again);
	tcase_add_test(t, freeing_answers_what_is_open);
	tcase_add_test(t, a_path_too_long_is_refused);
	tcase_add_test(t, file_of_an_index_is_sent_where_it_is_wanted);
	suite_add_tcase(s, t);
	return s;
}
