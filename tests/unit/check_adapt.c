// SPDX-License-Identifier: Apache-2.0
#include <check.h>

#include "daemon/engine/adapt.h"

Suite *adapt_suite(void);

static const struct adapt_limits limits = {.start_bytes = 4096, .max_bytes = 65536};
static struct unwind_stack stack;

static bool observe(struct process *p, uint64_t time_ns, uint32_t copied, uint32_t used, enum unwind_end end)
{
	struct sample s = {.head = {.time_ns = time_ns, .stack_bytes = copied}};

	stack.end = end;
	stack.stack_used = used;
	if (!adapt_observe(p, &limits, &s, &stack))
		return false;
	p->plan_gen++; /* sent */
	return true;
}

START_TEST(a_short_copy_grows_at_once)
{
	struct process p = {0};

	ck_assert(observe(&p, 1, 4096, 4096, UNWIND_SHORT));
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

START_TEST(samples_from_before_the_change_do_not_grow_it_again)
{
	struct process p = {0};

	observe(&p, 1, 4096, 4096, UNWIND_SHORT);
	ck_assert(!observe(&p, 2, 4096, 4096, UNWIND_SHORT));
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

START_TEST(the_copy_grows_to_the_limit_and_no_further)
{
	struct process p = {0};

	for (int i = 0; i < 20; i++)
		observe(&p, 1, p.stack_bytes ? p.stack_bytes : 4096, p.stack_bytes, UNWIND_SHORT);
	ck_assert_uint_eq(p.stack_bytes, limits.max_bytes);
	ck_assert(!observe(&p, 1, 65536, 65536, UNWIND_SHORT));
}
END_TEST

START_TEST(a_bound_that_came_down_holds_from_the_next_sample)
{
	struct process p = {.stack_bytes = 262144, .plan_gen = 3};

	ck_assert(observe(&p, 1, 262144, 1000, UNWIND_ROOT));
	ck_assert_uint_eq(p.stack_bytes, limits.max_bytes);
	ck_assert(!observe(&p, 2, 65536, 1000, UNWIND_ROOT));
}
END_TEST

static bool observe_far(struct process *p, enum unwind_end end, uint64_t fail_addr, uint64_t stack_end)
{
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 4096, .stack_end = stack_end}, .stack_addr = 0x10000};
	bool changed;

	stack.end = end;
	stack.fail_addr = fail_addr;
	changed = adapt_observe(p, &limits, &s, &stack);
	stack.fail_addr = 0;
	p->plan_gen += changed;
	return changed;
}

START_TEST(a_frame_near_the_known_end_asks_for_the_end)
{
	struct process p = {0};

	ck_assert(observe_far(&p, UNWIND_SHORT, 0x90000, 0x91008));
	ck_assert_uint_eq(p.base_bytes, 8192);
	ck_assert_uint_eq(p.stack_bytes, 4096);
	/* What it has already does not help: the copy itself grows. */
	ck_assert(observe_far(&p, UNWIND_SHORT, 0x90000, 0x91008));
	ck_assert_uint_eq(p.base_bytes, 8192);
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

START_TEST(a_frame_near_the_copy_makes_the_copy_grow)
{
	struct process p = {0};

	ck_assert(observe_far(&p, UNWIND_SHORT, 0x11100, 0x12000));
	ck_assert_uint_eq(p.base_bytes, 0);
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

START_TEST(a_stack_whose_end_is_unknown_or_too_far_has_no_base)
{
	struct process p = {0};

	ck_assert(!observe_far(&p, UNWIND_UNREADABLE, 0x90000, 0));
	ck_assert(!observe_far(&p, UNWIND_UNREADABLE, 0x90000, 0x90000 + OTP_BASE_LIMIT + 8));
	ck_assert_uint_eq(p.base_bytes, 0);
	ck_assert(observe_far(&p, UNWIND_UNREADABLE, 0x8000, 0x9000));
	ck_assert_uint_eq(p.base_bytes, 4096);
}
END_TEST

START_TEST(without_a_plan_the_size_is_that_of_the_hint)
{
	struct process p = {0};

	observe(&p, 1, 16384, 100, UNWIND_ROOT);
	observe(&p, 2, 4096, 100, UNWIND_ROOT); /* a hint for its name came in between */
	ck_assert(observe(&p, 3, 4096, 4096, UNWIND_SHORT));
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

START_TEST(a_process_that_needs_little_is_copied_little)
{
	struct process p = {0};
	uint64_t now = 1;
	int changes = 0;

	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		changes += observe(&p, now, 4096, 300, UNWIND_ROOT);
	ck_assert_uint_eq(p.stack_bytes, ADAPT_MIN_BYTES);
	ck_assert_int_eq(changes, 1);
}
END_TEST

START_TEST(one_deep_stack_in_the_window_keeps_the_size)
{
	struct process p = {0};
	uint64_t now = 1;

	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		ck_assert(!observe(&p, now, 4096, i % 10 ? 300 : 1900, UNWIND_ROOT));
	ck_assert_uint_eq(p.stack_bytes, 4096);
}
END_TEST

START_TEST(growing_after_shrinking_makes_the_next_window_longer)
{
	struct process p = {0};
	uint64_t now = 1;

	while (!observe(&p, now, 4096, 900, UNWIND_ROOT))
		now += ADAPT_WINDOW_NS / 100;
	ck_assert_uint_eq(p.stack_bytes, 2048);
	ck_assert(observe(&p, now, 2048, 2048, UNWIND_SHORT));
	ck_assert_uint_eq(p.stack_bytes, 8192);
	ck_assert_uint_eq(p.stack_backoff, 1);
}
END_TEST

START_TEST(a_copy_cut_by_the_bound_on_bytes_changes_nothing)
{
	struct process p = {.stack_bytes = 8192};
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 8192, .mode = OTP_MODE_THROTTLE}};

	stack.end = UNWIND_SHORT;
	stack.stack_used = 4096;
	ck_assert(!adapt_observe(&p, &limits, &s, &stack));
	ck_assert_uint_eq(p.stack_bytes, 8192);
}
END_TEST

Suite *adapt_suite(void)
{
	Suite *s = suite_create("adapt");
	TCase *t = tcase_create("adapt");

	tcase_add_test(t, a_short_copy_grows_at_once);
	tcase_add_test(t, samples_from_before_the_change_do_not_grow_it_again);
	tcase_add_test(t, the_copy_grows_to_the_limit_and_no_further);
	tcase_add_test(t, a_bound_that_came_down_holds_from_the_next_sample);
	tcase_add_test(t, a_frame_near_the_known_end_asks_for_the_end);
	tcase_add_test(t, a_frame_near_the_copy_makes_the_copy_grow);
	tcase_add_test(t, a_stack_whose_end_is_unknown_or_too_far_has_no_base);
	tcase_add_test(t, without_a_plan_the_size_is_that_of_the_hint);
	tcase_add_test(t, a_process_that_needs_little_is_copied_little);
	tcase_add_test(t, one_deep_stack_in_the_window_keeps_the_size);
	tcase_add_test(t, growing_after_shrinking_makes_the_next_window_longer);
	tcase_add_test(t, a_copy_cut_by_the_bound_on_bytes_changes_nothing);
	suite_add_tcase(s, t);
	return s;
}
