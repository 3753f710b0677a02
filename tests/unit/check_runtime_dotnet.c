// SPDX-License-Identifier: Apache-2.0
/* CoreCLR: made-up code, methods and assemblies; which method runs where, names, and steps at each instruction. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "tests/lib/code_world.h"
#include "tests/lib/dotnet_world.h"

Suite *runtime_dotnet_suite(void);

#define STACK (WORLD + 0x40000)
enum { RBP = 6, RSP = 7 };

static struct runtime_attached attached;
static struct runtime_code_made made;
static struct runtime_function function;

static void setup(void)
{
	memset(world, 0, sizeof(world));
	dotnet_world_make(&attached);
	memset(&made, 0, sizeof(made));
}

static int code(uint64_t pc)
{
	memset(&made, 0, sizeof(made));
	memory_question(&memory);
	return dotnet_code(&attached, &memory, pc, &made);
}

static int decode(void)
{
	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	return dotnet_decode(&attached, &memory, &made.functions[0], &function);
}

static struct runtime_step step;

static int step_at(uint64_t pc, bool exact, uint64_t sp, uint64_t fp)
{
	uint64_t reg[OTP_REGS_MAX] = {[RBP] = fp, [RSP] = sp};
	const struct runtime_place at = {.pc = pc, .exact = exact, .valid = 0x1ffff, .reg = reg, .load = word_of_world};

	memset(&step, 0, sizeof(step));
	return dotnet_step(&attached, &made.code, &at, &step);
}

/* --- which code --- */

START_TEST(a_method_is_found_by_its_nibble)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(made.code.start, DW_RUN);
	ck_assert_uint_eq(made.code.end, DW_RUN + DW_RUN_BYTES);
	ck_assert_uint_eq(made.functions[0].key, DW_METHOD(0));
	/* Behind its end no other begins. */
	ck_assert_int_eq(code(DW_RUN + DW_RUN_BYTES), -ENOENT);
	ck_assert_int_eq(code(DW_CODE + 0x20), -ENOENT);
	ck_assert_int_eq(code(WORLD + 0x100), -ENOENT);
}
END_TEST

/* From 10 on, words within a long method point to its begin. */
START_TEST(a_long_method_is_found_by_a_pointer)
{
	put32(DW_HEADER + 40, 0x1000);
	put32(DW_NIBBLES + 4 * 8, 0x40 + 9);
	ck_assert_int_eq(code(DW_CODE + 0x810), 0);
	ck_assert_uint_eq(made.code.start, DW_RUN);
	put32(DW_NIBBLES + 4 * 8, 0x1040 + 9);
	ck_assert_int_eq(code(DW_CODE + 0x810), -EBADMSG);
}
END_TEST

START_TEST(a_long_method_is_found_over_words_of_zeros)
{
	put32(DW_HEADER + 40, 0x1000);
	put32(DW_NIBBLES + 4 * 2, 0);
	ck_assert_int_eq(code(DW_CODE + 0x810), 0);
	ck_assert_uint_eq(made.code.start, DW_RUN);
}
END_TEST

START_TEST(code_compiled_before_is_found_by_its_functions)
{
	ck_assert_int_eq(code(DW_BEFORE + 0x1010), 0);
	ck_assert_uint_eq(made.code.start, DW_BEFORE + 0x1000);
	ck_assert_uint_eq(made.code.end, DW_BEFORE + 0x1040);
	ck_assert_uint_eq(made.functions[0].key, DW_METHOD(1));
	/* Its handler. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1050), 0);
	ck_assert_uint_eq(made.code.start, DW_BEFORE + 0x1040);
	ck_assert_uint_eq(made.functions[0].key, DW_METHOD(1));
	/* Between functions. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1090), 0);
	ck_assert_uint_eq(made.code.kind, DOTNET_STUB);
	ck_assert_uint_eq(made.code.start, DW_BEFORE + 0x1080);
	ck_assert_uint_eq(made.code.end, DW_BEFORE + 0x1100);
}
END_TEST

START_TEST(a_cold_part_is_not_taken_for_another_method)
{
	put32(DW_R2R + 104, 2);
	put64(DW_R2R + 96, WORLD + 0xa000);
	put32(WORLD + 0xa000, 2);
	ck_assert_int_eq(code(DW_BEFORE + 0x1050), 0);
	ck_assert_int_ne(code(DW_BEFORE + 0x1110), 0);
}
END_TEST

START_TEST(code_compiled_before_of_no_method_has_no_name)
{
	for (uint32_t i = 1; i <= DW_NR_BUCKETS; i++)
		for (uint32_t k = 0; k < 4; k++) {
			put64(DW_BUCKETS + 64 * i + 8 * k, 1);
			put64(DW_BUCKETS + 64 * i + 32 + 8 * k, DW_METHOD(1) >> 1);
		}
	/* The first function has debug information: it is a method's, which was not entered. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), -ENODATA);
	put64(DW_CORE + 8, 0);
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	ck_assert_str_eq(made.code.name, "[unknown method of .NET]");
	ck_assert_uint_eq(made.code.nr_functions, 0);
}
END_TEST

/* Beyond the first function of a method, others before are not looked at. */
START_TEST(a_method_that_was_not_entered_is_no_handler_of_the_one_before)
{
	const uint8_t third = 2 << 3; /* the leaf of the array */

	put64(DW_CORE + 8, 0);
	put64(DW_BUCKETS + 64 * (1 + (uint32_t)((DW_BEFORE + 0x1100) >> 2) % DW_NR_BUCKETS), 1);
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	ck_assert_uint_eq(made.functions[0].key, DW_METHOD(1)); /* without debug information, it cannot be told */
	put64(DW_CORE + 8, DW_CORE + 0x40);
	put(DW_ARRAY + 2, &third, 1);
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), -ENODATA);
	ck_assert_int_eq(code(DW_BEFORE + 0x1050), 0);
	ck_assert_uint_eq(made.functions[0].key, DW_METHOD(1));
}
END_TEST

/* Whose memory is used again: another method without a name has other frames. */
START_TEST(code_of_no_method_is_known_by_how_its_frame_is_left)
{
	uint64_t identity[RUNTIME_CODE_IDENTITY];

	put64(DW_HEADER + 24, 8);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	memcpy(identity, made.code.identity, sizeof(identity));
	put64(DW_HEADER + 24, 16);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_ne(memcmp(identity, made.code.identity, sizeof(identity)), 0);
}
END_TEST

/* A process that puts more buckets in place of those that are being read, whose memory is used for something else. */
static int memory_of_new_buckets(struct memory *m, uint64_t addr, void *to, size_t len)
{
	if (addr == DW_BUCKETS + 64 * (1 + (uint32_t)((DW_BEFORE + 0x1100) >> 2) % DW_NR_BUCKETS)) {
		memset(to, 0, len);
		put64(DW_R2R + 376, WORLD + 0xb000);
		put64(WORLD + 0xb000, DW_NR_BUCKETS + 2);
		return 0;
	}
	return memory_of_world(m, addr, to, len);
}

START_TEST(a_method_is_not_missed_where_buckets_are_replaced)
{
	int err;

	memory.read = memory_of_new_buckets;
	err = code(DW_BEFORE + 0x1110);
	memory.read = memory_of_world;
	ck_assert_int_eq(err, -ESTALE);
}
END_TEST

START_TEST(code_of_no_method_has_steps_all_the_same)
{
	put64(DW_HEADER + 24, 8);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_uint_eq(made.code.nr_functions, 0);
	ck_assert_str_eq(made.code.name, "[unknown method of .NET]");
}
END_TEST

START_TEST(the_same_code_is_told)
{
	uint64_t known[RUNTIME_CODE_IDENTITY];

	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	memcpy(known, made.code.identity, sizeof(known));
	memset(&made, 0, sizeof(made));
	memcpy(made.known, known, sizeof(known));
	ck_assert_int_eq(dotnet_code(&attached, &memory, DW_RUN + 0x10, &made), -EALREADY);
	/* Another method there, in a frame of the same form. */
	put64(DW_HEADER + 24, DW_METHOD(1));
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_ne(memcmp(known, made.code.identity, sizeof(known)), 0);
}
END_TEST

/* --- stubs --- */

START_TEST(stubs_have_what_they_pushed)
{
	ck_assert_int_eq(code(DW_STUBS + 0x100), 0);
	ck_assert_str_eq(made.code.name, "[stub: precode]");
	ck_assert_uint_eq(made.code.end, DW_STUBS + 0x1000);
	put64(STACK, 0x1234);
	put64(STACK + 8, 0x5678);
	ck_assert_int_eq(step_at(DW_STUBS + 0x100, true, STACK, 0x77), 0);
	ck_assert_uint_eq(step.pc, 0x1234);
	ck_assert_uint_eq(step.sp, STACK + 8);
	/* Before its push and behind it, of the first stub and the next. */
	ck_assert_int_eq(code(DW_LOOKUP + 0xb), 0);
	ck_assert_uint_eq(made.code.word[0], 0);
	ck_assert_int_eq(code(DW_LOOKUP + 0xc), 0);
	ck_assert_uint_eq(made.code.word[0], 1);
	ck_assert_uint_eq(made.code.start, DW_LOOKUP + 0xc);
	ck_assert_int_eq(step_at(DW_LOOKUP + 0xc, true, STACK, 0x77), 0);
	ck_assert_uint_eq(step.pc, 0x5678);
	ck_assert_int_eq(code(DW_LOOKUP + 0x21), 0);
	ck_assert_uint_eq(made.code.word[0], 0);
	ck_assert_int_eq(code(DW_LOOKUP + 0x2c), 0);
	ck_assert_uint_eq(made.code.word[0], 1);
	ck_assert_int_eq(step_at(DW_LOOKUP + 0x2c, false, STACK, 0x77), -ENOENT);
}
END_TEST

/* Behind what is read of a heap's begin: all stubs of a heap are of one size. */
START_TEST(stubs_deep_in_a_heap_have_what_they_pushed)
{
	const uint64_t deep = DW_STUBS + 32 * 200;

	put64(DW_FRAGMENT(1) + 16, DW_STUBS + 0x2000);
	put64(DW_SECTION(1) + 8, DW_STUBS + 0x2000);
	put32(DW_LIST + 0x120, 8);
	for (uint32_t i = 0; i < 220; i++) {
		put(DW_STUBS + 32 * i, &world[DW_LOOKUP - WORLD], 32);
		put64(DW_STUBS + 32 * i + 3, 0x5050505050505050ULL + i); /* not instructions */
	}
	for (uint64_t at = 0; at < 32; at++) {
		ck_assert_int_eq(code(deep + at), 0);
		ck_assert_uint_eq(made.code.word[0], at >= 12 && at < 24);
		ck_assert_uint_le(made.code.start, deep + at);
		ck_assert_uint_gt(made.code.end, deep + at);
	}
	/* Where no stub begins as they do, none is known. */
	put64(deep, 0);
	ck_assert_int_eq(code(deep + 12), -EFAULT);
	for (uint32_t i = 0; i < 6; i++)
		put64(DW_STUBS + 32 * i, i);
	ck_assert_int_eq(code(deep + 32), -EFAULT);
	/* Zeros are no stubs. */
	memset(&world[DW_STUBS - WORLD], 0, 0x2000);
	ck_assert_int_eq(code(deep + 32), -EFAULT);
}
END_TEST

/* Of 112 bytes: some lie on two pages. Whatever of a region is asked for, its bounds are the same. */
START_TEST(a_stub_on_two_pages_is_the_same_from_either)
{
	uint8_t stub[112];

	memset(stub, 0x90, sizeof(stub));
	memcpy(stub, "\x48\x8b\x07", 3); /* mov rax, [rdi] */
	stub[4] = 0x52; /* push rdx */
	stub[66] = 0x5a; /* pop rdx */
	stub[67] = 0xe9; /* jmp */
	put64(DW_FRAGMENT(1) + 16, DW_STUBS + 0x2000);
	put64(DW_SECTION(1) + 8, DW_STUBS + 0x2000);
	put32(DW_LIST + 0x120, 7);
	for (uint32_t i = 0; i < 0x2000 / sizeof(stub); i++)
		put(DW_STUBS + i * sizeof(stub), stub, sizeof(stub));
	for (uint64_t at = DW_STUBS + 0x1000 - sizeof(stub); at < DW_STUBS + 0x1000 + sizeof(stub); at++) {
		uint64_t start, end;

		ck_assert_int_eq(code(at), 0);
		start = made.code.start;
		end = made.code.end;
		ck_assert_int_eq(code(start), 0);
		ck_assert(made.code.start == start && made.code.end == end);
		ck_assert_int_eq(code(end - 1), 0);
		ck_assert(made.code.start == start && made.code.end == end);
		ck_assert_uint_eq(made.code.word[0], (start - DW_STUBS) % sizeof(stub) == 5);
	}
}
END_TEST

/* What lies behind the heap's end now will be other code. */
START_TEST(stubs_end_where_code_ends)
{
	ck_assert_int_eq(code(DW_LOOKUP + 0x60), 0);
	ck_assert_uint_eq(made.code.end, DW_CODE + 0x300);
	ck_assert_int_eq(code(DW_CODE + 0x300), -ENOENT);
}
END_TEST

START_TEST(a_stub_is_the_same_whatever_lies_behind)
{
	uint64_t identity[RUNTIME_CODE_IDENTITY];

	put64(DW_LOOKUP - 8, 1);
	ck_assert_int_eq(code(DW_LOOKUP + 0x64), 0);
	ck_assert_str_eq(made.code.name, "[stub: jump]");
	memcpy(identity, made.code.identity, sizeof(identity));
	dotnet_put_nibble(DW_LOOKUP + 0x80);
	ck_assert_int_eq(code(DW_LOOKUP + 0x64), 0);
	ck_assert_int_eq(memcmp(identity, made.code.identity, sizeof(identity)), 0);
}
END_TEST

START_TEST(the_last_stub_of_a_heap_is_the_same_when_the_heap_has_grown)
{
	uint64_t known[RUNTIME_CODE_IDENTITY];

	ck_assert_int_eq(code(DW_LOOKUP + 0x60), 0);
	memcpy(known, made.code.identity, sizeof(known));
	for (uint64_t end = 0x2f0; end <= 0x310; end += 0x10) {
		put64(DW_HEAP + 24, DW_CODE + end);
		memcpy(made.known, known, sizeof(known));
		ck_assert_int_eq(dotnet_code(&attached, &memory, DW_LOOKUP + 0x60, &made), end < 0x300 ? 0 : -EALREADY);
	}
}
END_TEST

START_TEST(stubs_alone_are_known_by_their_form)
{
	static const uint8_t counting[24] = {0x48, 0x8b, 0x05, 0xf9, 0x3f, 0, 0, 0x66, 0xff, 0x08, 0x74, 0x06,
					     0xff, 0x25, 0xf6, 0x3f, 0, 0, 0xff, 0x25, 0xf8, 0x3f, 0, 0};
	const uint64_t at = WORLD + 0xc018;

	put(at, counting, sizeof(counting));
	for (uint64_t i = 0; i < sizeof(counting); i++) {
		ck_assert_int_eq(code(at + i), 0);
		ck_assert_uint_eq(made.code.start, at);
		ck_assert_str_eq(made.code.name, "[stub: call counting]");
	}
	ck_assert_int_eq(code(at + sizeof(counting)), -ENOENT);
	put64(DW_HELPERS + 8 * 32, WORLD + 0xd030);
	ck_assert_int_eq(code(WORLD + 0xd400), 0);
	ck_assert_str_eq(made.code.name, "[stub: write barrier]");
	ck_assert_int_eq(code(WORLD + 0xe000), -ENOENT);
}
END_TEST

/* mov r10, n; mov rax, n; jmp rax */
START_TEST(an_entry_from_native_code_is_known_by_its_form)
{
	static const uint8_t entry[23] = {0x49, 0xba, 1, 2, 3, 4, 5, 6, 0, 0, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 0, 0, 0x48, 0xff, 0xe0};
	const uint64_t at = WORLD + 0xc024;

	put(at, entry, sizeof(entry));
	for (uint64_t i = 0; i < sizeof(entry); i++) {
		ck_assert_int_eq(code(at + i), 0);
		ck_assert_uint_eq(made.code.start, at);
		ck_assert_str_eq(made.code.name, "[stub: entry from native code]");
	}
	ck_assert_int_eq(code(at - 1), -ENOENT);
	ck_assert_int_eq(code(at + sizeof(entry)), -ENOENT);
}
END_TEST

/*
 * A header, and of a delegate: mov rax, rsp; mov r11, rdi; mov rdi, rsi; mov r10, [r11 + 32]; add r11, 32; jmp r10; which
 * arguments it moves. Of a generic method: mov rsi, n; mov rax, n; jmp rax. Another one lies before it.
 */
#define THUNK (WORLD + 0xc040)
static const struct { uint32_t flags, end; uint8_t code[40]; uint16_t begins; } thunks[] = {
	{0x24000020, 20, {0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb, 0x48, 0x89, 0xf7, 0x4d, 0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3,
			  0x20, 0x49, 0xff, 0xe2, 1, 0x80, 0, 0x80}, 0x2249},
	{0x30000018, 22, {0x48, 0xbe, 1, 2, 3, 4, 5, 6, 0, 0, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 0, 0, 0xff, 0xe0}, 0x401},
};

static void put_thunk(uint64_t at, uint32_t i)
{
	put32(at - 16, 1);
	put32(at - 12, thunks[i].flags);
	put(at, thunks[i].code, sizeof(thunks[i].code));
}

START_TEST(a_thunk_has_no_frame)
{
	put_thunk(THUNK, 1);
	put_thunk(THUNK + 0x40, (uint32_t)_i);
	put64(STACK, 0x1234);
	for (uint32_t i = 0; i < thunks[_i].end; i++) {
		bool begins = i < 16 ? thunks[_i].begins >> i & 1 : i == (_i ? 20 : 17);

		ck_assert_int_eq(code(THUNK + 0x40 + i), begins ? 0 : -ENOENT);
		if (!begins)
			continue;
		ck_assert_str_eq(made.code.name, "[stub: thunk]");
		ck_assert_uint_eq(made.code.start, THUNK + 0x40);
		ck_assert_uint_eq(made.code.end, THUNK + 0x40 + thunks[_i].end);
		ck_assert_int_eq(step_at(THUNK + 0x40 + i, true, STACK, 0x77), 0);
		ck_assert_uint_eq(step.pc, 0x1234);
	}
	ck_assert_int_eq(code(THUNK + 0x40 + thunks[_i].end), -ENOENT);
}
END_TEST

START_TEST(what_only_looks_like_a_thunk_is_not_known)
{
	static const struct { uint64_t at; uint8_t bytes[4], len; } changes[] = {
		{THUNK - 16, {0}, 4},			/* nobody refers to it */
		{THUNK - 9, {0}, 1},			/* of no kind */
		{THUNK - 12, {3}, 1},			/* too short */
		{THUNK, {0x50, 0x58, 0x90}, 3},		/* it pushes */
		{THUNK, {0x48, 0x83, 0xec, 0x08}, 4},	/* it takes room */
		{THUNK + 17, {0xc3}, 1},		/* it returns */
		{THUNK + 17, {0xe9}, 1},		/* it jumps to where it is not known */
	};

	put_thunk(THUNK, 0);
	ck_assert_int_eq(code(THUNK + 3), 0);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		put(changes[i].at, changes[i].bytes, changes[i].len);
		ck_assert_int_eq(code(THUNK + 3), -ENOENT);
		put_thunk(THUNK, 0);
	}
}
END_TEST

/* --- steps --- */

#define CALLER 0x401000

/* The stack as the instructions have left it so far: what is pushed, and the caller's words above. */
static void check_step(uint64_t offset, uint64_t sp, uint64_t fp)
{
	ck_assert_int_eq(step_at(DW_RUN + offset, true, sp, fp), 0);
	ck_assert_uint_eq(step.pc, CALLER);
	ck_assert_uint_eq(step.sp, STACK + 64);
	ck_assert_uint_eq(step.cfa, STACK + 64);
	ck_assert_uint_eq(step.fp, 0xbbbb);
	ck_assert(step.flags & RUNTIME_STEP_FP);
}

START_TEST(each_instruction_of_a_method_has_a_step)
{
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb); /* rbp */
	put64(STACK + 40, 0xcccc); /* rbx */
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(0, STACK + 56, 0xbbbb);
	check_step(1, STACK + 48, 0xbbbb);
	check_step(2, STACK + 40, 0xbbbb);
	check_step(6, STACK + 8, 0xdddd);
	check_step(0x20, STACK + 8, 0xdddd);
	check_step(DW_RUN_LEAVES, STACK + 8, 0xdddd);
	check_step(DW_RUN_LEAVES + 4, STACK + 40, 0xdddd);
	check_step(DW_RUN_LEAVES + 5, STACK + 48, 0xdddd);
	check_step(DW_RUN_LEAVES + 6, STACK + 56, 0xbbbb);
	check_step(DW_RUN_LEAVES + 7, STACK + 8, 0xdddd);
	/* A return address never is in an epilogue. */
	ck_assert_int_eq(step_at(DW_RUN + DW_RUN_LEAVES + 5, false, STACK + 8, 0xdddd), 0);
	ck_assert_uint_eq(step.pc, CALLER);
}
END_TEST

/* push rbp; push rbx; lea r11, [rsp - n]; call of what touches each page of a large frame; mov rsp, r11. */
START_TEST(a_prologue_may_call)
{
	static const uint8_t unwind[] = {0x19, 18, 4, 0, 18, 0x01, 4, 0, 2, 0x30, 1, 0x50};

	put(DW_UNWIND, unwind, sizeof(unwind));
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(15, STACK + 40, 0xdddd);
	ck_assert_int_eq(step_at(DW_RUN + 15, false, STACK + 40, 0xdddd), 0);
	ck_assert_uint_eq(step.pc, CALLER);
	check_step(18, STACK + 8, 0xdddd);
	ck_assert_int_eq(step_at(DW_RUN + 0x20, false, STACK + 8, 0xdddd), 0);
	ck_assert_uint_eq(step.pc, CALLER);
}
END_TEST

/* push rbp; sub rsp, 16; lea rbp, [rsp + 16]; then the stack pointer moves. */
START_TEST(a_frame_by_rbp_needs_no_stack_pointer)
{
	static const uint8_t unwind[] = {0x01, 10, 3, 0x15, 10, 0x03, 5, 0x12, 1, 0x50};

	put(DW_UNWIND, unwind, sizeof(unwind));
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(0, STACK + 56, 0xbbbb);
	check_step(5, STACK + 32, 0xdddd);
	check_step(10, STACK + 32, STACK + 48);
	check_step(0x20, STACK, STACK + 48);
}
END_TEST

/* As on-stack replacement does: rbp lies in the frame of the code that was replaced. */
START_TEST(a_saved_rbp_is_found)
{
	static const uint8_t unwind[] = {0x01, 9, 3, 0, 9, 0x54, 2, 0, 4, 0x42};

	put(DW_UNWIND, unwind, sizeof(unwind));
	put64(STACK + 56, CALLER);
	put64(STACK + 32, 0xbbbb);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(0x20, STACK + 16, 0xdddd);
}
END_TEST

/*
 * The code that was replaced: push rbp; sub rsp, 24. What replaces it: sub rsp, 24; mov [rsp + 40], rbx;
 * mov [rsp + 32], r12. At its end: add rsp, 32; pop r12; pop rbx; pop rbp; ret.
 */
START_TEST(registers_that_were_saved_beneath_pushed_ones_are_popped)
{
	static const uint8_t unwind[] = {0x01, 14, 7, 0, 14, 0xc4, 4, 0, 9, 0x34, 5, 0, 4, 0x22, 0, 0x22, 0, 0x50},
			     leave[] = {0x48, 0x83, 0xc4, 0x20, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};

	put(DW_UNWIND, unwind, sizeof(unwind));
	put(DW_RUN + DW_RUN_LEAVES, leave, sizeof(leave));
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(0, STACK + 24, 0xdddd);
	check_step(4, STACK, 0xdddd);
	check_step(DW_RUN_LEAVES, STACK, 0xdddd);
	check_step(DW_RUN_LEAVES + 4, STACK + 32, 0xdddd);
	check_step(DW_RUN_LEAVES + 6, STACK + 40, 0xdddd);
	check_step(DW_RUN_LEAVES + 7, STACK + 48, 0xdddd);
	check_step(DW_RUN_LEAVES + 8, STACK + 56, 0xbbbb);
	check_step(DW_RUN_LEAVES + 9, STACK, 0xdddd);
}
END_TEST

/* --- the stub that stops threads --- */

#define HIJACK (WORLD + 0xf000)
/* Of 8 and 9, and of 10: where it has called its worker, where its pops begin, how many they are, where it ends. */
static const struct { uint32_t allocated, worked, pops, nr, bytes; uint8_t code[68]; } hijacks[] = {
	{0x28, 37, 53, 8, 66,
	 {0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x52, 0x50, 0x48, 0x89, 0xe7, 0x48,
	  0x8d, 0x64, 0x24, 0xd8, 0x66, 0x0f, 0x7f, 0x04, 0x24, 0x66, 0x0f, 0x7f, 0x4c, 0x24, 0x10, 0xe8}},
	{0x20, 38, 54, 9, 68,
	 {0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x51, 0x52, 0x50, 0x48, 0x89, 0xe7, 0x48,
	  0x8d, 0x64, 0x24, 0xe0, 0x66, 0x0f, 0x7f, 0x04, 0x24, 0x66, 0x0f, 0x7f, 0x4c, 0x24, 0x10, 0xe8}},
};

static void put_hijack(uint32_t i)
{
	struct dotnet *d = (void *)attached.param;
	size_t at;

	put(HIJACK, hijacks[i].code, sizeof(hijacks[i].code));
	ck_assert(dotnet_hijack_in(&world[HIJACK - 16 - WORLD], 128, &at, &d->hijack_form));
	ck_assert_uint_eq(at, 16);
	d->hijack = HIJACK;
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
}

START_TEST(the_stub_that_stops_threads_is_found_by_its_instructions)
{
	uint64_t form;
	size_t at;

	put_hijack((uint32_t)_i);
	for (uint32_t i = 0; i < hijacks[_i].worked - 4; i++) {
		world[HIJACK - WORLD + i] ^= 1;
		ck_assert(!dotnet_hijack_in(&world[HIJACK - WORLD], 128, &at, &form));
		world[HIJACK - WORLD + i] ^= 1;
	}
	ck_assert(!dotnet_hijack_in(&world[HIJACK - WORLD], hijacks[_i].worked - 5, &at, &form));
	ck_assert_int_eq(code(HIJACK + hijacks[_i].bytes - 1), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_int_eq(code(HIJACK + hijacks[_i].bytes), -ENOENT);
	ck_assert_int_eq(code(HIJACK - 2), -ENOENT);
}
END_TEST

/* Whatever lies above: it is not its return address. */
START_TEST(a_return_address_that_was_replaced_ends_the_stack)
{
	put_hijack((uint32_t)_i);
	ck_assert_int_eq(code(HIJACK - 1), 0);
	ck_assert_str_eq(made.code.name, "[stub: hijacked return]");
	ck_assert_int_eq(step_at(HIJACK, false, STACK + 56, STACK + 48), -ENODATA);
	/* The end of what lies before it has a table. */
	ck_assert_int_eq(step_at(HIJACK - 1, true, STACK + 56, STACK + 48), -ENOENT);
}
END_TEST

START_TEST(the_return_address_is_known_once_the_worker_has_written_it)
{
	const uint64_t sp = STACK + 56 - 8 * hijacks[_i].nr - hijacks[_i].allocated;

	put_hijack((uint32_t)_i);
	ck_assert_int_eq(code(HIJACK + hijacks[_i].worked - 1), 0);
	ck_assert_int_eq(step_at(HIJACK + hijacks[_i].worked, false, sp, 0xdddd), 0);
	ck_assert_uint_eq(step.pc, CALLER);
	ck_assert_uint_eq(step.sp, STACK + 64);
	ck_assert_uint_eq(step.fp, 0xbbbb);
	/* As rax was pushed twice. */
	put64(sp + hijacks[_i].allocated, CALLER);
	ck_assert_int_eq(step_at(HIJACK + hijacks[_i].worked, false, sp, 0xdddd), -ENODATA);
	for (uint32_t i = 0; i < hijacks[_i].worked; i++)
		ck_assert_int_eq(step_at(HIJACK + i, true, STACK + 56, STACK + 48), -ENODATA);
}
END_TEST

START_TEST(each_instruction_behind_the_worker_has_a_step)
{
	uint64_t at = HIJACK + hijacks[_i].pops, sp = STACK + 56 - 8 * hijacks[_i].nr;

	put_hijack((uint32_t)_i);
	ck_assert_int_eq(code(at), 0);
	for (uint32_t i = hijacks[_i].worked; i < hijacks[_i].pops; i++)
		ck_assert_int_eq(step_at(HIJACK + i, true, sp - hijacks[_i].allocated, 0xdddd), 0);
	ck_assert_uint_eq(step.pc, CALLER);
	for (uint32_t i = 0; i <= hijacks[_i].nr; i++, sp += 8) {
		bool is_wide = i + 6 >= hijacks[_i].nr && i + 2 < hijacks[_i].nr;

		ck_assert_int_eq(step_at(at, true, sp, i < hijacks[_i].nr ? 0xdddd : 0xbbbb), 0);
		ck_assert_uint_eq(step.pc, CALLER);
		ck_assert_uint_eq(step.sp, STACK + 64);
		ck_assert_uint_eq(step.fp, 0xbbbb);
		at += is_wide ? 2 : 1;
	}
	ck_assert_uint_eq(at, HIJACK + hijacks[_i].bytes);
}
END_TEST

START_TEST(chained_information_is_followed)
{
	static const uint8_t chained[] = {0x21, 0, 0, 0}; /* and a function */

	put(DW_UNWIND + 0x40, chained, sizeof(chained));
	put32(DW_UNWIND + 0x44 + 8, (uint32_t)(DW_UNWIND - DW_CODE));
	put32(DW_HEADER + 44, (uint32_t)(DW_UNWIND - DW_CODE) + 0x40);
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	check_step(0, STACK + 8, 0xdddd);
	/* In a circle. */
	put32(DW_UNWIND + 0x44 + 8, (uint32_t)(DW_UNWIND - DW_CODE) + 0x40);
	ck_assert_int_eq(code(DW_RUN + 0x10), -E2BIG);
}
END_TEST

/* A method with more epilogues than a region has room for is several. */
START_TEST(all_epilogues_are_known)
{
	static const uint8_t leave[] = {0x48, 0x83, 0xc4, 0x20, 0x5b, 0x5d, 0xc3};
	const uint32_t n = 3 * DOTNET_EPILOGUES_MAX;
	uint64_t last = 0;

	put32(DW_HEADER + 40, (uint32_t)(DW_RUN - DW_CODE) + 0x40 + 16 * n);
	put64(DW_LOOKUP - 8, 0);
	put32(DW_NIBBLES + 8, 0);
	put64(STACK + 56, CALLER);
	put64(STACK + 48, 0xbbbb);
	for (uint32_t i = 0; i < n; i++)
		put(DW_RUN + 0x40 + 16 * i, leave, sizeof(leave));
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = 0x40 + 16 * i;

		ck_assert_int_eq(code(DW_RUN + at + 5), 0);
		ck_assert_uint_ge(made.code.start, last);
		last = made.code.start;
		check_step(at, STACK + 8, 0xdddd);
		check_step(at + 5, STACK + 48, 0xdddd);
		check_step(at + 6, STACK + 56, 0xbbbb);
	}
	ck_assert_uint_gt(last, DW_RUN + 16 * DOTNET_EPILOGUES_MAX);
	ck_assert_int_eq(code(DW_RUN + 0x40 + 16 * n - 1), 0);
	ck_assert_uint_eq(made.code.end, DW_RUN + 0x40 + 16 * n);
}
END_TEST

START_TEST(unwind_information_that_is_none_is_refused)
{
	put(DW_UNWIND, "\x1a", 1); /* another version */
	ck_assert_int_eq(code(DW_RUN + 0x10), -EBADMSG);
	put(DW_UNWIND, "\x19\x06\x01\x00\x06\x01", 6); /* a slot is missing */
	ck_assert_int_eq(code(DW_RUN + 0x10), -EBADMSG);
	put(DW_UNWIND, "\x19\x06\x01\x03\x06\x03", 6); /* a frame by rbx */
	ck_assert_int_eq(code(DW_RUN + 0x10), -ENOTSUP);
}
END_TEST

/* --- names --- */

START_TEST(a_method_has_type_and_parameters)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "My.Space.Outer<T>.Run(int, string[])");
	ck_assert_int_eq(code(DW_BEFORE + 0x1010), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "My.Space.Outer<T>.Nested.Call<U>(T, List<U>, ref long)");
}
END_TEST

START_TEST(a_dynamic_method_has_its_own_name)
{
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	ck_assert_int_eq(decode(), 0);
	hash_seed++; /* of another decoder */
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "DynamicClass.Made");
	put(DW_NAME + 32, "IL_STUB_PInvoke", 16);
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "ILStubClass.IL_STUB_PInvoke");
	/* Another one was made in its place. */
	put64(DW_METHOD(2) + 32, DW_NAME);
	ck_assert_int_eq(decode(), -ESTALE);
}
END_TEST

START_TEST(another_method_in_its_place_is_told)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	dotnet_put16(DW_METHOD(0), 2);
	ck_assert_int_eq(decode(), -ESTALE);
	dotnet_put16(DW_METHOD(0), 1);
	put64(DW_CHUNK, DW_TABLE + 0x100);
	put64(DW_TABLE + 0x100 + 24, DW_MODULE);
	ck_assert_int_eq(decode(), -ESTALE);
	put64(DW_CHUNK, DW_TABLE);
	ck_assert_int_eq(decode(), 0);
	/* The same one of another assembly, whose file was made at another time. */
	put32(DW_IMAGE + 0x80 + 8, 77);
	ck_assert_int_eq(decode(), -ESTALE);
}
END_TEST

START_TEST(code_that_is_collected_is_fleeting)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_uint_eq(made.code.flags, 0);
	put32(DW_SECTION(0) + 16, DOTNET_RANGE_HEAP | DOTNET_RANGE_COLLECTED);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_FLEETING);
	/* A stub's region is over free room, where other code may be put. */
	ck_assert_int_eq(code(DW_LOOKUP), 0);
	ck_assert_uint_eq(made.code.kind, DOTNET_STUB);
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_FLEETING);
}
END_TEST

/* Both lie where those of the former one lay. */
START_TEST(a_dynamic_method_is_known_by_what_its_name_says)
{
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	put(DW_NAME + 32, "Else", 5);
	ck_assert_int_eq(decode(), -ESTALE);
}
END_TEST

/* Each byte of the image, of which the name is made, set to others: an error, or a text within its bounds. */
START_TEST(an_assembly_that_is_broken_harms_nobody)
{
	ck_assert_int_eq(code(DW_BEFORE + 0x1010), 0);
	for (uint64_t at = DW_IMAGE; at < DW_BLOBS + 0x40; at++) {
		uint8_t was = world[at - WORLD];

		world[at - WORLD] = (uint8_t)(was + 1 + (uint8_t)_i);
		decode();
		ck_assert_uint_lt(strnlen(function.name, sizeof(function.name)), sizeof(function.name));
		world[at - WORLD] = was;
	}
}
END_TEST

/* In 8, a generic type's MethodTable has another word for the module where it is not that of its loader. */
START_TEST(the_module_of_a_generic_type_is_found_in_8)
{
	struct dotnet *d = (void *)attached.param;
	const uint64_t file = WORLD + 0xb000, instance = DW_TABLE + 0x80;

	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	d->row = 0;
	ck_assert_uint_eq(dotnet_rows[d->row].major, 8);
	put64(DW_MODULE + 272, file);
	put64(file + 8, file + 0x100);
	put64(file + 0x100 + 120, file + 0x200);
	put64(file + 0x200 + 8, DW_IMAGE);
	put64(DW_MODULE + 264, DW_NAME);
	/* An instance, whose canonical table has a module, behind its virtual methods and one slot more. */
	put64(DW_CHUNK, instance);
	made.functions[0].cookie[0] = instance;
	put32(instance, 0x10);
	put64(instance + 40, DW_TABLE | 1);
	put32(DW_TABLE + 8, 0x1f);
	put32(DW_TABLE + 12, 9);
	put64(DW_TABLE + 24, 0);
	put64(DW_TABLE + 64 + 8 * 2 + 8 * 2, DW_MODULE);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.name, "My.Space.Outer<T>.Run(int, string[])");
	put32(DW_TABLE + 8, 0x11);
	put64(DW_TABLE + 56, DW_MODULE);
	ck_assert_int_eq(decode(), 0);
	put32(DW_TABLE + 8, 0x0f);
	put64(DW_TABLE + 24, DW_MODULE);
	ck_assert_int_eq(decode(), 0);
}
END_TEST

/* --- lines --- */

static uint32_t position_at(uint64_t offset)
{
	uint32_t node = runtime_code_node_at(&made.code, made.rows, DW_RUN + offset, false);

	ck_assert_uint_ne(node, RUNTIME_NO_NODE);
	return made.nodes[node].position;
}

static void check_positions_of_run(void)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	ck_assert_uint_eq(position_at(0), 0); /* the prologue */
	ck_assert_uint_eq(position_at(6), 0);
	ck_assert_uint_eq(position_at(0xf), 0);
	ck_assert_uint_eq(position_at(0x10), 4);
	ck_assert_uint_eq(position_at(0x20), 4); /* none of its own */
	ck_assert_uint_eq(position_at(0x28), 9);
	ck_assert_uint_eq(position_at(0x40), 9); /* the epilogue is what returns there */
	ck_assert_uint_eq(position_at(DW_RUN_BYTES - 1), DOTNET_NO_POSITION);
}

START_TEST(instructions_have_their_place_in_the_bytecode)
{
	check_positions_of_run();
}
END_TEST

/* Up to 9 in nibbles; before them, what on-stack replacement needs, and what is said of inlining. */
START_TEST(places_are_found_behind_what_else_is_there)
{
	static const uint8_t extra[] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
					0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0, 0, 0, 9, 9, 9};
	struct dotnet *d = (void *)attached.param;

	for (d->row = 0; dotnet_rows[d->row].major < 10; d->row++) {
		dotnet_put_debug(DW_DEBUG, false, "", 1);
		check_positions_of_run();
		dotnet_put_debug(DW_DEBUG, false, extra, sizeof(extra));
		check_positions_of_run();
	}
}
END_TEST

/* Two lots of places, where a profiler has changed the bytecode: the second is of what the file has. */
START_TEST(places_of_the_original_bytecode_are_taken)
{
	struct dotnet_writer bounds = {.at = 0}, head = {.at = 0};

	dotnet_write_bounds(&bounds, true);
	dotnet_put_number(&head, UINT32_MAX);
	dotnet_put_number(&head, 5);
	dotnet_put_number(&head, (uint32_t)bounds.at / 8);
	dotnet_put_number(&head, 0);
	dotnet_flush(&head);
	put(DW_DEBUG, "", 1);
	put(DW_DEBUG + 1, head.bytes, head.at / 8);
	put(DW_DEBUG + 1 + head.at / 8, "other", 5);
	put(DW_DEBUG + 1 + head.at / 8 + 5, bounds.bytes, bounds.at / 8);
	check_positions_of_run();
}
END_TEST

START_TEST(code_compiled_before_has_places)
{
	ck_assert_int_eq(code(DW_BEFORE + 0x1010), 0);
	ck_assert_uint_eq(made.nodes[runtime_code_node_at(&made.code, made.rows, DW_BEFORE + 0x1010, false)].position, 4);
	/* Its handler lies behind it, and behind the end of its frame. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1050), 0);
	ck_assert_uint_eq(made.nodes[runtime_code_node_at(&made.code, made.rows, DW_BEFORE + 0x1050, false)].position, DOTNET_NO_POSITION);
	/* Another one, whose number the array does not have. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1110), 0);
	ck_assert_uint_eq(made.code.nr_rows, 1);
	ck_assert_uint_eq(made.nodes[0].position, DOTNET_NO_POSITION);
	/* The same information lies further back. */
	put(DW_ARRAY + 3, &(uint8_t){1 << 1}, 1);
	ck_assert_uint_eq(dotnet_r2r_debug(&memory, DW_CORE, DW_BEFORE, 0), DW_ARRAY + 2);
	/* A tree of both children. */
	put(DW_ARRAY + 2, "\x0e\x00\x00\x00", 4);
	ck_assert_uint_eq(dotnet_r2r_debug(&memory, DW_CORE, DW_BEFORE, 3), 0);
	ck_assert_uint_eq(dotnet_r2r_debug(&memory, DW_CORE, DW_BEFORE, 8), 0);
}
END_TEST

START_TEST(a_part_of_a_method_begins_with_what_runs_there)
{
	put32(DW_HEADER + 32, 2);
	put32(DW_HEADER + 40, (uint32_t)(DW_RUN - DW_CODE) + 0x14);
	put32(DW_HEADER + 48, (uint32_t)(DW_RUN - DW_CODE) + 0x14);
	put32(DW_HEADER + 52, (uint32_t)(DW_RUN - DW_CODE) + DW_RUN_BYTES);
	put32(DW_HEADER + 56, (uint32_t)(DW_UNWIND - DW_CODE));
	ck_assert_int_eq(code(DW_RUN + 0x30), 0);
	ck_assert_uint_eq(made.code.start, DW_RUN + 0x14);
	ck_assert_uint_eq(position_at(0x14), 4);
	ck_assert_uint_eq(position_at(0x30), 9);
}
END_TEST

/* What the compiler says must not be more than it said: each length of what can be read. */
START_TEST(places_that_are_cut_are_not_known)
{
	for (uint32_t size = 1; size < 11; size++) {
		put(DW_DEBUG + 1, &(uint8_t){(uint8_t)(size < 8 ? size : 9 | (size - 8) << 4)}, 1);
		ck_assert_int_eq(code(DW_RUN + 0x10), 0);
		ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
		ck_assert_uint_eq(position_at(DW_RUN_BYTES - 1), DOTNET_NO_POSITION);
	}
	put64(DW_HEADER, 8);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_uint_eq(position_at(0x10), DOTNET_NO_POSITION);
}
END_TEST

static uint32_t line_at(uint32_t position)
{
	uint32_t line = 0;

	for (uint32_t i = 0; i < function.nr_lines && function.lines[i].position <= position; i++)
		line = function.lines[i].line;
	return line;
}

START_TEST(a_method_has_the_lines_of_its_source)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "/src/a.cs");
	ck_assert_uint_eq(function.start_line, 10);
	ck_assert_uint_eq(line_at(0), 10);
	ck_assert_uint_eq(line_at(3), 10);
	ck_assert_uint_eq(line_at(4), 12);
	ck_assert_uint_eq(line_at(8), 0); /* a hidden point */
	ck_assert_uint_eq(line_at(9), 13);
	ck_assert_uint_eq(line_at(DOTNET_NO_POSITION), 0);
	/* One whose points are in two files has lines in the first. */
	ck_assert_int_eq(code(DW_BEFORE + 0x1010), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "/src/a.cs");
	ck_assert_uint_eq(line_at(0), 20);
	ck_assert_uint_eq(line_at(2), 0);
	ck_assert_uint_eq(line_at(4), 21);
}
END_TEST

START_TEST(a_method_without_a_source_has_its_assembly)
{
	put32(DW_ENTRIES + 28 + 12, 16);
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "My.Assembly.dll");
	ck_assert_uint_eq(function.nr_lines, 0);
	/* Or one that cannot be unpacked. */
	put32(DW_ENTRIES + 28 + 12, 17);
	put32(DW_PDB + 4, 77);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "My.Assembly.dll");
	put32(DW_PDB + 4, 1u << 30);
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "My.Assembly.dll");
}
END_TEST

/* Another PDB may lie where the first one lay. */
START_TEST(lines_are_of_the_pdb_that_is_there)
{
	uint8_t pdb[DOTNET_PDB_MAX], packed[DOTNET_PDB_MAX];
	size_t size = dotnet_pdb_make(pdb);

	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(function.start_line, 10);
	pdb[DOTNET_PDB_BLOBS + DOTNET_PDB_RUN + 5] = 30; /* its first line */
	size = dotnet_pack(pdb, size, packed, sizeof(packed));
	put32(DW_ENTRIES + 28 + 16, (uint32_t)size + 8);
	put(DW_PDB + 8, packed, size);
	put(DW_ENTRIES + 0x84, "another", 7);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(function.start_line, 30);
}
END_TEST

/* More than are kept, one after the other; all are right. */
START_TEST(many_pdbs_are_unpacked_again)
{
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
	for (uint32_t i = 0; i < 100; i++) {
		put32(DW_ENTRIES + 0x84, i % 50);
		ck_assert_int_eq(decode(), 0);
		ck_assert_uint_eq(function.start_line, 10);
	}
}
END_TEST

/* --- a PDB beside the assembly --- */

static struct {
	uint8_t bytes[DOTNET_PDB_MAX];
	size_t len;
	int err; /* in place of the file */
	unsigned asked;
	uint64_t address;
	char name[256];
} beside;

static int beside_of_world(struct memory *m, uint64_t addr, const char *name, int *ret_fd)
{
	(void)m;
	beside.asked++;
	beside.address = addr;
	snprintf(beside.name, sizeof(beside.name), "%s", name);
	if (beside.err)
		return beside.err;
	*ret_fd = memfd_create("pdb", MFD_CLOEXEC);
	ck_assert_int_eq(write(*ret_fd, beside.bytes, beside.len), (ssize_t)beside.len);
	return 0;
}

/* Each is one that was never asked for. */
static void put_beside(const char *path)
{
	static uint8_t build;

	setup();
	dotnet_put_pdb_path(path);
	memset(&beside, 0, sizeof(beside));
	beside.len = dotnet_pdb_make(beside.bytes);
	beside.bytes[DOTNET_PDB_HEAD + 15] = ++build;
	put(DW_ENTRIES + 0x84 + 15, &build, 1);
	memory.beside = beside_of_world;
	ck_assert_int_eq(code(DW_RUN + 0x10), 0);
}

static void remove_beside(void)
{
	memory.beside = NULL;
}

static void check_no_lines(uint32_t outcome)
{
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "My.Assembly.dll");
	ck_assert_uint_eq(function.nr_lines, 0);
	ck_assert_uint_eq(function.start_line, 0);
	ck_assert_uint_eq(function.line_file, outcome);
}

START_TEST(lines_are_of_the_pdb_beside_the_assembly)
{
	put_beside("/build/obj/My.Assembly.pdb");
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(function.file, "/src/a.cs");
	ck_assert_uint_eq(line_at(4), 12);
	ck_assert_uint_eq(function.line_file, RUNTIME_LINES_READ);
	ck_assert_uint_eq(beside.address, DW_IMAGE);
	ck_assert_str_eq(beside.name, "My.Assembly.pdb");
	/* Once for all methods. */
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(line_at(4), 12);
	ck_assert_uint_eq(function.line_file, RUNTIME_LINES_NOT_SOUGHT);
	ck_assert_uint_eq(beside.asked, 1);
}
END_TEST

START_TEST(the_pdb_within_the_assembly_goes_before_it)
{
	put_beside("a.pdb");
	put32(DW_ENTRIES + 28 + 12, 17);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(line_at(4), 12);
	ck_assert_uint_eq(beside.asked, 0);
}
END_TEST

/* The GUID, or the stamp alone. */
START_TEST(a_pdb_of_another_build_has_no_lines)
{
	put_beside("a.pdb");
	beside.bytes[DOTNET_PDB_HEAD]++;
	check_no_lines(RUNTIME_LINES_OTHER_BUILD);
	check_no_lines(RUNTIME_LINES_NOT_SOUGHT);
	ck_assert_uint_eq(beside.asked, 1);
	put_beside("a.pdb");
	beside.bytes[DOTNET_PDB_HEAD + 19]++;
	check_no_lines(RUNTIME_LINES_OTHER_BUILD);
}
END_TEST

static const struct { int err; uint32_t outcome; } misses[] = {
	{-ENOENT, RUNTIME_LINES_MISSING}, {-EACCES, RUNTIME_LINES_REFUSED}, {-EPERM, RUNTIME_LINES_REFUSED},
	{-ELOOP, RUNTIME_LINES_REFUSED}, {-EXDEV, RUNTIME_LINES_REFUSED}, {-EFBIG, RUNTIME_LINES_TOO_LARGE},
	{-EBADMSG, RUNTIME_LINES_BROKEN}, {-E2BIG, RUNTIME_LINES_TOO_MANY}, {-ETIMEDOUT, RUNTIME_LINES_NO_ANSWER},
	{-EBUSY, RUNTIME_LINES_NO_ANSWER},
};

START_TEST(a_miss_has_its_reason_and_is_remembered)
{
	put_beside("a.pdb");
	beside.err = misses[_i].err;
	check_no_lines(misses[_i].outcome);
	beside.err = 0;
	check_no_lines(RUNTIME_LINES_NOT_SOUGHT);
	ck_assert_uint_eq(beside.asked, 1);
}
END_TEST

/* As in a replay, whose functions come in another order. */
START_TEST(where_there_are_no_files_nothing_is_remembered)
{
	put_beside("a.pdb");
	memory.beside = NULL;
	check_no_lines(RUNTIME_LINES_NOT_SOUGHT);
	memory.beside = beside_of_world;
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(line_at(4), 12);
}
END_TEST

START_TEST(only_the_last_part_of_a_path_counts)
{
	put_beside("C:\\src\\obj\\a.pdb");
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(beside.name, "a.pdb");
	put_beside("../../etc/.pdb.pdb");
	ck_assert_int_eq(decode(), 0);
	ck_assert_str_eq(beside.name, ".pdb.pdb");
}
END_TEST

START_TEST(other_names_are_not_asked_for)
{
	static const char *const names[] = {"a.pdb/", "/etc/passwd", "a.pdb/..", ".pdb", "", "/"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		put_beside(names[i]);
		check_no_lines(RUNTIME_LINES_BROKEN);
		ck_assert_uint_eq(beside.asked, 0);
	}
	/* One that does not end; one of no path at all; one of another kind of PDB. */
	put_beside("a.pdb");
	put32(DW_ENTRIES + 16, 24 + 5);
	check_no_lines(RUNTIME_LINES_BROKEN);
	put_beside("a.pdb");
	put32(DW_ENTRIES + 16, 24);
	check_no_lines(RUNTIME_LINES_BROKEN);
	put_beside("a.pdb");
	dotnet_put16(DW_ENTRIES + 10, 0);
	check_no_lines(RUNTIME_LINES_NOT_SOUGHT);
	ck_assert_uint_eq(beside.asked, 0);
}
END_TEST

/* As if the path went on to the end of memory. */
START_TEST(a_path_of_any_length_is_bounded)
{
	static const uint32_t sizes[] = {24 + 1024, 24 + 4096, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_beside("a.pdb");
		put32(DW_ENTRIES + 16, sizes[i]);
		ck_assert_int_eq(decode(), 0);
		ck_assert_uint_eq(function.line_file, RUNTIME_LINES_READ);
	}
}
END_TEST

/* While it is written; a length of none. */
START_TEST(a_file_that_is_cut_has_no_lines)
{
	put_beside("a.pdb");
	beside.len = DOTNET_PDB_HEAD + 19;
	check_no_lines(RUNTIME_LINES_BROKEN);
	put_beside("a.pdb");
	beside.len = 0;
	check_no_lines(RUNTIME_LINES_BROKEN);
}
END_TEST

/* More than are kept: the bytes are bounded, and each is asked for again. */
START_TEST(many_files_are_read_again)
{
	put_beside("a.pdb");
	for (uint32_t i = 0; i < 600; i++) {
		const uint16_t nr = (uint16_t)(i % 300);

		put(DW_ENTRIES + 0x84, &nr, sizeof(nr));
		memcpy(beside.bytes + DOTNET_PDB_HEAD, &nr, sizeof(nr));
		ck_assert_int_eq(decode(), 0);
		ck_assert_uint_eq(line_at(4), 12);
	}
	ck_assert_uint_eq(beside.asked, 600);
}
END_TEST

START_TEST(the_id_is_that_of_its_stream)
{
	uint8_t bytes[DOTNET_PDB_MAX], other[DOTNET_PDB_ID];
	size_t len = dotnet_pdb_make(bytes);

	memcpy(other, dotnet_pdb_id, sizeof(other));
	ck_assert_int_eq(dotnet_pdb_check(bytes, len, other), 0);
	for (size_t i = 0; i < sizeof(other); i++) {
		other[i] ^= 1;
		ck_assert_int_eq(dotnet_pdb_check(bytes, len, other), -ESTALE);
		other[i] ^= 1;
	}
	for (size_t n = 0; n < len; n++)
		ck_assert_int_eq(dotnet_pdb_check(bytes, n, other), -EBADMSG);
	bytes[32 + 4] = 19; /* the stream ends within the id */
	ck_assert_int_eq(dotnet_pdb_check(bytes, len, other), -EBADMSG);
	memcpy(bytes + 32 + 8, "#Xxx", 4); /* there is none */
	ck_assert_int_eq(dotnet_pdb_check(bytes, len, other), -EBADMSG);
}
END_TEST

static uint8_t pdb_bytes[DOTNET_PDB_MAX];

static int pdb_lines(size_t len, uint32_t row)
{
	uint8_t *exact = malloc(len ? len : 1);
	int err;

	memcpy(exact, pdb_bytes, len);
	memset(&function, 0, sizeof(function));
	err = dotnet_pdb_lines(exact, len, row, &function);
	free(exact);
	ck_assert_uint_le(function.nr_lines, RUNTIME_LINES_MAX);
	ck_assert_uint_lt(strnlen(function.file, sizeof(function.file)), sizeof(function.file));
	ck_assert(!err == (function.nr_lines > 0));
	return err;
}

START_TEST(a_pdb_that_is_cut_has_no_lines)
{
	size_t size = dotnet_pdb_make(pdb_bytes);

	ck_assert_int_eq(pdb_lines(size, 2), 0);
	ck_assert_int_ne(pdb_lines(size, 0), 0);
	ck_assert_int_ne(pdb_lines(size, 3), 0);
	for (size_t len = 0; len < size; len++)
		ck_assert_int_ne(pdb_lines(len, 2), 0);
}
END_TEST

START_TEST(a_pdb_that_is_broken_harms_nobody)
{
	size_t size = dotnet_pdb_make(pdb_bytes);

	for (size_t i = 0; i < size; i++) {
		pdb_bytes[i] ^= (uint8_t)(1u << _i);
		pdb_lines(size, 1);
		pdb_lines(size, 2);
		pdb_bytes[i] ^= (uint8_t)(1u << _i);
	}
}
END_TEST

/* Its last line must not be that of all that follows. */
START_TEST(a_method_with_too_many_points_is_cut)
{
	static uint8_t large[64u << 10];
	size_t size = dotnet_pdb_make(large), at = DOTNET_PDB_BLOBS + sizeof(dotnet_pdb_blobs), len = 5 * RUNTIME_LINES_MAX + 6;
	const uint8_t head[] = {0xc0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, 1, 10, 5}, next[] = {1, 1, 0, 2, 0};
	const uint32_t blobs = (uint32_t)(sizeof(dotnet_pdb_blobs) + 4 + len);
	const uint16_t blob = sizeof(dotnet_pdb_blobs);

	memcpy(large + DOTNET_PDB_TABLES + 24 + 8 + 16 + 2, &blob, sizeof(blob));
	memcpy(large + 32 + 16 + 12 + 4, &blobs, sizeof(blobs));
	memcpy(large + at, head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = 0; i < RUNTIME_LINES_MAX; i++, at += sizeof(next))
		memcpy(large + at, next, sizeof(next));
	ck_assert_uint_ge(at, size);
	memset(&function, 0, sizeof(function));
	ck_assert_int_eq(dotnet_pdb_lines(large, at, 1, &function), 0);
	ck_assert_uint_eq(function.nr_lines, RUNTIME_LINES_MAX);
	ck_assert_uint_eq(line_at(0), 10);
	ck_assert_uint_eq(line_at(100), 110);
	ck_assert_uint_eq(line_at(RUNTIME_LINES_MAX + 5), 0);
}
END_TEST

Suite *runtime_dotnet_suite(void)
{
	Suite *s = suite_create("runtime_dotnet");
	TCase *t = tcase_create("dotnet");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, a_method_is_found_by_its_nibble);
	tcase_add_test(t, a_long_method_is_found_by_a_pointer);
	tcase_add_test(t, a_long_method_is_found_over_words_of_zeros);
	tcase_add_test(t, code_compiled_before_is_found_by_its_functions);
	tcase_add_test(t, a_cold_part_is_not_taken_for_another_method);
	tcase_add_test(t, code_compiled_before_of_no_method_has_no_name);
	tcase_add_test(t, a_method_that_was_not_entered_is_no_handler_of_the_one_before);
	tcase_add_test(t, code_of_no_method_is_known_by_how_its_frame_is_left);
	tcase_add_test(t, a_method_is_not_missed_where_buckets_are_replaced);
	tcase_add_test(t, code_of_no_method_has_steps_all_the_same);
	tcase_add_test(t, the_same_code_is_told);
	tcase_add_test(t, stubs_have_what_they_pushed);
	tcase_add_test(t, stubs_deep_in_a_heap_have_what_they_pushed);
	tcase_add_test(t, a_stub_on_two_pages_is_the_same_from_either);
	tcase_add_test(t, stubs_end_where_code_ends);
	tcase_add_test(t, a_stub_is_the_same_whatever_lies_behind);
	tcase_add_test(t, the_last_stub_of_a_heap_is_the_same_when_the_heap_has_grown);
	tcase_add_test(t, stubs_alone_are_known_by_their_form);
	tcase_add_test(t, an_entry_from_native_code_is_known_by_its_form);
	tcase_add_loop_test(t, a_thunk_has_no_frame, 0, (int)ARRAY_SIZE(thunks));
	tcase_add_test(t, what_only_looks_like_a_thunk_is_not_known);
	tcase_add_test(t, each_instruction_of_a_method_has_a_step);
	tcase_add_test(t, a_frame_by_rbp_needs_no_stack_pointer);
	tcase_add_test(t, a_saved_rbp_is_found);
	tcase_add_test(t, a_prologue_may_call);
	tcase_add_test(t, registers_that_were_saved_beneath_pushed_ones_are_popped);
	tcase_add_loop_test(t, the_stub_that_stops_threads_is_found_by_its_instructions, 0, (int)ARRAY_SIZE(hijacks));
	tcase_add_loop_test(t, a_return_address_that_was_replaced_ends_the_stack, 0, (int)ARRAY_SIZE(hijacks));
	tcase_add_loop_test(t, the_return_address_is_known_once_the_worker_has_written_it, 0, (int)ARRAY_SIZE(hijacks));
	tcase_add_loop_test(t, each_instruction_behind_the_worker_has_a_step, 0, (int)ARRAY_SIZE(hijacks));
	tcase_add_test(t, chained_information_is_followed);
	tcase_add_test(t, all_epilogues_are_known);
	tcase_add_test(t, unwind_information_that_is_none_is_refused);
	tcase_add_test(t, a_method_has_type_and_parameters);
	tcase_add_test(t, a_dynamic_method_has_its_own_name);
	tcase_add_test(t, another_method_in_its_place_is_told);
	tcase_add_test(t, code_that_is_collected_is_fleeting);
	tcase_add_test(t, a_dynamic_method_is_known_by_what_its_name_says);
	tcase_add_loop_test(t, an_assembly_that_is_broken_harms_nobody, 0, 4);
	tcase_add_test(t, the_module_of_a_generic_type_is_found_in_8);
	tcase_add_test(t, instructions_have_their_place_in_the_bytecode);
	tcase_add_test(t, places_are_found_behind_what_else_is_there);
	tcase_add_test(t, places_of_the_original_bytecode_are_taken);
	tcase_add_test(t, code_compiled_before_has_places);
	tcase_add_test(t, a_part_of_a_method_begins_with_what_runs_there);
	tcase_add_test(t, places_that_are_cut_are_not_known);
	tcase_add_test(t, a_method_has_the_lines_of_its_source);
	tcase_add_test(t, a_method_without_a_source_has_its_assembly);
	tcase_add_test(t, lines_are_of_the_pdb_that_is_there);
	tcase_add_test(t, many_pdbs_are_unpacked_again);
	tcase_add_test(t, a_pdb_that_is_cut_has_no_lines);
	tcase_add_loop_test(t, a_pdb_that_is_broken_harms_nobody, 0, 8);
	tcase_add_test(t, a_method_with_too_many_points_is_cut);
	suite_add_tcase(s, t);
	t = tcase_create("beside");
	tcase_add_checked_fixture(t, NULL, remove_beside);
	tcase_add_test(t, lines_are_of_the_pdb_beside_the_assembly);
	tcase_add_test(t, the_pdb_within_the_assembly_goes_before_it);
	tcase_add_test(t, a_pdb_of_another_build_has_no_lines);
	tcase_add_loop_test(t, a_miss_has_its_reason_and_is_remembered, 0, (int)ARRAY_SIZE(misses));
	tcase_add_test(t, where_there_are_no_files_nothing_is_remembered);
	tcase_add_test(t, only_the_last_part_of_a_path_counts);
	tcase_add_test(t, other_names_are_not_asked_for);
	tcase_add_test(t, a_path_of_any_length_is_bounded);
	tcase_add_test(t, a_file_that_is_cut_has_no_lines);
	tcase_add_test(t, many_files_are_read_again);
	tcase_add_test(t, the_id_is_that_of_its_stream);
	suite_add_tcase(s, t);
	return s;
}
