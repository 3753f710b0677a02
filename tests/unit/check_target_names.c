// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/monitor/target_names.h"

Suite *target_names_suite(void);

static struct target_names names;
static char path[HOST_PATH_MAX];
static uint64_t now_ns = NSEC_PER_SEC;

static const char *id_of(unsigned int n)
{
	static char id[HOST_CONTAINER_ID + 1];

	snprintf(id, sizeof(id), "%064x", n);
	return id;
}

static void add(struct buf *b, unsigned int n, const char *name)
{
	buf_add(b, id_of(n), HOST_CONTAINER_ID);
	buf_add(b, name, strlen(name) + 1);
}

static const char *find(unsigned int n)
{
	return target_names_find(&names, id_of(n), now_ns);
}

static void answer_one(unsigned int n, const char *name)
{
	struct buf b = {0};

	add(&b, n, name);
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	buf_done(&b);
}

static void learn(unsigned int n, const char *name)
{
	ck_assert_ptr_null(find(n));
	ck_assert(target_names_question(&names, path));
	answer_one(n, name);
}

static void answer_all(void)
{
	while (target_names_question(&names, path))
		target_names_answer(&names, 0, NULL, 0, now_ns);
}

static void teardown(void)
{
	target_names_done(&names);
}

START_TEST(unknown_name_is_asked_for_once)
{
	struct buf b = {0};

	ck_assert(target_names_settled(&names));
	ck_assert_ptr_null(find(1));
	ck_assert_ptr_null(find(1));
	ck_assert(!target_names_settled(&names));
	ck_assert(target_names_question(&names, path));
	ck_assert_str_eq(path, id_of(1));
	ck_assert(!target_names_question(&names, path));
	ck_assert(!target_names_settled(&names));
	add(&b, 1, "web");
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	ck_assert(target_names_settled(&names));
	ck_assert_str_eq(find(1), "web");
	buf_done(&b);
}
END_TEST

START_TEST(container_that_the_answer_leaves_out_has_no_name)
{
	ck_assert_ptr_null(find(1));
	ck_assert(target_names_question(&names, path));
	target_names_answer(&names, 0, NULL, 0, now_ns);
	ck_assert(target_names_settled(&names));
	ck_assert_str_eq(find(1), "");
}
END_TEST

static void answer_fails(int err)
{
	ck_assert(target_names_question(&names, path));
	target_names_answer(&names, err, NULL, 0, now_ns);
}

START_TEST(failed_question_is_asked_again_after_a_pause)
{
	ck_assert_ptr_null(find(1));
	answer_fails(-ETIMEDOUT);
	ck_assert(target_names_settled(&names)); /* sampling may begin without it */
	ck_assert_ptr_null(find(1));
	ck_assert(target_names_settled(&names));
	now_ns += 5 * NSEC_PER_SEC;
	learn(1, "web");
	ck_assert_str_eq(find(1), "web");
}
END_TEST

START_TEST(container_without_a_name_may_get_one)
{
	ck_assert_ptr_null(find(1));
	answer_all();
	now_ns += 10 * NSEC_PER_SEC - 1;
	ck_assert_str_eq(find(1), "");
	ck_assert(target_names_settled(&names));
	now_ns++;
	ck_assert_str_eq(find(1), ""); /* until the answer */
	answer_fails(-EIO);
	ck_assert_str_eq(find(1), "");
	now_ns += 5 * NSEC_PER_SEC;
	ck_assert_str_eq(find(1), "");
	ck_assert(target_names_question(&names, path));
	answer_one(1, "web");
	ck_assert_str_eq(find(1), "web");
	now_ns += 100 * NSEC_PER_SEC;
	ck_assert_str_eq(find(1), "web");
	ck_assert(target_names_settled(&names));
}
END_TEST

/* One of them may be the cause. */
START_TEST(after_a_failure_questions_begin_with_one_container)
{
	static const size_t lengths[] = {63, 1, 2, 4, 8, 16, 32, 63, 63};

	for (unsigned int i = 0; i < 63 * 4; i++)
		find(i);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		ck_assert(target_names_question(&names, path));
		ck_assert_uint_eq(strlen(path), lengths[i] * HOST_CONTAINER_ID);
		target_names_answer(&names, i ? 0 : -ETIMEDOUT, NULL, 0, now_ns);
	}
	ck_assert(target_names_settled(&names));
}
END_TEST

START_TEST(names_of_all_are_known_before_they_are_looked_up)
{
	struct buf b = {0};

	target_names_want_all(&names);
	ck_assert(target_names_question(&names, path));
	ck_assert_str_eq(path, "");
	add(&b, 1, "web");
	add(&b, 2, "db");
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	ck_assert(target_names_settled(&names));
	ck_assert_str_eq(find(1), "web");
	ck_assert_str_eq(find(2), "db");
	/* A name that came later replaces the one that there was. */
	b.len = 0;
	add(&b, 2, "db-2");
	target_names_want_all(&names);
	ck_assert(target_names_question(&names, path));
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	ck_assert_str_eq(find(2), "db-2");
	buf_done(&b);
}
END_TEST

START_TEST(more_than_fit_one_question_take_several)
{
	unsigned int asked = 0, questions = 0;

	for (unsigned int i = 0; i < 200; i++)
		ck_assert_ptr_null(find(i));
	while (target_names_question(&names, path)) {
		ck_assert_uint_eq(strlen(path) % HOST_CONTAINER_ID, 0);
		ck_assert_mem_eq(path, id_of(asked), HOST_CONTAINER_ID);
		asked += (unsigned int)(strlen(path) / HOST_CONTAINER_ID);
		questions++;
		target_names_answer(&names, 0, NULL, 0, now_ns);
	}
	ck_assert_uint_eq(asked, 200);
	ck_assert_uint_eq(questions, 4);
	ck_assert(target_names_settled(&names));
}
END_TEST

static const struct {
	const char *data;
	size_t len;
} malformed[] = {{"short", 5}, {"0000000000000000000000000000000000000000000000000000000000000000", 64},
		 {"0000000000000000000000000000000000000000000000000000000000000000no end", 70}};

START_TEST(malformed_answer_is_a_failure)
{
	ck_assert_ptr_null(find(0));
	ck_assert(target_names_question(&names, path));
	target_names_answer(&names, 0, malformed[_i].data, malformed[_i].len, now_ns);
	ck_assert(target_names_settled(&names));
	ck_assert_ptr_null(find(0));
	now_ns += 5 * NSEC_PER_SEC;
	learn(0, "web");
}
END_TEST

START_TEST(answer_that_nobody_asked_for_is_ignored)
{
	struct buf b = {0};

	add(&b, 1, "web");
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	ck_assert_ptr_null(find(1));
	buf_done(&b);
}
END_TEST

#define MANY 5000 /* more than fit */

/* Anyone who may make cgroups makes ids. */
START_TEST(ids_without_a_name_displace_no_name)
{
	learn(9000, "web");
	learn(9001, "db");
	for (int round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < MANY; i++)
			find(i);
		answer_all();
		ck_assert_str_eq(find(9000), "web");
		for (unsigned int i = 0; i < MANY; i++)
			find(10000 + i);
		ck_assert_str_eq(find(9001), "db");
		target_names_end_round(&names);
	}
	ck_assert_uint_eq(names.named, 2);
}
END_TEST

START_TEST(full_table_is_not_asked_about_again)
{
	for (unsigned int i = 0; i < MANY; i++)
		find(i);
	answer_all();
	for (unsigned int i = 0; i < 4096; i++)
		ck_assert_str_eq(find(i), "");
	ck_assert_ptr_null(find(4096)); /* not "": it may have one */
	ck_assert(target_names_settled(&names));
	ck_assert_uint_eq(names.known.count, 4096);
}
END_TEST

START_TEST(name_beyond_the_bound_is_in_the_answer_about_all)
{
	struct buf b = {0};

	for (unsigned int i = 0; i < MANY; i++)
		find(i);
	ck_assert(target_names_question(&names, path));
	ck_assert_str_eq(path, "");
	add(&b, MANY, "late");
	target_names_answer(&names, 0, (char *)b.data, b.len, now_ns);
	ck_assert_str_eq(find(MANY), "late");
	answer_all();
	ck_assert_ptr_null(find(MANY + 1));
	ck_assert(target_names_settled(&names)); /* all were asked for a moment ago */
	now_ns += 10 * NSEC_PER_SEC;
	ck_assert_ptr_null(find(MANY + 1));
	ck_assert(!target_names_settled(&names));
	buf_done(&b);
}
END_TEST

START_TEST(names_of_containers_that_are_gone_make_room)
{
	learn(9000, "web");
	learn(9001, "gone");
	for (unsigned int i = 0; i < MANY; i++)
		find(i);
	answer_all();
	for (int round = 0; round < 3; round++) {
		ck_assert_str_eq(find(9000), "web");
		ck_assert_str_eq(find(0), "");
		target_names_end_round(&names);
	}
	ck_assert_uint_eq(names.known.count, 2);
	ck_assert_uint_eq(names.named, 1);
	learn(9001, "new");
	ck_assert_str_eq(find(9001), "new");
}
END_TEST

/* A scan may have begun in the round before. */
START_TEST(name_is_kept_for_a_round_without_a_lookup)
{
	learn(1, "web");
	target_names_end_round(&names);
	target_names_end_round(&names);
	ck_assert_str_eq(find(1), "web");
}
END_TEST

START_TEST(container_that_ends_while_it_is_asked_for_is_forgotten)
{
	ck_assert_ptr_null(find(1));
	ck_assert_ptr_null(find(2));
	for (int round = 0; round < 3; round++)
		target_names_end_round(&names);
	ck_assert_uint_eq(names.known.count, 2); /* queued */
	ck_assert(target_names_question(&names, path));
	target_names_end_round(&names);
	ck_assert_uint_eq(names.known.count, 0);
	target_names_answer(&names, 0, NULL, 0, now_ns);
	ck_assert(target_names_settled(&names));
	ck_assert_uint_eq(names.known.count, 0);
}
END_TEST

Suite *target_names_suite(void)
{
	Suite *s = suite_create("target_names");
	TCase *t = tcase_create("names");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, unknown_name_is_asked_for_once);
	tcase_add_test(t, container_that_the_answer_leaves_out_has_no_name);
	tcase_add_test(t, failed_question_is_asked_again_after_a_pause);
	tcase_add_test(t, container_without_a_name_may_get_one);
	tcase_add_test(t, after_a_failure_questions_begin_with_one_container);
	tcase_add_test(t, names_of_all_are_known_before_they_are_looked_up);
	tcase_add_test(t, more_than_fit_one_question_take_several);
	tcase_add_loop_test(t, malformed_answer_is_a_failure, 0, ARRAY_SIZE(malformed));
	tcase_add_test(t, answer_that_nobody_asked_for_is_ignored);
	tcase_add_test(t, ids_without_a_name_displace_no_name);
	tcase_add_test(t, full_table_is_not_asked_about_again);
	tcase_add_test(t, name_beyond_the_bound_is_in_the_answer_about_all);
	tcase_add_test(t, names_of_containers_that_are_gone_make_room);
	tcase_add_test(t, name_is_kept_for_a_round_without_a_lookup);
	tcase_add_test(t, container_that_ends_while_it_is_asked_for_is_forgotten);
	suite_add_tcase(s, t);
	return s;
}
