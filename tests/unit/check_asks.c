// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/monitor/monitor.h"
#include "process/host.h"
#include "symbol/index_build.h"

Suite *asks_suite(void);

/* The monitor's own ends; the test plays engine and openers at the other ones. */
static struct monitor *m;
static int engine, opener[OPENERS];
static struct ipc_message message;

static void join(struct worker *w, int *ret_other)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	w->sock = pair[0];
	w->ready = true;
	*ret_other = pair[1];
}

static void setup(void)
{
	m = calloc(1, sizeof(*m));
	workers_init(&m->workers);
	asks_init(&m->asks, &m->workers, targets_names_answered, m);
	join(&m->workers.engine, &engine);
	for (int i = 0; i < OPENERS; i++)
		join(&m->workers.opener[i], &opener[i]);
}

static void teardown(void)
{
	asks_done(&m->asks);
	target_names_done(&m->targets.names);
	close(m->workers.engine.sock);
	close(engine);
	for (int i = 0; i < OPENERS; i++) {
		closep(&m->workers.opener[i].sock);
		close(opener[i]);
	}
	free(m);
}

static void ask(uint64_t tag, uint32_t kind)
{
	struct ipc_ask *a = (void *)message.data;

	memset(&message, 0, sizeof(message.head));
	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	*a = (struct ipc_ask){.kind = kind, .pid = 1};
	message.head = (struct ipc_head){.type = IPC_ASK, .len = sizeof(*a), .tag = tag};
	asks_add(&m->asks, ASKER_ENGINE, &message);
}

static void opener_answers(int i, uint64_t tag, int err, size_t extra)
{
	static uint8_t data[IPC_DATA_MAX];
	const struct ipc_answer a = {.err = err};

	memcpy(data, &a, sizeof(a));
	ck_assert_int_eq(ipc_send(opener[i], IPC_ANSWER, tag, data, sizeof(a) + extra, NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[i].sock, &message), 1);
	asks_answered(&m->asks, i, &message);
	ipc_close_fds(&message);
}

static void engine_hears(uint64_t tag, int err)
{
	ck_assert_int_eq(ipc_receive(engine, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_ANSWER);
	ck_assert_uint_eq(message.head.tag, tag);
	ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, err);
}

START_TEST(questions_go_to_free_openers_and_answers_come_back)
{
	ask(1, HOST_READ_MAPS);
	ask(2, HOST_READ_MAPS);
	ask(3, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(message.head.tag, 1);
	ck_assert_int_eq(ipc_receive(opener[1], &message), 1);
	ck_assert_uint_eq(message.head.tag, 2);
	opener_answers(1, 2, -ENOENT, 0);
	engine_hears(2, -ENOENT);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[1], &message), 1);
	ck_assert_uint_eq(message.head.tag, 3);
	ck_assert_uint_eq(m->asks.open, 2);
}
END_TEST

START_TEST(too_many_questions_are_busy)
{
	for (uint64_t i = 0; i < ASKS_MAX; i++)
		ask(i, HOST_READ_MAPS);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	ask(1000, HOST_READ_MAPS);
	engine_hears(1000, -EBUSY);
	ck_assert_uint_eq(m->asks.refused, 1);
}
END_TEST

START_TEST(opener_that_is_late_is_replaced_and_its_question_answered)
{
	ask(1, HOST_OPEN_MAPPED);
	ask(2, HOST_OPEN_MAPPED);
	ask(3, HOST_OPEN_MAPPED);
	asks_run(&m->asks, 1000);
	opener_answers(1, 2, 0, 0);
	engine_hears(2, 0);
	asks_run(&m->asks, 1000 + 1999 * NSEC_PER_MSEC);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	asks_run(&m->asks, 1000 + 2 * NSEC_PER_SEC);
	engine_hears(1, -ETIMEDOUT);
	ck_assert_uint_eq(m->workers.abandoned, 1);
	ck_assert_int_eq(m->workers.opener[0].sock, -1);
	ck_assert_uint_eq(m->asks.timed_out, 1);
	/* The other one was not disturbed. */
	ck_assert_int_eq(ipc_receive(opener[1], &message), 1);
	ck_assert_int_eq(ipc_receive(opener[1], &message), 1);
	ck_assert_uint_eq(message.head.tag, 3);
}
END_TEST

START_TEST(scan_may_take_longer)
{
	ask(1, HOST_SCAN);
	asks_run(&m->asks, 1000);
	asks_run(&m->asks, 1000 + 5 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->workers.abandoned, 0);
	ck_assert_uint_gt(asks_next_ns(&m->asks), 5 * NSEC_PER_SEC);
}
END_TEST

START_TEST(dead_opener_takes_one_question_with_it)
{
	ask(1, HOST_READ_IDENTITY);
	asks_run(&m->asks, 1000);
	asks_opener_died(&m->asks, 0, false);
	engine_hears(1, -EIO);
	ck_assert_uint_eq(m->asks.open, 0);
}
END_TEST

START_TEST(answer_waits_for_room)
{
	static uint8_t data[IPC_DATA_MAX];

	ask(1, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	while (!ipc_send(m->workers.engine.sock, IPC_ANSWER, 99, data, sizeof(data), NULL, 0))
		;
	opener_answers(0, 1, 0, 60000);
	ck_assert(asks_wait_for_room(&m->asks));
	while (ipc_receive(engine, &message) == 1)
		;
	asks_run(&m->asks, 1000);
	engine_hears(1, 0);
	ck_assert_uint_eq(message.head.len, sizeof(struct ipc_answer) + 60000);
	ck_assert(!asks_wait_for_room(&m->asks));
}
END_TEST

START_TEST(answer_for_a_dead_engine_is_not_for_the_next)
{
	ask(1, HOST_READ_MAPS);
	ask(2, HOST_READ_MAPS);
	ask(3, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	asks_asker_died(&m->asks, ASKER_ENGINE);
	ck_assert_uint_eq(m->asks.open, 2);
	/* The next engine counts its questions from 1 too. */
	ask(1, HOST_READ_IDENTITY);
	opener_answers(0, 1, 0, 0);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	asks_run(&m->asks, 1000);
	opener_answers(0, 1, -ESRCH, 0);
	engine_hears(1, -ESRCH);
	ck_assert_uint_eq(m->asks.open, 1);
}
END_TEST

static const struct {
	uint32_t kind, path_len, len;
	size_t data;
} malformed[] = {
	{0, 0, 0, 0},
	{UINT32_MAX, 0, 0, 0},
	{HOST_OPEN_MAPPED, 5, 0, 4},
	{HOST_OPEN_MAPPED, UINT32_MAX, 0, 0},
	{HOST_OPEN_MAPPED, HOST_PATH_MAX, 0, HOST_PATH_MAX},
	{4, 0, 0, 0}, /* a process' memory: no longer to be had */
	{HOST_READ_MAPS, 0, 1, 0},
	{HOST_OPEN_INDEX, 0, 0, 0},
	{HOST_READ_CONTAINERS, 0, 0, 0}, /* the monitor's own */
};

START_TEST(question_that_breaks_the_rules_is_not_asked)
{
	struct ipc_ask *a = (void *)message.data;

	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	*a = (struct ipc_ask){.kind = malformed[_i].kind, .path_len = malformed[_i].path_len, .len = malformed[_i].len};
	message.head = (struct ipc_head){.type = IPC_ASK, .len = (uint32_t)(sizeof(*a) + malformed[_i].data)};
	asks_add(&m->asks, ASKER_ENGINE, &message);
	ck_assert_uint_eq(m->asks.open, 0);
	ck_assert_ptr_null(m->asks.first);
}
END_TEST

START_TEST(indexer_asks_for_files_of_the_host)
{
	struct ipc_ask *a = (void *)message.data;

	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	*a = (struct ipc_ask){.kind = HOST_OPEN_DEBUG, .pid = 7, .path_len = 2, .len = INDEX_ROOT_HOST};
	memcpy(a + 1, "/a", 2);
	message.head = (struct ipc_head){.type = IPC_ASK, .len = sizeof(*a) + 2, .tag = 1};
	index_jobs_set_root(m, &message);
	asks_add(&m->asks, ASKER_INDEXER, &message);
	ck_assert_uint_eq(m->asks.open, 1);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(a->pid, 1);
	ck_assert_uint_eq(a->len, 0);
}
END_TEST

START_TEST(answer_to_another_question_is_not_passed_on)
{
	ask(5, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	opener_answers(0, 6, 0, 0);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	ck_assert_uint_eq(m->asks.open, 1);
}
END_TEST

static void want_name(const char *id)
{
	ck_assert_ptr_null(target_names_find(&m->targets.names, id, 1));
	targets_ask_names(m);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(((struct ipc_ask *)(void *)message.data)->kind, HOST_READ_CONTAINERS);
	ck_assert_uint_eq(message.head.len, sizeof(struct ipc_ask) + strlen(id));
	ck_assert_mem_eq(message.data + sizeof(struct ipc_ask), id, strlen(id));
}

#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(name_of_a_container_is_asked_of_an_opener)
{
	struct {
		struct ipc_answer head;
		char text[sizeof(CONTAINER "web")];
	} answer = {.text = CONTAINER "web"};

	want_name(CONTAINER);
	ck_assert_int_eq(ipc_send(opener[0], IPC_ANSWER, 0, &answer, sizeof(answer), NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[0].sock, &message), 1);
	asks_answered(&m->asks, 0, &message);
	ck_assert_str_eq(target_names_find(&m->targets.names, CONTAINER, 1), "web");
	ck_assert_uint_eq(m->asks.open, 0);
}
END_TEST

START_TEST(name_is_unresolved_where_its_opener_hangs)
{
	want_name(CONTAINER);
	m->workers.opener[0].pid = 0;
	asks_run(&m->asks, 1000 + 3 * NSEC_PER_SEC);
	ck_assert_ptr_null(target_names_find(&m->targets.names, CONTAINER, 1));
	ck_assert(target_names_settled(&m->targets.names));
}
END_TEST

START_TEST(question_of_the_monitor_is_the_next)
{
	const struct ipc_ask own = {.kind = HOST_READ_CONTAINERS};

	for (uint64_t i = 1; i <= 4; i++)
		ask(i, HOST_READ_IDENTITY);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_int_eq(asks_add_own(&m->asks, &own, ""), 0);
	opener_answers(0, 1, 0, 0);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(((struct ipc_ask *)(void *)message.data)->kind, HOST_READ_CONTAINERS);
	/* The others keep their order, also behind one that was put first into an empty queue. */
	opener_answers(0, 0, -EIO, 0);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(message.head.tag, 3);
	asks_done(&m->asks);
	ck_assert_int_eq(asks_add_own(&m->asks, &own, ""), 0);
	ask(5, HOST_READ_MAPS);
	ck_assert_uint_eq(m->asks.first->tag, 0);
	ck_assert_uint_eq(m->asks.first->next->tag, 5);
}
END_TEST

Suite *asks_suite(void)
{
	Suite *s = suite_create("asks");
	TCase *t = tcase_create("questions");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, questions_go_to_free_openers_and_answers_come_back);
	tcase_add_test(t, too_many_questions_are_busy);
	tcase_add_test(t, opener_that_is_late_is_replaced_and_its_question_answered);
	tcase_add_test(t, scan_may_take_longer);
	tcase_add_test(t, dead_opener_takes_one_question_with_it);
	tcase_add_test(t, answer_waits_for_room);
	tcase_add_test(t, answer_for_a_dead_engine_is_not_for_the_next);
	tcase_add_loop_test(t, question_that_breaks_the_rules_is_not_asked, 0, ARRAY_SIZE(malformed));
	tcase_add_test(t, answer_to_another_question_is_not_passed_on);
	tcase_add_test(t, indexer_asks_for_files_of_the_host);
	tcase_add_test(t, question_of_the_monitor_is_the_next);
	tcase_add_test(t, name_of_a_container_is_asked_of_an_opener);
	tcase_add_test(t, name_is_unresolved_where_its_opener_hangs);
	suite_add_tcase(s, t);
	return s;
}
