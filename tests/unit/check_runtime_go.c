// SPDX-License-Identifier: Apache-2.0
/* How a Go program's own code tells where its goroutines' stacks are, and what a copied stack means. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"
#include "tests/lib/go_file.h"

Suite *runtime_go_suite(void);

#define BIAS 0x550000000000ull
#define NAMES 40 /* of the functions, in the table's names */

static struct go_file file;
static struct binary *binary;
static struct runtime_attached attached;
static char why[RUNTIME_WHY_MAX];
static uint64_t slot, slot_at; /* a word that the loader fills in */

static int read_slot(struct memory *m, uint64_t addr, void *to, size_t len)
{
	if (addr != slot_at || len != sizeof(slot))
		return -EFAULT;
	memcpy(to, &slot, sizeof(slot));
	return 0;
}

static struct memory memory = {.read = read_slot};

/* mov 48(%rax),%rbx; cmp 72(%rbx),%rax; je; mov (%rbx),%rdx; cmp %rdx,%rax; je; cmp 184(%rbx),%rax */
static const uint8_t find_curg[] = {0x48, 0x8b, 0x58, 48, 0x48, 0x3b, 0x43, 72, 0x74, 9, 0x48, 0x8b, 0x13, 0x48, 0x39,
				    0xd0, 0x74, 9, 0x48, 0x3b, 0x83, 184, 0, 0, 0, 0x75, 0x5d};

/* Three ways to read g: from a fixed offset, one in a register, and one that is read. */
static const struct {
	const char *text;
	uint8_t code[16];
	uint32_t len;
	uint64_t base;
} tls[] = {
	{"mov %fs:-8,%rax", {0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff}, 9, (uint64_t)-8},
	{"mov $-16,%rcx; mov %fs:(%rcx),%rax", {0x48, 0xc7, 0xc1, 0xf0, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0x01}, 11,
	 (uint64_t)-16},
	{"mov 0x100(%rip),%rcx; mov %fs:(%rcx),%rax", {0x48, 0x8b, 0x0d, 0, 1, 0, 0, 0x64, 0x48, 0x8b, 0x01}, 11,
	 (uint64_t)-128},
};

static void put_code(int way)
{
	uint8_t *code = file.tiny.image + TINY_CODE;

	memset(code, 0x90, 64);
	memcpy(code + 4, tls[way].code, tls[way].len);
	memcpy(code + 4 + tls[way].len, find_curg, sizeof(find_curg));
	slot = (uint64_t)-128;
	slot_at = BIAS + TINY_CODE + 4 + 7 + 0x100;
}

static void setup(void)
{
	static const char names[] = "runtime.systemstack.abi0\0runtime.systemstack_switch";

	go_file_init(&file, GO_1_20);
	memcpy(file.tiny.image + TINY_EH + GO_FILE_NAMES + NAMES, names, sizeof(names));
	go_file_put(&file, file.function[0] + 4, NAMES, 4);
	go_file_put(&file, file.function[1] + 4, NAMES + 25, 4);
	put_code(0);
	binary = NULL;
}

static void teardown(void)
{
	binary_put(binary);
}

static int attach(void)
{
	struct runtime_file with = {.bias = BIAS};

	binary_put(binary);
	binary = tiny_open(&file.tiny);
	ck_assert_ptr_nonnull(binary);
	with.binary = binary;
	memset(&attached, 0, sizeof(attached));
	memset(why, 0, sizeof(why));
	memory_question(&memory);
	return runtime_go.attach(&with, &memory, &attached, why);
}

static int index_of_go(void)
{
	for (int i = 0; runtime_list[i]; i++)
		if (runtime_list[i] == &runtime_go)
			return i;
	return -1;
}

START_TEST(a_program_is_known_by_its_table)
{
	ck_assert_int_eq(attach(), 0);
	ck_assert_int_eq(runtime_of_file(binary), index_of_go());
	file.tiny.image[TINY_EH + 7] = 4; /* not a pointer's size */
	ck_assert_int_eq(attach(), -ENOENT);
	ck_assert_int_eq(runtime_of_file(binary), -ENOENT);
}
END_TEST

START_TEST(the_code_tells_where_the_goroutine_is)
{
	struct otp_walks walks = {.generation = 1};

	put_code(_i);
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.walk.base, tls[_i].base);
	ck_assert_uint_eq(attached.walk.nr_chain, 3);
	ck_assert_int_eq(attached.walk.chain[1], 48);
	ck_assert_int_eq(attached.walk.chain[2], 184);
	ck_assert_int_eq(attached.walk.via, 0);
	ck_assert_str_eq(attached.version, "1.20 or later");
	walks.plan[0] = attached.walk;
	ck_assert(otp_walk_sound(&walks));
}
END_TEST

START_TEST(a_word_of_the_loader_that_cannot_be_read_is_no_offset)
{
	put_code(2);
	slot_at = 0;
	ck_assert_int_eq(attach(), -EFAULT);
}
END_TEST

START_TEST(other_code_is_not_guessed_at)
{
	memset(file.tiny.image + TINY_CODE + 4, 0x90, 9);
	ck_assert_int_eq(attach(), -ENOTSUP);
	ck_assert_int_ne(why[0], 0);
	put_code(0);
	file.tiny.image[TINY_CODE + 4 + 9 + 3] = 56; /* not g.m */
	ck_assert_int_eq(attach(), -ENOTSUP);
	/* Code that ends within the instruction. */
	put_code(0);
	memmove(file.tiny.image + TINY_CODE + 41, file.tiny.image + TINY_CODE + 4, 23);
	memset(file.tiny.image + TINY_CODE + 4, 0x90, 37);
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(a_program_without_these_functions_is_not_walked)
{
	file.tiny.image[TINY_EH + GO_FILE_NAMES + NAMES + 25] = 'X';
	ck_assert_int_eq(attach(), -ENOENT);
}
END_TEST

START_TEST(a_stack_goes_on_where_it_was_left)
{
	uint64_t root[] = {0xc000001f00, BIAS + TINY_CODE + 0x48, 0xc000000100, 0xc000001f00};
	struct runtime_stack to;

	ck_assert_int_eq(attach(), 0);
	ck_assert_int_eq(runtime_go.stack(&attached, root, 4, &to), 0);
	ck_assert_uint_eq(to.pc, root[1]);
	ck_assert_uint_eq(to.sp, root[0]);
	ck_assert_uint_eq(to.id, root[2]);
	ck_assert(to.stand_in); /* systemstack_switch */
	root[1] = BIAS + TINY_CODE + 0x20;
	ck_assert_int_eq(runtime_go.stack(&attached, root, 4, &to), 0);
	ck_assert(!to.stand_in);
	/* In the vDSO: what is in sched is old. */
	root[3] |= OTP_WALK_VIA;
	ck_assert_int_eq(runtime_go.stack(&attached, root, 4, &to), 0);
	ck_assert_uint_eq(to.pc, 0);
	/* Nothing was copied. */
	ck_assert_int_eq(runtime_go.stack(&attached, root, 3, &to), -ENOENT);
}
END_TEST

Suite *runtime_go_suite(void)
{
	Suite *s = suite_create("runtime_go");
	TCase *t = tcase_create("runtime_go");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_program_is_known_by_its_table);
	tcase_add_loop_test(t, the_code_tells_where_the_goroutine_is, 0, ARRAY_SIZE(tls));
	tcase_add_test(t, a_word_of_the_loader_that_cannot_be_read_is_no_offset);
	tcase_add_test(t, other_code_is_not_guessed_at);
	tcase_add_test(t, a_program_without_these_functions_is_not_walked);
	tcase_add_test(t, a_stack_goes_on_where_it_was_left);
	suite_add_tcase(s, t);
	return s;
}
