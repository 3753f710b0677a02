// SPDX-License-Identifier: Apache-2.0
/*
 * Native and interpreted frames become one stack. Native frames are letters: L
 * and M two functions of the first runtime's loop, W what only calls it, P the
 * second's, R what resumed a coroutine of the first, others no loop. Interpreted frames are digits, with ^ behind an entry,
 * $ behind a coroutine's outermost one, % the main thread's, - before a hidden one. | is the cut, ! a misfit, ~ frames
 * that are missing.
 */
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/merge.h"
#include "runtime/runtime.h"

Suite *merge_suite(void);

static char result[256];
static bool misfit;

static uint32_t natives(const char *text, struct merge_native *to)
{
	uint32_t n = 0;

	for (; *text; text++)
		to[n++] = (struct merge_native){.runtime = *text == 'P' ? 2 : *text == 'L' || *text == 'M' || *text == 'W',
						.function = *text == 'M', .wraps = *text == 'W', .resumes = *text == 'R'};
	return n;
}

static uint32_t flags_of(const char *text, uint16_t *to, char *names)
{
	uint32_t n = 0;
	uint8_t hidden = 0;

	for (; *text; text++) {
		if (*text == '-') {
			hidden = RUNTIME_HIDDEN;
		} else if (*text == '^') {
			to[n - 1] |= RUNTIME_ENTRY;
		} else if (*text == '$') {
			to[n - 1] |= RUNTIME_STACK;
		} else if (*text == '%') {
			to[n - 1] |= RUNTIME_STACK | RUNTIME_MAIN;
		} else {
			names[n] = *text;
			to[n++] = hidden;
			hidden = 0;
		}
	}
	return n;
}

static bool unseen; /* of the first runtime: coroutines may run that the walk does not see */

static const char *merged(const char *native, bool native_whole, const char *first, const char *second, bool whole,
			  bool keep)
{
	static struct merge_native frames[64];
	static struct merge_frame to[MERGE_MAX(64, 128)];
	static uint16_t flags[2][64];
	char names[2][64];
	struct merge_in in = {.native = frames, .native_whole = native_whole, .keep_loops = keep};
	uint32_t n;

	in.nr_native = natives(native, frames);
	in.runtime[0] = (struct merge_runtime){flags[0], flags_of(first, flags[0], names[0]), whole, unseen};
	in.runtime[1] = (struct merge_runtime){flags[1], flags_of(second, flags[1], names[1]), whole, false};
	n = merge(&in, to, &misfit);
	for (uint32_t i = 0; i < n; i++)
		result[i] = to[i].kind == MERGE_NATIVE	 ? native[to[i].index]
			    : to[i].kind == MERGE_CUT	 ? '|'
			    : to[i].kind == MERGE_MISFIT ? '!'
			    : to[i].kind == MERGE_SHORT	 ? '~'
							 : names[to[i].kind - MERGE_RUNTIME][to[i].index];
	result[n] = '\0';
	return result;
}

static const struct {
	const char *native, *first, *second, *expected;
	bool native_whole, whole, keep, misfit;
} cases[] = {
	/* One loop, one segment; the loop itself is the leaf, or has called. */
	{"Lm", "123^", "", "123m", true, true, false, false},
	{"abLm", "123^", "", "ab123m", true, true, false, false},
	/* A callback through native code. */
	{"aLbcLm", "1^23^", "", "a1bc23m", true, true, false, false},
	/* What wraps the loop is folded with it; the same function twice is two entries. */
	{"LMaLMm", "1^2^", "", "1a2m", true, true, false, false},
	{"LLm", "1^2^", "", "12m", true, true, false, false},
	/* What only calls the loop belongs to the entry before it, and never begins one, nor ends one that follows it. */
	{"LWLWm", "1^2^", "", "12m", true, true, false, false},
	{"LWaLWm", "1^2^", "", "1a2m", true, true, false, false},
	{"WLWm", "1^", "", "1m", true, true, false, false},
	{"aWLWm", "1^", "", "a1m", true, true, false, false},
	{"LWLWm", "1^2^", "", "1LW2LWm", true, true, true, false},
	{"LWLWm", "1^", "", "LW1m", true, true, false, false},
	{"LWLWb", "1^23^", "", "123b|", false, true, false, false},
	/* Loops stay where that is asked for. */
	{"LMaLm", "1^2^", "", "1LMa2Lm", true, true, true, false},
	/* Bookkeeping frames are not shown, but end their segment. */
	{"LaLm", "1-2^3^", "", "1a3m", true, true, false, false},
	/* The innermost loop was just entered, or is not entered yet. */
	{"LaLm", "1^", "", "La1m", true, true, false, false},
	{"xLm", "1^2^", "", "x12m", true, true, false, false},
	/* The native stack was cut: what is left of the walk follows. */
	{"aLb", "1^23^", "", "a1b|23", false, true, false, false},
	{"ab", "12^", "", "ab|12", false, true, false, false},
	/* Which of two runtimes has called the other is not known there, unless one has no frames left. */
	{"ab", "12^", "89^", "ab|12!89", false, true, false, true},
	{"aLb", "1^2^", "8^", "a1b|2!8", false, true, false, true},
	{"ab", "12", "89", "ab|12~!89~", false, false, false, true},
	{"aPb", "-1", "8^9^", "a8b|9", false, true, false, false},
	{"aLPb", "1^", "8^9^", "a18b|9", false, true, false, false},
	/* The walk was cut: loops beyond it stay. */
	{"aLbLm", "1^", "", "a1bLm", true, false, false, false},
	/* It was cut amid a segment, which has callers that nobody knows. */
	{"aLm", "12", "", "a12~m", true, false, false, false},
	{"aLbLm", "1^2", "", "a1b2~m", true, false, false, false},
	{"aLb", "12", "", "a12~b|", false, false, false, false},
	{"ab", "12", "", "ab|12~", false, false, false, false},
	{"LaLm", "", "", "LaLm", true, false, false, false},
	{"aLbPm", "12", "89", "a12~b89~m", true, false, false, false},
	/* A last segment without its entry. */
	{"aLbLm", "1^2", "", "a1b2m", true, true, false, false},
	/* Two runtimes in one process. */
	{"aLbPcLm", "1^2^", "8^", "a1b8c2m", true, true, false, false},
	/* No frames of the second were copied. */
	{"aPLm", "1^", "", "aP1m", true, true, false, false},
	/* Behind the last entry is what the runtime keeps for the thread. */
	{"aLbLm", "1^2^-3", "", "a1b2m", true, true, false, false},
	{"aLm", "1^2^-3", "", "a12m", true, true, false, false},
	{"am", "-1", "", "am", true, true, false, false},
	/* A thread that is not in its loop yet, or any more. */
	{"am", "-1^", "", "am", true, true, false, false},
	{"am", "-1-2^", "", "am", true, true, false, false},
	/* Coroutines, one by one. What one had called when it yielded has no loop any more. */
	{"aLbRcLm", "1^-8$2^-9$", "", "a1bRc2m", true, true, false, false},
	{"aLbRcLm", "1^2^34^-8$5^-9$", "", "a1234bRc5m", true, true, false, false},
	{"aLbLcRdLm", "1^2^3^-8$5^-9$", "", "a1b23cRd5m", true, true, false, false},
	{"aRcLm", "1^2^-8$5^-9$", "", "a12Rc5m", true, true, false, false},
	{"LaLbRLm", "1^-8$2^-9$", "", "La1bR2m", true, true, false, false},
	{"LbRcLdRLm", "1^2^-7$3^-8$4^-9$", "", "12bRc3dR4m", true, true, false, false},
	/* The innermost was resumed just now; nobody knows what resumes. */
	{"aRcLm", "5^-9$", "", "aRc5m", true, true, false, false},
	{"LbcLm", "1^-8$2^-9$", "", "1bc2m", true, true, false, false},
	/* A host resumes coroutines: there is no main thread, or the walk has not seen it. */
	{"aLbRhm", "12^-9$", "", "a12bRhm", true, true, false, false},
	{"aRhm", "12^-9$", "", "a12Rhm", true, true, false, false},
	{"LRLRhm", "1^-8$2^3^-9$", "", "1R23Rhm", true, true, false, false},
	{"LRcLdLm", "1^-9$", "", "1RcLdLm", true, true, false, false},
	/* Either half was cut. */
	{"LbRcLm", "1^-8$2", "", "1bRc2~m", true, false, false, false},
	{"LbRc", "1^2^-8$3^-9$", "", "12bRc|3", false, true, false, false},
	/* Halves that do not fit are both kept. */
	{"am", "1-2^", "", "am!1", true, true, false, true},
	{"am", "1^2^3^", "", "am!123", true, true, false, true},
	{"LaLbLm", "1^", "", "LaLb1m!", true, true, false, true},
	{"", "1^", "", "!1", true, true, false, true},
	{"", "", "", "", true, true, false, false},
};

START_TEST(halves_become_one_stack)
{
	ck_assert_str_eq(merged(cases[_i].native, cases[_i].native_whole, cases[_i].first, cases[_i].second, cases[_i].whole,
				cases[_i].keep),
			 cases[_i].expected);
	ck_assert_int_eq(misfit, cases[_i].misfit);
}
END_TEST

static const struct {
	const char *native, *first, *expected;
	bool native_whole, whole, misfit;
} unseen_cases[] = {
	/* As many states as there are coroutines, and the main thread: all were seen. */
	{"LbLm", "1^2^-9%", "1b2m", true, true, false},
	{"aLbRcLm", "1^-8$2^-9%", "a1bRc2m", true, true, false},
	/* One is missing. The main thread is outside of all of them. */
	{"LRcLdLm", "1^2^-9%", "LRc1d2m", true, true, false},
	{"aLbRcLWdRLm", "1^-9%", "aLbRcLWdR1m", true, true, false},
	{"aRcLm", "5^-9%", "aRc5m", true, true, false},
	/* That the one which is there is the main thread is not known, or which others are missing. */
	{"LRcLdLm", "1^-9$", "LRcLdLm!1", true, true, true},
	{"LRcLRdLm", "1^-8$2^-9%", "LRcLRdLm!12", true, true, true},
	{"aLbRcLm", "1^2", "aLbRcLm!12~", true, false, true},
	/* Where the native stack was cut, further coroutines may be behind it. */
	{"Lb", "1^2^-9%", "Lb|12", false, true, false},
	{"LbRcL", "1^2^-9%", "LbRcL|12", false, true, false},
	{"Lb", "1^-9$", "Lb|!1", false, true, true},
	{"Lb", "-9$", "Lb|", false, true, false},
};

START_TEST(coroutines_that_the_walk_does_not_see_are_given_no_others_frames)
{
	unseen = true;
	ck_assert_str_eq(merged(unseen_cases[_i].native, unseen_cases[_i].native_whole, unseen_cases[_i].first, "",
				unseen_cases[_i].whole, false),
			 unseen_cases[_i].expected);
	ck_assert_int_eq(misfit, unseen_cases[_i].misfit);
	unseen = false;
}
END_TEST

/* Whatever the flags: each frame that is not hidden comes once, and nothing more than the room. */
START_TEST(nothing_is_lost_or_doubled)
{
	static uint16_t flags[2][40];
	static struct merge_native native[40];
	static struct merge_frame to[MERGE_MAX(40, 80)];
	uint64_t x = 88172645463325252ULL;

	for (int round = 0; round < 20000; round++) {
		struct merge_in in = {.native = native};
		uint32_t shown = 0, seen = 0, n;

		for (int i = 0; i < 40; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			native[i] = (struct merge_native){.runtime = x % 3, .function = x / 4 % 2};
			if (x >> 50 & 1)
				native[i] = (struct merge_native){.resumes = x >> 51 & 1};
			flags[0][i] = (x >> 20 & 3) | (x >> 22 & 1) * RUNTIME_STACK | (x >> 23 & 1) * RUNTIME_MAIN;
			flags[1][i] = x >> 30 & 3;
		}
		in.nr_native = x % 40;
		in.native_whole = x & 64;
		in.runtime[0] = (struct merge_runtime){flags[0], x >> 40 & 31, x & 128, x & 512};
		in.runtime[1] = (struct merge_runtime){flags[1], x >> 45 & 31, x & 256, false};
		for (uint32_t r = 0; r < 2; r++)
			for (uint32_t i = 0; i < in.runtime[r].nr; i++)
				shown += !(in.runtime[r].flags[i] & RUNTIME_HIDDEN);
		n = merge(&in, to, &misfit);
		ck_assert_uint_le(n, ARRAY_SIZE(to));
		for (uint32_t i = 0; i < n; i++)
			seen += to[i].kind >= MERGE_RUNTIME;
		ck_assert_uint_eq(seen, shown);
	}
}
END_TEST

START_TEST(loops_of_a_runtime_without_frames_stay)
{
	const struct merge_native native[] = {{.runtime = 2}, {.runtime = 1}};
	const uint16_t flags[] = {RUNTIME_ENTRY};
	const struct merge_in in = {.native = native, .nr_native = 2, .native_whole = true,
				    .runtime = {{flags, 1, true, false}}};
	struct merge_frame to[MERGE_MAX(2, 1)];

	ck_assert_uint_eq(merge(&in, to, &misfit), 2);
	ck_assert_uint_eq(to[0].kind, MERGE_NATIVE);
	ck_assert_uint_eq(to[1].kind, MERGE_RUNTIME);
}
END_TEST

Suite *merge_suite(void)
{
	Suite *s = suite_create("merge");
	TCase *t = tcase_create("merge");

	tcase_add_loop_test(t, halves_become_one_stack, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(t, coroutines_that_the_walk_does_not_see_are_given_no_others_frames, 0,
			    ARRAY_SIZE(unseen_cases));
	tcase_add_test(t, nothing_is_lost_or_doubled);
	tcase_add_test(t, loops_of_a_runtime_without_frames_stay);
	suite_add_tcase(s, t);
	return s;
}
