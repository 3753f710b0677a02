// SPDX-License-Identifier: Apache-2.0
/* Functions of interpreted code, by key and cookies, and shared by content. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/functions.h"

Suite *functions_suite(void);

static struct functions one, two;
static struct runtime_function fn;

static const struct runtime_frame *frame(uint64_t key, uint64_t cookie)
{
	static struct runtime_frame f;

	f = (struct runtime_frame){.key = key, .cookie = {cookie}};
	return &f;
}

static const struct runtime_function *named(const char *name)
{
	fn = (struct runtime_function){.start_line = 10, .nr_lines = 3, .lines = {{0, 11}, {4, 12}, {10, 0}}};
	snprintf(fn.name, sizeof(fn.name), "%s", name);
	snprintf(fn.file, sizeof(fn.file), "/app.py");
	return &fn;
}

static void settle(struct functions *t, uint64_t key, uint64_t cookie, const struct runtime_function *f)
{
	functions_settle(t, functions_add(t, frame(key, cookie)), 0, f, 0);
}

static void teardown(void)
{
	functions_done(&one);
	functions_done(&two);
	ck_assert_uint_eq(functions_bytes(), 0);
}

START_TEST(function_is_found_by_key_and_cookies)
{
	settle(&one, 1, 7, named("f"));
	ck_assert_str_eq(functions_find(&one, frame(1, 7))->function->name->s, "f");
	ck_assert_ptr_null(functions_find(&one, frame(1, 8)));
	ck_assert_ptr_null(functions_find(&one, frame(2, 7)));
}
END_TEST

START_TEST(question_is_pending_until_it_is_settled)
{
	struct function_entry *e = functions_add(&one, frame(1, 0));

	ck_assert_uint_eq(e->state, FUNCTION_ASKED);
	functions_settle(&one, e, -ESTALE, NULL, 0);
	ck_assert_uint_eq(e->state, FUNCTION_UNKNOWN);
	ck_assert(!functions_want(&one, frame(1, 0), 0, UINT64_MAX - 1));
}
END_TEST

START_TEST(question_that_had_no_room_is_asked_again)
{
	ck_assert(functions_want(&one, frame(1, 0), 0, 5));
	ck_assert(!functions_want(&one, frame(1, 0), 0, 5));
	functions_settle(&one, functions_find(&one, frame(1, 0)), -EBUSY, NULL, 5);
	ck_assert(functions_want(&one, frame(1, 0), 0, 5));
	ck_assert_uint_eq(functions_find(&one, frame(1, 0))->state, FUNCTION_ASKED);
	ck_assert_uint_eq(one.count, 1);
}
END_TEST

START_TEST(question_whose_decoder_was_late_is_asked_again_later)
{
	static const int errors[] = {-ETIMEDOUT, -EIO, -ENOMEM, -ENOTSUP};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		ck_assert(functions_want(&one, frame(i + 1, 0), 0, 5));
		functions_settle(&one, functions_find(&one, frame(i + 1, 0)), errors[i], NULL, 5);
		ck_assert(!functions_want(&one, frame(i + 1, 0), 0, 4 + FUNCTION_RETRY_NS));
		ck_assert(functions_want(&one, frame(i + 1, 0), 0, 5 + FUNCTION_RETRY_NS));
	}
}
END_TEST

START_TEST(texts_count_as_bytes)
{
	size_t before, with_lines;

	settle(&one, 1, 0, named("f"));
	before = functions_bytes();
	ck_assert_uint_eq(one.bytes, before);
	with_lines = before;
	settle(&one, 2, 0, named("a name that is some forty bytes longer than f"));
	ck_assert_uint_ge(functions_bytes() - before, with_lines + 40);
	ck_assert_uint_eq(one.bytes, functions_bytes());
	functions_settle(&one, functions_find(&one, frame(2, 0)), -ESTALE, NULL, 0);
	ck_assert_uint_lt(one.bytes, before + with_lines);
}
END_TEST

START_TEST(equal_functions_share_one_object)
{
	settle(&one, 1, 0, named("f"));
	settle(&two, 9, 9, named("f"));
	settle(&two, 8, 9, named("g"));
	ck_assert_ptr_eq(functions_find(&one, frame(1, 0))->function, functions_find(&two, frame(9, 9))->function);
	ck_assert_ptr_ne(functions_find(&one, frame(1, 0))->function, functions_find(&two, frame(8, 9))->function);
	functions_done(&one);
	ck_assert_str_eq(functions_find(&two, frame(9, 9))->function->name->s, "f");
}
END_TEST

static const struct { uint32_t position, line; } places[] = {{0, 11}, {3, 11}, {4, 12}, {9, 12}, {10, 0}, {99, 0}};

START_TEST(line_is_that_of_the_row_before)
{
	uint32_t column = 1;

	settle(&one, 1, 0, named("f"));
	ck_assert_uint_eq(function_line(functions_find(&one, frame(1, 0))->function, places[_i].position, &column),
			  places[_i].line);
	ck_assert_uint_eq(column, 0);
}
END_TEST

START_TEST(column_is_the_distance_from_the_row_where_positions_are_of_characters)
{
	struct runtime_function *f = (struct runtime_function *)named("f");
	uint32_t column;

	f->has_columns = true;
	settle(&one, 1, 0, f);
	ck_assert_uint_eq(function_line(functions_find(&one, frame(1, 0))->function, 4, &column), 12);
	ck_assert_uint_eq(column, 1);
	function_line(functions_find(&one, frame(1, 0))->function, 9, &column);
	ck_assert_uint_eq(column, 6);
	f->has_columns = false;
	settle(&two, 1, 0, f);
	ck_assert_ptr_ne(functions_find(&one, frame(1, 0))->function, functions_find(&two, frame(1, 0))->function);
}
END_TEST

START_TEST(function_without_lines_has_none)
{
	struct runtime_function *f = (struct runtime_function *)named("f");
	uint32_t column;

	f->nr_lines = 0;
	f->file[0] = '\0';
	settle(&one, 1, 0, f);
	ck_assert_uint_eq(function_line(functions_find(&one, frame(1, 0))->function, 5, &column), 0);
	ck_assert_uint_eq(column, 0);
	ck_assert_ptr_null(functions_find(&one, frame(1, 0))->function->file);
}
END_TEST

/* Samples until then keep the answer that there is, while a younger one waits for the next. */
/* As of an interpreted method whose address is another one's by now. No more often than once in a while. */
START_TEST(function_that_a_frame_is_not_in_is_asked_again)
{
	struct runtime_frame in = {.key = 1, .position = 9}, out = {.key = 1, .position = 10}, line = {.key = 1, .position = 77, .flags = RUNTIME_LINE};
	struct runtime_function *f = (void *)named("f");
	struct function_entry *e = functions_add(&one, &in);

	functions_settle(&one, e, 0, f, 0);
	ck_assert(function_holds(e->function, &out));
	f->is_bounded = true;
	functions_settle(&one, e, 0, f, 0);
	ck_assert(function_holds(e->function, &in));
	ck_assert(function_holds(e->function, frame(1, 0))); /* a place that is not known */
	ck_assert(function_holds(e->function, &line));
	ck_assert(!function_holds(e->function, &out));
	ck_assert(!functions_want(&one, &in, 0, FUNCTION_OTHER_NS));
	ck_assert(!functions_want(&one, &out, 0, FUNCTION_OTHER_NS - 1));
	ck_assert(functions_want(&one, &out, 0, FUNCTION_OTHER_NS));
	ck_assert(!functions_want(&one, &out, 0, FUNCTION_OTHER_NS));
}
END_TEST

START_TEST(what_was_read_too_early_is_asked_again)
{
	struct function_entry *e;

	ck_assert(functions_want(&one, frame(1, 0), 0, 10));
	e = functions_find(&one, frame(1, 0));
	ck_assert(function_is_pending(e, 0));
	functions_settle(&one, e, 0, &fn, 12);
	ck_assert(!functions_want(&one, frame(1, 0), 10, 13));
	ck_assert_ptr_nonnull(function_after(e, 10));
	ck_assert_ptr_null(function_after(e, 11));
	ck_assert(functions_want(&one, frame(1, 0), 11, 20));
	ck_assert(function_is_pending(e, 11) && !function_is_pending(e, 10));
	ck_assert_ptr_nonnull(function_after(e, 10));
	functions_settle(&one, e, 0, &fn, 22);
	ck_assert_ptr_nonnull(function_after(e, 20));
	ck_assert_ptr_null(function_after(e, 21));
}
END_TEST

/* --- those that are found by what is gone soon --- */

static struct runtime_frame question;

static const struct runtime_frame *hinted(uint64_t hint)
{
	static struct runtime_frame f;

	f = (struct runtime_frame){.key = 1, .flags = RUNTIME_HINTED, .cookie = {[RUNTIME_COOKIE_HINT] = hint}};
	return &f;
}

static uint64_t ran_ns = 1; /* of each epoch */

static bool wants(uint64_t hint, uint64_t time_ns, uint64_t epoch, uint64_t now_ns)
{
	const struct functions_when when = {.time_ns = time_ns, .epoch = epoch, .ran_ns = ran_ns,
					     .after_ns = time_ns - MIN(time_ns, (uint64_t)100)};

	return functions_want_hinted(&one, hinted(hint), &when, now_ns, &question);
}

static const char *held(uint64_t hint, uint64_t time_ns, uint64_t epoch)
{
	const struct functions_when when = {.time_ns = time_ns, .epoch = epoch, .ran_ns = ran_ns,
					     .after_ns = time_ns - MIN(time_ns, (uint64_t)100)};
	const struct function *f = function_hinted(functions_find(&one, hinted(hint)), hinted(hint), &when);

	return f ? f->name->s : "";
}

static void answer(int err, const char *name, uint64_t epoch)
{
	struct runtime_function *f = (void *)named(name);

	f->epoch = epoch;
	functions_settle(&one, functions_find(&one, hinted(0)), err, err ? NULL : f, 0);
}

START_TEST(a_hint_is_not_part_of_what_a_function_is)
{
	ck_assert(wants(7, 1000, 0, 1010));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_HINT], 7);
	answer(0, "f", 0);
	ck_assert_str_eq(held(8, 1005, 0), "f");
	ck_assert_uint_eq(one.count, 1);
	ck_assert(wants(8, 1020, 3, 1030));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_EPOCH], 3);
	answer(-ESTALE, NULL, 0);
	ck_assert_uint_eq(one.count, 1);
}
END_TEST

START_TEST(without_epochs_a_function_holds_from_the_sample_that_found_it_to_the_last_reading)
{
	ck_assert(wants(7, 1000, 0, 1010));
	answer(0, "f", 0);
	ck_assert_str_eq(held(8, 999, 0), "");
	ck_assert_str_eq(held(8, 1010, 0), "f");
	ck_assert_str_eq(held(8, 1011, 0), "");
	ck_assert_str_eq(held(7, 1110, 0), "f"); /* the same hint, not long ago */
	ck_assert_str_eq(held(7, 1111, 0), "");
	ck_assert(!wants(8, 999, 0, 1200)); /* nothing will tell */
	ck_assert(wants(8, 1200, 0, 1210));
	answer(0, "f", 0);
	ck_assert_str_eq(held(9, 1100, 0), "f");
}
END_TEST

START_TEST(what_a_hint_did_not_find_another_one_may)
{
	const struct functions_when later = {.time_ns = 1001};

	ck_assert(wants(7, 1000, 0, 1010));
	ck_assert(function_hinted_is_pending(functions_find(&one, hinted(8)), hinted(8), &later));
	answer(-ESTALE, NULL, 0);
	ck_assert(!wants(7, 1000, 0, 1011));
	ck_assert(wants(8, 1001, 0, 1011));
	answer(-ESTALE, NULL, 0);
	ck_assert(wants(9, 1002, 0, 1012));
	answer(0, "f", 0);
	ck_assert_str_eq(held(8, 1001, 0), "");
	ck_assert_str_eq(held(9, 1002, 0), "f");
	ck_assert(wants(9, 1200, 0, 1210));
	answer(-ESTALE, NULL, 0); /* that of samples before stays */
	ck_assert_str_eq(held(9, 1005, 0), "f");
	ck_assert_str_eq(held(9, 1200, 0), "");
}
END_TEST

START_TEST(another_function_of_the_same_key_holds_from_its_sample_on)
{
	ck_assert(wants(7, 1000, 0, 1010));
	answer(0, "f", 0);
	ck_assert(wants(8, 1200, 0, 1210));
	answer(0, "g", 0);
	ck_assert_str_eq(held(8, 1199, 0), "");
	ck_assert_str_eq(held(8, 1200, 0), "g");
	ck_assert_str_eq(held(7, 1005, 0), "");
}
END_TEST

/* A bound is only for whom the question is for: answers hold by time, as without epochs. */
START_TEST(a_question_for_a_sample_whose_epoch_is_bounded_says_so)
{
	const struct functions_when when = {.time_ns = 1000, .bound = 5};

	ck_assert(functions_want_hinted(&one, hinted(7), &when, 1010, &question));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_EPOCH], 5);
	ck_assert_uint_eq(question.flags, RUNTIME_HINTED | RUNTIME_BOUND);
	answer(0, "f", 0);
	ck_assert_str_eq(held(8, 1005, 0), "f");
	ck_assert_str_eq(held(8, 1005, 5), "f");
	ck_assert_str_eq(held(8, 1011, 5), "");
	ck_assert(wants(8, 1020, 6, 1030));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_EPOCH], 6);
	ck_assert_uint_eq(question.flags, RUNTIME_HINTED);
}
END_TEST

/* Of two heaps, as of workers, the lower half of epochs is not compared, and either's answers are its own. */
START_TEST(a_function_is_known_by_its_heap)
{
	const struct functions_when second = {.time_ns = 1000, .epoch = 2ULL << 32 | 5, .ran_ns = 1}, unknown = {.time_ns = 2000};
	struct runtime_frame f = *hinted(7);

	ck_assert(wants(7, 1000, 5, 1010));
	answer(0, "f", 5);
	f.cookie[RUNTIME_COOKIE_EPOCH] = 2ULL << 32;
	ck_assert(!function_hinted(functions_find(&one, &f), &f, &second));
	ck_assert(functions_want_hinted(&one, &f, &second, 1010, &question));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_EPOCH], second.epoch);
	ck_assert_ptr_eq(functions_find(&one, &question), functions_find(&one, &f));
	functions_settle(&one, functions_find(&one, &question), -ESTALE, NULL, 1020);
	ck_assert(functions_want_hinted(&one, &f, &unknown, 2010, &question));
	ck_assert_uint_eq(question.cookie[RUNTIME_COOKIE_EPOCH], f.cookie[RUNTIME_COOKIE_EPOCH]);
	ck_assert_str_eq(held(7, 1000, 5), "f");
}
END_TEST

/* Whenever the samples of an epoch were taken, and whatever hints they have. */
START_TEST(a_function_holds_for_the_epochs_in_which_it_was_found)
{
	ck_assert(wants(7, 1000, 5, 1010));
	answer(0, "f", 5);
	ck_assert_str_eq(held(8, 10, 5), "f");
	ck_assert_str_eq(held(8, 90000, 5), "f");
	ck_assert_str_eq(held(7, 1000, 4), "");
	ck_assert_str_eq(held(7, 1020, 6), "");
	ck_assert(!wants(8, 2000, 4, 2010));
	ck_assert(wants(8, 2000, 6, 2010));
	answer(0, "f", 8);
	ck_assert_str_eq(held(9, 2000, 7), "f");
	ck_assert(wants(9, 3000, 9, 3010));
	answer(0, "g", 9);
	ck_assert_str_eq(held(9, 2000, 8), "");
	ck_assert_str_eq(held(9, 3000, 9), "g");
}
END_TEST

START_TEST(a_sample_of_a_collection_may_be_of_the_epoch_before)
{
	const struct functions_when begins = {.time_ns = 1000, .epoch = 6, .begins = true};

	ck_assert(wants(7, 1000, 6, 1010));
	answer(0, "f", 6);
	ck_assert_str_eq(held(7, 1000, 6), "f");
	ck_assert_ptr_null(function_hinted(functions_find(&one, hinted(7)), hinted(7), &begins));
	ck_assert(wants(7, 2000, 7, 2010));
	answer(0, "f", 7);
	ck_assert_ptr_nonnull(function_hinted(functions_find(&one, hinted(7)), hinted(7),
					      &(struct functions_when){.time_ns = 2000, .epoch = 7, .begins = true}));
}
END_TEST

START_TEST(what_is_read_during_a_collection_is_not_of_the_epoch_that_it_begins)
{
	ran_ns = 0;
	ck_assert(wants(7, 1000, 6, 1010));
	answer(0, "f", 6);
	ck_assert_str_eq(held(7, 1000, 6), "");
	ran_ns = 1020; /* the program goes on */
	ck_assert_str_eq(held(7, 1030, 6), "");
	ck_assert(wants(7, 1030, 6, 1040));
	answer(0, "g", 6);
	ck_assert_str_eq(held(7, 1030, 6), "g");
	ran_ns = 1;
}
END_TEST

START_TEST(where_epochs_are_not_known_any_more_time_decides)
{
	ck_assert(wants(7, 1000, 5, 1010));
	answer(0, "f", 5);
	ck_assert(wants(7, 2000, 6, 2010));
	answer(0, "f", 0); /* there are several isolates now */
	ck_assert_str_eq(held(7, 2000, 6), "f");
	ck_assert(!wants(7, 2005, 6, 2020));
}
END_TEST

START_TEST(a_function_that_is_hinted_is_not_one_that_is_not)
{
	const struct functions_when when = {.time_ns = 1000};
	struct runtime_frame f = *hinted(0);

	f.flags = 0;
	ck_assert_ptr_nonnull(functions_add(&one, &f));
	ck_assert_ptr_null(functions_find(&one, hinted(0)));
	ck_assert(functions_want_hinted(&one, hinted(0), &when, 1000, &question));
}
END_TEST

/* The closure of a sample lay where another one lies now, after a collection. */
START_TEST(what_was_found_in_a_later_epoch_is_not_the_samples)
{
	ck_assert(wants(7, 1000, 5, 1010));
	answer(0, "g", 6);
	ck_assert_str_eq(held(7, 1000, 5), "");
	ck_assert_str_eq(held(7, 1005, 6), "g");
}
END_TEST

START_TEST(table_of_a_process_is_bounded)
{
	for (uint32_t i = 0; i < FUNCTIONS_MAX; i++)
		ck_assert_ptr_nonnull(functions_add(&one, frame(i + 1, i)));
	ck_assert_ptr_null(functions_add(&one, frame(FUNCTIONS_MAX + 1, 0)));
}
END_TEST

Suite *functions_suite(void)
{
	Suite *s = suite_create("functions");
	TCase *t = tcase_create("functions");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, function_is_found_by_key_and_cookies);
	tcase_add_test(t, question_is_pending_until_it_is_settled);
	tcase_add_test(t, question_that_had_no_room_is_asked_again);
	tcase_add_test(t, question_whose_decoder_was_late_is_asked_again_later);
	tcase_add_test(t, texts_count_as_bytes);
	tcase_add_test(t, equal_functions_share_one_object);
	tcase_add_loop_test(t, line_is_that_of_the_row_before, 0, ARRAY_SIZE(places));
	tcase_add_test(t, column_is_the_distance_from_the_row_where_positions_are_of_characters);
	tcase_add_test(t, function_without_lines_has_none);
	tcase_add_test(t, function_that_a_frame_is_not_in_is_asked_again);
	tcase_add_test(t, what_was_read_too_early_is_asked_again);
	tcase_add_test(t, a_hint_is_not_part_of_what_a_function_is);
	tcase_add_test(t, without_epochs_a_function_holds_from_the_sample_that_found_it_to_the_last_reading);
	tcase_add_test(t, what_a_hint_did_not_find_another_one_may);
	tcase_add_test(t, another_function_of_the_same_key_holds_from_its_sample_on);
	tcase_add_test(t, a_question_for_a_sample_whose_epoch_is_bounded_says_so);
	tcase_add_test(t, a_function_is_known_by_its_heap);
	tcase_add_test(t, a_function_holds_for_the_epochs_in_which_it_was_found);
	tcase_add_test(t, a_sample_of_a_collection_may_be_of_the_epoch_before);
	tcase_add_test(t, what_was_found_in_a_later_epoch_is_not_the_samples);
	tcase_add_test(t, what_is_read_during_a_collection_is_not_of_the_epoch_that_it_begins);
	tcase_add_test(t, where_epochs_are_not_known_any_more_time_decides);
	tcase_add_test(t, a_function_that_is_hinted_is_not_one_that_is_not);
	tcase_add_test(t, table_of_a_process_is_bounded);
	suite_add_tcase(s, t);
	return s;
}
