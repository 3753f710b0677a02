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

/* The opener has read its question; the answer goes to the socket that came with it. */
static void opener_says(int i, uint32_t type, uint64_t tag)
{
	ck_assert_int_eq(ipc_send(opener[i], type, tag, NULL, 0, NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[i].sock, &message), 1);
	asks_from_opener(&m->asks, i, &message);
	ipc_close_fds(&message);
}

static void opener_answers(int i, uint64_t tag, int err)
{
	const struct ipc_answer a = {.err = err};
	int asker;

	ck_assert_int_eq(ipc_receive(opener[i], &message), 1);
	ck_assert_uint_eq(message.head.tag, tag);
	asker = ipc_take_fd(&message, 0);
	ck_assert_int_ge(asker, 0);
	ipc_send(asker, IPC_ANSWER, tag, &a, sizeof(a), NULL, 0);
	close(asker);
	opener_says(i, IPC_ANSWERED, tag);
}

static void engine_hears(uint64_t tag, int err)
{
	ck_assert_int_eq(ipc_receive(engine, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_ANSWER);
	ck_assert_uint_eq(message.head.tag, tag);
	ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, err);
}

START_TEST(questions_go_to_free_openers_and_answers_to_the_asker)
{
	ask(1, HOST_READ_MAPS);
	ask(2, HOST_READ_MAPS);
	ask(3, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(message.head.tag, 1);
	ipc_close_fds(&message);
	opener_answers(1, 2, -ENOENT);
	engine_hears(2, -ENOENT);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[1], &message), 1);
	ck_assert_uint_eq(message.head.tag, 3);
	ipc_close_fds(&message);
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
	opener_answers(1, 2, 0);
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

START_TEST(answer_that_waits_for_room_is_not_late)
{
	ask(1, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	opener_says(0, IPC_FOUND, 1);
	asks_run(&m->asks, 1000 + 60 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->workers.abandoned, 0);
	ck_assert_uint_eq(m->asks.open, 1);
	opener_answers(0, 1, 0);
	engine_hears(1, 0);
	ck_assert_uint_eq(m->asks.open, 0);
}
END_TEST

START_TEST(answer_for_a_dead_engine_is_not_for_the_next)
{
	ask(1, HOST_READ_MAPS);
	ask(2, HOST_READ_MAPS);
	ask(3, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	close(engine);
	close(m->workers.engine.sock);
	asks_asker_died(&m->asks, ASKER_ENGINE);
	ck_assert_uint_eq(m->asks.open, 2);
	/* The next engine counts its questions from 1 too. */
	join(&m->workers.engine, &engine);
	ask(1, HOST_READ_IDENTITY);
	opener_answers(0, 1, 0);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	asks_run(&m->asks, 1000);
	opener_answers(0, 1, -ESRCH);
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

static const struct {
	uint32_t type;
	uint64_t tag;
	size_t len;
} out_of_turn[] = {
	{IPC_ANSWERED, 6, 0}, {IPC_FOUND, 6, 0}, {IPC_ANSWERED, 5, 8}, {IPC_ANSWER, 5, sizeof(struct ipc_answer)},
	{IPC_ASK, 5, sizeof(struct ipc_ask)},
};

START_TEST(opener_that_breaks_the_rules_settles_no_question)
{
	static const uint8_t zeros[IPC_DATA_MAX];

	ask(5, HOST_READ_MAPS);
	asks_run(&m->asks, 1000);
	ipc_send(opener[0], out_of_turn[_i].type, out_of_turn[_i].tag, zeros, out_of_turn[_i].len, NULL, 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[0].sock, &message), 1);
	asks_from_opener(&m->asks, 0, &message);
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
	asks_from_opener(&m->asks, 0, &message);
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
	opener_says(0, IPC_ANSWERED, 1);
	asks_run(&m->asks, 1000);
	ck_assert_int_eq(ipc_receive(opener[0], &message), 1);
	ck_assert_uint_eq(((struct ipc_ask *)(void *)message.data)->kind, HOST_READ_CONTAINERS);
	ck_assert_int_eq(ipc_nr_fds(&message), 0);
	/* The others keep their order, also behind one that was put first into an empty queue. */
	ck_assert_int_eq(ipc_send(opener[0], IPC_ANSWER, 0, &(struct ipc_answer){.err = -EIO}, sizeof(struct ipc_answer),
				  NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[0].sock, &message), 1);
	asks_from_opener(&m->asks, 0, &message);
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

static void opener_touches(int i, uint32_t uid, uint64_t dev)
{
	const struct blame b = {.uid = uid, .dev = dev};

	ck_assert_int_eq(ipc_send(opener[i], IPC_BLAME, 0, &b, sizeof(b), NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.opener[i].sock, &message), 1);
	asks_from_opener(&m->asks, i, &message);
}

/* The other opener hears of it, and every later one. */
static void opener_hears_bans(int i, uint32_t count)
{
	do
		ck_assert_int_eq(ipc_receive(opener[i], &message), 1);
	while (message.head.type != IPC_BANS);
	ck_assert_uint_eq(((struct ipc_bans *)(void *)message.data)->count, count);
}

#define LATE (1000 + 2 * NSEC_PER_SEC)

static void opener_hangs(uint32_t uid, uint64_t dev)
{
	m->workers.opener[0].pid = 1 << 30; /* there is no such process */
	ask(1, HOST_OPEN_MAPPED);
	asks_run(&m->asks, 1000);
	opener_touches(0, uid, dev);
	asks_run(&m->asks, LATE);
	engine_hears(1, -ETIMEDOUT);
}

START_TEST(what_no_signal_ends_is_banned)
{
	opener_hangs(0, 77);
	ck_assert_uint_eq(m->asks.bans.count, 0);
	asks_run(&m->asks, LATE + NSEC_PER_SEC);
	opener_hears_bans(1, 1);
	ck_assert_uint_eq(m->asks.bans.ban[0].dev, 77);
	/* Hours later it hangs still. */
	asks_run(&m->asks, LATE + 9000 * NSEC_PER_SEC);
	asks_run(&m->asks, LATE + 9500 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->asks.bans.count, 1);
	asks_abandoned_ended(&m->asks, 1 << 30);
	asks_run(&m->asks, LATE + 9600 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->asks.bans.count, 1);
	asks_run(&m->asks, LATE + 10101 * NSEC_PER_SEC);
	opener_hears_bans(1, 0);
}
END_TEST

START_TEST(slow_file_is_banned_for_a_user_and_not_for_root)
{
	opener_hangs(_i ? 1000 : 0, 77);
	asks_abandoned_ended(&m->asks, 1 << 30);
	asks_run(&m->asks, LATE + NSEC_PER_SEC);
	ck_assert_uint_eq(m->asks.bans.count, (unsigned)_i);
	asks_run(&m->asks, LATE + 61 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->asks.bans.count, 0);
}
END_TEST

START_TEST(a_turn_is_taken_when_a_ban_ends)
{
	const uint64_t end = LATE + 60 * NSEC_PER_SEC;

	opener_hangs(1000, 77);
	asks_abandoned_ended(&m->asks, 1 << 30);
	ck_assert_uint_eq(asks_next_ns(&m->asks), end);
	asks_run(&m->asks, end - 1);
	ck_assert_uint_eq(m->asks.bans.count, 1);
	asks_run(&m->asks, end);
	ck_assert_uint_eq(m->asks.bans.count, 0);
	ck_assert_uint_eq(asks_next_ns(&m->asks), UINT64_MAX);
}
END_TEST

START_TEST(next_opener_hears_the_bans_at_its_start)
{
	opener_hangs(1000, 77);
	asks_abandoned_ended(&m->asks, 1 << 30);
	join(&m->workers.opener[0], &opener[0]);
	ck_assert_int_eq(asks_opener_started(&m->asks, 0), 0);
	opener_hears_bans(0, 1);
}
END_TEST

Suite *asks_suite(void)
{
	Suite *s = suite_create("asks");
	TCase *t = tcase_create("questions");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, questions_go_to_free_openers_and_answers_to_the_asker);
	tcase_add_test(t, too_many_questions_are_busy);
	tcase_add_test(t, opener_that_is_late_is_replaced_and_its_question_answered);
	tcase_add_test(t, scan_may_take_longer);
	tcase_add_test(t, dead_opener_takes_one_question_with_it);
	tcase_add_test(t, answer_that_waits_for_room_is_not_late);
	tcase_add_test(t, answer_for_a_dead_engine_is_not_for_the_next);
	tcase_add_loop_test(t, question_that_breaks_the_rules_is_not_asked, 0, ARRAY_SIZE(malformed));
	tcase_add_loop_test(t, opener_that_breaks_the_rules_settles_no_question, 0, ARRAY_SIZE(out_of_turn));
	tcase_add_test(t, indexer_asks_for_files_of_the_host);
	tcase_add_test(t, question_of_the_monitor_is_the_next);
	tcase_add_test(t, name_of_a_container_is_asked_of_an_opener);
	tcase_add_test(t, name_is_unresolved_where_its_opener_hangs);
	tcase_add_test(t, what_no_signal_ends_is_banned);
	tcase_add_loop_test(t, slow_file_is_banned_for_a_user_and_not_for_root, 0, 2);
	tcase_add_test(t, a_turn_is_taken_when_a_ban_ends);
	tcase_add_test(t, next_opener_hears_the_bans_at_its_start);
	suite_add_tcase(s, t);
	return s;
}
