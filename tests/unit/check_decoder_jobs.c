// SPDX-License-Identifier: Apache-2.0
/* The monitor's part in decoders. The test plays engine, openers and decoders. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/decode.h"
#include "daemon/monitor/monitor.h"
#include "process/beside.h"
#include "process/host.h"

Suite *decoder_jobs_suite(void);

static struct monitor *m;
static int engine, opener, decoder[DECODERS];
static struct ipc_message message;

static void join(struct worker *w, int *ret_other)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	w->sock = pair[0];
	*ret_other = pair[1];
}

static void setup(void)
{
	log_init("check", LOG_LEVEL_ERROR);
	m = calloc(1, sizeof(*m));
	m->public_config_fd = STDERR_FILENO;
	workers_init(&m->workers);
	asks_init(&m->asks, &m->workers, targets_names_answered, m);
	join(&m->workers.engine, &engine);
	join(&m->workers.opener[0], &opener);
	m->workers.opener[0].ready = true;
	for (int i = 0; i < DECODERS; i++)
		decoder[i] = -1;
}

static void end_worker(struct worker *w, int *other)
{
	if (w->pid) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	closep(&w->sock);
	closep(other);
}

static void teardown(void)
{
	asks_done(&m->asks);
	end_worker(&m->workers.engine, &engine);
	end_worker(&m->workers.opener[0], &opener);
	for (int i = 0; i < DECODERS; i++)
		end_worker(&m->workers.decoder[i], &decoder[i]);
	free(m);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		while (true)
			pause();
	return pid;
}

static bool is_killed(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

struct question {
	struct ipc_ask ask;
	struct ticket file;
};

static struct question good_question(void)
{
	struct question q = {.ask = {.kind = HOST_OPEN_DECODER, .pid = 42, .pid_start_ns = 5, .start = 0x1000, .end = 0x2000},
			     .file = {.file = {.dev = 3, .ino = 4}, .shown = {.dev = 5, .ino = 6}}};

	ticket_sign(&q.file, m->ticket_key);
	return q;
}

static void put(uint32_t type, uint64_t tag, const void *data, size_t len)
{
	for (int i = 0; i < IPC_FDS_MAX; i++)
		message.fds[i] = -1;
	message.head = (struct ipc_head){.type = type, .tag = tag, .len = (uint32_t)len};
	if (len)
		memcpy(message.data, data, len);
}

static void ask_with(uint64_t tag, const struct question *q)
{
	put(IPC_ASK, tag, q, sizeof(*q));
	decoder_jobs_ask(m, &message);
}

static void ask(uint64_t tag)
{
	const struct question q = good_question();

	ask_with(tag, &q);
}

/* As workers.c starts one. */
static void start(int i)
{
	join(&m->workers.decoder[i], &decoder[i]);
	m->workers.decoder[i].pid = start_child();
	ck_assert_int_eq(decoder_jobs_hand_over(m, i), 0);
}

static void receive(int sock, uint32_t type)
{
	ck_assert_int_eq(ipc_receive(sock, &message), 1);
	ck_assert_uint_eq(message.head.type, type);
}

static void is_answered(uint64_t tag, int err)
{
	receive(engine, IPC_ANSWER);
	ck_assert_uint_eq(message.head.tag, tag);
	ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, err);
}

/* The id of an answer; its socket, in *ret_sock. */
static uint64_t is_opened(uint64_t tag, int *ret_sock)
{
	struct decode_opened opened;

	is_answered(tag, 0);
	ck_assert_uint_eq(message.head.len, sizeof(struct ipc_answer) + sizeof(opened));
	memcpy(&opened, message.data + sizeof(struct ipc_answer), sizeof(opened));
	*ret_sock = ipc_take_fd(&message, 0);
	ck_assert_int_ge(*ret_sock, 0);
	return opened.id;
}

static void is_ready(int i)
{
	put(IPC_READY, 0, NULL, 0);
	decoder_jobs_from(m, i, &message);
	asks_run(&m->asks, 1000);
}

START_TEST(engine_and_decoder_get_the_two_ends_of_a_socket)
{
	int from_engine, from_decoder;

	m->decoders.user = (struct sandbox_user){72746, 72747};
	ask(9);
	ck_assert(decoder_jobs_wait(m));
	start(0);
	ck_assert(!decoder_jobs_wait(m));
	ck_assert_uint_eq(is_opened(9, &from_engine), 1);
	receive(decoder[0], IPC_CONFIG);
	ipc_close_fds(&message);
	receive(decoder[0], IPC_DECODER);
	ck_assert(ipc_fits(&message, sizeof(struct ipc_decoder), 1));
	ck_assert_uint_eq(((struct ipc_decoder *)(void *)message.data)->file.ino, 6);
	ck_assert_uint_eq(((struct ipc_decoder *)(void *)message.data)->uid, 72746);
	ck_assert_uint_eq(((struct ipc_decoder *)(void *)message.data)->gid, 72747);
	from_decoder = ipc_take_fd(&message, 0);
	receive(decoder[0], IPC_START);
	ck_assert_int_eq(ipc_send(from_engine, IPC_ATTACH, 0, NULL, 0, NULL, 0), 0);
	receive(from_decoder, IPC_ATTACH);
	close(from_engine);
	close(from_decoder);
}
END_TEST

static void read_setup(int i)
{
	for (int n = 0; n < 3; n++) {
		ck_assert_int_eq(ipc_receive(decoder[i], &message), 1);
		ipc_close_fds(&message);
	}
}

START_TEST(an_opener_answers_the_decoder_itself)
{
	const struct ipc_answer a = {0};
	const struct ipc_ask *q = (const void *)message.data;
	int sock, to;

	ask(9);
	start(2);
	is_opened(9, &sock);
	read_setup(2);
	ck_assert_int_eq(ipc_receive(opener, &message), -EAGAIN); /* not before its sandbox is closed */
	is_ready(2);
	receive(opener, IPC_ASK);
	ck_assert_uint_eq(q->kind, HOST_OPEN_DECODER);
	ck_assert_uint_eq(q->pid, 42);
	ck_assert_uint_eq(q->pid_start_ns, 5);
	ck_assert_uint_eq(q->program.dev, 3);
	ck_assert_uint_eq(q->program.ino, 4);
	to = ipc_take_fd(&message, 0);
	ck_assert_int_eq(ipc_send(to, IPC_ANSWER, 0, &a, sizeof(a), NULL, 0), 0);
	receive(decoder[2], IPC_ANSWER);
	close(to);
	close(sock);
}
END_TEST

static void spoil(int which, struct question *q)
{
	switch (which) {
	case 0: q->file.mac[0] ^= 1; break;
	case 1: q->file.file.ino++; break;
	case 2: q->file.shown.ino++; break;
	case 3: q->ask.pid = 0; break;
	case 4: q->ask.pid_start_ns = 0; break;
	case 5: q->ask.end = q->ask.start; break;
	case 6: q->ask.path_len = 1; break;
	case 7: q->ask.len = 1; break;
	}
}

START_TEST(a_question_with_a_wrong_value_ends_the_engine)
{
	struct question q = good_question();
	pid_t pid = m->workers.engine.pid = start_child();

	spoil(_i, &q);
	ask_with(1, &q);
	ck_assert(is_killed(pid));
	m->workers.engine.pid = 0;
	ck_assert(!decoder_jobs_wait(m));
}
END_TEST

START_TEST(a_question_of_a_wrong_length_ends_the_engine)
{
	const struct question q = good_question();
	pid_t pid = m->workers.engine.pid = start_child();

	put(IPC_ASK, 1, &q, sizeof(q) - 1);
	decoder_jobs_ask(m, &message);
	ck_assert(is_killed(pid));
	m->workers.engine.pid = 0;
}
END_TEST

START_TEST(too_many_questions_are_busy)
{
	for (uint64_t i = 0; i < DECODER_QUEUE; i++)
		ask(i);
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
	ask(100);
	is_answered(100, -EBUSY);
}
END_TEST

START_TEST(fewer_run_where_memory_is_limited)
{
	int sock;

	m->guard.memory_limit = DECODER_SHARE / 2;
	ask(1);
	ask(2);
	ck_assert(decoder_jobs_wait(m));
	start(0);
	is_opened(1, &sock);
	close(sock);
	ck_assert(!decoder_jobs_wait(m));
	m->guard.memory_limit = 2 * DECODER_SHARE;
	ck_assert(decoder_jobs_wait(m));
	m->guard.memory_limit = 0;
	ck_assert(decoder_jobs_wait(m));
	m->guard.memory_limit = DECODER_SHARE / 2;
	decoder_jobs_ended(m, 0);
	ck_assert(decoder_jobs_wait(m));
}
END_TEST

START_TEST(a_decoder_of_no_use_is_killed_and_no_other)
{
	uint64_t id;
	int sock;
	pid_t pid;

	ask(1);
	ask(2);
	start(0);
	start(1);
	is_opened(1, &sock);
	close(sock);
	id = is_opened(2, &sock);
	close(sock);
	put(IPC_DECODER_END, 0, &id, sizeof(id));
	decoder_jobs_end(m, &message);
	pid = m->workers.decoder[1].pid;
	ck_assert(is_killed(pid));
	m->workers.decoder[1].pid = 0;
	ck_assert_int_eq(kill(m->workers.decoder[0].pid, 0), 0);
	ck_assert_uint_eq(m->workers.decoder[0].killed_ns, 0);
	id = 0; /* of a slot that nobody has */
	put(IPC_DECODER_END, 0, &id, sizeof(id));
	decoder_jobs_end(m, &message);
	ck_assert_uint_eq(m->workers.decoder[0].killed_ns, 0);
}
END_TEST

START_TEST(a_decoder_lives_for_a_bounded_time)
{
	uint64_t deadline;
	int sock;

	ask(1);
	start(0);
	is_opened(1, &sock);
	close(sock);
	deadline = decoder_jobs_next_ns(m);
	ck_assert_uint_le(deadline, clock_now_ns() + DECODER_LIFE_NS);
	decoder_jobs_run(m, deadline - 1);
	ck_assert_uint_eq(m->workers.decoder[0].killed_ns, 0);
	decoder_jobs_run(m, deadline);
	ck_assert(is_killed(m->workers.decoder[0].pid));
	m->workers.decoder[0].pid = 0;
	ck_assert_uint_eq(m->decoders.overdue, 1);
	decoder_jobs_ended(m, 0);
	ck_assert_uint_eq(decoder_jobs_next_ns(m), UINT64_MAX);
}
END_TEST

START_TEST(the_engines_end_is_the_decoders)
{
	int sock;

	ask(1);
	ask(2);
	start(0);
	is_opened(1, &sock);
	close(sock);
	decoder_jobs_engine_died(m);
	ck_assert(!decoder_jobs_wait(m));
	ck_assert(is_killed(m->workers.decoder[0].pid));
	m->workers.decoder[0].pid = 0;
}
END_TEST

START_TEST(a_decoder_that_cannot_be_started_is_an_error)
{
	ask(1);
	decoder_jobs_cannot_start(m);
	is_answered(1, -EIO);
	decoder_jobs_cannot_start(m); /* nothing waits */
	ck_assert_int_eq(ipc_receive(engine, &message), -EAGAIN);
}
END_TEST

START_TEST(a_decoder_that_died_is_not_answered)
{
	int sock;

	ask(1);
	start(0);
	is_opened(1, &sock);
	close(sock);
	is_ready(0);
	decoder_jobs_ended(m, 0);
	ck_assert(m->asks.slot[0].orphan);
}
END_TEST

/* An opener has said whose memory it is; then the decoder hangs in it. */
START_TEST(memory_in_which_a_decoder_hangs_is_banned)
{
	const struct blame who = {.uid = 1000, .pid = 42}, other = {.uid = 1000, .pid = 43};
	int sock;

	ask(1);
	start(0);
	is_opened(1, &sock);
	close(sock);
	read_setup(0);
	is_ready(0);
	put(IPC_BLAME, 0, &who, sizeof(who));
	asks_from_opener(&m->asks, 0, &message);
	put(IPC_ANSWERED, 0, NULL, 0);
	asks_from_opener(&m->asks, 0, &message);
	decoder_jobs_hangs(m, 0, clock_now_ns());
	ck_assert(blame_is_banned(m->asks.bans.ban, m->asks.bans.count, &who));
	ck_assert(!blame_is_banned(m->asks.bans.ban, m->asks.bans.count, &other));
}
END_TEST

/* --- files beside mapped ones --- */

static void say_beside(int i, uint64_t tag, uint64_t address, const char *name, size_t len)
{
	const struct ipc_beside b = {.address = address};

	put(IPC_BESIDE, tag, &b, sizeof(b));
	memcpy(message.data + sizeof(b), name, len);
	message.head.len += (uint32_t)len;
	decoder_jobs_from(m, i, &message);
}

/* A decoder whose sandbox is closed and that has the memory; it was answered by the one opener. */
static void begin_decoder(int i)
{
	int sock;

	ask(1);
	start(i);
	is_opened(1, &sock);
	close(sock);
	read_setup(i);
	m->workers.decoder[i].ready = true;
	is_ready(i);
	receive(opener, IPC_ASK);
	ipc_close_fds(&message);
	put(IPC_ANSWERED, 0, NULL, 0);
	asks_from_opener(&m->asks, 0, &message);
}

/* The opener has answered the question with this tag. */
static void is_answered_beside(uint64_t tag)
{
	put(IPC_ANSWERED, tag, NULL, 0);
	asks_from_opener(&m->asks, 0, &message);
}

START_TEST(a_file_is_asked_for_in_the_decoders_own_process)
{
	const struct ipc_ask *q = (const void *)message.data;

	begin_decoder(1);
	say_beside(1, 7, 0x7000, "App.pdb", 7);
	asks_run(&m->asks, 1000);
	receive(opener, IPC_ASK);
	ck_assert_uint_eq(message.head.tag, 7);
	ck_assert_uint_eq(message.head.len, sizeof(*q) + 7);
	ck_assert_uint_eq(q->kind, HOST_OPEN_BESIDE);
	ck_assert_uint_eq(q->pid, 42);
	ck_assert_uint_eq(q->pid_start_ns, 5);
	ck_assert_uint_eq(q->start, 0x7000);
	ck_assert_uint_eq(q->path_len, 7);
	ck_assert_mem_eq(q + 1, "App.pdb", 7);
	ck_assert_int_eq(ipc_nr_fds(&message), 1); /* where the opener answers */
	ipc_close_fds(&message);
	ck_assert_uint_eq(m->workers.decoder[1].killed_ns, 0);
}
END_TEST

static const struct { uint64_t tag, address; const char *name; size_t len; } unsound[] = {
	{0, 1, "App.pdb", 7}, {1, 1ULL << 63, "App.pdb", 7}, {1, 1, "App.dll", 7}, {1, 1, "/App.pdb", 8},
	{1, 1, "../a.pdb", 8}, {1, 1, ".pdb", 4}, {1, 1, "", 0}, {1, 1, "a\0b.pdb", 7},
};

START_TEST(a_file_that_is_asked_for_out_of_bounds_ends_the_decoder)
{
	pid_t pid;

	begin_decoder(0);
	pid = m->workers.decoder[0].pid;
	say_beside(0, unsound[_i].tag, unsound[_i].address, unsound[_i].name, unsound[_i].len);
	ck_assert(is_killed(pid));
	m->workers.decoder[0].pid = 0;
	ck_assert_uint_eq(m->asks.open, 0);
}
END_TEST

START_TEST(no_file_is_asked_for_before_the_sandbox_is_closed)
{
	pid_t pid;
	int sock;

	ask(1);
	start(0);
	is_opened(1, &sock);
	close(sock);
	pid = m->workers.decoder[0].pid;
	say_beside(0, 1, 1, "App.pdb", 7);
	ck_assert(is_killed(pid));
	m->workers.decoder[0].pid = 0;
}
END_TEST

START_TEST(a_decoder_asks_for_so_many_files)
{
	pid_t pid;

	begin_decoder(0);
	pid = m->workers.decoder[0].pid;
	for (uint64_t i = 1; i <= BESIDE_FILES_MAX; i++) {
		say_beside(0, i, 1, "App.pdb", 7);
		asks_run(&m->asks, 1000);
		receive(opener, IPC_ASK);
		ipc_close_fds(&message);
		is_answered_beside(i);
	}
	ck_assert_uint_eq(m->workers.decoder[0].killed_ns, 0);
	say_beside(0, 1, 1, "App.pdb", 7);
	ck_assert(is_killed(pid));
	m->workers.decoder[0].pid = 0;
}
END_TEST

/* One that does not wait for its answers. */
START_TEST(few_files_of_one_decoder_are_asked_for_at_a_time)
{
	begin_decoder(0);
	for (uint64_t i = 1; i <= 5; i++)
		say_beside(0, i, 1, "App.pdb", 7);
	receive(decoder[0], IPC_ANSWER);
	ck_assert_uint_eq(message.head.tag, 5);
	ck_assert_int_eq(((struct ipc_answer *)(void *)message.data)->err, -EBUSY);
	ck_assert_uint_eq(m->asks.open, 4);
	decoder_jobs_ended(m, 0);
	ck_assert_uint_eq(m->asks.open, 0);
}
END_TEST

/* What was touched for a file says nothing of the memory. */
START_TEST(memory_is_banned_in_which_a_decoder_hangs_not_what_was_touched_since)
{
	const struct blame memory = {.uid = 1000, .pid = 42}, file = {.uid = 1000, .dev = 9};
	int sock;

	ask(1);
	start(0);
	is_opened(1, &sock);
	close(sock);
	read_setup(0);
	m->workers.decoder[0].ready = true;
	is_ready(0);
	put(IPC_BLAME, 0, &memory, sizeof(memory));
	asks_from_opener(&m->asks, 0, &message);
	is_answered_beside(0);
	say_beside(0, 1, 1, "App.pdb", 7);
	asks_run(&m->asks, 1000);
	put(IPC_BLAME, 0, &file, sizeof(file));
	asks_from_opener(&m->asks, 0, &message);
	is_answered_beside(1);
	decoder_jobs_hangs(m, 0, clock_now_ns());
	ck_assert(blame_is_banned(m->asks.bans.ban, m->asks.bans.count, &memory));
	ck_assert(!blame_is_banned(m->asks.bans.ban, m->asks.bans.count, &file));
}
END_TEST

static uint32_t walks_of; /* the process that got walks */

static int on_walk(struct source *source, uint32_t pid, const struct otp_walks *walks)
{
	walks_of = pid;
	return 0;
}

static void send_walk(const struct otp_walk *plan)
{
	const struct {
		struct ipc_walk head;
		struct otp_walks walks;
	} walk = {.head = {.pid = 42}, .walks = {.generation = 1, .start_ns = 5, .exec_id = 7, .plan = {*plan}}};

	ck_assert_int_eq(ipc_send(engine, IPC_WALK, 0, &walk, sizeof(walk), NULL, 0), 0);
}

/* The decoder told both, the monitor first; the engine's answer to that is read first. */
START_TEST(a_walk_is_vouched_for_before_it_is_set)
{
	static const struct source_ops ops = {.name = "test", .set_walk = on_walk};
	static struct source source = {.ops = &ops};
	const struct otp_walk plan = {.start = OTP_WALK_AT, .step = OTP_WALK_LINK, .nr_chain = 1, .base = 4096,
				      .frames_max = 64, .keep = 1};
	uint64_t id;
	int sock;

	walks_of = 0;
	m->sampler.source = &source;
	ask(1);
	start(0);
	id = is_opened(1, &sock);
	close(sock);
	send_walk(&plan);
	monitor_hear(m, &m->workers.engine);
	ck_assert_uint_eq(walks_of, 0);
	ck_assert_int_eq(ipc_send(decoder[0], IPC_WALKABLE, 0, &plan, sizeof(plan), NULL, 0), 0);
	if (_i) /* the engine may have no use for it any more */
		ck_assert_int_eq(ipc_send(engine, IPC_DECODER_END, 0, &id, sizeof(id), NULL, 0), 0);
	send_walk(&plan);
	monitor_hear(m, &m->workers.engine);
	ck_assert_uint_eq(walks_of, 42);
	decoder_jobs_close(m);
}
END_TEST

Suite *decoder_jobs_suite(void)
{
	Suite *s = suite_create("decoder_jobs");
	TCase *t = tcase_create("decoder_jobs");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, engine_and_decoder_get_the_two_ends_of_a_socket);
	tcase_add_test(t, an_opener_answers_the_decoder_itself);
	tcase_add_loop_test(t, a_question_with_a_wrong_value_ends_the_engine, 0, 8);
	tcase_add_test(t, a_question_of_a_wrong_length_ends_the_engine);
	tcase_add_test(t, too_many_questions_are_busy);
	tcase_add_test(t, fewer_run_where_memory_is_limited);
	tcase_add_test(t, a_decoder_of_no_use_is_killed_and_no_other);
	tcase_add_test(t, a_decoder_lives_for_a_bounded_time);
	tcase_add_test(t, the_engines_end_is_the_decoders);
	tcase_add_test(t, a_decoder_that_cannot_be_started_is_an_error);
	tcase_add_test(t, a_decoder_that_died_is_not_answered);
	tcase_add_test(t, memory_in_which_a_decoder_hangs_is_banned);
	tcase_add_test(t, a_file_is_asked_for_in_the_decoders_own_process);
	tcase_add_loop_test(t, a_file_that_is_asked_for_out_of_bounds_ends_the_decoder, 0, (int)ARRAY_SIZE(unsound));
	tcase_add_test(t, no_file_is_asked_for_before_the_sandbox_is_closed);
	tcase_add_test(t, a_decoder_asks_for_so_many_files);
	tcase_add_test(t, few_files_of_one_decoder_are_asked_for_at_a_time);
	tcase_add_test(t, memory_is_banned_in_which_a_decoder_hangs_not_what_was_touched_since);
	tcase_add_loop_test(t, a_walk_is_vouched_for_before_it_is_set, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
