// SPDX-License-Identifier: Apache-2.0
/* After which file generated code is named. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/maker.h"

Suite *maker_suite(void);

static struct mapped_file generated = {.kind = MAPPED_ANON}, file = {.kind = MAPPED_FILE, .state = MAPPED_READY};
static struct mapping generated_map = {.file = &generated}, file_map = {.file = &file};
static struct unwind_stack stack;

/* Two frames of generated code, which a file called. */
static void set_up(const char *path)
{
	memset(&stack, 0, sizeof(stack));
	str_put(file.path);
	file.path = str_get_c(path);
	ck_assert_ptr_nonnull(file.path);
	stack.count = 3;
	for (int i = 0; i < 3; i++)
		stack.frames[i] = (struct frame){.kind = KIND_NATIVE, .pc = 0x1000, .map = i < 2 ? &generated_map : &file_map};
}

static void expect(const char *name)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct frame f = stack.frames[i];

		f.guess = 1;
		ck_assert(maker_name_frame(&stack, i, &f));
		ck_assert_uint_eq(f.kind, KIND_JIT);
		ck_assert(f.flags & FRAME_NAMED);
		ck_assert_uint_eq(f.guess, 1);
		ck_assert_str_eq(str_c(f.function), name);
		str_put(f.function);
	}
}

static void expect_none(void)
{
	struct frame f = stack.frames[0];

	ck_assert(!maker_name_frame(&stack, 0, &f));
	ck_assert_uint_eq(f.kind, KIND_NATIVE);
	ck_assert_uint_eq(f.pc, 0x1000);
}

START_TEST(code_is_named_after_the_file_that_called_it)
{
	set_up("/usr/bin/grep");
	expect("[generated code, called by grep]");
}
END_TEST

START_TEST(a_library_is_named_without_its_version)
{
	set_up("/usr/lib/libpcre2-8.so.0.11.2");
	expect("[generated code, called by libpcre2-8]");
	set_up("/usr/lib/libffi.so");
	expect("[generated code, called by libffi]");
	set_up("/opt/tool.socket");
	expect("[generated code, called by tool.socket]");
	set_up(".so.1");
	expect("[generated code, called by .so.1]");
}
END_TEST

START_TEST(a_long_name_is_cut)
{
	char path[200] = "/opt/", want[128];

	memset(path + 5, 'x', 150);
	set_up(path);
	snprintf(want, sizeof(want), "[generated code, called by %.64s]", path + 5);
	expect(want);
}
END_TEST

START_TEST(a_path_without_a_name_gives_none)
{
	set_up("/opt/");
	expect_none();
}
END_TEST

/* Nobody called it who is known. */
START_TEST(code_that_no_file_called_has_no_name)
{
	set_up("/usr/bin/grep");
	stack.count = 2;
	expect_none();
	stack.count = 3;
	stack.frames[1].flags = FRAME_SIGNAL;
	expect_none();
	stack.frames[1].flags = 0;
	stack.frames[2].kind = KIND_MARKER;
	expect_none();
	stack.frames[2].kind = KIND_NATIVE;
	stack.frames[2].map = NULL;
	expect_none();
	stack.frames[2].map = &file_map;
	file.kind = MAPPED_VDSO;
	expect_none();
	file.kind = MAPPED_FILE;
}
END_TEST

Suite *maker_suite(void)
{
	Suite *s = suite_create("maker");
	TCase *t = tcase_create("maker");

	tcase_add_test(t, code_is_named_after_the_file_that_called_it);
	tcase_add_test(t, a_library_is_named_without_its_version);
	tcase_add_test(t, a_long_name_is_cut);
	tcase_add_test(t, a_path_without_a_name_gives_none);
	tcase_add_test(t, code_that_no_file_called_has_no_name);
	suite_add_tcase(s, t);
	return s;
}
