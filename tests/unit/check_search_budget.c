// SPDX-License-Identifier: Apache-2.0
/* Searches over many stacks. */
#include <check.h>

#include "unwind/search_budget.h"

Suite *search_budget_suite(void);

static struct search_budget budget;

/* A stack that would take so much: what it took. */
static uint32_t stack_takes(uint32_t work)
{
	const uint32_t given = search_budget_take(&budget), took = MIN(work, given);

	search_budget_settle(&budget, given, given - took);
	return took;
}

START_TEST(many_stacks_may_search_as_long_as_one_may)
{
	budget = (struct search_budget){0};
	for (unsigned i = 0; i < SEARCH_BUDGET_SAVED; i++)
		ck_assert_uint_eq(stack_takes(SEARCH_WORK), SEARCH_WORK);
}
END_TEST

/* Each of 10,000 takes what it gets: how much all took. */
static uint64_t stacks_take_all(void)
{
	uint64_t took = 0;

	budget = (struct search_budget){0};
	for (unsigned i = 0; i < 10000; i++)
		took += stack_takes(SEARCH_WORK);
	return took;
}

START_TEST(searches_that_go_on_for_long_get_a_share)
{
	const uint64_t took = stacks_take_all();

	ck_assert_uint_le(took / SEARCH_WORK, 10000 / SEARCH_BUDGET_SHARE + 2 * SEARCH_BUDGET_SAVED);
	ck_assert_uint_ge(took / SEARCH_WORK, 10000 / SEARCH_BUDGET_SHARE);
}
END_TEST

START_TEST(searches_have_their_work_again_after_stacks_without)
{
	stacks_take_all();
	ck_assert_uint_lt(search_budget_take(&budget), SEARCH_WORK);
	for (unsigned i = 0; i < SEARCH_BUDGET_SHARE; i++)
		stack_takes(0);
	ck_assert_uint_eq(search_budget_take(&budget), SEARCH_WORK);
	for (unsigned i = 0; i < 10000; i++)
		stack_takes(SEARCH_WORK / SEARCH_BUDGET_SHARE);
	ck_assert_uint_eq(search_budget_take(&budget), SEARCH_WORK);
}
END_TEST

Suite *search_budget_suite(void)
{
	Suite *s = suite_create("search_budget");
	TCase *t = tcase_create("search_budget");

	tcase_add_test(t, many_stacks_may_search_as_long_as_one_may);
	tcase_add_test(t, searches_that_go_on_for_long_get_a_share);
	tcase_add_test(t, searches_have_their_work_again_after_stacks_without);
	suite_add_tcase(s, t);
	return s;
}
