// SPDX-License-Identifier: Apache-2.0
/* How a Go program's own code tells where its goroutines' stacks are, and what a copied stack means. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/go.h"
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
	ck_assert_int_eq(attached.walk.held.home, 0);
	ck_assert_str_eq(attached.version, "1.20 or later");
	walks.plan[0] = attached.walk;
	ck_assert(otp_walk_sound(&walks));
}
END_TEST

/* Since Go 1.21 frames have records: mov 56(%rax),%rsp; mov n(%rax),%rbp. */
START_TEST(the_code_tells_where_the_frame_pointer_is_saved)
{
	static const uint8_t back[] = {0x48, 0x8b, 0x60, 56, 0x48, 0x8b, 0x68, 96};
	struct otp_walks walks = {.generation = 1};
	int32_t bytes;

	ck_assert_int_eq(attach(), 0);
	ck_assert_int_eq(attached.walk.held.frame, 0);
	bytes = attached.walk.far;
	memcpy(file.tiny.image + TINY_CODE + 48, back, sizeof(back));
	ck_assert_int_eq(attach(), 0);
	ck_assert_int_eq(attached.walk.held.frame, 96);
	ck_assert_int_gt(attached.walk.far, bytes);
	walks.plan[0] = attached.walk;
	ck_assert(otp_walk_sound(&walks));
	/* Not in g.sched. */
	file.tiny.image[TINY_CODE + 48 + 7] = 0xf8;
	ck_assert_int_eq(attach(), 0);
	ck_assert_int_eq(attached.walk.held.frame, 0);
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

/* --- creators and labels --- */

/* mov 288(%rax),%rcx; mov %rcx,%rax, and the store of labels before and after Go 1.20: mov %rax,352(%r14); 352(%rcx). */
static const uint8_t load_creator[] = {0x48, 0x8b, 0x88, 0x20, 1, 0, 0, 0x48, 0x89, 0xc8},
		     store_labels[][7] = {{0x49, 0x89, 0x86, 0x60, 1, 0, 0}, {0x48, 0x89, 0x81, 0x60, 1, 0, 0}};

static void setup_context(enum go_format format)
{
	go_file_init(&file, format);
	go_file_add(&file, 2, "runtime.systemstack_switch");
	go_file_add(&file, 3, "runtime.goexit.abi0");
	go_file_add(&file, 4, "runtime.printcreatedby");
	go_file_add(&file, 5, "runtime/pprof.runtime_setProfLabel");
	memcpy(file.tiny.image + TINY_EH + GO_FILE_NAMES + NAMES, "runtime.systemstack", 20);
	go_file_put(&file, file.function[0] + 4, NAMES, 4);
	put_code(0);
	memcpy(file.tiny.image + TINY_CODE + 4 * 0x40 + 8, load_creator, sizeof(load_creator));
	memcpy(file.tiny.image + TINY_CODE + 5 * 0x40 + 8, store_labels[0], sizeof(store_labels[0]));
}

static bool more_is_sound(void)
{
	struct otp_walks walks = {.generation = 1, .plan = {attached.walk, attached.more}};

	return otp_walk_sound(&walks);
}

START_TEST(the_code_tells_where_creator_and_labels_are)
{
	setup_context(GO_1_18);
	memcpy(file.tiny.image + TINY_CODE + 5 * 0x40 + 8, store_labels[_i], sizeof(store_labels[0]));
	ck_assert_int_eq(attach(), 0);
	ck_assert(more_is_sound());
	ck_assert_int_eq(attached.more.root_off, 288);
	ck_assert_uint_eq(attached.more.root_at, 3);
	ck_assert_uint_eq(attached.more.nr_chain, 5);
	ck_assert_int_eq(attached.more.chain[2], 184);
	ck_assert_int_eq(attached.more.chain[3], 352);
	ck_assert_uint_eq(attached.param[GO_LABELS], GO_LABELS_MAP);
	ck_assert(go_is_end(&attached, BIAS + TINY_CODE + 0xc1) && !go_is_end(&attached, BIAS + TINY_CODE + 0x100));
}
END_TEST

START_TEST(without_a_version_labels_are_not_read)
{
	setup_context(GO_1_20);
	ck_assert_int_eq(attach(), 0);
	ck_assert(more_is_sound());
	ck_assert_int_eq(attached.more.root_off, 288);
	ck_assert_uint_eq(attached.more.nr_chain, 3);
	ck_assert_uint_eq(attached.param[GO_LABELS], GO_LABELS_NONE);
}
END_TEST

START_TEST(other_code_of_theirs_is_not_guessed_at)
{
	setup_context(GO_1_20);
	file.tiny.image[TINY_CODE + 4 * 0x40 + 8 + 3] = 0x21; /* not a multiple of 8 */
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.more.start, OTP_WALK_NONE);
	setup_context(GO_1_18);
	file.tiny.image[TINY_CODE + 4 * 0x40 + 8] = 0x90;
	ck_assert_int_eq(attach(), 0);
	ck_assert(more_is_sound());
	ck_assert_uint_eq(attached.more.root_keep, 0);
	ck_assert_uint_eq(attached.param[GO_LABELS], GO_LABELS_MAP);
	file.tiny.image[TINY_CODE + 5 * 0x40 + 8] = 0x90;
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(attached.more.start, OTP_WALK_NONE);
}
END_TEST

static uint64_t words[16 * 17], root[1];
static struct runtime_copied copied;
static struct runtime_context context;

static void read_context(enum go_labels form, uint32_t frame_words, uint32_t nr)
{
	attached = (struct runtime_attached){.more = {.start = OTP_WALK_TLS, .root_keep = 1}, .param[GO_LABELS] = form};
	root[0] = 0x401234;
	copied = (struct runtime_copied){.root = root, .nr_root = 1, .frames = words, .nr_frames = nr,
					 .frame_words = frame_words, .cut = copied.cut};
	context = (struct runtime_context){0};
	runtime_go.context(&attached, &copied, &context);
}

/* A label of a list: address, the two strings, 32 bytes of the key, 64 of the value. */
static void put_label(unsigned i, const char *key, const char *value)
{
	uint64_t *w = words + 17 * i;

	memset(w, 'z', 17 * 8);
	w[0] = 0xc000001000 + 32 * i;
	w[2] = strlen(key);
	w[4] = strlen(value);
	memcpy(w + 5, key, MIN(strlen(key), (size_t)32));
	memcpy(w + 9, value, MIN(strlen(value), (size_t)64));
}

START_TEST(labels_of_a_list_are_read)
{
	put_label(0, "tenant", "b\xc3\xa4r");
	put_label(1, "empty", "");
	words[17] |= OTP_WALK_MISSING(1);
	read_context(GO_LABELS_LIST, 17, 2);
	ck_assert_uint_eq(context.creator, 0x401234);
	ck_assert_uint_eq(context.nr_labels, 2);
	ck_assert_uint_eq(context.labels_left, 0);
	ck_assert_str_eq(context.label[0].key, "tenant");
	ck_assert_str_eq(context.label[0].value, "b\xc3\xa4r");
	ck_assert_str_eq(context.label[1].value, "");
}
END_TEST

START_TEST(the_main_goroutine_has_no_creator)
{
	setup_context(GO_1_20);
	strcpy((char *)file.tiny.image + TINY_EH + GO_FILE_NAMES + NAMES + 25, _i ? "runtime.rt0_go.abi0" : "runtime.newproc");
	go_file_put(&file, file.function[1] + 4, NAMES + 25, 4);
	ck_assert_int_eq(attach(), 0);
	copied = (struct runtime_copied){.root = root, .nr_root = 1};
	for (unsigned at = 0; at < 0x40; at += 0x3f) {
		root[0] = BIAS + TINY_CODE + 0x40 + at;
		context = (struct runtime_context){0};
		runtime_go.context(&attached, &copied, &context);
		ck_assert_uint_eq(context.creator, 0);
	}
	root[0]++;
	runtime_go.context(&attached, &copied, &context);
	ck_assert_uint_eq(context.creator, root[0]);
}
END_TEST

START_TEST(long_and_unreadable_labels_are_cut_or_left_out)
{
	/* Its 63rd byte is the second one of a character. */
	put_label(0, "long", "12345678901234567890123456789012345678901234567890123456789012\xc3\xa4 and so on");
	put_label(1, "a key of more bytes than are kept", "x");
	put_label(2, "unreadable", "x");
	words[34] |= OTP_WALK_MISSING(1);
	put_label(3, "nul", "x");
	words[3 * 17 + 5] = 0;
	copied.cut = true;
	read_context(GO_LABELS_LIST, 17, 4);
	ck_assert_uint_eq(context.nr_labels, 1);
	ck_assert_uint_eq(context.labels_left, 4);
	ck_assert_str_eq(context.label[0].value, "12345678901234567890123456789012345678901234567890123456789012");
	copied.cut = false;
	read_context(GO_LABELS_LIST, 16, 4);
	ck_assert_uint_eq(context.nr_labels, 0);
}
END_TEST

START_TEST(labels_of_a_map_are_keys_then_values)
{
	memset(words, 0, sizeof(words));
	for (unsigned i = 0; i < 2; i++) {
		words[11 * i + 2] = 4;
		memcpy(words + 11 * i + 3, i ? "key2" : "key1", 4);
		words[11 * (8 + i) + 2] = 3;
		memcpy(words + 11 * (8 + i) + 3, i ? "two" : "one", 3);
	}
	read_context(GO_LABELS_MAP, 11, 16);
	ck_assert_uint_eq(context.nr_labels, 2);
	ck_assert_str_eq(context.label[1].key, "key2");
	ck_assert_str_eq(context.label[1].value, "two");
	read_context(GO_LABELS_MAP, 11, 15);
	ck_assert_uint_eq(context.nr_labels, 0);
}
END_TEST

Suite *runtime_go_suite(void)
{
	Suite *s = suite_create("runtime_go");
	TCase *t = tcase_create("runtime_go");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_program_is_known_by_its_table);
	tcase_add_loop_test(t, the_code_tells_where_the_goroutine_is, 0, ARRAY_SIZE(tls));
	tcase_add_test(t, the_code_tells_where_the_frame_pointer_is_saved);
	tcase_add_test(t, a_word_of_the_loader_that_cannot_be_read_is_no_offset);
	tcase_add_test(t, other_code_is_not_guessed_at);
	tcase_add_test(t, a_program_without_these_functions_is_not_walked);
	tcase_add_test(t, a_stack_goes_on_where_it_was_left);
	tcase_add_loop_test(t, the_code_tells_where_creator_and_labels_are, 0, ARRAY_SIZE(store_labels));
	tcase_add_test(t, without_a_version_labels_are_not_read);
	tcase_add_test(t, other_code_of_theirs_is_not_guessed_at);
	tcase_add_loop_test(t, the_main_goroutine_has_no_creator, 0, 2);
	tcase_add_test(t, labels_of_a_list_are_read);
	tcase_add_test(t, long_and_unreadable_labels_are_cut_or_left_out);
	tcase_add_test(t, labels_of_a_map_are_keys_then_values);
	suite_add_tcase(s, t);
	return s;
}
