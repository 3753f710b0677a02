// SPDX-License-Identifier: Apache-2.0
/* A worker's pauses between its starts, and its end of a socket. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/monitor/worker.h"

Suite *worker_suite(void);

/* The longest pause of one that dies a moment after each start. */
static uint64_t longest_pause(enum worker_kind kind)
{
	uint64_t now = 1000 * NSEC_PER_SEC, longest = 0;
	struct worker w;

	worker_init(&w, kind);
	for (int i = 0; i < 20; i++) {
		w.started_ns = now;
		worker_pause(&w, now + NSEC_PER_MSEC);
		ck_assert_uint_ge(w.back_off_ns, longest);
		longest = w.back_off_ns;
		now = w.next_start_ns;
	}
	return longest;
}

START_TEST(pauses_grow_to_what_the_ring_lasts)
{
	ck_assert_uint_eq(longest_pause(WORKER_ENGINE), 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(longest_pause(WORKER_NET), 2 * NSEC_PER_SEC);
}
END_TEST

START_TEST(hub_without_its_port_is_started_once_a_minute)
{
	ck_assert_uint_eq(longest_pause(WORKER_HUB), 60 * NSEC_PER_SEC);
}
END_TEST

START_TEST(pause_is_short_again_after_a_good_life)
{
	struct worker w;

	worker_init(&w, WORKER_ENGINE);
	w.back_off_ns = 2 * NSEC_PER_SEC;
	w.started_ns = NSEC_PER_SEC;
	worker_pause(&w, 12 * NSEC_PER_SEC);
	ck_assert_uint_eq(w.back_off_ns, 100 * NSEC_PER_MSEC);
}
END_TEST

/* A socket whose other end is closed is readable at once, in each turn. */
START_TEST(one_that_hung_up_is_not_readable_again)
{
	struct worker w;
	struct pollfd p;
	int pair[2];

	worker_init(&w, WORKER_INDEXER);
	ck_assert_int_eq(ipc_pair(pair), 0);
	w.sock = pair[0];
	close(pair[1]);
	p = (struct pollfd){w.sock, POLLIN, 0};
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	worker_hang_up(&w);
	p = (struct pollfd){w.sock, POLLIN, 0};
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(worker_send(&w, IPC_STOP, 0, NULL, 0, -1), -EPIPE);
	worker_hang_up(&w);
}
END_TEST

Suite *worker_suite(void)
{
	Suite *s = suite_create("worker");
	TCase *t = tcase_create("worker");

	tcase_add_test(t, pauses_grow_to_what_the_ring_lasts);
	tcase_add_test(t, hub_without_its_port_is_started_once_a_minute);
	tcase_add_test(t, pause_is_short_again_after_a_good_life);
	tcase_add_test(t, one_that_hung_up_is_not_readable_again);
	suite_add_tcase(s, t);
	return s;
}
