// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "process/selection.h"

Suite *selection_suite(void);

static char why[SELECTION_WHY];

static int parse(const char *line, struct selection *ret)
{
	why[0] = '\0';
	return selection_parse(line, strlen(line), ret, why);
}

static const struct {
	const char *line, *printed;
} good[] = {
	{"unit:nginx.service", "seconds=3600 unit:nginx.service"},
	{"  exe:a   exe:b ", "seconds=3600 exe:a exe:b"},
	{"hz=97", "hz=97 seconds=3600"},
	{"seconds=5 stack_bytes=512", "stack_bytes=512 seconds=5"},
	{"container:web hz=1000 seconds=86400 stack_bytes=65536", "hz=1000 stack_bytes=65536 seconds=86400 container:web"},
};

START_TEST(line_is_read_and_printed)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct selection s;

	ck_assert_int_eq(parse(good[_i].line, &s), 0);
	selection_print(&s, &b);
	ck_assert_str_eq(buf_cstr(&b), good[_i].printed);
}
END_TEST

static const char *const bad[] = {
	"", "   ", "seconds=60", "nginx", "unit:a hz=0", "hz=1001", "hz=9x", "hz=", "seconds=0 exe:a", "seconds=86401 exe:a",
	"seconds=99999999999999999999 exe:a", "stack_bytes=511 exe:a", "exe:a\texe:b", "exe:a\nexe:b", "exe:\x7f", "hz=-1",
};

START_TEST(line_that_is_no_selection_is_refused_in_words)
{
	struct selection s = {.hz = 7};

	ck_assert_int_eq(parse(bad[_i], &s), -EINVAL);
	ck_assert_str_ne(why, "");
	ck_assert_uint_eq(s.hz, 7);
}
END_TEST

START_TEST(targets_are_bounded_in_number_and_length)
{
	struct selection s = {0};
	char longest[SELECTION_WORDS_MAX];

	for (int i = 0; i < SELECTION_TARGETS_MAX; i++)
		ck_assert_int_eq(selection_add(&s, "exe:a", 5, why), 0);
	ck_assert_int_eq(selection_add(&s, "exe:a", 5, why), -ENOSPC);
	s = (struct selection){0};
	ck_assert_int_eq(selection_add(&s, "hz=1:a", 6, why), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "exe:", 4);
	ck_assert_int_eq(selection_add(&s, longest, sizeof(longest), why), -ENOSPC);
	ck_assert_uint_eq(s.nr_targets, 0);
	ck_assert_int_eq(selection_add(&s, longest, sizeof(longest) - 2, why), 0);
	ck_assert_int_eq(selection_add(&s, "exe:a", 5, why), -ENOSPC);
}
END_TEST

/* Its line is what the hub sends to a daemon: it is read by what reads the first one. */
START_TEST(the_line_of_what_was_read_can_be_read)
{
	struct selection s = {.hz = SELECTION_HZ_MAX, .stack_bytes = 1u << 30, .seconds = SELECTION_SECONDS_MAX};
	_cleanup_(buf_done) struct buf line = {0};
	char longest[SELECTION_WORDS_MAX - 2];

	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "exe:", 4);
	ck_assert_int_eq(selection_add(&s, longest, sizeof(longest), why), 0);
	selection_print(&s, &line);
	ck_assert_int_eq(selection_parse((const char *)line.data, line.len, &s, why), 0);
	ck_assert_uint_eq(strlen(s.targets), sizeof(longest));
}
END_TEST

/* --- over a configuration --- */

static struct config *base, *over;

static void on_error(void *ctx, const char *line)
{
	ck_abort_msg("%s", line);
}

static void load(const char *text)
{
	ck_assert_int_eq(config_parse("test", text, strlen(text), on_error, NULL, &base), 0);
}

static void teardown(void)
{
	over = config_deselect(over);
	base = config_free(base);
}

static int lay(const char *line)
{
	struct selection s;

	ck_assert_int_eq(parse(line, &s), 0);
	over = config_deselect(over);
	return config_select(base, &s, why, &over);
}

START_TEST(selection_adds_a_second_list_of_targets)
{
	load("[targets]\ninclude = exe:a\nexclude = user:www\n");
	ck_assert_int_eq(lay("unit:nginx exe:b hz=49"), 0);
	ck_assert_uint_eq(over->nr_targets, 4);
	ck_assert(!over->targets[0].live && !over->targets[1].live && over->targets[2].live && over->targets[3].live);
	ck_assert_str_eq(over->targets[2].text, "nginx.service");
	ck_assert_uint_eq(over->frequency_hz, 49);
	ck_assert_uint_eq(base->nr_targets, 2);
	ck_assert_uint_eq(base->frequency_hz, 19);
}
END_TEST

/* What workers and 'otprofd -n' are shown is the configuration; the list is the monitor's alone. */
START_TEST(selected_targets_are_not_printed)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	load("[targets]\ninclude = exe:a\n");
	ck_assert_int_eq(lay("exe:secret"), 0);
	ck_assert_int_eq(config_print(over, f), 0);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "include = exe:a\n"));
	ck_assert_ptr_null(strstr(text, "secret"));
}
END_TEST

START_TEST(depth_below_the_configured_one_bounds_all_stacks)
{
	load("[sampler]\nstack_bytes = 64K\nstack_max_bytes = 256K\n");
	ck_assert_int_eq(lay("stack_bytes=4096"), 0);
	ck_assert_uint_eq(over->stack_bytes, 4096);
	ck_assert_uint_eq(over->stack_max_bytes, 4096);
	ck_assert_int_eq(lay("stack_bytes=262144"), 0);
	ck_assert_uint_eq(over->stack_bytes, 262144);
	ck_assert_uint_eq(over->stack_max_bytes, 262144);
	ck_assert_int_eq(lay("stack_bytes=262145"), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "262144"));
}
END_TEST

static const char *const refused[] = {"pid:1", "nonsense:1", "unit:a;b", "cgroup:../x", "exe:a pid:1", "user:-x"};

START_TEST(targets_have_the_form_of_the_configuration)
{
	load("");
	ck_assert_int_eq(lay(refused[_i]), -EINVAL);
	ck_assert_str_ne(why, "");
}
END_TEST

START_TEST(processes_by_number_cannot_be_narrowed)
{
	load("[targets]\ninclude = pid:77\n");
	ck_assert_int_eq(lay("exe:a"), -EINVAL);
	ck_assert_int_eq(lay("hz=49"), 0);
}
END_TEST

Suite *selection_suite(void)
{
	Suite *s = suite_create("selection");
	TCase *t = tcase_create("line"), *c = tcase_create("config");

	tcase_add_loop_test(t, line_is_read_and_printed, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(t, line_that_is_no_selection_is_refused_in_words, 0, ARRAY_SIZE(bad));
	tcase_add_test(t, targets_are_bounded_in_number_and_length);
	tcase_add_test(t, the_line_of_what_was_read_can_be_read);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, selection_adds_a_second_list_of_targets);
	tcase_add_test(c, selected_targets_are_not_printed);
	tcase_add_test(c, depth_below_the_configured_one_bounds_all_stacks);
	tcase_add_loop_test(c, targets_have_the_form_of_the_configuration, 0, ARRAY_SIZE(refused));
	tcase_add_test(c, processes_by_number_cannot_be_narrowed);
	suite_add_tcase(s, c);
	return s;
}
