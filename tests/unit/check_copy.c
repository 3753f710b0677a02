// SPDX-License-Identifier: Apache-2.0
/* The arithmetic that samplers share: of stack copies, and of records that the ring refused. */
#include <check.h>

#include "base/cleanup.h"
#include "kmod/uapi/otprof_copy.h"

Suite *copy_suite(void);

#define BUDGET (1u << 20)

START_TEST(a_wish_is_whole_words_within_the_limit)
{
	ck_assert_uint_eq(otp_copy_want(0), 0);
	ck_assert_uint_eq(otp_copy_want(1), 8);
	ck_assert_uint_eq(otp_copy_want(4096), 4096);
	ck_assert_uint_eq(otp_copy_want(UINT64_MAX), OTP_STACK_LIMIT);
}
END_TEST

START_TEST(a_copy_ends_at_the_known_end_of_the_stack)
{
	ck_assert_uint_eq(otp_copy_clip(0x1000, 4096, 0), 4096); /* unknown */
	ck_assert_uint_eq(otp_copy_clip(0x1000, 4096, 0x1000), 4096); /* another stack */
	ck_assert_uint_eq(otp_copy_clip(0x1000, 4096, 0x1800), 0x800);
	ck_assert_uint_eq(otp_copy_clip(0x1000, 4096, 0x1801), 0x808);
	ck_assert_uint_eq(otp_copy_clip(0x1000, 4096, 0x2000), 4096);
	ck_assert(otp_copy_below_end(0x1800, 0x1800));
	ck_assert(otp_copy_below_end(0x1808, 0x1800));
	ck_assert(!otp_copy_below_end(0x1810, 0x1800));
	ck_assert(!otp_copy_below_end(0x1000, 0));
}
END_TEST

START_TEST(storage_is_an_end_where_its_first_word_is_its_address)
{
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_X86_64, 0x1000, 0x1000), 0x1000);
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_X86_64, 0x1000, 0x1008), 0);
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_X86_64, 0x1000, 0), 0); /* or it cannot be read */
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_X86_64, 0, 0), 0);
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_ARM64, 0x1000, 0x5678), 0x1000);
	ck_assert_uint_eq(otp_copy_thread_end(OTP_ARCH_ARM64, 0, 0), 0);
}
END_TEST

static const struct {
	uint64_t addr, to, end, wish, base;
} bases[] = {
	{0x1000, 0x2000, 0, 4096, 0},              /* no known end */
	{0x1000, 0x2000, 0x9000, 0, 0},            /* none wished */
	{0x1000, 0x2000, 0x9000, 4096, 4096},      /* a gap between both */
	{0x1000, 0x2000, 0x2800, 4096, 0x800},     /* the copy covers half of it */
	{0x1000, 0x2000, 0x2000, 4096, 0},         /* or all */
	{0x1000, 0x2000, 0x1800, 4096, 0},
	{0x9000, 0xa000, 0x8000, 4096, 4096},      /* on another stack, above this one's end */
	{0x1000, 0x2000, 0x100000, 1 << 30, OTP_BASE_LIMIT},
	{0x1000, 0x2000, 0x9007, 4099, 4096},
	{0x4000, 0x5000, 0x1000, 8192, 0x1000},    /* not below address 0 */
};

START_TEST(the_base_is_what_the_copy_does_not_reach)
{
	ck_assert_uint_eq(otp_copy_base(bases[_i].addr, bases[_i].to, bases[_i].end, bases[_i].wish), bases[_i].base);
}
END_TEST

START_TEST(a_budget_fills_with_time_and_never_beyond_its_window)
{
	ck_assert_uint_eq(otp_budget_fill(0, 0, BUDGET), 0);
	ck_assert_uint_eq(otp_budget_fill(0, OTP_BUDGET_WINDOW_NS / 4, BUDGET), BUDGET / 4);
	ck_assert_uint_eq(otp_budget_fill(BUDGET / 2, OTP_BUDGET_WINDOW_NS * 3 / 4, BUDGET), BUDGET);
	ck_assert_uint_eq(otp_budget_fill(0, OTP_BUDGET_WINDOW_NS, BUDGET), BUDGET);
	ck_assert_uint_eq(otp_budget_fill(0, UINT64_MAX, BUDGET), BUDGET);
	ck_assert_uint_eq(otp_budget_fill(UINT32_MAX, OTP_BUDGET_WINDOW_NS - 1, UINT32_MAX), UINT32_MAX);
	ck_assert_uint_eq(otp_budget_fill(BUDGET, 0, BUDGET / 2), BUDGET / 2); /* it was lowered */
	ck_assert_uint_eq(otp_budget_spend(100, 30), 70);
	ck_assert_uint_eq(otp_budget_spend(100, 300), 0);
}
END_TEST

START_TEST(a_copy_takes_half_of_the_budget_and_its_base_first)
{
	__u64 want = 65536, base = 0;

	ck_assert(!otp_budget_applies(OTP_STACK_FLOOR, 0));
	ck_assert(otp_budget_applies(OTP_STACK_FLOOR, 8));
	ck_assert(otp_budget_applies(OTP_STACK_FLOOR + 8, 0));
	ck_assert_int_eq(otp_budget_share(BUDGET, &want, &base), 0);
	ck_assert_uint_eq(want, 65536);
	ck_assert_int_eq(otp_budget_share(20000, &want, &base), 1);
	ck_assert_uint_eq(want, OTP_STACK_FLOOR + 10000);
	want = 65536;
	base = 8192;
	ck_assert_int_eq(otp_budget_share(10000, &want, &base), 1);
	ck_assert_uint_eq(base, 8192);
	ck_assert_uint_eq(want, OTP_STACK_FLOOR + 904);
}
END_TEST

START_TEST(a_base_that_does_not_fit_leaves_all_to_the_next_sample)
{
	__u64 want = 65536, base = 8192;

	ck_assert_int_eq(otp_budget_share(8191, &want, &base), 1);
	ck_assert_uint_eq(base, 0);
	ck_assert_uint_eq(want, OTP_STACK_FLOOR);
	want = 512;
	base = 8192;
	ck_assert_int_eq(otp_budget_share(0, &want, &base), 1);
	ck_assert_uint_eq(want, 512);
	ck_assert_uint_eq(base, 0);
}
END_TEST

#define LOW 0x10000000ULL /* the lowest address */

static const struct {
	uint64_t bound, depth, stack_bytes, base_bytes, want, base;
	uint32_t mode;
} plans[] = {
	/* depth 0: the stack's end is unknown */
	{0, 0, OTP_STACK_LIMIT, OTP_BASE_LIMIT, OTP_STACK_LIMIT, 0, 0},
	{0, 4096, 131072, 65536, 4096, 0, OTP_MODE_SHORT},
	{0, 1 << 20, 131072, 65536, 131072, 65536, 0},
	{30000, 1 << 20, 16384, 8192, 16384, 8192, 0},                            /* it fits */
	{30000, 0, 131072, 65536, 30000, 0, OTP_MODE_BOUNDED},
	{30000, 1 << 20, 131072, 65536, 20000, 10000, OTP_MODE_BOUNDED},
	{30000, 1 << 20, 29000, 4096, 25904, 4096, OTP_MODE_BOUNDED},             /* a small base stays whole */
	{30001, 1 << 20, 131072, 65536, 20000, 10000, OTP_MODE_BOUNDED},          /* whole words */
	{102400, 122880, 131072, 65536, 68272, 34128, OTP_MODE_BOUNDED},          /* whole, it would reach the end */
	{102400, 100000, 131072, 65536, 100000, 0, OTP_MODE_SHORT},
	{8, 1 << 20, 131072, 65536, 2736, 1360, OTP_MODE_BOUNDED},                /* never below the floor */
};

START_TEST(a_tick_copies_no_more_than_its_bound)
{
	struct otp_copy c;

	otp_copy_plan(&c, LOW, plans[_i].depth ? LOW + plans[_i].depth : 0, plans[_i].stack_bytes, plans[_i].base_bytes,
		      plans[_i].bound);
	ck_assert_uint_eq(c.want, plans[_i].want);
	ck_assert_uint_eq(c.base, plans[_i].base);
	ck_assert_uint_eq(c.mode, plans[_i].mode);
	if (plans[_i].bound)
		ck_assert_uint_le(c.want + c.base, MAX(plans[_i].bound, (uint64_t)OTP_STACK_FLOOR));
}
END_TEST

START_TEST(only_a_copy_by_default_is_bounded)
{
	const struct otp_defaults d = {.stack_bytes = 131072, .base_bytes = 65536, .tick_bytes = 30000};
	__u32 stack = 0, base = 0;

	ck_assert_uint_eq(otp_copy_default(&stack, &base, &d), 30000);
	ck_assert_uint_eq(stack, 131072);
	ck_assert_uint_eq(base, 65536);
	ck_assert_uint_eq(otp_copy_default(&stack, &base, &d), 0); /* a plan or a hint */
}
END_TEST

START_TEST(the_bound_of_a_tick_is_half_of_what_the_speed_allows)
{
	ck_assert_uint_eq(otp_tick_bytes(131072, 13107, 50000), 250000);  /* 10 GB/s */
	ck_assert_uint_eq(otp_tick_bytes(131072, 131072, 50000), 25000);  /* 1 GB/s */
	ck_assert_uint_eq(otp_tick_bytes(131072, 131072, 20000), 10000);
	ck_assert_uint_eq(otp_tick_bytes(131072, 131072000, 50000), OTP_STACK_FLOOR);
	ck_assert_uint_eq(otp_tick_bytes(131072, 1000, 50000), 0); /* no copy is so long */
	ck_assert_uint_eq(otp_tick_bytes(131072, 0, 50000), 0);    /* not measured */
}
END_TEST

#define B OTP_CHUNK_BASE
#define S OTP_CHUNK_SHORT
#define L OTP_CHUNK_LAST
#define H OTP_CHUNK_HOLES

static const struct {
	const char *what;
	uint32_t flags;
	uint64_t got, want, left, base_left;
	int below_end;
	uint32_t ret_flags;
	uint64_t ret_got;
} chunks[] = {
	{"whole", 0, 100, 100, 300, 0, 1, 0, 100},
	{"whole and last", L, 100, 100, 100, 0, 1, L, 100},
	{"memory ends", 0, 40, 100, 300, 0, 0, S | L, 40},
	{"memory ends, a base follows", 0, 40, 100, 300, 64, 0, S, 40},
	{"missing pages below the known end are a hole", 0, 40, 100, 300, 0, 1, H, 100},
	{"nothing is no hole", 0, 0, 100, 300, 0, 1, S | L, 0},
	{"the last one ends where memory does", L, 40, 100, 100, 0, 1, S | L, 40},
	{"a base goes on over pages that are missing", B, 40, 100, 300, 300, 0, B | H, 100},
	{"a base chunk of nothing goes on", B, 0, 100, 300, 300, 0, B, 0},
	{"the last of a base ends the sample", B | L, 40, 100, 100, 100, 0, B | S | L, 40},
};

START_TEST(chunk_says_how_it_ends)
{
	__u64 got = chunks[_i].got;
	uint32_t flags = otp_chunk_flags(chunks[_i].flags, &got, chunks[_i].want, chunks[_i].left, chunks[_i].base_left,
					 chunks[_i].below_end);

	ck_assert_msg(flags == chunks[_i].ret_flags && got == chunks[_i].ret_got, "%s: flags %u, %llu bytes", chunks[_i].what,
		      flags, (unsigned long long)got);
}
END_TEST

/* A record of 1000 bytes takes 1008 of a ring of 4096, whose last byte is never used. */
static const struct {
	const char *what;
	uint64_t before, after, len;
	uint32_t reason;
} refusals[] = {
	{"no room at all", 4000, 4000, 1000, OTP_LOSS_RING_FULL},
	{"no room after: other CPUs took it", 0, 4000, 1000, OTP_LOSS_RING_FULL},
	{"no room before: the reader moved since", 4000, 0, 1000, OTP_LOSS_RING_FULL},
	{"room in both", 0, 0, 1000, OTP_LOSS_RING_BUSY},
	{"just room in both", 3080, 3080, 1000, OTP_LOSS_RING_BUSY},
	{"the last byte is missing", 3088, 3088, 1000, OTP_LOSS_RING_FULL},
	{"the header and padding count", 3080, 3080, 1001, OTP_LOSS_RING_FULL},
	{"a record as large as the ring", 0, 0, 4096, OTP_LOSS_RING_FULL},
};

START_TEST(ring_that_refuses_with_room_is_busy)
{
	uint64_t reason = otp_ring_refusal(refusals[_i].before, refusals[_i].after, 4096, refusals[_i].len);

	ck_assert_msg(reason == refusals[_i].reason, "%s: %llu", refusals[_i].what, (unsigned long long)reason);
}
END_TEST

Suite *copy_suite(void)
{
	Suite *s = suite_create("copy");
	TCase *t = tcase_create("copy");

	tcase_add_test(t, a_wish_is_whole_words_within_the_limit);
	tcase_add_test(t, a_copy_ends_at_the_known_end_of_the_stack);
	tcase_add_test(t, storage_is_an_end_where_its_first_word_is_its_address);
	tcase_add_loop_test(t, the_base_is_what_the_copy_does_not_reach, 0, ARRAY_SIZE(bases));
	tcase_add_test(t, a_budget_fills_with_time_and_never_beyond_its_window);
	tcase_add_test(t, a_copy_takes_half_of_the_budget_and_its_base_first);
	tcase_add_test(t, a_base_that_does_not_fit_leaves_all_to_the_next_sample);
	tcase_add_loop_test(t, a_tick_copies_no_more_than_its_bound, 0, ARRAY_SIZE(plans));
	tcase_add_test(t, only_a_copy_by_default_is_bounded);
	tcase_add_test(t, the_bound_of_a_tick_is_half_of_what_the_speed_allows);
	tcase_add_loop_test(t, chunk_says_how_it_ends, 0, ARRAY_SIZE(chunks));
	tcase_add_loop_test(t, ring_that_refuses_with_room_is_busy, 0, ARRAY_SIZE(refusals));
	suite_add_tcase(s, t);
	return s;
}
