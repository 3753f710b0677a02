// SPDX-License-Identifier: Apache-2.0
#include <check.h>

#include "base/cleanup.h"
#include "hub/guard.h"

Suite *hub_guard_suite(void);

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *const names[] = {"hub.example"};
static const struct guard with_token = {.hosts = names, .nr_hosts = 1, .token = TOKEN};
static const struct guard without = {.hosts = names, .nr_hosts = 1};

static const struct {
	const char *host;
	enum guard_verdict verdict;
} hosts[] = {
	{"127.0.0.1", GUARD_PASS},	{"127.0.0.1:4380", GUARD_PASS}, {"localhost:1", GUARD_PASS},
	{"LocalHost", GUARD_PASS},	{"[::1]", GUARD_PASS},		{"[::1]:4380", GUARD_PASS},
	{"hub.example:4380", GUARD_PASS}, {"HUB.example", GUARD_PASS},	{NULL, GUARD_HOST},
	{"", GUARD_HOST},		{"evil.example", GUARD_HOST},	{"localhost.evil.example", GUARD_HOST},
	{"127.0.0.1.", GUARD_HOST},	{"127.0.0.1:", GUARD_HOST},	{"127.0.0.1:80x", GUARD_HOST},
	{"127.0.0.1:80@evil", GUARD_HOST}, {"[::1", GUARD_HOST},	{"[::1]x", GUARD_HOST},
	{"::1", GUARD_HOST},		{":4380", GUARD_HOST},		{"127.0.0.2", GUARD_HOST},
};

static const struct {
	const char *host;
	enum guard_verdict verdict;
} numbers[] = {
	{"192.0.2.7:4380", GUARD_PASS}, {"[2001:db8::1]:4380", GUARD_PASS}, {"192.0.2.7", GUARD_PASS},
	{"192.0.2.7.evil.example", GUARD_HOST}, {"evil.example", GUARD_HOST}, {"[evil]:4380", GUARD_HOST},
	{"192.0.2", GUARD_HOST}, {"[192.0.2.7]:1", GUARD_HOST}, {"0xc0000207", GUARD_HOST},
};

START_TEST(off_loopback_an_address_is_a_name_of_the_hub)
{
	struct guard any = without;
	struct guard_request r = {.method = "GET", .host = numbers[_i].host};

	ck_assert_int_eq(guard_check(&any, &r), GUARD_HOST);
	any.addresses = true;
	ck_assert_int_eq(guard_check(&any, &r), numbers[_i].verdict);
}
END_TEST

START_TEST(guard_knows_its_names_only)
{
	struct guard_request r = {.method = "GET", .host = hosts[_i].host};

	ck_assert_int_eq(guard_check(&without, &r), hosts[_i].verdict);
	r.page = true;
	ck_assert_int_eq(guard_check(&without, &r), hosts[_i].verdict);
}
END_TEST

static const struct {
	const char *method, *site, *origin;
	bool page;
	enum guard_verdict verdict;
} sites[] = {
	{"GET", NULL, NULL, false, GUARD_PASS},
	{"GET", "none", NULL, false, GUARD_PASS},
	{"GET", "same-origin", NULL, false, GUARD_PASS},
	{"GET", "cross-site", NULL, false, GUARD_CROSS_SITE},
	{"GET", "same-site", NULL, false, GUARD_CROSS_SITE},
	{"GET", "cross-site", NULL, true, GUARD_PASS},
	{"POST", "cross-site", NULL, true, GUARD_CROSS_SITE},
	{"PUT", "cross-site", "http://localhost:4380", false, GUARD_CROSS_SITE},
	{"PUT", NULL, "http://localhost:4380", false, GUARD_PASS},
	{"PUT", NULL, "http://localhost:81", false, GUARD_CROSS_SITE},
	{"PUT", NULL, "http://evil.example", false, GUARD_CROSS_SITE},
	{"PUT", NULL, "null", false, GUARD_CROSS_SITE},
	{"PUT", NULL, "", false, GUARD_CROSS_SITE},
	{"DELETE", "same-origin", "http://evil.example", false, GUARD_PASS},
};

START_TEST(guard_refuses_other_sites)
{
	struct guard_request r = {.method = sites[_i].method, .host = "localhost:4380", .sec_fetch_site = sites[_i].site,
				  .origin = sites[_i].origin, .page = sites[_i].page};

	ck_assert_int_eq(guard_check(&without, &r), sites[_i].verdict);
}
END_TEST

static const struct {
	const char *authorization;
	enum guard_verdict verdict;
} tokens[] = {
	{"Bearer " TOKEN, GUARD_PASS},	{"bearer  " TOKEN, GUARD_PASS}, {NULL, GUARD_TOKEN},
	{"", GUARD_TOKEN},		{"Bearer", GUARD_TOKEN},	{"Bearer ", GUARD_TOKEN},
	{TOKEN, GUARD_TOKEN},		{"Basic " TOKEN, GUARD_TOKEN},	{"Bearer " TOKEN "0", GUARD_TOKEN},
	{"Bearer 0123456789abcdef0123456789abcdeg", GUARD_TOKEN},	{"Bearer 0123456789abcdef", GUARD_TOKEN},
};

START_TEST(guard_wants_the_whole_token)
{
	struct guard_request r = {.method = "GET", .host = "localhost", .authorization = tokens[_i].authorization};

	ck_assert_int_eq(guard_check(&with_token, &r), tokens[_i].verdict);
	ck_assert_int_eq(guard_check(&without, &r), GUARD_PASS);
	r.page = true;
	ck_assert_int_eq(guard_check(&with_token, &r), GUARD_PASS);
}
END_TEST

Suite *hub_guard_suite(void)
{
	Suite *s = suite_create("hub_guard");
	TCase *t = tcase_create("guard");

	tcase_add_loop_test(t, guard_knows_its_names_only, 0, ARRAY_SIZE(hosts));
	tcase_add_loop_test(t, off_loopback_an_address_is_a_name_of_the_hub, 0, ARRAY_SIZE(numbers));
	tcase_add_loop_test(t, guard_refuses_other_sites, 0, ARRAY_SIZE(sites));
	tcase_add_loop_test(t, guard_wants_the_whole_token, 0, ARRAY_SIZE(tokens));
	suite_add_tcase(s, t);
	return s;
}
