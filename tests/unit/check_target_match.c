// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/monitor/target_match.h"

Suite *target_match_suite(void);

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *pattern, *text;
	bool fits;
} globs[] = {
	{"", "", true},		   {"*", "", true},	      {"?", "", false},		{"a", "a", true},
	{"a", "ab", false},	   {"a*", "abc", true},	      {"*c", "abc", true},	{"*b*", "abc", true},
	{"a?c", "abc", true},	   {"/*/b", "/a/b", true},    {"/*/b", "/a/c/b", false}, {"/a*", "/a/b", false},
	{"/?", "//", false},	   {"*/b", "a/b", true},      {"/a/*", "/a/", true},	{"**", "abc", true},
	{"/*x*/*y", "/axb/cy", true}, {"a*b*c", "aXbXbc", true}, {"a*b*c", "aXbXb", false}, {"*", "a/b", false},
};

START_TEST(pattern_does_not_cross_a_slash)
{
	ck_assert_msg(target_glob(globs[_i].pattern, globs[_i].text) == globs[_i].fits, "%s %s", globs[_i].pattern,
		      globs[_i].text);
}
END_TEST

/* Someone who may name cgroups must not be able to hold the monitor up. */
START_TEST(hostile_text_costs_its_length_only)
{
	char text[4096];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 20; i++)
		ck_assert(!target_glob("*a*a*a*a*a*a*a*a*a*a*b", text));
}
END_TEST

static const char *name_of(void *ctx, const char *id)
{
	return strcmp(id, ID) ? "" : "web";
}

static const struct {
	enum target_kind kind;
	const char *text, *path;
	bool itself, below;
} cgroups[] = {
	{TARGET_CGROUP, "/a/b", "/a/b", true, true},
	{TARGET_CGROUP, "/a/b", "/a/b/c/d", false, true},
	{TARGET_CGROUP, "/a/b", "/a/bc", false, false},
	{TARGET_CGROUP, "/a/*", "/a", false, false},
	{TARGET_CGROUP, "/", "/a/b", false, true},
	{TARGET_UNIT, "x.service", "/system.slice/x.service", true, true},
	{TARGET_UNIT, "x.service", "/system.slice/x.service/worker", false, true},
	{TARGET_UNIT, "x@*.service", "/system.slice/system-x.slice/x@1.service", true, true},
	{TARGET_UNIT, "x.service", "/system.slice/ax.service", false, false},
	{TARGET_CONTAINER, "0123", "/docker/" ID, true, true},
	{TARGET_CONTAINER, "012", "/docker/" ID, false, false},
	{TARGET_CONTAINER, ID, "/system.slice/docker-" ID ".scope", true, true},
	{TARGET_CONTAINER, "1234", "/docker/" ID, false, false},
	{TARGET_CONTAINER, "web", "/docker/" ID, true, true},
	{TARGET_CONTAINER, "w?b", "/docker/" ID "/init", true, true},
	{TARGET_CONTAINER, "*", "/docker/none", false, false},
	{TARGET_CONTAINER, "my-box", "/machine.slice/machine-my\\x2dbox.scope", true, true},
};

START_TEST(cgroup_fits_itself_and_what_is_below)
{
	const struct config_target t = {.kind = cgroups[_i].kind, .text = (char *)cgroups[_i].text};

	ck_assert_msg(target_fits_cgroup(&t, t.text, cgroups[_i].path, name_of, NULL) == cgroups[_i].itself, "%s %s", t.text,
		      cgroups[_i].path);
	ck_assert_msg(target_fits_below(&t, t.text, cgroups[_i].path, name_of, NULL) == cgroups[_i].below, "%s %s", t.text,
		      cgroups[_i].path);
}
END_TEST

static const struct {
	const char *text, *exe, *comm;
	bool fits;
} exes[] = {
	{"nginx", "/usr/sbin/nginx", "nginx", true},
	{"nginx", "/usr/sbin/nginx (deleted)", "x", true},
	{"nginx", "", "nginx", true},
	{"nginx", "/usr/sbin/nginx2", "nginx2", false},
	{"python3", "/usr/bin/python3.11", "python3", true},
	{"redis-*", "/usr/bin/redis-check-rdb", "redis-server", true},
	{"/usr/bin/*", "/usr/bin/python3.11", "python3", true},
	{"/usr/bin/*", "/usr/bin/x/y", "y", false},
	{"/usr/bin/python3", "/usr/bin/python3.11", "python3", false},
	{"a-very-long-name-of-a-program", "", "a-very-long-nam", true},
	{"a-very-long", "", "a-very-long-nam", false},
};

START_TEST(program_fits_by_its_file_or_the_name_it_began_under)
{
	const struct config_target t = {.kind = TARGET_EXE, .text = (char *)exes[_i].text};

	ck_assert_msg(target_fits_exe(&t, exes[_i].exe, exes[_i].comm) == exes[_i].fits, "%s %s", t.text, exes[_i].exe);
}
END_TEST

START_TEST(path_that_is_too_long_fits_nothing)
{
	const struct config_target t = {.kind = TARGET_CONTAINER, .text = "*"};
	char *path = malloc(20000);

	memset(path, '/', 19999);
	path[19999] = '\0';
	ck_assert(!target_fits_cgroup(&t, NULL, path, NULL, NULL));
	ck_assert(!target_fits_below(&t, NULL, path, NULL, NULL));
	free(path);
}
END_TEST

Suite *target_match_suite(void)
{
	Suite *s = suite_create("target_match");
	TCase *t = tcase_create("match");

	tcase_add_loop_test(t, pattern_does_not_cross_a_slash, 0, ARRAY_SIZE(globs));
	tcase_add_test(t, hostile_text_costs_its_length_only);
	tcase_add_loop_test(t, cgroup_fits_itself_and_what_is_below, 0, ARRAY_SIZE(cgroups));
	tcase_add_loop_test(t, program_fits_by_its_file_or_the_name_it_began_under, 0, ARRAY_SIZE(exes));
	tcase_add_test(t, path_that_is_too_long_fits_nothing);
	suite_add_tcase(s, t);
	return s;
}
