// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/outbox.h"
#include "daemon/ipc.h"
#include "tests/lib/counts.h"

Suite *outbox_suite(void);

static struct ledger_engine ledger;
static struct outbox box;
static int net; /* the other end */
static uint64_t published_handed;
static struct ipc_message message;

static void on_publish(void *ctx)
{
	published_handed = ledger.handed.of[0];
}

static void connect_net(void)
{
	int pair[2];

	ck_assert_int_eq(ipc_pair(pair), 0);
	outbox_peer(&box, pair[0]);
	net = pair[1];
}

static void setup(void)
{
	ledger = (struct ledger_engine){.read.of[0] = 100, .held.of[0] = 100};
	published_handed = 0;
	outbox_init(&box, &ledger, on_publish, NULL);
	connect_net();
}

static void teardown(void)
{
	outbox_done(&box);
	close(net);
}

/* id of the next request that net finds, 0: none. */
static uint64_t next_request(void)
{
	struct ipc_request r;

	if (ipc_receive(net, &message) != 1)
		return 0;
	ck_assert_uint_eq(message.head.type, IPC_REQUEST);
	ck_assert(ipc_fits(&message, sizeof(r), 1));
	memcpy(&r, message.data, sizeof(r));
	ipc_close_fds(&message);
	return r.id;
}

START_TEST(nothing_is_sent_before_net_says_what_it_holds)
{
	ck_assert_int_eq(outbox_add(&box, "abc", 3, COUNTS(10)), 0);
	ck_assert_uint_eq(next_request(), 0);
	outbox_received(&box, 0);
	ck_assert_uint_eq(next_request(), 1);
}
END_TEST

START_TEST(handed_is_published_before_the_request_leaves)
{
	outbox_received(&box, 0);
	ck_assert_int_eq(outbox_add(&box, "abc", 3, COUNTS(10)), 0);
	ck_assert_uint_eq(published_handed, 10);
	ck_assert_uint_eq(ledger.held.of[0], 90);
	ck_assert_uint_eq(ledger.last_id, 1);
}
END_TEST

START_TEST(a_request_is_kept_until_net_holds_it)
{
	outbox_received(&box, 0);
	outbox_add(&box, "abc", 3, COUNTS(10));
	outbox_add(&box, "def", 3, COUNTS(10));
	ck_assert(!outbox_empty(&box));
	outbox_received(&box, 1);
	ck_assert(!outbox_empty(&box));
	outbox_received(&box, 2);
	ck_assert(outbox_empty(&box));
}
END_TEST

START_TEST(a_new_net_gets_what_the_old_one_did_not_take)
{
	outbox_received(&box, 0);
	outbox_add(&box, "abc", 3, COUNTS(10));
	outbox_add(&box, "def", 3, COUNTS(10));
	close(net);
	connect_net();
	outbox_received(&box, 1); /* its page says so */
	ck_assert_uint_eq(next_request(), 2);
	ck_assert_uint_eq(next_request(), 0);
}
END_TEST

START_TEST(without_a_net_the_oldest_unseen_is_given_up_and_counted)
{
	size_t len = OUTBOX_BYTES / 2;
	char *data = calloc(1, len);

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(outbox_add(&box, data, len, COUNTS(10)), 0);
	ck_assert_uint_eq(ledger.lost[OTP_LOSS_NO_EXPORTER].of[0], 10);
	ck_assert_uint_eq(ledger.handed.of[0], 20);
	ck_assert_uint_eq(ledger.read.of[0], ledger.held.of[0] + ledger.handed.of[0] + ledger.lost[OTP_LOSS_NO_EXPORTER].of[0]);
	outbox_received(&box, 0);
	ck_assert_uint_eq(next_request(), 2);
	free(data);
}
END_TEST

START_TEST(what_a_net_may_hold_is_never_given_up)
{
	size_t len = OUTBOX_BYTES / 2;
	char *data = calloc(1, len);

	outbox_received(&box, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(outbox_add(&box, data, len, COUNTS(10)), 0);
	ck_assert_uint_eq(ledger.lost[OTP_LOSS_NO_EXPORTER].of[0], 0);
	ck_assert_uint_eq(ledger.handed.of[0], 30);
	free(data);
}
END_TEST

Suite *outbox_suite(void)
{
	Suite *s = suite_create("outbox");
	TCase *t = tcase_create("outbox");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nothing_is_sent_before_net_says_what_it_holds);
	tcase_add_test(t, handed_is_published_before_the_request_leaves);
	tcase_add_test(t, a_request_is_kept_until_net_holds_it);
	tcase_add_test(t, a_new_net_gets_what_the_old_one_did_not_take);
	tcase_add_test(t, without_a_net_the_oldest_unseen_is_given_up_and_counted);
	tcase_add_test(t, what_a_net_may_hold_is_never_given_up);
	suite_add_tcase(s, t);
	return s;
}
