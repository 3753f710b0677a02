// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "process/maps_text.h"

Suite *maps_text_suite(void);

static bool first_line(const char *text, struct maps_text *t, struct maps_line *l)
{
	maps_text_init(t, text, strlen(text));
	return maps_text_next(t, l);
}

START_TEST(a_line_is_read)
{
	struct maps_text t;
	struct maps_line l;

	ck_assert(first_line("7f3a2c000000-7f3a2c021000 r-xp 00028000 fe:01 1049 "
			     "                  /usr/lib/x86_64-linux-gnu/libc.so.6\n",
			     &t, &l));
	ck_assert_uint_eq(l.start, 0x7f3a2c000000);
	ck_assert_uint_eq(l.end, 0x7f3a2c021000);
	ck_assert_uint_eq(l.offset, 0x28000);
	ck_assert_uint_eq(l.dev, makedev(0xfe, 1));
	ck_assert_uint_eq(l.ino, 1049);
	ck_assert(l.exec);
	ck_assert_str_eq(l.name, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ck_assert(!maps_text_next(&t, &l));
	ck_assert_uint_eq(t.bad_lines, 0);
}
END_TEST

static const struct {
	const char *line, *name;
	bool exec;
} lines[] = {
	{"1000-2000 rwxp 00000000 00:00 0 \n", "", true},
	{"1000-2000 rw-p 00000000 00:00 0                          [heap]\n", "[heap]", false},
	{"1000-2000 r-xp 00000000 00:00 0                          [vdso]", "[vdso]", true},
	{"1000-2000 --xp 00000000 00:00 0                          [vsyscall]\n", "[vsyscall]", true},
	{"1000-2000 r-xs 00000000 00:01 5                          /memfd:jit (deleted)\n", "/memfd:jit (deleted)", true},
	{"1000-2000 r-xp 00000000 08:01 5                          /a\\012b c\n", "/a\nb c", true},
	{"1000-2000 r-xp 00000000 08:01 5                          /a\\0\n", "/a\\0", true},
	{"1000-2000 r-xp 00000000 08:01 5                          /\xff\xfe\n", "/\xff\xfe", true},
};

START_TEST(names_come_back_as_they_are)
{
	struct maps_text t;
	struct maps_line l;

	ck_assert(first_line(lines[_i].line, &t, &l));
	ck_assert_str_eq(l.name, lines[_i].name);
	ck_assert_uint_eq(l.name_len, strlen(lines[_i].name));
	ck_assert_int_eq(l.exec, lines[_i].exec);
}
END_TEST

static const char *const bad[] = {
	"\n", "x\n", "1000\n", "1000-\n", "1000-1000 r-xp 0 0:0 0\n", "2000-1000 r-xp 0 0:0 0\n",
	"11111111111111111-22222222222222222 r-xp 0 0:0 0\n", "1000-2000 r-x\n", "1000-2000 r-xp\n",
	"1000-2000 r-xp 0 0 0\n", "1000-2000 r-xp 0 0:0\n", "1000-2000 r-xp 0 0:0 99999999999999999999\n",
};

START_TEST(a_line_that_cannot_be_read_is_skipped)
{
	char text[256];
	struct maps_text t;
	struct maps_line l;

	snprintf(text, sizeof(text), "%s3000-4000 r-xp 0 0:0 0 /next\n", bad[_i]);
	ck_assert(first_line(text, &t, &l));
	ck_assert_str_eq(l.name, "/next");
	ck_assert_uint_eq(t.bad_lines, 1);
}
END_TEST

START_TEST(a_name_longer_than_any_path_is_cut)
{
	_cleanup_(freep) char *text = malloc(20000);
	struct maps_text t;
	struct maps_line l;
	int n = snprintf(text, 20000, "1000-2000 r-xp 0 0:0 0 /");

	memset(text + n, 'a', (size_t)(19990 - n));
	text[19990] = '\0';
	ck_assert(first_line(text, &t, &l));
	ck_assert_uint_eq(l.name_len, MAPS_NAME_MAX);
}
END_TEST

START_TEST(our_own_maps_are_read_whole)
{
	static char text[1 << 20];
	FILE *f = fopen("/proc/self/maps", "r");
	size_t n = fread(text, 1, sizeof(text), f);
	struct maps_text t;
	struct maps_line l;
	bool found = false;

	fclose(f);
	maps_text_init(&t, text, n);
	while (maps_text_next(&t, &l))
		found |= l.exec && l.start <= (uintptr_t)maps_text_next && (uintptr_t)maps_text_next < l.end;
	ck_assert(found);
	ck_assert_uint_eq(t.bad_lines, 0);
}
END_TEST

Suite *maps_text_suite(void)
{
	Suite *s = suite_create("maps_text");
	TCase *t = tcase_create("lines");

	tcase_add_test(t, a_line_is_read);
	tcase_add_loop_test(t, names_come_back_as_they_are, 0, ARRAY_SIZE(lines));
	tcase_add_loop_test(t, a_line_that_cannot_be_read_is_skipped, 0, ARRAY_SIZE(bad));
	tcase_add_test(t, a_name_longer_than_any_path_is_cut);
	tcase_add_test(t, our_own_maps_are_read_whole);
	suite_add_tcase(s, t);
	return s;
}
