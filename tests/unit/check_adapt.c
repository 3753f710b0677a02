// SPDX-License-Identifier: Apache-2.0
#include <check.h>

#include "daemon/engine/adapt.h"

Suite *adapt_suite(void);

static const struct adapt_limits limits = {.max_bytes = 65536, .base_max = 32768};
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

/* A stack from 0x10000 to stack_end, of which 4096 were copied, read were read, and fail_addr was missing. */
static bool observe_far(struct process *p, enum unwind_end end, uint32_t read, uint64_t fail_addr, uint64_t stack_end)
{
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 4096, .stack_end = stack_end}, .stack_addr = 0x10000};
	bool changed;

	stack = (struct unwind_stack){.end = end, .stack_read = read, .fail_addr = fail_addr};
	stack.stack_used = fail_addr > 0x10000 ? (uint32_t)(fail_addr - 0x10000) + 8 : 0;
	changed = adapt_observe(p, &limits, &s, &stack);
	stack = (struct unwind_stack){0};
	p->plan_gen += changed;
	return changed;
}

/* A new process' first cut stack makes its copy so large. */
static void expect_grown(uint32_t read, uint64_t fail_addr, uint64_t stack_end, uint32_t base_bytes, uint32_t stack_bytes)
{
	struct process p = {0};

	ck_assert(observe_far(&p, UNWIND_SHORT, read, fail_addr, stack_end));
	ck_assert_uint_eq(p.base_bytes, base_bytes);
	ck_assert_uint_eq(p.stack_bytes, stack_bytes);
}

START_TEST(a_frame_near_the_known_end_asks_for_the_end)
{
	expect_grown(4096, 0x90000, 0x91008, 8192, 4096);
}
END_TEST

START_TEST(bytes_of_a_stack_that_was_left_ask_for_none_of_the_threads_own)
{
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 4096, .stack_end = 0x10800}, .stack_addr = 0x10000};
	struct process p = {0};

	stack = (struct unwind_stack){.end = UNWIND_SHORT, .stack_read = 176, .stack_used = 176, .fail_addr = 0x12000,
				      .fail_in_other = true};
	ck_assert(!adapt_observe(&p, &limits, &s, &stack));
	stack = (struct unwind_stack){0};
	ck_assert_uint_eq(p.stack_bytes, 4096);
	ck_assert_uint_eq(p.base_bytes, 0);
	ck_assert_uint_eq(p.stack_needed, 176);
}
END_TEST

START_TEST(samples_from_before_the_base_change_nothing)
{
	struct process p = {0};

	ck_assert(observe_far(&p, UNWIND_SHORT, 4096, 0x90000, 0x91008));
	ck_assert(!observe_far(&p, UNWIND_SHORT, 4096, 0x90000, 0x91008));
	ck_assert_uint_eq(p.base_bytes, 8192);
	ck_assert_uint_eq(p.stack_bytes, 4096);
}
END_TEST

START_TEST(a_frame_near_the_copy_makes_the_copy_grow)
{
	expect_grown(4096, 0x11100, 0x12000, 0, 16384);
}
END_TEST

/* As cargo's, whose outermost frame but some holds 120 KiB. */
START_TEST(a_frame_of_more_bytes_than_follow_it_asks_for_the_end)
{
	expect_grown(1000, 0x13000, 0x14100, 8192, 4096);
}
END_TEST

START_TEST(a_small_frame_is_copied_though_little_follows_it)
{
	expect_grown(1000, 0x11200, 0x11300, 0, 16384);
}
END_TEST

START_TEST(a_frame_that_no_copy_reaches_past_does_not_make_it_grow)
{
	struct process p = {0};

	ck_assert(!observe_far(&p, UNWIND_SHORT, 1000, 0x18000, 0x10000 + limits.max_bytes + limits.base_max + 8));
	ck_assert_uint_eq(p.stack_bytes, 4096);
	ck_assert(observe_far(&p, UNWIND_SHORT, 1000, 0x13000, 0x10000 + limits.max_bytes));
	ck_assert_uint_eq(p.stack_bytes, 65536);
}
END_TEST

/* As a parser's, whose frames are larger than what its name needs otherwise. */
START_TEST(frames_that_a_larger_copy_would_hold_make_a_small_one_grow)
{
	expect_grown(1000, 0x12000, 0x10000 + limits.max_bytes + limits.base_max + 8, 0, 16384);
}
END_TEST

START_TEST(a_stack_whose_end_is_unknown_or_too_far_has_no_base)
{
	struct process p = {0};

	ck_assert(!observe_far(&p, UNWIND_UNREADABLE, 0, 0x90000, 0));
	ck_assert(!observe_far(&p, UNWIND_UNREADABLE, 0, 0x90000, 0x90000 + limits.base_max + 8));
	ck_assert_uint_eq(p.base_bytes, 0);
	ck_assert(observe_far(&p, UNWIND_UNREADABLE, 0, 0x8000, 0x9000));
	ck_assert_uint_eq(p.base_bytes, 4096);
}
END_TEST

static void observe_base(struct process *p, uint64_t *now, uint32_t base_used)
{
	struct sample s = {.head = {.stack_bytes = 4096}};

	for (int i = 0; i < 1000; i++, *now += ADAPT_WINDOW_NS / 100) {
		s.head.time_ns = *now;
		stack = (struct unwind_stack){.end = UNWIND_ROOT, .stack_used = 1900, .base_used = i % 50 ? 0 : base_used};
		p->plan_gen += adapt_observe(p, &limits, &s, &stack);
	}
}

START_TEST(a_base_that_nobody_reads_is_given_up)
{
	struct process p = {.stack_bytes = 4096, .base_bytes = 16384, .plan_gen = 1};
	uint64_t now = 1;

	observe_base(&p, &now, 5000);
	ck_assert_uint_eq(p.base_bytes, 8192);
	observe_base(&p, &now, 0);
	ck_assert_uint_eq(p.base_bytes, 0);
	ck_assert_uint_eq(p.stack_bytes, 4096);
}
END_TEST

START_TEST(what_a_stack_that_was_cut_should_have_had_is_known_without_its_process)
{
	struct sample s = {.head = {.stack_bytes = 4096, .stack_end = 0x91008}, .stack_addr = 0x10000};
	struct otp_hint now = {.stack_bytes = 4096};

	stack = (struct unwind_stack){.end = UNWIND_SHORT, .stack_read = 4096, .fail_addr = 0x90000};
	ck_assert(adapt_deepen(&now, &limits, &s, &stack));
	ck_assert_uint_eq(now.base_bytes, 8192);
	stack = (struct unwind_stack){.end = UNWIND_ROOT};
	ck_assert(!adapt_deepen(&now, &limits, &s, &stack));
}
END_TEST

/* A child that has executed nothing is given what its parent's plan says, whatever others of its name have. */
START_TEST(a_base_that_was_not_inherited_does_not_keep_the_copy_small)
{
	struct sample s = {.head = {.stack_bytes = 4096, .stack_end = 0x12000, .mode = OTP_MODE_INHERITED, .plan_gen = 7},
			   .stack_addr = 0x10000};
	struct process parent = {.plan_gen = 7, .stack_bytes = 4096}, p = {0};

	stack = (struct unwind_stack){.end = UNWIND_SHORT, .stack_read = 4096, .stack_used = 4104, .fail_addr = 0x11000};
	p.base_bytes = adapt_base_given(&s, &parent, 32768);
	ck_assert(adapt_observe(&p, &limits, &s, &stack));
	ck_assert_uint_eq(p.stack_bytes, 16384);
}
END_TEST

/* 24000 bytes and 8000 of base were left of 32768 and 16384; the stack ends 30000 bytes above the copied base. */
START_TEST(a_copy_that_the_bound_cut_makes_a_plan_that_is_whole)
{
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 24000, .stack_end = 0x20000, .mode = OTP_MODE_BOUNDED},
			   .stack_addr = 0x10000, .base_len = 8000};
	const struct otp_hint start = {.stack_bytes = 32768, .base_bytes = 16384};
	struct process p = {0};

	stack = (struct unwind_stack){.end = UNWIND_SHORT, .stack_read = 24000, .stack_used = 24008,
				      .fail_addr = 0x10000 + 24000};
	p.base_bytes = adapt_base_given(&s, NULL, start.base_bytes);
	ck_assert_uint_eq(p.base_bytes, 8000);
	ck_assert(adapt_observe(&p, &limits, &s, &stack));
	adapt_at_least(&p, &limits, &start);
	ck_assert_uint_eq(p.stack_bytes, 65536); /* to the stack's end */
	ck_assert_uint_eq(p.base_bytes, 16384);
	stack = (struct unwind_stack){0};
}
END_TEST

START_TEST(what_is_known_is_within_the_limits)
{
	struct process p = {.stack_bytes = 1024};

	adapt_at_least(&p, &limits, &(struct otp_hint){.stack_bytes = 1 << 20, .base_bytes = 1 << 20});
	ck_assert_uint_eq(p.stack_bytes, limits.max_bytes);
	ck_assert_uint_eq(p.base_bytes, limits.base_max);
}
END_TEST

START_TEST(the_base_of_a_sample_is_that_of_its_plan_or_its_name)
{
	struct sample s = {.head = {.mode = OTP_MODE_INHERITED, .plan_gen = 7}, .base_len = 2048};
	struct process parent = {.plan_gen = 7, .base_bytes = 8192};

	ck_assert_uint_eq(adapt_base_given(&s, &parent, 4096), 8192);
	ck_assert_uint_eq(adapt_base_given(&s, NULL, 4096), 2048);
	parent.plan_gen = 8;
	ck_assert_uint_eq(adapt_base_given(&s, &parent, 4096), 2048);
	s.head.mode = 0;
	ck_assert_uint_eq(adapt_base_given(&s, &parent, 4096), 4096);
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

START_TEST(a_frame_that_the_copy_holds_when_it_is_whole_asks_for_no_end)
{
	struct process p = {.stack_bytes = 32768, .plan_gen = 1};
	struct sample s = {.head = {.time_ns = 1, .stack_bytes = 32768, .stack_end = 0x13800, .mode = OTP_MODE_THROTTLE},
			   .stack_addr = 0x10000};

	stack = (struct unwind_stack){.end = UNWIND_SHORT, .stack_read = 1000, .stack_used = 0x3008, .fail_addr = 0x13000};
	ck_assert(!adapt_observe(&p, &limits, &s, &stack));
	s.head.mode = 0;
	s.head.stack_bytes = 4096; /* from before */
	ck_assert(!adapt_observe(&p, &limits, &s, &stack));
	s.head.stack_bytes = 32768;
	stack.end = UNWIND_CHUNK_LOST;
	ck_assert(!adapt_observe(&p, &limits, &s, &stack));
	ck_assert_uint_eq(p.base_bytes, 0);
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
	tcase_add_test(t, bytes_of_a_stack_that_was_left_ask_for_none_of_the_threads_own);
	tcase_add_test(t, samples_from_before_the_base_change_nothing);
	tcase_add_test(t, a_frame_of_more_bytes_than_follow_it_asks_for_the_end);
	tcase_add_test(t, a_small_frame_is_copied_though_little_follows_it);
	tcase_add_test(t, a_frame_that_no_copy_reaches_past_does_not_make_it_grow);
	tcase_add_test(t, frames_that_a_larger_copy_would_hold_make_a_small_one_grow);
	tcase_add_test(t, a_base_that_nobody_reads_is_given_up);
	tcase_add_test(t, what_a_stack_that_was_cut_should_have_had_is_known_without_its_process);
	tcase_add_test(t, a_stack_whose_end_is_unknown_or_too_far_has_no_base);
	tcase_add_test(t, a_base_that_was_not_inherited_does_not_keep_the_copy_small);
	tcase_add_test(t, a_copy_that_the_bound_cut_makes_a_plan_that_is_whole);
	tcase_add_test(t, what_is_known_is_within_the_limits);
	tcase_add_test(t, the_base_of_a_sample_is_that_of_its_plan_or_its_name);
	tcase_add_test(t, without_a_plan_the_size_is_that_of_the_hint);
	tcase_add_test(t, a_process_that_needs_little_is_copied_little);
	tcase_add_test(t, one_deep_stack_in_the_window_keeps_the_size);
	tcase_add_test(t, growing_after_shrinking_makes_the_next_window_longer);
	tcase_add_test(t, a_frame_that_the_copy_holds_when_it_is_whole_asks_for_no_end);
	tcase_add_test(t, a_copy_cut_by_the_bound_on_bytes_changes_nothing);
	suite_add_tcase(s, t);
	return s;
}
