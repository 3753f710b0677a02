// SPDX-License-Identifier: Apache-2.0
/* net in a thread, between a monitor and an engine that the test plays. */
#include "tests/unit/receiver.h"

#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "base/log.h"
#include "daemon/ipc.h"
#include "daemon/net/net.h"
#include "daemon/report/metrics.h"
#include "tests/lib/counts.h"

Suite *net_suite(void);

static struct receiver server;
static struct ledger_net_page *page;
static int page_fd, monitor, engine; /* our ends of the sockets */
static int net_sock, exit_status;
static pthread_t thread;
static struct ipc_message message;
static uint16_t metrics_port;

static int no_sandbox(const struct config *c)
{
	return 0;
}

static void *net_thread(void *ctx)
{
	exit_status = net_serve(net_sock, no_sandbox);
	close(net_sock); /* as the end of a process would */
	return NULL;
}

/* The next message on sock that is no BEAT, within ten seconds; false at its end. */
static bool expect(int sock, uint32_t type)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int r;

	do {
		ck_assert_int_eq(poll(&p, 1, 10000), 1);
		r = ipc_receive(sock, &message);
		if (r == 0 || r == -EPIPE)
			return false;
		ck_assert_int_eq(r, 1);
	} while (message.head.type == IPC_BEAT);
	ck_assert_uint_eq(message.head.type, type);
	return true;
}

static uint64_t expect_received(void)
{
	uint64_t id;

	ck_assert(expect(engine, IPC_RECEIVED));
	ck_assert_uint_eq(message.head.len, sizeof(id));
	memcpy(&id, message.data, sizeof(id));
	return id;
}

static struct ledger_net look(void)
{
	struct ledger_net copy;

	ledger_read(page, &copy);
	return copy;
}

static void send_fd(int sock, uint32_t type, int fd)
{
	ck_assert_int_eq(ipc_send(sock, type, 0, NULL, 0, &fd, 1), 0);
}

static void send_new_peer(void)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	engine = pair[0];
	send_fd(monitor, IPC_PEER, pair[1]);
	close(pair[1]);
}

static void send_config(const char *text)
{
	int fd = ipc_memfd("config", text, strlen(text));

	ck_assert_int_ge(fd, 0);
	send_fd(monitor, IPC_CONFIG, fd);
	close(fd);
}

static const char *config_text(void)
{
	static char text[1024];
	int n = snprintf(text, sizeof(text),
			 "[exporter sink]\nendpoint = http://127.0.0.1:%u\nretry_initial = 20ms\nretry_max = 50ms\n",
			 server.port);

	if (metrics_port)
		snprintf(text + n, sizeof(text) - (size_t)n, "[metrics]\nlisten = 127.0.0.1:%u\n", metrics_port);
	return text;
}

static void start_net(void)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	monitor = pair[0];
	net_sock = pair[1];
	ck_assert_int_eq(pthread_create(&thread, NULL, net_thread, NULL), 0);
	send_config(config_text());
	send_fd(monitor, IPC_LEDGER, page_fd);
	send_new_peer();
	ck_assert_int_eq(ipc_send(monitor, IPC_START, 0, NULL, 0, NULL, 0), 0);
	ck_assert(expect(monitor, IPC_DRAINED));
	ck_assert(expect(monitor, IPC_READY));
}

static void start(const struct step *steps, size_t n)
{
	receiver_start(&server, steps, n);
	start_net();
}
#define START(...)                                      \
	static const struct step steps[] = {__VA_ARGS__}; \
	start(steps, ARRAY_SIZE(steps))

static void join_net(void)
{
	pthread_join(thread, NULL);
	if (monitor >= 0)
		close(monitor);
	monitor = -1;
}

static void setup(void)
{
	log_init("net", LOG_LEVEL_ERROR);
	page_fd = memfd_create("ledger", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(page_fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	page->magic = LEDGER_MAGIC;
	server.listener = monitor = engine = -1;
	metrics_port = 0;
	exit_status = -1;
}

/* Every test ends net itself; this ends what is left. */
static void teardown(void)
{
	if (monitor >= 0) {
		close(monitor);
		monitor = -1;
		join_net();
	}
	closep(&engine);
	if (server.listener >= 0)
		receiver_stop(&server);
	munmap(page, sizeof(*page));
	close(page_fd);
}

static void hand(uint64_t id, const char *text, uint64_t samples)
{
	struct ipc_request r = {.id = id, .samples = *COUNTS(samples), .len = strlen(text)};
	int fd = ipc_memfd("otlp", text, strlen(text));

	ck_assert_int_eq(ipc_send(engine, IPC_REQUEST, 0, &r, sizeof(r), &fd, 1), 0);
	close(fd);
}

static void stop_net(void)
{
	closep(&engine);
	engine = -1;
	ck_assert_int_eq(ipc_send(monitor, IPC_STOP, 0, NULL, 0, NULL, 0), 0);
	while (expect(monitor, IPC_BEAT))
		;
	join_net();
}

#define WAIT_FOR(condition)                                                    \
	do {                                                                   \
		uint64_t _end = clock_now_ns() + 10 * NSEC_PER_SEC;            \
		while (!(condition) && clock_now_ns() < _end)                  \
			usleep(2000);                                          \
		ck_assert_msg(condition, "%s does not come true", #condition); \
	} while (0)

START_TEST(the_last_words_of_a_peer_with_unread_mail_arrive)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	ck_assert_int_eq(ipc_send(pair[0], IPC_RECEIVED, 0, NULL, 0, NULL, 0), 0);
	ck_assert_int_eq(ipc_send(pair[1], IPC_BEAT, 0, NULL, 0, NULL, 0), 0);
	close(pair[1]);
	ck_assert_int_eq(ipc_receive(pair[0], &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_BEAT);
	ck_assert_int_eq(ipc_receive(pair[0], &message), 0);
	close(pair[0]);
}
END_TEST

START_TEST(a_request_is_published_acknowledged_and_delivered)
{
	START(ANSWER_OK);
	ck_assert_uint_eq(expect_received(), 0);
	hand(1, "profile", 7);
	ck_assert_uint_eq(expect_received(), 1);
	ck_assert_uint_eq(look().received.of[0], 7);
	ck_assert_uint_eq(look().received_id, 1);
	ck_assert_uint_eq(look().destinations, 1);
	WAIT_FOR(look().dest[0].exported.of[0] == 7);
	ck_assert_mem_eq(server.got[0].body, "profile", 7);
}
END_TEST

START_TEST(a_new_net_goes_on_from_the_page)
{
	struct ledger_net before = {.received.of[0] = 100, .received_id = 5, .destinations = 1};

	before.dest[0].exported.of[0] = 60;
	before.dest[0].lost[OTP_LOSS_NET_DIED].of[0] = 40;
	ledger_publish(page, &before);
	START(ANSWER_OK);
	ck_assert_uint_eq(expect_received(), 5);
	hand(5, "again", 7);
	ck_assert_uint_eq(expect_received(), 5);
	hand(6, "new", 3);
	ck_assert_uint_eq(expect_received(), 6);
	ck_assert_uint_eq(look().received.of[0], 103);
	WAIT_FOR(look().dest[0].exported.of[0] == 63);
	ck_assert_uint_eq(receiver_count(&server), 1);
}
END_TEST

START_TEST(what_a_dead_engine_had_sent_is_taken_before_drained_is_said)
{
	int dead;

	START(ANSWER_OK);
	expect_received();
	for (uint64_t id = 1; id <= 100; id++)
		hand(id, "x", 1);
	dead = engine;
	send_new_peer();
	close(dead);
	ck_assert(expect(monitor, IPC_DRAINED));
	ck_assert_uint_eq(look().received.of[0], 100);
	ck_assert_uint_eq(expect_received(), 100);
	hand(101, "x", 1);
	ck_assert_uint_eq(expect_received(), 101);
}
END_TEST

START_TEST(an_engine_that_goes_is_waited_for)
{
	START(ANSWER_OK);
	expect_received();
	hand(1, "x", 1);
	close(engine);
	WAIT_FOR(look().dest[0].exported.of[0] == 1);
	send_new_peer();
	ck_assert(expect(monitor, IPC_DRAINED));
	ck_assert_uint_eq(expect_received(), 1);
}
END_TEST

START_TEST(a_stop_takes_what_is_in_the_socket_and_flushes)
{
	START(ANSWER("503 Busy", ""), ANSWER_OK);
	expect_received();
	for (uint64_t id = 1; id <= 10; id++)
		hand(id, "x", 1);
	stop_net();
	ck_assert_int_eq(exit_status, 0);
	ck_assert_uint_eq(look().received.of[0], 10);
	ck_assert_uint_eq(look().dest[0].exported.of[0], 10);
	ck_assert_uint_eq(look().dest[0].queued.of[0] + look().dest[0].sending.of[0], 0);
}
END_TEST

START_TEST(a_kill_in_the_middle_of_a_try_leaves_it_as_sending)
{
	START({.kind = STEP_HANG});
	expect_received();
	hand(1, "x", 7);
	hand(2, "y", 5);
	WAIT_FOR(receiver_count(&server) == 1 && look().received.of[0] == 12);
	ck_assert_uint_eq(look().dest[0].sending.of[0], 7);
	ck_assert_uint_eq(look().dest[0].queued.of[0], 5);
}
END_TEST

START_TEST(net_ends_with_the_monitor)
{
	START(ANSWER_OK);
	close(monitor);
	monitor = -1;
	join_net();
	ck_assert_int_eq(exit_status, 1);
}
END_TEST

START_TEST(an_engine_that_breaks_the_rules_ends_net)
{
	struct ipc_request r = {.id = 1, .samples = *COUNTS(1), .len = 3};
	int fd = memfd_create("unsealed", MFD_CLOEXEC);

	START(ANSWER_OK);
	log_init("net", 0); /* what it says is expected */
	ck_assert_int_eq(write(fd, "abc", 3), 3);
	ck_assert_int_eq(ipc_send(engine, IPC_REQUEST, 0, &r, sizeof(r), &fd, 1), 0);
	close(fd);
	while (expect(monitor, IPC_BEAT))
		;
	join_net();
	ck_assert_int_eq(exit_status, 1);
	ck_assert_uint_eq(look().received.of[0], 0);
}
END_TEST

/* --- metrics --- */

static void choose_metrics_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	getsockname(fd, (struct sockaddr *)&a, &len);
	metrics_port = ntohs(a.sin_port);
	close(fd);
}

static int ask(const char *request)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(metrics_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert(receiver_send(fd, request, strlen(request)));
	return fd;
}

/* The answer up to its end; takes fd. */
static const char *answer(int fd)
{
	static char text[4096];
	size_t have = 0;
	ssize_t n;

	while ((n = recv(fd, text + have, sizeof(text) - 1 - have, 0)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	close(fd);
	return text;
}

#define GET "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

START_TEST(metrics_are_asked_of_the_monitor_once_for_all_who_wait)
{
	int first, second, text;

	choose_metrics_port();
	START(ANSWER_OK);
	first = ask(GET);
	ck_assert(expect(monitor, IPC_STATUS_WANTED));
	second = ask(GET);
	usleep(100000);
	text = ipc_memfd("status", "otprof_up 1\n", 12);
	send_fd(monitor, IPC_STATUS, text);
	close(text);
	ck_assert_ptr_nonnull(strstr(answer(first), "\r\n\r\notprof_up 1\n"));
	ck_assert_ptr_nonnull(strstr(answer(second), "\r\n\r\notprof_up 1\n"));
	ck_assert_int_eq(ipc_send(monitor, IPC_STOP, 0, NULL, 0, NULL, 0), 0);
	while (expect(monitor, IPC_BEAT))
		;
	join_net();
	ck_assert_int_eq(exit_status, 0);
}
END_TEST

START_TEST(a_monitor_that_does_not_answer_is_a_503)
{
	choose_metrics_port();
	START(ANSWER_OK);
	ck_assert_ptr_nonnull(strstr(answer(ask(GET)), "HTTP/1.1 503 "));
}
END_TEST

START_TEST(an_asker_that_leaves_early_costs_nothing)
{
	choose_metrics_port();
	START(ANSWER_OK);
	for (int i = 0; i < 5; i++)
		close(ask(GET));
	ck_assert(expect(monitor, IPC_STATUS_WANTED));
	closep(&monitor);
	monitor = -1;
	join_net();
}
END_TEST

/* As many as there may be, silent or trickling: the next one that asks is served, and theirs are closed. */
START_TEST(askers_that_do_not_ask_keep_nobody_out)
{
	uint64_t begin = clock_now_ns();
	int silent[12], text;
	char c;

	choose_metrics_port();
	START(ANSWER_OK);
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		silent[i] = ask(i % 2 ? "" : "GET /metrics HTTP/1.1\r\nHost: loc");
	for (int i = 0; i < 3; i++) {
		int asker = ask(GET);

		ck_assert(expect(monitor, IPC_STATUS_WANTED));
		text = ipc_memfd("status", "otprof_up 1\n", 12);
		send_fd(monitor, IPC_STATUS, text);
		close(text);
		ck_assert_ptr_nonnull(strstr(answer(asker), "\r\n\r\notprof_up 1\n"));
	}
	ck_assert_int_eq(recv(silent[0], &c, 1, 0), 0);
	ck_assert_uint_lt(clock_now_ns() - begin, 8 * NSEC_PER_SEC); /* before an idle one would be closed anyway */
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
}
END_TEST

static const struct {
	const char *request, *status;
} odd[] = {
	{"POST /metrics HTTP/1.1\r\nHost: l\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", "HTTP/1.1 405 "},
	{"GET / HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
	{"HEAD /metrics HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "},
};

START_TEST(only_get_of_metrics_is_answered)
{
	choose_metrics_port();
	START(ANSWER_OK);
	ck_assert_ptr_nonnull(strstr(answer(ask(odd[_i].request)), odd[_i].status));
}
END_TEST

START_TEST(a_port_that_is_taken_costs_the_metrics_only)
{
	int taken;

	choose_metrics_port();
	{
		char address[32];

		snprintf(address, sizeof(address), "127.0.0.1:%u", metrics_port);
		ck_assert_int_eq(metrics_listen(address, &taken), 0);
	}
	log_init("net", 0); /* what it says is expected */
	START(ANSWER_OK);
	expect_received();
	hand(1, "x", 7);
	WAIT_FOR(look().dest[0].exported.of[0] == 7);
	close(taken);
}
END_TEST

static const char *const addresses[] = {
	"0.0.0.0:9464", "192.0.2.1:9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "[::]:9464",
	"example.com:9464", ":9464", "127.0.0.1:-1",
};

START_TEST(metrics_listen_on_loopback_only)
{
	int fd = -1;

	ck_assert_int_eq(metrics_listen(addresses[_i], &fd), -EINVAL);
	ck_assert_int_eq(fd, -1);
}
END_TEST

Suite *net_suite(void)
{
	Suite *s = suite_create("net");
	TCase *t = tcase_create("net"), *bare = tcase_create("ipc");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_request_is_published_acknowledged_and_delivered);
	tcase_add_test(t, a_new_net_goes_on_from_the_page);
	tcase_add_test(t, what_a_dead_engine_had_sent_is_taken_before_drained_is_said);
	tcase_add_test(t, an_engine_that_goes_is_waited_for);
	tcase_add_test(t, a_stop_takes_what_is_in_the_socket_and_flushes);
	tcase_add_test(t, a_kill_in_the_middle_of_a_try_leaves_it_as_sending);
	tcase_add_test(t, net_ends_with_the_monitor);
	tcase_add_test(t, an_engine_that_breaks_the_rules_ends_net);
	tcase_add_test(t, metrics_are_asked_of_the_monitor_once_for_all_who_wait);
	tcase_add_test(t, a_monitor_that_does_not_answer_is_a_503);
	tcase_add_test(t, an_asker_that_leaves_early_costs_nothing);
	tcase_add_test(t, askers_that_do_not_ask_keep_nobody_out);
	tcase_add_loop_test(t, only_get_of_metrics_is_answered, 0, ARRAY_SIZE(odd));
	tcase_add_test(t, a_port_that_is_taken_costs_the_metrics_only);
	tcase_add_loop_test(t, metrics_listen_on_loopback_only, 0, ARRAY_SIZE(addresses));
	tcase_add_test(bare, the_last_words_of_a_peer_with_unread_mail_arrive);
	suite_add_tcase(s, t);
	suite_add_tcase(s, bare);
	return s;
}
