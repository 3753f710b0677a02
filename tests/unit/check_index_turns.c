// SPDX-License-Identifier: Apache-2.0
/* Whose file is indexed next: minutes of indexing, without an indexer. */
#include <check.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/monitor/index_turns.h"

Suite *index_turns_suite(void);

#define MINUTE (60 * NSEC_PER_SEC)
#define HOST   INDEX_OWNER_HOST
#define BUSY   1000
#define USER   1001

static struct index_turns turns;
static uint64_t now;

static void set_up(void)
{
	turns = (struct index_turns){0};
	now = 100 * MINUTE;
}

/* Whose file is next, of these; it takes so long. */
static uint64_t next_takes(const uint64_t *queue, size_t n, uint64_t ns)
{
	size_t i = index_turns_next(&turns, queue, n, now);

	ck_assert_uint_lt(i, n);
	now += ns;
	index_turns_charge(&turns, queue[i], ns, now);
	return queue[i];
}

START_TEST(owner_who_used_least_is_next)
{
	static const uint64_t queue[] = {BUSY, BUSY, USER, 1002};

	ck_assert_uint_eq(next_takes(queue, 4, MINUTE), BUSY);
	ck_assert_uint_eq(next_takes(queue, 4, NSEC_PER_SEC), USER);
	ck_assert_uint_eq(next_takes(queue, 4, NSEC_PER_SEC), 1002);
	/* A user with short files has many of them indexed before the busy one's next. */
	for (int i = 0; i < 59; i++)
		ck_assert_uint_eq(next_takes(queue, 3, NSEC_PER_SEC), USER);
	ck_assert_uint_eq(next_takes(queue, 3, MINUTE), BUSY);
}
END_TEST

START_TEST(files_of_one_owner_are_in_order)
{
	static const uint64_t queue[] = {BUSY, USER, USER};

	index_turns_charge(&turns, BUSY, 1, now);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 3, now), 1);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 1, now), 0);
}
END_TEST

/* However many user ids somebody has. */
START_TEST(host_has_half_of_the_time)
{
	uint64_t queue[] = {1, 2, 3, HOST}, hosts = 0, others = 0;

	for (uint64_t i = 0; i < 200; i++) {
		queue[i % 3] = 100000 + i;
		if (next_takes(queue, 4, MINUTE) == HOST)
			hosts++;
		else
			others++;
	}
	ck_assert_uint_ge(hosts, 95);
	ck_assert_uint_ge(others, 95);
}
END_TEST

START_TEST(used_time_is_forgotten)
{
	static const uint64_t queue[] = {BUSY, USER};

	index_turns_charge(&turns, BUSY, MINUTE, now);
	index_turns_charge(&turns, USER, MINUTE / 4, now);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 2, now), 1);
	now += 11 * MINUTE;
	index_turns_charge(&turns, USER, MINUTE / 2, now);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 2, now), 0);
	now += 10000 * MINUTE;
	ck_assert_uint_eq(index_turns_next(&turns, queue, 2, now), 0);
}
END_TEST

/* Small charges, one after the other, must not keep what was used before from ageing. */
START_TEST(used_time_is_forgotten_by_the_busy_too)
{
	static const uint64_t queue[] = {BUSY, USER};

	index_turns_charge(&turns, BUSY, 64 * MINUTE, now);
	for (int i = 0; i < 120; i++)
		index_turns_charge(&turns, BUSY, 1, now += MINUTE);
	index_turns_charge(&turns, USER, MINUTE, now);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 2, now), 0);
}
END_TEST

START_TEST(table_of_owners_keeps_those_who_used_most)
{
	static const uint64_t queue[] = {BUSY, USER};

	index_turns_charge(&turns, BUSY, 10 * MINUTE, now);
	for (uint64_t i = 0; i < 4 * INDEX_OWNERS; i++)
		index_turns_charge(&turns, 100000 + i, MINUTE, now);
	ck_assert_uint_eq(index_turns_next(&turns, queue, 2, now), 1);
}
END_TEST

static size_t admitted(uint64_t *queue, size_t n, uint64_t owner, size_t wanted)
{
	size_t i = 0;

	while (i < wanted && index_turns_admit(queue, n + i, owner))
		queue[n + i++] = owner;
	return i;
}

START_TEST(queue_has_room_for_others)
{
	uint64_t queue[INDEX_QUEUE];

	ck_assert_uint_eq(admitted(queue, 0, BUSY, 100), 16);
	ck_assert_uint_eq(admitted(queue, 16, USER, 10), 10);
	ck_assert_uint_eq(admitted(queue, 26, HOST, 100), 38);
	ck_assert_uint_eq(admitted(queue, 0, HOST, 100), 48);
	ck_assert_uint_eq(admitted(queue, 48, BUSY, 100), 16);
	for (size_t i = 0; i < 48; i++)
		ck_assert_uint_eq(admitted(queue, i, 100000 + i, 1), 1);
	ck_assert_uint_eq(admitted(queue, 48, USER, 1), 0);
	ck_assert_uint_eq(admitted(queue, 48, HOST, 100), 16);
}
END_TEST

START_TEST(limit_is_short_while_others_wait)
{
	static const uint64_t alone[] = {BUSY, BUSY}, shared[] = {BUSY, BUSY, USER}, hosts[] = {HOST, USER};

	ck_assert_uint_eq(index_turns_limit_ns(alone, 2), 10 * MINUTE);
	ck_assert_uint_eq(index_turns_limit_ns(shared, 3), MINUTE);
	/* Nobody may take the lines from programs that all run. */
	ck_assert_uint_eq(index_turns_limit_ns(hosts, 2), 10 * MINUTE);
	ck_assert_uint_eq(index_turns_limit_ns(hosts, 0), 10 * MINUTE);
}
END_TEST

START_TEST(root_of_another_file_system_is_another_owner)
{
	static const uint64_t devices[INDEX_HOST_DEVICES] = {5, 0};

	ck_assert_uint_eq(index_turns_owner(0, 5, devices), HOST);
	ck_assert_uint_ne(index_turns_owner(0, 6, devices), HOST);
	ck_assert_uint_ne(index_turns_owner(0, 0, devices), HOST);
	ck_assert_uint_ne(index_turns_owner(0, 6, devices), index_turns_owner(0, 7, devices));
	ck_assert_uint_ne(index_turns_owner(0, 6, devices), index_turns_owner(6, 6, devices));
	ck_assert_uint_eq(index_turns_owner(USER, 6, devices), index_turns_owner(USER, 7, devices));
}
END_TEST

Suite *index_turns_suite(void)
{
	Suite *s = suite_create("index_turns");
	TCase *t = tcase_create("index_turns");

	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, owner_who_used_least_is_next);
	tcase_add_test(t, files_of_one_owner_are_in_order);
	tcase_add_test(t, host_has_half_of_the_time);
	tcase_add_test(t, used_time_is_forgotten);
	tcase_add_test(t, used_time_is_forgotten_by_the_busy_too);
	tcase_add_test(t, table_of_owners_keeps_those_who_used_most);
	tcase_add_test(t, queue_has_room_for_others);
	tcase_add_test(t, limit_is_short_while_others_wait);
	tcase_add_test(t, root_of_another_file_system_is_another_owner);
	suite_add_tcase(s, t);
	return s;
}
