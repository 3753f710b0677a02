// SPDX-License-Identifier: Apache-2.0
/* The monitor's part in fetching debug files; the test plays engine, indexer and fetcher. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "process/host.h"
#include "symbol/index_build.h"

Suite *fetch_jobs_suite(void);

#define ID    "00112233445566778899aabbccddeeff00112233"
#define OTHER "ff112233445566778899aabbccddeeff00112233"
#define KEY   "0000000000000000000000000000000000000000000000000000000000000001"
#define OTHER_KEY "0000000000000000000000000000000000000000000000000000000000000002"

static const uint64_t content[2] = {17, 18};
static struct monitor *m;
static int engine, indexer, fetcher;
static struct ipc_message message;
static char top[64];
static uint64_t now;

static void join(struct worker *w, int *ret_other)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	w->sock = pair[0];
	*ret_other = pair[1];
}

static struct config *config_of(const char *urls)
{
	struct config *c = NULL;
	char text[512];

	snprintf(text, sizeof(text),
		 "[symbols]\ncache_dir = %s/symbols\n[debuginfod]\nurls = %s\nrequests_per_minute = 60\nmax_file_bytes = 64K\n", top,
		 urls);
	ck_assert_int_eq(config_parse("check", text, strlen(text), NULL, NULL, &c), 0);
	return c;
}

static void set_up(void)
{
	log_init("check", LOG_LEVEL_ERROR);
	snprintf(top, sizeof(top), "/tmp/otprof-jobs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	m = calloc(1, sizeof(*m));
	m->config = config_of("http://one http://two");
	m->public_config_fd = -1;
	workers_init(&m->workers);
	join(&m->workers.engine, &engine);
	join(&m->workers.indexer, &indexer);
	join(&m->workers.fetcher, &fetcher);
	ck_assert_int_eq(index_jobs_open(m), 0);
	ck_assert_int_eq(fetch_jobs_open(m), 0);
	now = clock_now_ns();
	fetch_jobs_run(m, now);
	/* All that it has may be better: said at once. */
	ck_assert_int_eq(ipc_receive(engine, &message), 1);
}

static void tear_down(void)
{
	char command[128];

	fetch_jobs_close(m);
	index_jobs_close(m);
	close(m->workers.engine.sock);
	close(m->workers.indexer.sock);
	close(m->workers.fetcher.sock);
	close(engine);
	close(indexer);
	close(fetcher);
	config_free(m->config);
	free(m);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

/* The indexer's question; its answer is an error, or 0 with a file. */
static int look_for(const char *id)
{
	struct {
		struct ipc_ask head;
		char path[64];
	} q = {.head = {.kind = HOST_OPEN_DEBUG, .len = INDEX_ROOT_FETCHED, .path_len = (uint32_t)strlen(id)}};
	struct ipc_answer a;

	memcpy(q.path, id, strlen(id));
	ck_assert_int_eq(ipc_send(indexer, IPC_ASK, 5, &q, sizeof(q.head) + strlen(id), NULL, 0), 0);
	ck_assert_int_eq(ipc_receive(m->workers.indexer.sock, &message), 1);
	ck_assert(fetch_jobs_asked(m, &message));
	ck_assert_int_eq(ipc_receive(indexer, &message), 1);
	ck_assert_uint_eq(message.head.tag, 5);
	memcpy(&a, message.data, sizeof(a));
	ck_assert_int_eq(ipc_nr_fds(&message), a.err == 0);
	ipc_close_fds(&message);
	return a.err;
}

static uint32_t told_engine(void)
{
	struct ipc_debuginfod d;

	if (ipc_receive(engine, &message) != 1)
		return FETCH_NONE;
	ck_assert_uint_eq(message.head.type, IPC_DEBUGINFOD);
	memcpy(&d, message.data, sizeof(d));
	ck_assert(d.all || (d.content[0] == 17 && d.content[1] == 18));
	return d.state;
}

/* An index was made that looked for this file. */
static bool index_wants(const char *id)
{
	fetch_jobs_index_begins(m, KEY);
	ck_assert_int_eq(look_for(id), -ENOENT);
	return fetch_jobs_index_made(m, KEY, content);
}

/* The fetcher's whole life; what it writes and says. */
static void fetcher_does(const char *id, const char *writes, size_t len, enum fetch_state says)
{
	struct ipc_fetched said = {.state = says, .requests = 1, .text = "in words\n"};
	int fd;

	m->workers.fetcher.pid = 0;
	ck_assert(fetch_jobs_wait(m));
	ck_assert_int_eq(fetch_jobs_hand_over(m), 0);
	ck_assert_int_eq(ipc_receive(fetcher, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_CONFIG);
	ck_assert_int_eq(ipc_receive(fetcher, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_FETCH);
	ck_assert_str_eq(((const struct ipc_fetch *)(const void *)message.data)->id, id);
	fd = ipc_take_fd(&message, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, writes, len), (ssize_t)len);
	close(fd);
	ck_assert_int_eq(ipc_receive(fetcher, &message), 1);
	ck_assert_uint_eq(message.head.type, IPC_START);
	if (says != FETCH_NONE) {
		ck_assert_int_eq(ipc_send(fetcher, IPC_FETCHED, 0, &said, sizeof(said), NULL, 0), 0);
		ck_assert_int_eq(ipc_receive(m->workers.fetcher.sock, &message), 1);
		fetch_jobs_fetched(m, &message);
	}
	fetch_jobs_fetcher_ended(m);
}

static void pass(uint64_t ns)
{
	now += ns;
	fetch_jobs_run(m, now);
}

static struct status_debuginfod figures(void)
{
	struct status_debuginfod s;

	fetch_jobs_status(m, &s);
	return s;
}

START_TEST(file_that_comes_makes_the_index_anew)
{
	ck_assert(index_wants(ID));
	ck_assert_uint_eq(told_engine(), FETCH_WAITING);
	ck_assert_uint_eq(figures().waiting, 1);
	fetcher_does(ID, "bytes", 5, FETCH_FETCHED);
	ck_assert_uint_eq(told_engine(), FETCH_FETCHED);
	ck_assert(!fetch_jobs_wait(m));
	ck_assert_uint_eq(figures().fetched, 1);
	ck_assert_uint_eq(figures().bytes, 5);
	ck_assert_uint_ge(figures().cached_bytes, 5);
	fetch_jobs_index_begins(m, KEY);
	ck_assert_int_eq(look_for(ID), 0);
	ck_assert(!fetch_jobs_index_made(m, KEY, content));
	ck_assert_uint_eq(told_engine(), FETCH_FETCHED);
}
END_TEST

START_TEST(what_no_server_has_is_asked_for_once)
{
	ck_assert(index_wants(ID));
	ck_assert_uint_eq(told_engine(), FETCH_WAITING);
	fetcher_does(ID, "", 0, FETCH_NOT_FOUND);
	ck_assert_uint_eq(told_engine(), FETCH_NOT_FOUND);
	ck_assert(!index_wants(ID));
	ck_assert_uint_eq(told_engine(), FETCH_NOT_FOUND);
	ck_assert(!fetch_jobs_wait(m));
	ck_assert_uint_eq(figures().failed[FETCH_NOT_FOUND], 1);
	ck_assert_str_eq(figures().last_error, "no debuginfod server has it: in words?");
}
END_TEST

START_TEST(fetcher_that_dies_is_given_four_tries)
{
	ck_assert(index_wants(ID));
	for (int i = 0; i < 4; i++) {
		pass(2 * NSEC_PER_SEC);
		fetcher_does(ID, "half", 4, FETCH_NONE);
	}
	ck_assert(!fetch_jobs_wait(m));
	ck_assert_uint_eq(figures().failed[FETCH_DIED], 4);
	ck_assert(!index_wants(ID));
	ck_assert_int_eq(look_for(ID), -ENOENT);
}
END_TEST

START_TEST(without_a_network_wishes_are_kept_and_nobody_is_asked_for_a_while)
{
	ck_assert(index_wants(ID));
	fetcher_does(ID, "", 0, FETCH_UNREACHABLE);
	ck_assert(figures().paused && !fetch_jobs_wait(m));
	ck_assert_uint_eq(figures().waiting, 1);
	fetch_jobs_reload(m); /* nothing has changed */
	ck_assert(figures().paused);
	ck_assert(index_wants(OTHER));
	ck_assert_uint_eq(figures().waiting, 2);
}
END_TEST

START_TEST(other_servers_are_asked_for_what_the_first_ones_had_not)
{
	ck_assert(index_wants(ID));
	told_engine();
	fetcher_does(ID, "", 0, FETCH_NOT_FOUND);
	ck_assert_uint_eq(told_engine(), FETCH_NOT_FOUND);
	ck_assert(!index_wants(ID));
	told_engine();
	config_free(m->config);
	m->config = config_of("http://three");
	fetch_jobs_reload(m);
	ck_assert_uint_eq(told_engine(), FETCH_FETCHED);
	ck_assert(index_wants(ID));
}
END_TEST

START_TEST(requests_are_bounded_by_the_minute)
{
	char id[41];
	int n = 0;

	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%040d", i);
		ck_assert(index_wants(id));
		ck_assert_uint_eq(told_engine(), FETCH_WAITING);
	}
	for (; fetch_jobs_wait(m); n++) {
		snprintf(id, sizeof(id), "%040d", n);
		fetcher_does(id, "", 0, FETCH_NOT_FOUND);
		ck_assert_uint_eq(told_engine(), FETCH_NOT_FOUND);
	}
	ck_assert_int_eq(n, 60);
	pass(NSEC_PER_SEC / 2);
	ck_assert(!fetch_jobs_wait(m));
	pass(NSEC_PER_SEC);
	ck_assert(fetch_jobs_wait(m));
}
END_TEST

START_TEST(queue_has_an_end)
{
	char id[41];

	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "%040d", i);
		ck_assert(index_wants(id) == (i < 256));
		told_engine();
	}
	ck_assert_uint_eq(figures().waiting, 256);
	ck_assert_uint_eq(figures().dropped, 44);
}
END_TEST

START_TEST(file_that_grew_too_large_is_not_kept)
{
	static char much[70000];

	ck_assert(index_wants(ID));
	fetcher_does(ID, much, sizeof(much), FETCH_FETCHED);
	ck_assert_uint_eq(figures().failed[FETCH_TOO_LARGE], 1);
	ck_assert_int_eq(look_for(ID), -ENOENT);
}
END_TEST

/* Whether the file or the program that claims its build-id is the bad one cannot be known: others still get it. */
START_TEST(file_that_the_indexer_does_not_survive_is_not_used_for_this_index)
{
	ck_assert(index_wants(ID));
	fetcher_does(ID, "bytes", 5, FETCH_FETCHED);
	fetch_jobs_index_begins(m, KEY);
	ck_assert(!fetch_jobs_blame(m));
	ck_assert_int_eq(look_for(ID), 0);
	ck_assert(fetch_jobs_blame(m));
	ck_assert_uint_eq(figures().failed[FETCH_UNREADABLE], 1);
	fetch_jobs_index_begins(m, KEY);
	ck_assert_int_eq(look_for(ID), -ENOENT);
	ck_assert(!fetch_jobs_blame(m));
	ck_assert(!fetch_jobs_index_made(m, KEY, content));
	ck_assert_uint_eq(told_engine(), FETCH_WAITING);
	ck_assert_uint_eq(told_engine(), FETCH_FETCHED);
	ck_assert_uint_eq(told_engine(), FETCH_UNREADABLE);
	fetch_jobs_index_begins(m, OTHER_KEY);
	ck_assert_int_eq(look_for(ID), 0);
	fetch_jobs_index_begins(m, KEY);
	ck_assert_int_eq(look_for(ID), -ENOENT);
}
END_TEST

START_TEST(two_indexes_that_want_it_cost_one_request)
{
	ck_assert(index_wants(ID) && index_wants(ID));
	fetch_jobs_index_begins(m, KEY);
	look_for(ID);
	look_for(OTHER);
	ck_assert(fetch_jobs_index_made(m, KEY, content));
	ck_assert_uint_eq(figures().waiting, 2);
}
END_TEST

START_TEST(turned_off_it_asks_for_nothing)
{
	ck_assert(index_wants(ID));
	config_free(m->config);
	m->config = config_of("off");
	fetch_jobs_reload(m);
	ck_assert(!figures().on && !figures().waiting && !fetch_jobs_wait(m));
	ck_assert(!index_wants(ID));
	fetch_jobs_fetcher_ended(m);
	pass(NSEC_PER_SEC);
	ck_assert(!fetch_jobs_wait(m));
}
END_TEST

START_TEST(question_that_is_no_id_finds_nothing)
{
	static const char *const bad[] = {"", "../../etc/shadow", "/etc/shadow", "ab", ID "00", "ABCDEF"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fetch_jobs_index_begins(m, KEY);
		ck_assert_int_eq(look_for(bad[i]), -ENOENT);
		ck_assert(!fetch_jobs_index_made(m, KEY, content));
	}
	ck_assert_uint_eq(figures().waiting, 0);
}
END_TEST

Suite *fetch_jobs_suite(void)
{
	Suite *s = suite_create("fetch_jobs");
	TCase *t = tcase_create("monitor");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, file_that_comes_makes_the_index_anew);
	tcase_add_test(t, what_no_server_has_is_asked_for_once);
	tcase_add_test(t, fetcher_that_dies_is_given_four_tries);
	tcase_add_test(t, without_a_network_wishes_are_kept_and_nobody_is_asked_for_a_while);
	tcase_add_test(t, other_servers_are_asked_for_what_the_first_ones_had_not);
	tcase_add_test(t, requests_are_bounded_by_the_minute);
	tcase_add_test(t, queue_has_an_end);
	tcase_add_test(t, file_that_grew_too_large_is_not_kept);
	tcase_add_test(t, file_that_the_indexer_does_not_survive_is_not_used_for_this_index);
	tcase_add_test(t, two_indexes_that_want_it_cost_one_request);
	tcase_add_test(t, turned_off_it_asks_for_nothing);
	tcase_add_test(t, question_that_is_no_id_finds_nothing);
	suite_add_tcase(s, t);
	return s;
}
