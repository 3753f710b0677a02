// SPDX-License-Identifier: Apache-2.0
/* Kernel symbols: from text to names relative to modules. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbol/symbol.h"

static const char sample_text[] =
	"0000000000000000 A fixed_percpu_data\n"
	"ffffffff81000000 T startup_64\n"
	"ffffffff81000000 T _text\n"
	"ffffffff81000000 T _stext\n"
	"ffffffff81000040 t local_one\n"
	"ffffffff81000080 T __pfx_schedule\n"
	"ffffffff81000090 T schedule\n"
	"ffffffff81000090 t schedule_local_alias\n"
	"ffffffff81000200 W __weak_name\n"
	"ffffffff81000200 T strong_name\n"
	"ffffffff81000300 D some_data\n"
	"ffffffff81000400 T _etext\n"
	"ffffffffc0001000 t mod_init\t[ext4]\n"
	"ffffffffc0001100 t mod_read\t[ext4]\n"
	"ffffffffc0009000 t bpf_prog_6deef7357e7b4530_count\t[bpf]\n"
	"ffffffffc0001200 d mod_data\t[ext4]\n";

static struct kernel_symbols *k;

static int load(const char *text, size_t len)
{
	int fd = memfd_create("kallsyms", 0), r;

	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	r = kernel_symbols_load(fd, &k);
	close(fd);
	return r;
}

static void set_up(void)
{
	ck_assert_int_eq(load(sample_text, strlen(sample_text)), 0);
}

static void tear_down(void)
{
	k = kernel_symbols_free(k);
}

static const struct {
	uint64_t addr;
	const char *name, *module;
	uint64_t offset, start;
	bool named;
} finds[] = {
	{0xffffffff81000000, "startup_64", "vmlinux", 0, 0, true},
	{0xffffffff81000041, "local_one", "vmlinux", 0x41, 0x40, true},
	/* Padding before a function is none: what lies there belongs to the one before. */
	{0xffffffff81000088, "local_one", "vmlinux", 0x88, 0x40, true},
	{0xffffffff81000090, "schedule", "vmlinux", 0x90, 0x90, true},
	{0xffffffff81000210, "strong_name", "vmlinux", 0x210, 0x200, true},
	{0xffffffffc0001000, "mod_init", "ext4", 0, 0, true},
	{0xffffffffc0001180, "mod_read", "ext4", 0x180, 0x100, true},
	{0xffffffffc0009010, "bpf_prog_6deef7357e7b4530_count", "bpf", 0x10, 0, true},
	/* Far behind the last symbol of its module, and outside of all. */
	{0xffffffffc0008000, "[kernel]", "kernel", 0, 0, false},
	{0xffffffff80ffffff, "[kernel]", "kernel", 0, 0, false},
	{0xffffffffffffffff, "[kernel]", "kernel", 0, 0, false},
	{0, "[kernel]", "kernel", 0, 0, false},
};

START_TEST(address_has_name_and_place_in_its_module)
{
	struct kernel_symbol s;

	kernel_find(k, finds[_i].addr, &s);
	ck_assert_str_eq(s.name, finds[_i].name);
	ck_assert_str_eq(s.module, finds[_i].module);
	ck_assert_uint_eq(s.offset, finds[_i].offset);
	ck_assert_uint_eq(s.start, finds[_i].start);
	ck_assert_int_eq(s.named, finds[_i].named);
	ck_assert(!s.named || s.offset < s.module_size);
}
END_TEST

START_TEST(what_another_load_may_name_better_is_counted)
{
	struct kernel_symbol sym;

	ck_assert_uint_eq(kernel_symbols_unsure(k), 0);
	kernel_find(k, 0xffffffffc0001180, &sym);
	ck_assert_uint_eq(kernel_symbols_unsure(k), 0);
	kernel_find(k, 0xffffffffc0008000, &sym);
	ck_assert_uint_eq(kernel_symbols_unsure(k), 1);
	kernel_find(k, 0xffffffffc0009010, &sym); /* a BPF program's, or its new neighbour's */
	ck_assert_uint_eq(kernel_symbols_unsure(k), 2);
}
END_TEST

START_TEST(hidden_addresses_are_a_permission_error)
{
	static const char text[] = "0000000000000000 T _text\n0000000000000000 t schedule\n";

	ck_assert_int_eq(load(text, strlen(text)), -EPERM);
	ck_assert_int_eq(load("", 0), -EPERM);
}
END_TEST

START_TEST(text_without_code_is_no_data)
{
	static const char text[] = "ffffffff81000300 D some_data\n";

	ck_assert_int_eq(load(text, strlen(text)), -ENODATA);
}
END_TEST

static const char *const bad[] = {
	"ffffffff81000000\n", "ffffffff81000000 T\n", "ffffffff81000000 T \n", "xyz T name\n",
	"ffffffff81000000 T name\t[unclosed\n", "ffffffff81000000 T name\t\n", "\n\n\n",
	"ffffffff81000000 T\tname\n", "fffffffffffffffff T too_long\n", "ffffffff81000000 T name\t[]",
};

START_TEST(malformed_line_is_passed_over)
{
	static const char good[] = "ffffffff82000000 T good\n";
	char text[256];
	struct kernel_symbol s;

	snprintf(text, sizeof(text), "%s%s%s", bad[_i], bad[_i][strlen(bad[_i]) - 1] == '\n' ? "" : "\n", good);
	ck_assert_int_eq(load(text, strlen(text)), 0);
	kernel_find(k, 0xffffffff82000000, &s);
	ck_assert_str_eq(s.name, "good");
	kernel_find(k, 0xffffffff81000000, &s);
	ck_assert(!s.named);
	k = kernel_symbols_free(k);
}
END_TEST

/* Names are kept as strings, which end at a NUL. */
START_TEST(line_with_a_nul_is_passed_over)
{
	static const char text[] = "ffffffff81000000 T na\0me\nffffffff81000100 T name\t[vmlinux\0]\n"
				   "ffffffff82000000 T good\n";
	struct kernel_symbol s;

	ck_assert_int_eq(load(text, sizeof(text) - 1), 0);
	kernel_find(k, 0xffffffff81000000, &s);
	ck_assert(!s.named);
	kernel_find(k, 0xffffffff81000100, &s);
	ck_assert(!s.named);
	kernel_find(k, 0xffffffff82000000, &s);
	ck_assert_str_eq(s.name, "good");
	k = kernel_symbols_free(k);
}
END_TEST

START_TEST(last_line_needs_no_end)
{
	static const char text[] = "ffffffff81000000 T only";
	struct kernel_symbol s;

	ck_assert_int_eq(load(text, strlen(text)), 0);
	kernel_find(k, 0xffffffff81000001, &s);
	ck_assert_str_eq(s.name, "only");
	k = kernel_symbols_free(k);
}
END_TEST

/* As many as a kernel has, in lines that cross the reader's chunks, and an endless one. */
START_TEST(hundred_thousand_symbols_stay_small)
{
	_cleanup_(buf_done) struct buf text = {0};
	struct kernel_symbol s;
	char want[32];

	for (unsigned i = 0; i < 100000; i++)
		buf_printf(&text, "%016llx t function_%u%s\n", 0xffffffff81000000ULL + i * 64, i,
			   i % 10 == 9 ? "\t[mod]" : "");
	for (unsigned i = 0; i < 20000; i++)
		buf_add_str(&text, "0123456789");
	buf_add_str(&text, "\nffffffff91000000 t behind\n");
	ck_assert_int_eq(load((char *)text.data, text.len), 0);
	for (unsigned i = 0; i < 100000; i += 997) {
		kernel_find(k, 0xffffffff81000000ULL + i * 64 + 63, &s);
		snprintf(want, sizeof(want), "function_%u", i);
		ck_assert_str_eq(s.name, want);
	}
	kernel_find(k, 0xffffffff91000000ULL, &s);
	ck_assert_str_eq(s.name, "behind");
	ck_assert_uint_lt(kernel_symbols_bytes(k), 5u << 20);
	k = kernel_symbols_free(k);
}
END_TEST

START_TEST(unreadable_descriptor_is_an_error)
{
	ck_assert_int_eq(kernel_symbols_load(-1, &k), -EBADF);
}
END_TEST

Suite *kallsyms_suite(void);
Suite *kallsyms_suite(void)
{
	Suite *s = suite_create("kallsyms");
	TCase *t = tcase_create("find"), *l = tcase_create("load");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, address_has_name_and_place_in_its_module, 0, (int)ARRAY_SIZE(finds));
	tcase_add_test(t, what_another_load_may_name_better_is_counted);
	suite_add_tcase(s, t);
	tcase_add_test(l, hidden_addresses_are_a_permission_error);
	tcase_add_test(l, text_without_code_is_no_data);
	tcase_add_loop_test(l, malformed_line_is_passed_over, 0, (int)ARRAY_SIZE(bad));
	tcase_add_test(l, line_with_a_nul_is_passed_over);
	tcase_add_test(l, last_line_needs_no_end);
	tcase_add_test(l, hundred_thousand_symbols_stay_small);
	tcase_add_test(l, unreadable_descriptor_is_an_error);
	suite_add_tcase(s, l);
	return s;
}
