// SPDX-License-Identifier: Apache-2.0
/* Readable names, and what hostile ones cost. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbol/symbol.h"

static const struct {
	const char *in, *out; /* out NULL: left as it is */
} names[] = {
	{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
	{"_Z3maxIiET_S0_S0_", "max<int>"},
	{"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"},
	{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
	{"_ZN3foo3barEi.cold", "foo::bar"},
	{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
	{"_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.42", "core::ptr::drop_in_place"},
	{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
	{"printf", NULL},
	{"_start", NULL},
	{"_Z", NULL},
	{"_Znonsense", NULL},
	{"_R", NULL},
	{"", NULL},
	{"_", NULL},
};

START_TEST(name_is_demangled_without_parameters_and_hash)
{
	_cleanup_(freep) char *out = symbol_demangle(names[_i].in);

	if (names[_i].out)
		ck_assert_str_eq(out, names[_i].out);
	else
		ck_assert_ptr_null(out);
}
END_TEST

/* A<pair<int,int>, pair<that,that>, pair<that,that> ...>: twice as long with each argument. */
static void make_bomb(char *to, int arguments)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	to += sprintf(to, "_ZN1AI4pairIiiE");
	for (int i = 1; i <= arguments; i++)
		to += sprintf(to, "S0_IS%c_S%c_E", digits[i], digits[i]);
	sprintf(to, "E1fEv");
}

START_TEST(name_that_expands_without_end_is_refused_soon)
{
	char name[1024];
	uint64_t begin = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);

	make_bomb(name, 34);
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_null(symbol_demangle(name));
	/* 10 ms each would still be a bound; it is microseconds. */
	ck_assert_uint_lt(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin, 1000 * NSEC_PER_MSEC);
}
END_TEST

START_TEST(name_that_expands_a_little_is_readable)
{
	char name[1024];
	_cleanup_(freep) char *out = NULL;

	make_bomb(name, 3);
	out = symbol_demangle(name);
	ck_assert_ptr_nonnull(out);
	ck_assert_uint_le(strlen(out), 16384);
}
END_TEST

/* A function's type, within a path that prints nothing. */
START_TEST(name_that_binds_lifetimes_without_end_is_refused_soon)
{
	_cleanup_(freep) char *out = symbol_demangle("_RNrMNrMC1mFGFCsC1mFGFCs_"), *few = NULL;

	ck_assert_ptr_null(out);
	few = symbol_demangle("_RMC0FG_RL0_hEu");
	ck_assert_str_eq(few, "<for<'a> fn(&'a u8)>");
}
END_TEST

START_TEST(name_beyond_the_length_limit_is_left_alone)
{
	char name[5000] = "_ZN";

	for (int i = 3; i + 3 < 4990; i += 2)
		memcpy(name + i, "1a", 3);
	strcat(name, "Ev");
	ck_assert_ptr_null(symbol_demangle(name));
}
END_TEST

START_TEST(deeply_nested_name_does_no_harm)
{
	char name[4000] = "_Z1f";

	memset(name + 4, 'P', 3900);
	name[3904] = 'i';
	free(symbol_demangle(name));
}
END_TEST

Suite *demangle_suite(void);
Suite *demangle_suite(void)
{
	Suite *s = suite_create("demangle");
	TCase *t = tcase_create("names");

	tcase_add_loop_test(t, name_is_demangled_without_parameters_and_hash, 0, (int)ARRAY_SIZE(names));
	tcase_add_test(t, name_that_expands_without_end_is_refused_soon);
	tcase_add_test(t, name_that_expands_a_little_is_readable);
	tcase_add_test(t, name_that_binds_lifetimes_without_end_is_refused_soon);
	tcase_add_test(t, name_beyond_the_length_limit_is_left_alone);
	tcase_add_test(t, deeply_nested_name_does_no_harm);
	suite_add_tcase(s, t);
	return s;
}
