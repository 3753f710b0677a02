// SPDX-License-Identifier: Apache-2.0
/* Trampolines of python -X perf: a made-up arena of them, and the steps out of each instruction. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "runtime/cpython.h"

Suite *runtime_cpython_trampoline_suite(void);

#define ARENA (WORLD + 0x10000)
#define STACK (WORLD + 0x80000)
#define PAGE  0x1000

enum { RBP = 6, RSP = 7, X29 = 29, X31 = 31 };
enum { RETURN = 0x123456, SAVED = 0x7777, OWN = 0x5555 };

struct build {
	const char *code;
	uint32_t len, distance, arch;
	uint32_t pad; /* bytes of a landing pad before it, part of code */
	uint32_t pushed, popped;
	bool saves_fp;
};

static const struct build builds[] = {
	/* As 3.13.0 has it, and Debian's 3.13 and 3.14; the second also of a jitdump, with room behind each. */
	{"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11, 16, OTP_ARCH_X86_64, 0, 4, 10, false},
	{"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 15, 16, OTP_ARCH_X86_64, 4, 8, 14, false},
	{"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 15, 0x110, OTP_ARCH_X86_64, 4, 8, 14, false},
	{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 12, 16, OTP_ARCH_X86_64, 4, 5, 11, true},
	{"\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x60\x00\x3f\xd6\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6", 20, 32, OTP_ARCH_ARM64, 0, 4, 16,
	 true},
	/* 3.12.1: without room */
	{"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11, 11, OTP_ARCH_X86_64, 0, 4, 10, false},
};

static struct runtime_code_made made;
static struct runtime_attached attached;

static void put_arena(const struct build *b)
{
	memset(world, 0, sizeof(world));
	for (uint64_t at = ARENA; at + b->len <= ARENA + 4 * PAGE; at += b->distance)
		put(at, b->code, b->len);
}

static int code_at(uint64_t pc)
{
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	return runtime_cpython.code(&attached, &memory, pc, &made);
}

static int load(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	return world_read(ret, sizeof(*ret), addr);
}

static int step_at(const struct build *b, uint64_t pc, uint64_t sp, struct runtime_step *ret)
{
	uint64_t reg[OTP_REGS_MAX] = {0};
	const struct runtime_place at = {.pc = pc, .exact = true, .arch = (uint16_t)b->arch, .valid = UINT64_MAX, .reg = reg,
					 .load = load};

	reg[b->arch == OTP_ARCH_ARM64 ? X31 : RSP] = sp;
	reg[b->arch == OTP_ARCH_ARM64 ? X29 : RBP] = OWN;
	*ret = (struct runtime_step){0};
	return runtime_cpython.step(&attached, &made.code, &at, ret);
}

/* Each byte of each copy is in the region that the copy begins in. */
START_TEST(every_copy_of_a_page_is_in_one_region)
{
	const struct build *b = &builds[_i];
	uint64_t before = 0;

	put_arena(b);
	for (uint64_t at = ARENA; at + b->len <= ARENA + 4 * PAGE; at += b->distance)
		for (uint64_t pc = at; pc < at + b->len; pc++) {
			ck_assert_int_eq(code_at(pc), 0);
			ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
			ck_assert(pc >= made.code.start && pc < made.code.end);
			ck_assert(made.code.start <= at && made.code.end >= at + b->len);
			ck_assert(made.code.start == before || made.code.start - before >= PAGE - b->distance);
			ck_assert_str_eq(made.code.name, "");
			before = made.code.start;
		}
}
END_TEST

START_TEST(each_instruction_is_left_to_its_caller)
{
	const struct build *b = &builds[_i];
	struct runtime_step s;

	put_arena(b);
	put64(STACK, RETURN);
	for (uint64_t at = ARENA; at < ARENA + 2 * PAGE; at += b->distance)
		for (uint32_t i = b->pad; i < b->len; i++) {
			bool pushed = i >= b->pushed && i < b->popped;

			put64(STACK - 8, SAVED);
			ck_assert_int_eq(code_at(at + i), 0);
			if (!pushed && b->arch == OTP_ARCH_ARM64) {
				ck_assert_int_eq(step_at(b, at + i, STACK, &s), -ENOENT);
				continue;
			}
			ck_assert_int_eq(step_at(b, at + i, pushed ? STACK - 8 : STACK, &s), 0);
			ck_assert_uint_eq(s.pc, RETURN);
			ck_assert_uint_eq(s.sp, STACK + 8);
			ck_assert_uint_eq(s.cfa, STACK + 8);
			ck_assert_uint_eq(s.fp, pushed && b->saves_fp ? SAVED : OWN);
			ck_assert_uint_eq(s.flags, RUNTIME_STEP_FP | RUNTIME_STEP_SAME | RUNTIME_STEP_WRAPS);
			ck_assert_uint_eq(s.own.key, 0);
		}
}
END_TEST

START_TEST(a_landing_pad_is_before_the_frame)
{
	const struct build *b = &builds[_i];
	struct runtime_step s;

	put_arena(b);
	put64(STACK, RETURN);
	for (uint32_t i = 0; i < b->pad; i++) {
		ck_assert_int_eq(code_at(ARENA + i), 0);
		ck_assert_int_eq(step_at(b, ARENA + i, STACK, &s), 0);
		ck_assert_uint_eq(s.pc, RETURN);
	}
}
END_TEST

/* An address that nothing runs at is asked as well, where a word of the stack looks like one: it counts for the region. */
START_TEST(room_between_copies_is_of_their_region)
{
	const struct build *b = &builds[_i];

	put_arena(b);
	for (uint64_t pc = ARENA; pc < ARENA + b->distance; pc++) {
		ck_assert_int_eq(code_at(pc), 0);
		ck_assert_uint_eq(made.code.start, ARENA);
	}
}
END_TEST

START_TEST(other_code_is_none)
{
	put_arena(&builds[0]);
	ck_assert_int_eq(code_at(ARENA + PAGE - 1), -ENOENT); /* behind the last one of a page */
	ck_assert_int_eq(code_at(ARENA - 8), -ENOENT);
	ck_assert_int_eq(code_at(ARENA + 5 * PAGE), -ENOENT);
	ck_assert_int_eq(code_at(8), -ENOENT); /* not readable */
	ck_assert_int_eq(code_at(UINT64_MAX - 2), -ENOENT);
	world[ARENA + 4 - WORLD] ^= 1;
	ck_assert_int_eq(code_at(ARENA + 5), -ENOENT);
}
END_TEST

/* The last page may be followed by nothing. */
START_TEST(an_arena_may_end_with_its_page)
{
	uint64_t last = WORLD + WORLD_BYTES - 16;

	put_arena(&builds[0]);
	put(last, builds[0].code, builds[0].len);
	ck_assert_int_eq(code_at(last + 6), 0);
	ck_assert_uint_eq(made.code.start, last);
}
END_TEST

START_TEST(the_same_region_is_said_to_be_the_same)
{
	put_arena(&builds[0]);
	ck_assert_int_eq(code_at(ARENA + 5), 0);
	memcpy(made.known, made.code.identity, sizeof(made.known));
	memset(&made.code, 0, sizeof(made.code));
	memory_question(&memory);
	ck_assert_int_eq(runtime_cpython.code(&attached, &memory, ARENA + 37, &made), -EALREADY);
}
END_TEST

START_TEST(a_lying_region_is_not_stepped_out_of)
{
	struct runtime_step s;

	put_arena(&builds[0]);
	ck_assert_int_eq(code_at(ARENA + 5), 0);
	made.code.word[1] = 0;
	ck_assert_int_eq(step_at(&builds[0], ARENA + 5, STACK, &s), -ENOENT);
	made.code.kind = 99;
	made.code.word[1] = 16;
	ck_assert_int_eq(step_at(&builds[0], ARENA + 5, STACK, &s), -ENOENT);
	ck_assert_int_eq(code_at(ARENA + 5), 0);
	ck_assert_int_eq(step_at(&builds[4], ARENA + 5, STACK, &s), -ENOENT); /* of another processor */
	ck_assert_int_eq(step_at(&builds[0], ARENA + 5, 8, &s), -EFAULT);
}
END_TEST

Suite *runtime_cpython_trampoline_suite(void)
{
	Suite *s = suite_create("runtime_cpython_trampoline");
	TCase *t = tcase_create("trampolines");

	tcase_add_loop_test(t, every_copy_of_a_page_is_in_one_region, 0, (int)ARRAY_SIZE(builds));
	tcase_add_loop_test(t, each_instruction_is_left_to_its_caller, 0, (int)ARRAY_SIZE(builds));
	tcase_add_loop_test(t, a_landing_pad_is_before_the_frame, 0, (int)ARRAY_SIZE(builds));
	tcase_add_loop_test(t, room_between_copies_is_of_their_region, 0, (int)ARRAY_SIZE(builds));
	tcase_add_test(t, other_code_is_none);
	tcase_add_test(t, an_arena_may_end_with_its_page);
	tcase_add_test(t, the_same_region_is_said_to_be_the_same);
	tcase_add_test(t, a_lying_region_is_not_stepped_out_of);
	suite_add_tcase(s, t);
	return s;
}
