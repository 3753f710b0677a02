// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/unwind.h"

Suite *unwind_suite(void);

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define BASE 0x7f0000000000ULL
#define JIT 0x7e0000000000ULL
#define STACK 0x7ffc00000000ULL
#define WORDS 2176 /* more than any search reads, and Haskell code reserves */
#define NR(a) (sizeof(a) / sizeof((a)[0]))

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

static struct tiny tiny;
static struct binary *binary;
static struct space *space;
static struct unwinder *unwinder;
static struct unwind_stack out;
static uint64_t reg[OTP_REGS_MAX];
static uint64_t stack[WORDS];
static struct unwind_input in;
static const struct mapping *waits;

/*
 * 0x2000 leaf: CFA rsp+8.  0x2100: CFA rsp+32, rbx at CFA-16.
 * 0x2200: CFA rbp+16, rbp at CFA-16.  0x2300: root.  0x2400: CFA rbx+8.
 * 0x2500: signal trampoline whose frame keeps rsp at +16, rip at +24.
 * 0x2600: CFA rcx+8.  0x2700: CFA rsp+144, rip at CFA-136.  0x2f00: no table at all.
 */
static void setup(void)
{
	tiny_init(&tiny, EM_X86_64, 0);
	tiny_cie(&tiny, "zR", -8, 16, BYTES(0x0c, 7, 8, 0x90, 1));
	tiny_fde(&tiny, 0x2000, 0x100, BYTES(0));
	tiny_fde(&tiny, 0x2100, 0x100, BYTES(0x0e, 32, 0x83, 2));
	tiny_fde(&tiny, 0x2200, 0x100, BYTES(0x0c, 6, 16, 0x86, 2));
	tiny_fde(&tiny, 0x2300, 0x100, BYTES(0x07, 16));
	tiny_fde(&tiny, 0x2400, 0x100, BYTES(0x0c, 3, 8));
	tiny_cie(&tiny, "zRS", -8, 16, BYTES(0x0c, 7, 8));
	tiny_fde(&tiny, 0x24ff, 0x100,
		 BYTES(0x0f, 3, 0x77, 16, 0x06, 0x10, 7, 2, 0x77, 16, 0x10, 16, 2, 0x77, 24, 0x10, 2, 2, 0x77, 32));
	tiny_cie(&tiny, "zR", -8, 16, BYTES(0x0c, 7, 8, 0x90, 1));
	tiny_fde(&tiny, 0x2600, 0x100, BYTES(0x0c, 2, 8));
	tiny_fde(&tiny, 0x2700, 0x100, BYTES(0x0e, 0x90, 1, 0x90, 17));
	tiny_fde(&tiny, 0x2800, 0x100, BYTES(0));
	tiny.image[0x2110 - 5] = 0xe8; /* a call returns to 0x2110 */
	binary = tiny_open(&tiny);
	ck_assert_ptr_nonnull(binary);
	space = tiny_space(binary, BASE);
	tiny_add_anon(&space, JIT, JIT + 0x1000);
	ck_assert_int_eq(unwinder_new(NULL, &unwinder), 0);
	memset(stack, 0, sizeof(stack));
	memset(reg, 0, sizeof(reg));
	in = (struct unwind_input){
		.arch = OTP_ARCH_X86_64,
		.space = space,
		.valid = (1u << OTP_REGS_X86_64) - 1,
		.reg = reg,
		.stack_addr = STACK - 128,
		.stack = (const uint8_t *)stack,
		.stack_len = sizeof(stack),
	};
	reg[RSP] = STACK;
}

static void teardown(void)
{
	unwinder_free(unwinder);
	space_put(space);
	binary_put(binary);
}

/* Word n above the stack pointer. */
static void word(unsigned n, uint64_t v)
{
	stack[16 + n] = v;
}

static int run(bool final)
{
	in.space = space;
	return unwind_user(unwinder, &in, final, &out, &waits);
}

static void expect(enum unwind_end end, const uint64_t *pcs, size_t nr)
{
	ck_assert_int_eq(run(true), 0);
	ck_assert_str_eq(unwind_end_name(out.end), unwind_end_name(end));
	ck_assert_uint_eq(out.count, nr);
	for (size_t i = 0; i < nr; i++)
		ck_assert_uint_eq(out.frames[i].pc, pcs[i]);
}
#define EXPECT(end, ...) expect(end, (const uint64_t[]){__VA_ARGS__}, NR(((const uint64_t[]){__VA_ARGS__})))

static void reopen(void)
{
	binary_put(binary);
	space_put(space);
	binary = tiny_open(&tiny);
	space = tiny_space(binary, BASE);
}

/* call *%rax, which returns to at. */
static void put_call(uint32_t at)
{
	memcpy(&tiny.image[at - 2], "\xff\xd0", 2);
}

/* call target, which returns to at. */
static void put_direct_call(uint32_t at, uint32_t target)
{
	const int32_t rel = (int32_t)(target - at);

	tiny.image[at - 5] = 0xe8;
	memcpy(&tiny.image[at - 4], &rel, sizeof(rel));
}

static void reopen_with_generated(void)
{
	reopen();
	tiny_add_anon(&space, JIT, JIT + 0x1000);
}

/* Its frame pointer leads to a record that returns behind a call at caller, and on to the next record. */
static void begin_in_generated(uint32_t caller)
{
	put_call(caller);
	reopen_with_generated();
	reg[RIP] = JIT + 0x10;
	reg[RBP] = STACK + 16;
	word(2, STACK + 160);
	word(3, BASE + caller);
}

START_TEST(chain_of_three_ends_at_undefined_return_address)
{
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2110);
	word(4, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2110, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[0].flags, 0);
	ck_assert_uint_eq(out.frames[1].flags, FRAME_CALLER);
	ck_assert_uint_eq(out.stack_used, 128 + 5 * 8);
}
END_TEST

START_TEST(return_address_behind_a_function_belongs_to_it)
{
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2200); /* the call was the last instruction of 0x2100 */
	word(4, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2200, BASE + 0x2310);
}
END_TEST

START_TEST(saved_register_is_used_by_a_later_frame)
{
	reg[RIP] = BASE + 0x2110;
	word(2, STACK + 400); /* rbx */
	word(3, BASE + 0x2410);
	word(50, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2110, BASE + 0x2410, BASE + 0x2310);
}
END_TEST

START_TEST(frame_pointer_cfa_restores_frame_pointer)
{
	reg[RIP] = BASE + 0x2210;
	reg[RBP] = STACK + 80;
	word(10, STACK + 160);
	word(11, BASE + 0x2210);
	word(20, 0);
	word(21, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2210, BASE + 0x2210, BASE + 0x2310);
}
END_TEST

START_TEST(copy_that_ends_early_is_short_and_says_what_it_wants)
{
	reg[RIP] = BASE + 0x2010;
	in.stack_len = 128 + 16;
	word(0, BASE + 0x2110);
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2110);
	ck_assert_uint_eq(out.stack_used, 128 + 5 * 8);
	in.chunk_lost = true;
	EXPECT(UNWIND_CHUNK_LOST, BASE + 0x2010, BASE + 0x2110);
	in.chunk_lost = false;
	in.short_read = true;
	EXPECT(UNWIND_UNREADABLE, BASE + 0x2010, BASE + 0x2110);
}
END_TEST

START_TEST(far_stack_does_not_ask_for_a_larger_copy)
{
	reg[RIP] = BASE + 0x2210;
	reg[RBP] = STACK + (1u << 30);
	EXPECT(UNWIND_UNREADABLE, BASE + 0x2210);
	ck_assert_uint_eq(out.stack_used, 0);
}
END_TEST

START_TEST(frame_below_the_last_one_is_a_loop)
{
	reg[RIP] = BASE + 0x2210;
	reg[RBP] = STACK + 80;
	word(10, STACK + 16);
	word(11, BASE + 0x2210);
	EXPECT(UNWIND_LOOP, BASE + 0x2210, BASE + 0x2210);
}
END_TEST

static uint64_t base_copy[8];

static void with_base(uint64_t addr)
{
	memset(base_copy, 0, sizeof(base_copy));
	in.base_addr = addr;
	in.base = (const uint8_t *)base_copy;
	in.base_len = sizeof(base_copy);
}

START_TEST(huge_frame_is_crossed_into_the_base_copy)
{
	reg[RIP] = BASE + 0x2210;
	reg[RBP] = STACK + (1u << 20);
	with_base(STACK + (1u << 20));
	base_copy[1] = BASE + 0x2310;
	EXPECT(UNWIND_ROOT, BASE + 0x2210, BASE + 0x2310);
	ck_assert_uint_eq(out.stack_used, 0);
	ck_assert_uint_eq(out.fail_addr, 0);
}
END_TEST

START_TEST(switched_stack_leads_back_once_to_a_lower_base)
{
	reg[RIP] = BASE + 0x2210;
	reg[RBP] = STACK - 4096;
	with_base(STACK - 4096);
	base_copy[0] = STACK - 4096 + 16;
	base_copy[1] = BASE + 0x2210;
	base_copy[2] = STACK + 16; /* and down again is no stack */
	base_copy[3] = BASE + 0x2210;
	word(3, BASE + 0x2210);
	EXPECT(UNWIND_LOOP, BASE + 0x2210, BASE + 0x2210, BASE + 0x2210, BASE + 0x2210);
}
END_TEST

START_TEST(page_that_was_not_there_is_not_read_as_zeros)
{
	reg[RIP] = BASE + 0x2010;
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010); /* a zero return address */
	in.holes = true;
	EXPECT(UNWIND_UNREADABLE, BASE + 0x2010);
	ck_assert_uint_eq(out.fail_addr, STACK);
	word(1, 1); /* now the page is there */
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010);
}
END_TEST

START_TEST(interrupted_code_is_looked_up_as_it_is)
{
	/* handler -> trampoline -> first instruction of 0x2100, interrupted */
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2500);
	word(3, STACK + 400); /* rsp, at the trampoline's rsp + 16 */
	word(4, BASE + 0x2000);
	word(50, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2500, BASE + 0x2000, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].flags, FRAME_SIGNAL);
	ck_assert_uint_eq(out.frames[2].flags, 0);
}
END_TEST

/* As CoreCLR makes one that calls a handler: beneath the red zone of what was interrupted at its first instruction. */
START_TEST(a_frame_beneath_a_red_zone_leads_to_interrupted_code)
{
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2710);
	word(2, BASE + 0x2000);
	word(19, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2710, BASE + 0x2000, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].flags, FRAME_CALLER);
	ck_assert_uint_eq(out.frames[2].flags, 0);
}
END_TEST

START_TEST(trampoline_that_leads_to_itself_ends)
{
	reg[RIP] = BASE + 0x2500;
	word(2, STACK);
	word(3, BASE + 0x2500);
	ck_assert_int_eq(run(true), 0);
	ck_assert_int_eq(out.end, UNWIND_LOOP);
	ck_assert_uint_le(out.count, 64);
}
END_TEST

START_TEST(private_convention_holds_within_one_file_only)
{
	reg[RIP] = BASE + 0x2010;
	reg[2] = STACK + 80; /* rcx, which a call does not preserve by the ABI */
	word(0, BASE + 0x2610);
	word(10, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2610, BASE + 0x2310);
	begin_in_generated(0x2610);
	word(21, 0x1234567); /* no code: the chain leads nowhere */
	EXPECT(UNWIND_REGISTER, JIT + 0x10, BASE + 0x2610);
}
END_TEST

START_TEST(generated_code_is_left_by_its_frame_pointer)
{
	begin_in_generated(0x2210);
	word(20, 0);
	word(21, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].flags, FRAME_CALLER);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_FRAME_POINTER);
	ck_assert_uint_eq(out.guessed[FRAME_BY_FRAME_POINTER], 1);
	ck_assert_uint_eq(out.frames[2].flags, FRAME_CALLER);
}
END_TEST

START_TEST(code_of_a_file_that_is_no_program_is_left_like_generated_code)
{
	struct mapped_file *f;

	put_call(0x2310);
	reopen_with_generated();
	f = space_find(space, JIT)->file;
	f->kind = MAPPED_MEMFD;
	f->state = MAPPED_FAILED;
	f->error = -ENOEXEC;
	reg[RIP] = JIT + 0x10;
	reg[RBP] = STACK + 16;
	word(2, STACK + 160);
	word(3, JIT + 0x20);
	word(20, 0);
	word(21, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x20, BASE + 0x2310);
	f->error = -EPERM;
	EXPECT(UNWIND_NO_FILE, JIT + 0x10);
}
END_TEST

START_TEST(generated_code_is_left_into_code_without_frame_pointers)
{
	put_call(0x2110);
	reopen_with_generated();
	reg[RIP] = JIT + 0x10;
	reg[RBP] = STACK + 16;
	word(2, 42); /* to the caller the register is like any other */
	word(3, BASE + 0x2110);
	word(7, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	word(3, BASE + 0x2120); /* no call returns there */
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	word(3, BASE + 0x2110);
	space->maps[1].file->state = MAPPED_NEW;
	ck_assert_int_eq(run(false), -EAGAIN);
	ck_assert_ptr_eq(waits, &space->maps[1]);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(implausible_frame_pointer_is_not_followed)
{
	reg[RIP] = JIT + 0x10;
	reg[RBP] = STACK + 17;
	word(3, BASE + 0x2210);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	reg[RBP] = STACK + 16;
	word(2, STACK + 8); /* downwards */
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	word(2, STACK + 160);
	word(3, 0x1234567); /* no code */
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(followed_chain_that_ends_in_zero_is_a_root)
{
	reg[RIP] = JIT + 0x10;
	reg[RBP] = STACK + 16;
	word(2, 0);
	word(3, JIT + 0x20);
	EXPECT(UNWIND_ROOT_LISTED, JIT + 0x10, JIT + 0x20);
}
END_TEST

/* 0x2100, called by 0x2300, has called the generated code, three words of which lie below the return address. */
static void searched(void)
{
	put_call(0x2110);
	put_direct_call(0x2310, 0x2100);
	reopen_with_generated();
	reg[RIP] = JIT + 0x10;
	reg[RBP] = 1;
	word(3, BASE + 0x2110);
	word(7, BASE + 0x2310);
}

/* 0x2200's frame is known by the frame pointer. */
static void searched_by_pointer(void)
{
	put_call(0x2210);
	put_direct_call(0x2310, 0x2200);
	reopen_with_generated();
	reg[RIP] = JIT + 0x10;
	word(11, BASE + 0x2310);
}

START_TEST(caller_of_generated_code_is_searched_for)
{
	searched();
	word(1, BASE + 0x2120); /* no call precedes it */
	word(2, BASE + 0x2310); /* a call of another function */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SEARCH);
	ck_assert_uint_eq(out.guessed[FRAME_BY_SEARCH], 1);
	ck_assert_uint_eq(out.frames[2].guess, FRAME_SURE);
	ck_assert_uint_eq(out.stack_used, 128 + 8 * 8);
}
END_TEST

START_TEST(caller_is_found_beyond_a_frame_of_a_page)
{
	searched();
	word(3, 0);
	word(853, BASE + 0x2110); /* GEMM kernels of oneDNN: 6824 bytes up */
	word(857, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(buffer_of_pages_is_left_by_the_stack_pointer_that_it_keeps)
{
	searched();
	ck_assert_uint_eq(STACK % 4096, 0);
	put_call(0x2350);
	reopen_with_generated();
	word(3, BASE + 0x2350); /* a former call, in the buffer */
	word(15, STACK + 8 * 847);
	word(853, BASE + 0x2110);
	word(857, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	in.stack_len = 128 + 8 * 850; /* it lies further up */
	EXPECT(UNWIND_SHORT, JIT + 0x10);
	in.stack_len = sizeof(stack);
	word(15, STACK + 8 * 840); /* no return address there */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2350);
}
END_TEST

START_TEST(buffer_of_the_heap_is_left_to_the_bytes_that_were_copied_besides)
{
	uint64_t base[16] = {0};

	searched();
	word(3, 0);
	reg[RSP] = in.stack_addr = 0x10000000;
	in.stack_len = 128;
	stack[4] = 0x10000f00; /* another pointer into the heap, beyond the copy */
	stack[15] = STACK + 8 * 2;
	in.stack_end = STACK + sizeof(base);
	EXPECT(UNWIND_UNREADABLE, JIT + 0x10);
	ck_assert_uint_eq(out.fail_addr, STACK + 8 * 2); /* asks for them */
	base[8] = BASE + 0x2110;
	base[12] = BASE + 0x2310;
	in.base = (const uint8_t *)base;
	in.base_addr = STACK;
	in.base_len = sizeof(base);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SEARCH);
}
END_TEST

START_TEST(former_call_that_leads_to_no_code_is_passed_over_wherever_it_ends)
{
	searched_by_pointer();
	reg[RBP] = STACK + 8 * 1600; /* beyond what is searched */
	word(2, BASE + 0x2210);
	word(1601, STACK + 8 * 1610);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	word(1601, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
}
END_TEST

START_TEST(search_that_fails_asks_for_no_larger_copy)
{
	searched();
	word(3, 0);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	ck_assert_uint_eq(out.stack_used, 0);
}
END_TEST

START_TEST(generated_code_may_be_called_by_address_from_its_own_region)
{
	uint32_t far = (uint32_t)(0x2900 - 0x10);

	searched();
	put_direct_call(0x2810, far);
	binary_put(binary);
	space_put(space);
	binary = tiny_open(&tiny);
	space = tiny_space(binary, BASE);
	tiny_add_anon(&space, BASE + far, BASE + far + 0x100);
	reg[RIP] = BASE + far + 8;
	word(1, BASE + 0x2810);
	word(2, BASE + 0x2110);
	word(6, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + far + 8, BASE + 0x2810, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(former_call_whose_callers_do_not_fit_is_passed_over)
{
	searched();
	put_call(0x2010);
	reopen_with_generated();
	word(0, BASE + 0x2010);
	word(1, BASE + 0x2310); /* called 0x2100, not 0x2000 */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	word(1, 0); /* no root either, so near */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	word(1, JIT + 0x40); /* nothing tells a call that generated code makes from a former one */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(former_call_by_the_one_who_called_generated_code_is_passed_over)
{
	searched();
	put_call(0x2310);
	put_direct_call(0x2350, 0x2100);
	reopen_with_generated();
	/* 0x2300 called 0x2100, then the generated code: that call's return address replaced the other's. */
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2310);
	put_direct_call(0x2350, 0x2000);
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

/* jmp target, at at. */
static void put_jump(uint32_t at, uint32_t target)
{
	const int32_t rel = (int32_t)(target - (at + 5));

	tiny.image[at] = 0xe9;
	memcpy(&tiny.image[at + 1], &rel, sizeof(rel));
}

START_TEST(caller_may_have_been_jumped_to_by_what_was_called)
{
	searched();
	put_direct_call(0x2310, 0x2000);
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	put_jump(0x2008, 0x2800);
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	put_jump(0x2808, 0x2100);
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	put_jump(0x2808, 0x2400);
	put_jump(0x2408, 0x2100); /* libpypy3.9: three jumps from a call to the function that makes the next one */
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	put_jump(0x2008, 0x2100);
	put_jump(0x2808, 0x2000); /* and so on without an end */
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

/* Where nothing else fits, what called main does: a call through a pointer, from whose caller the program's start is near. */
START_TEST(generated_code_is_not_main)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)tiny.image;

	searched();
	e->e_entry = 0x2300;
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	put_call(0x2310); /* main is 0x2100 */
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	put_direct_call(0x2310, 0x2100);
	e->e_entry = 0x2000; /* a thread's root, say */
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(call_by_pointer_does_not_lead_to_a_function_that_is_always_called_by_address)
{
	const int32_t rel = 0x2100 - (0x2080 + 7);
	const uint64_t address = 0x2180;

	searched();
	put_call(0x2310);
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	put_direct_call(0x2050, 0x2100);
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2310);
	/* Within the file, the call is nothing to go by. */
	memcpy(&tiny.image[0x2f00], &address, sizeof(address));
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	memset(&tiny.image[0x2f00], 0, sizeof(address));
	memcpy(&tiny.image[0x2080], "\x48\x8d\x05", 3); /* lea 0x2100(%rip),%rax */
	memcpy(&tiny.image[0x2083], &rel, sizeof(rel));
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

#define LARGE (2 << 20) /* bytes: more of a file than a search may look through */
#define RELA  0x180000
#define SHDRS 0x200000

/* The same file with much behind it, and a relocation that stores addend. */
static void reopen_large(int64_t addend)
{
	static uint8_t image[LARGE + 0x1000];
	Elf64_Ehdr *e = (Elf64_Ehdr *)image;
	Elf64_Phdr *p = (Elf64_Phdr *)(image + sizeof(*e));
	Elf64_Shdr *shdr = (Elf64_Shdr *)(image + SHDRS);
	const Elf64_Rela rela = {.r_offset = 0x2f00, .r_info = R_X86_64_RELATIVE, .r_addend = addend};

	memcpy(image, tiny.image, sizeof(tiny.image));
	memcpy(shdr, image + e->e_shoff, 3 * sizeof(*shdr));
	memcpy(image + RELA, &rela, sizeof(rela));
	memcpy(image + shdr[2].sh_offset + 32, ".rela.dyn", 10);
	shdr[2].sh_size = 64;
	shdr[3] = (Elf64_Shdr){.sh_name = 32, .sh_type = SHT_RELA, .sh_addr = RELA, .sh_offset = RELA, .sh_size = sizeof(rela)};
	e->e_shoff = SHDRS;
	e->e_shnum = 4;
	p->p_filesz = p->p_memsz = LARGE;
	binary_put(binary);
	space_put(space);
	ck_assert_int_eq(binary_open_memory(image, sizeof(image), "large", &binary), 0);
	space = tiny_space(binary, BASE);
	tiny_add_anon(&space, JIT, JIT + 0x1000);
}

/* With nothing known. */
static void anew(void)
{
	unwinder_free(unwinder);
	ck_assert_int_eq(unwinder_new(NULL, &unwinder), 0);
}

START_TEST(call_by_pointer_leads_to_no_function_of_a_large_file_that_nothing_points_to)
{
	const int32_t rel = 0x2100 - (0x2080 + 7);

	searched();
	put_call(0x2310);
	reopen_large(0x2200);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2310);
	anew();
	reopen_large(0x2100);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	memcpy(&tiny.image[0x2080], "\x48\x8d\x05", 3); /* lea 0x2100(%rip),%rax */
	memcpy(&tiny.image[0x2083], &rel, sizeof(rel));
	anew();
	reopen_large(0x2200);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(caller_may_have_called_what_jumped_to_generated_code)
{
	searched();
	put_direct_call(0x2110, 0x2000);
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	memcpy(&tiny.image[0x2008], "\xff\xe0", 2); /* jmp *%rax, where the return address is at the stack pointer */
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	/* Of a function that has its frame: a jump by a table. */
	put_direct_call(0x2110, 0x2100);
	memcpy(&tiny.image[0x2120], "\xff\xe0", 2);
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	/* A stub that leads to another file. */
	put_direct_call(0x2110, 0x2000);
	memcpy(&tiny.image[0x2000], "\xff\x25\x00\x00\x00\x00", 6); /* jmp *0(%rip) */
	memset(&tiny.image[0x2008], 0, 2);
	reopen_with_generated();
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(frame_pointer_that_generated_code_left_alone_is_the_callers)
{
	searched_by_pointer();
	reg[RBP] = STACK + 80;
	word(2, BASE + 0x2210);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SEARCH);
	/* Called through a register itself. */
	put_call(0x2310);
	reopen_with_generated();
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	/* As far up as in a query of PostgreSQL. */
	reg[RBP] = STACK + 8 * 40;
	word(2, 0);
	word(11, 0);
	word(19, BASE + 0x2210);
	word(41, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
}
END_TEST

START_TEST(frame_pointer_that_generated_code_saved_is_found)
{
	searched_by_pointer();
	reg[RBP] = 1;
	word(3, 42);
	word(4, STACK + 80);
	word(5, 43);
	word(6, BASE + 0x2210);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	word(4, STACK + 88); /* no frame there */
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(search_waits_for_a_file_that_is_not_open)
{
	searched();
	space->maps[1].file->state = MAPPED_NEW;
	ck_assert_int_eq(run(false), -EAGAIN);
	ck_assert_ptr_eq(waits, &space->maps[1]);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(search_goes_on_beyond_a_copy_that_is_too_short)
{
	searched();
	in.stack_len = 128 + 16;
	EXPECT(UNWIND_SHORT, JIT + 0x10);
	ck_assert_uint_eq(out.stack_used, 128 + 3 * 8);
}
END_TEST

static int knows_nothing(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			 const struct mapping **ret_wait)
{
	(void)ctx, (void)f, (void)final, (void)ret, (void)ret_wait;
	return -ENOENT;
}

START_TEST(code_that_may_be_a_runtimes_is_not_searched_from)
{
	const struct unwind_code none = {.step = knows_nothing}, some = {.step = knows_nothing, .owns = true};

	searched();
	in.code = &none;
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	in.code = &some;
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

static int knows_no_caller(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			   const struct mapping **ret_wait)
{
	uint64_t word;

	(void)ctx, (void)final, (void)ret, (void)ret_wait;
	ck_assert_int_eq(f->load(f->ctx, STACK + 64, &word), 0);
	return -ENODATA;
}

/* By the frame pointer it would be left as any other generated code. */
START_TEST(code_without_frame_pointers_is_not_left_by_one)
{
	const struct unwind_code code = {.step = knows_no_caller, .owns = true}, guess = {.step = knows_nothing, .owns = true};

	begin_in_generated(0x2210);
	word(21, BASE + 0x2310);
	in.code = &guess;
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	in.code = &code;
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	ck_assert_uint_eq(out.guessed[FRAME_BY_FRAME_POINTER], 0);
}
END_TEST

static int knows_the_caller(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			    const struct mapping **ret_wait)
{
	(void)ctx, (void)final, (void)ret_wait;
	if (f->pc != BASE + 0x2f10 && f->pc != JIT + 0x10)
		return -ENOENT;
	*ret = (struct unwind_code_step){.pc = BASE + 0x2310, .sp = STACK + 64, .cfa = STACK + 64};
	return 0;
}

/* As of .NET's assemblies. */
START_TEST(a_runtime_knows_code_of_a_file_that_could_not_be_opened)
{
	const struct unwind_code some = {.step = knows_the_caller};
	struct mapped_file *f;

	reopen_with_generated();
	f = space_find(space, JIT)->file;
	f->kind = MAPPED_FILE;
	f->state = MAPPED_FAILED;
	f->error = -EPERM;
	reg[RIP] = JIT + 0x10;
	EXPECT(UNWIND_NO_FILE, JIT + 0x10);
	in.code = &some;
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2310);
}
END_TEST

START_TEST(a_runtime_knows_code_that_lies_behind_a_program_in_its_file)
{
	const struct unwind_code some = {.step = knows_the_caller};
	struct mapped_file *f;

	reopen();
	f = space_find(space, BASE + 0x2010)->file;
	ck_assert_int_ge(space_map(&space, JIT, JIT + 0x1000, 0x100000, f), 0);
	in.code = &some;
	reg[RIP] = JIT + 0x10;
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2310);
	/* No table of the program's is about it. */
	reg[RIP] = JIT + 0x20;
	EXPECT(UNWIND_NO_RULE, JIT + 0x20);
}
END_TEST

#define DATA 0x123400000ull /* no mapping covers it */

static int interprets(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
		      const struct mapping **ret_wait)
{
	(void)ctx, (void)final, (void)ret_wait;
	ck_assert_int_eq(f->data, f->index > 0);
	if (f->index > 2)
		return -ENOENT;
	*ret = (struct unwind_code_step){.pc = DATA + 16 * f->index, .sp = STACK + 64 + 8 * f->index,
					 .cfa = STACK + 64 + 8 * f->index, .flags = UNWIND_CODE_DATA};
	return 0;
}

START_TEST(code_that_is_interpreted_need_not_be_mapped)
{
	const struct unwind_code some = {.step = interprets, .over = {{BASE + 0x2f00, BASE + 0x2f20}}, .nr_over = 1};

	in.code = &some;
	reg[RIP] = BASE + 0x2f10;
	EXPECT(UNWIND_NO_RULE, BASE + 0x2f10, DATA, DATA + 16, DATA + 32);
	ck_assert_ptr_null(out.frames[1].map);
}
END_TEST

/* As of CoreCLR beside LuaJIT. */
START_TEST(each_runtime_goes_before_its_files_tables)
{
	const struct unwind_code some = {
		.step = interprets, .over = {{BASE + 0x2100, BASE + 0x2200}, {BASE + 0x2300, BASE + 0x2400}}, .nr_over = 2};

	in.code = &some;
	reg[RIP] = BASE + (_i ? 0x2310 : 0x2110);
	EXPECT(UNWIND_NO_RULE, reg[RIP], DATA, DATA + 16, DATA + 32);
}
END_TEST

/* pop rbp, and perhaps add rsp, n: by which rbp is too far from the caller's stack for a small row. */
static const struct { uint8_t code[9]; uint8_t len; } guessed[] = {
	{{0x5d, 0xc3}, 2}, {{0x5d, 0x48, 0x81, 0xc4, 0, 0, 9, 0, 0xc3}, 9},
};

START_TEST(what_a_runtime_says_of_a_files_code_goes_before_a_guess)
{
	const struct unwind_code some = {.step = knows_the_caller};

	memcpy(&tiny.image[0x2f10], guessed[_i].code, guessed[_i].len);
	reopen();
	in.code = &some;
	reg[RIP] = BASE + 0x2f10;
	word(1, BASE + 0x2110);
	EXPECT(UNWIND_ROOT, BASE + 0x2f10, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_SURE);
}
END_TEST

/* Frames in the heap, whose code is the runtime's: 0x30, which begins there, and 0x40, whose caller is elsewhere. */
#define HEAP_PART(i) (0xd000000000ULL + 0x1000 * (i))
#define HOME (STACK + 8)
static uint64_t heap_part[2][16];
static struct unwind_frozen frozen;
static uint32_t heap_flags; /* of the step from 0x40 */

static int leads_to_the_heap(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
			     const struct mapping **ret_wait)
{
	const uint64_t sp = f->reg[RSP];

	(void)ctx, (void)final, (void)ret_wait;
	switch (f->pc) {
	case JIT + 0x10: /* called by the barrier */
		*ret = (struct unwind_code_step){.pc = JIT + 0x20, .sp = HOME, .cfa = HOME, .fp = 77, .flags = UNWIND_CODE_FP};
		return 0;
	case JIT + 0x18: /* likewise, as it puts frames into the heap */
		*ret = (struct unwind_code_step){.pc = JIT + 0x20, .sp = HOME, .cfa = HOME, .flags = UNWIND_CODE_MOVES};
		return 0;
	case JIT + 0x20:
		*ret = (struct unwind_code_step){.pc = BASE + 0x2310, .sp = STACK + 64, .cfa = STACK + 64,
						 .flags = f->leads_to_heap ? UNWIND_CODE_FROZEN : UNWIND_CODE_LEFT_OUT};
		ck_assert(!f->in_heap);
		return 0;
	case JIT + 0x30:
		ck_assert(f->in_heap && !f->leads_to_heap);
		ret->cfa = ret->sp = sp + 32;
		return f->load(f->ctx, sp + 24, &ret->pc);
	case JIT + 0x40:
		ck_assert(f->in_heap);
		*ret = (struct unwind_code_step){.cfa = sp + 16, .sp = sp + 16, .flags = heap_flags};
		return 0;
	case JIT + 0x50: /* back on the stack */
		ck_assert(!f->in_heap && !f->leads_to_heap);
		*ret = (struct unwind_code_step){.pc = BASE + 0x2310, .sp = sp + 16, .cfa = sp + 16};
		return 0;
	default:
		return -ENOENT;
	}
}

static const struct unwind_code with_heap = {.step = leads_to_the_heap};

static void go_to_heap(void)
{
	in.code = &with_heap;
	in.frozen = &frozen;
	reg[RIP] = JIT + 0x10;
	heap_flags = UNWIND_CODE_FROZEN;
	memset(heap_part, 0, sizeof(heap_part));
	frozen = (struct unwind_frozen){.nr = 2, .low = HOME, .high = HOME + 16, .back_pc = JIT + 0x50, .back_sp = HOME + 16};
	for (uint32_t i = 0; i < 2; i++) {
		frozen.part[i] = (struct unwind_part){.addr = HEAP_PART(1 - i), .bytes = (const uint8_t *)heap_part[i],
						      .len = sizeof(heap_part[i]), .pc = JIT + 0x30, .sp = HEAP_PART(1 - i) + 16};
		heap_part[i][2 + 3] = JIT + 0x40;
	}
}

#define THROUGH_HEAP                                                                                          \
	JIT + 0x10, JIT + 0x30, JIT + 0x40, JIT + 0x30, JIT + 0x40, JIT + 0x50, BASE + 0x2310

START_TEST(unwinding_goes_through_the_heap_and_back)
{
	go_to_heap();
	EXPECT(UNWIND_ROOT, THROUGH_HEAP);
	ck_assert(out.heap_followed && !out.heap_left_out);
	ck_assert_uint_eq(out.guessed[FRAME_SURE], 7);
	ck_assert_uint_eq(out.fail_addr, 0);
}
END_TEST

/* A frame that is not known, whose words are not there, or that has none behind it: what leads there is shown in its place. */
START_TEST(what_is_cut_in_the_heap_goes_on_where_it_was_entered)
{
	go_to_heap();
	switch (_i) {
	case 0:
		heap_part[1][2 + 3] = JIT + 0x60;
		EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x30, JIT + 0x40, JIT + 0x30, JIT + 0x60, JIT + 0x20, BASE + 0x2310);
		break;
	case 1:
		frozen.part[0].len = 16;
		EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x30, JIT + 0x20, BASE + 0x2310);
		break;
	case 2:
		heap_flags = UNWIND_CODE_ROOT;
		EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x30, JIT + 0x40, JIT + 0x20, BASE + 0x2310);
		break;
	case 3:
		frozen.back_pc = 0;
		EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x30, JIT + 0x40, JIT + 0x30, JIT + 0x40, JIT + 0x20, BASE + 0x2310);
		break;
	case 4:
		frozen.back_sp = HOME - 8;
		EXPECT(UNWIND_ROOT, JIT + 0x10, JIT + 0x30, JIT + 0x40, JIT + 0x30, JIT + 0x40, JIT + 0x20, BASE + 0x2310);
		break;
	}
	ck_assert(!out.heap_followed && out.heap_left_out);
}
END_TEST

START_TEST(the_heap_is_not_entered_elsewhere)
{
	go_to_heap();
	switch (_i) {
	case 0: frozen.low = HOME + 8; break; /* from another frame than the entry's */
	case 1: frozen.high = HOME - 8; break;
	case 2: in.frozen = NULL; break;
	case 3: reg[RIP] = JIT + 0x18; break; /* what is there are these very frames */
	}
	EXPECT(UNWIND_ROOT, reg[RIP], JIT + 0x20, BASE + 0x2310);
	ck_assert(!out.heap_followed && out.heap_left_out);
}
END_TEST

/* 0x2200's rows are by the frame pointer, 0x2100's by the stack pointer: 24 bytes below the return address. */
static const struct unwind_gate called[] = {{.start = BASE + 0x2200, .end = BASE + 0x2300},
					    {.start = BASE + 0x2100, .end = BASE + 0x2200}};
static const struct unwind_gate jumped[] = {{.start = BASE + 0x2100, .end = BASE + 0x2200, .jumps = true}};

static void gates(const struct unwind_gate *g, uint32_t nr)
{
	in.gates = g;
	in.nr_gates = nr;
	reg[RIP] = JIT + 0x10;
}

START_TEST(compiled_code_is_left_to_what_called_it)
{
	gates(called, 2);
	reg[RBP] = 1;
	word(1, BASE + 0x2120); /* no call precedes it */
	word(2, BASE + 0x2010); /* no gate */
	word(3, BASE + 0x2110);
	word(7, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2110, BASE + 0x2310);
	ck_assert_uint_eq(out.guessed[FRAME_BY_SCAN], 1);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SCAN);
}
END_TEST

START_TEST(compiled_code_keeps_a_frame_pointer_that_leads_to_a_return_address)
{
	gates(called, 2);
	tiny.image[0x2210 - 5] = 0xe8;
	tiny.image[0x2310 - 5] = 0xe8;
	reopen();
	tiny_add_anon(&space, JIT, JIT + 0x1000);
	reg[RBP] = STACK + 80;
	word(3, BASE + 0x2210);
	word(11, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, BASE + 0x2210, BASE + 0x2310);
	reg[RBP] = STACK + 160; /* no return address */
	EXPECT(UNWIND_REGISTER, JIT + 0x10, BASE + 0x2210);
}
END_TEST

START_TEST(compiled_code_shares_the_frame_of_what_jumped_to_it)
{
	uint64_t body = BASE + 0x2100 + 0x100 / 9 + 1;

	gates(jumped, 1);
	/* 0x2310 follows a call of 0x2100; 0x2110 one of another function, 0x2150 one of 0x2100 by itself. */
	tiny.image[0x2310 - 5] = 0xe8;
	memcpy(&tiny.image[0x2310 - 4], &(int32_t){0x2100 - 0x2310}, 4);
	tiny.image[0x2150 - 5] = 0xe8;
	memcpy(&tiny.image[0x2150 - 4], &(int32_t){0x2100 - 0x2150}, 4);
	reopen();
	tiny_add_anon(&space, JIT, JIT + 0x1000);
	word(3, BASE + 0x2110);
	word(4, BASE + 0x2150);
	word(5, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, body, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SCAN);
}
END_TEST

START_TEST(compiled_code_leaves_the_frame_pointer_of_what_jumped_to_it)
{
	static const struct unwind_gate by_fp[] = {{.start = BASE + 0x2200, .end = BASE + 0x2300, .jumps = true}};
	uint64_t body = BASE + 0x2200 + 0x100 / 9 + 1;

	gates(by_fp, 1);
	tiny.image[0x2310 - 5] = 0xe8;
	memcpy(&tiny.image[0x2310 - 4], &(int32_t){0x2200 - 0x2310}, 4);
	reopen();
	tiny_add_anon(&space, JIT, JIT + 0x1000);
	reg[RBP] = STACK + 80;
	word(11, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, JIT + 0x10, body, BASE + 0x2310);
	word(11, BASE + 0x2110);
	ck_assert_int_eq(run(true), 0);
	ck_assert_uint_eq(out.guessed[FRAME_BY_SCAN], 0);
}
END_TEST

START_TEST(call_of_a_member_is_none_of_the_gate)
{
	gates(jumped, 1);
	memcpy(&tiny.image[0x2310 - 3], "\xff\x50\x58", 3); /* call *0x58(%rax) */
	memcpy(&tiny.image[0x2320 - 2], "\xff\x10", 2);      /* call *(%rax) */
	reopen();
	tiny_add_anon(&space, JIT, JIT + 0x1000);
	word(3, BASE + 0x2310);
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
	ck_assert_uint_eq(out.stack_used, 0);
	word(4, BASE + 0x2320);
	ck_assert_int_eq(run(true), 0);
	ck_assert_str_eq(unwind_end_name(out.end), "root");
	ck_assert_uint_eq(out.count, 3);
}
END_TEST

/* Generated code at 0x1000 of a shared segment, and the same in private memory as the kernel and /proc report it. */
START_TEST(private_code_is_not_what_a_gate_to_shared_code_enters)
{
	static const struct unwind_gate shared[] = {{.start = BASE + 0x2100, .end = BASE + 0x2200, .shared = true}};
	static const struct { uint64_t offset; uint32_t frames; } cases[] = {{0x1000, 3}, {0, 1}, {JIT, 1}};
	struct mapped_file *anon = mapped_file_new(MAPPED_ANON, "//anon", 6);

	gates(shared, 1);
	word(3, BASE + 0x2110);
	word(7, BASE + 0x2310);
	for (size_t i = 0; i < NR(cases); i++) {
		ck_assert_int_ge(space_map(&space, JIT, JIT + 0x1000, cases[i].offset, anon), 0);
		ck_assert_int_eq(run(true), 0);
		ck_assert_uint_eq(out.count, cases[i].frames);
	}
	mapped_file_put(anon);
}
END_TEST

START_TEST(way_back_beyond_the_copy_asks_for_a_larger_one)
{
	gates(called, 2);
	in.stack_len = 128 + 16;
	EXPECT(UNWIND_SHORT, JIT + 0x10);
	ck_assert_uint_eq(out.stack_used, 128 + 3 * 8);
	in.short_read = true;
	EXPECT(UNWIND_NO_RULE, JIT + 0x10);
}
END_TEST

START_TEST(code_that_is_not_generated_has_no_gate)
{
	gates(called, 2);
	reg[RIP] = BASE + 0x2f10;
	word(3, BASE + 0x2110);
	word(7, BASE + 0x2310);
	EXPECT(UNWIND_NO_RULE, BASE + 0x2f10);
}
END_TEST

START_TEST(zero_return_address_is_a_root)
{
	reg[RIP] = BASE + 0x2010;
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010);
}
END_TEST

/* 0x2100 has called StgRun, at 0x2800, which jumped to code of no table at 0x2f00. */
START_TEST(haskell_code_is_left_by_what_StgRun_saved)
{
	static const uint8_t run[] = {0x48, 0x83, 0xec, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x81, 0xec, 0x00, 0x40, 0, 0, 0x48, 0x89, 0x18};

	put_direct_call(0x2410, 0x2800);
	memcpy(&tiny.image[0x2800], run, sizeof(run));
	reopen();
	reg[RIP] = BASE + 0x2f10;
	reg[RBP] = 0x4200000000; /* Haskell's stack pointer */
	word(2048, STACK + 8 * 2060); /* rbx, by which 0x2400 is left */
	word(2054, BASE + 0x2410);
	word(2060, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2f10, BASE + 0x2410, BASE + 0x2310);
	ck_assert_uint_eq(out.guessed[FRAME_BY_EPILOGUE], 1);
	ck_assert_uint_eq(out.stack_used, 128 + 8 * 2061);
	/* Of a call, and with an argument on the stack. */
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2f10);
	EXPECT(UNWIND_NO_RULE, BASE + 0x2010, BASE + 0x2f10);
	word(2049, STACK + 8 * 2061);
	word(2055, BASE + 0x2410);
	word(2061, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2f10, BASE + 0x2410, BASE + 0x2310);
	put_direct_call(0x2410, 0x2700); /* not StgRun */
	reopen();
	EXPECT(UNWIND_NO_RULE, BASE + 0x2010, BASE + 0x2f10);
	ck_assert_uint_lt(out.stack_used, 8 * 2048);
}
END_TEST

START_TEST(entry_point_without_table_is_a_root)
{
	Elf64_Ehdr *e = (void *)tiny.image;

	teardown();
	setup();
	binary_put(binary);
	space_put(space);
	e->e_entry = 0x2f00;
	binary = tiny_open(&tiny);
	space = tiny_space(binary, BASE);
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2f20);
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010, BASE + 0x2f20);
}
END_TEST

/* The end of musl's clone: call *%rcx; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall */
static void put_clone(uint64_t at)
{
	memcpy(tiny.image + at - 2, (const uint8_t[]){0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05}, 10);
	reopen();
}

START_TEST(code_that_does_not_return_leads_to_a_root_nearby)
{
	put_clone(0x2f80);
	reg[RIP] = BASE + 0x2f10;
	word(1, BASE + 0x2f70); /* not behind a call */
	word(5, BASE + 0x2f80);
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2f10, BASE + 0x2f80);
	ck_assert_uint_eq(out.frames[1].flags, FRAME_CALLER);
	ck_assert_uint_eq(out.frames[1].guess, FRAME_BY_SCAN);
	ck_assert_uint_eq(out.guessed[FRAME_BY_SCAN], 1);
}
END_TEST

/* The end of Boost.Context's make_fcontext. */
START_TEST(fiber_ends_where_its_context_was_made)
{
	static const uint8_t plain[] = {0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xf4},
			     cet[] = {0xff, 0xe3, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xf4};

	memcpy(tiny.image + 0x2f3e, plain, sizeof(plain));
	memcpy(tiny.image + 0x2f7e, cet, sizeof(cet));
	reopen();
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2f40);
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010, BASE + 0x2f40);
	word(0, BASE + 0x2f80);
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010, BASE + 0x2f80);
	tiny.image[0x2f7e + 14] = 0x90;
	reopen();
	ck_assert_int_eq(run(true), 0);
	ck_assert_str_eq(unwind_end_name(out.end), "no_rule");
}
END_TEST

START_TEST(root_far_up_the_stack_is_not_looked_for)
{
	put_clone(0x2f80);
	reg[RIP] = BASE + 0x2f10;
	word(64, BASE + 0x2f80);
	EXPECT(UNWIND_NO_RULE, BASE + 0x2f10);
	ck_assert_uint_le(out.stack_used, 128);
}
END_TEST

/* As in glibc's clone3: mov $435,%eax; syscall; test %rax,%rax; jl; je; ret */
START_TEST(new_thread_begins_behind_clone)
{
	memcpy(tiny.image + 0x2f10, (const uint8_t[]){0xb8, 0xb3, 1, 0, 0, 0x0f, 5, 0x48, 0x85, 0xc0, 0x7c, 4, 0x74, 1, 0xc3}, 15);
	reopen();
	word(0, BASE + 0x2110);
	word(4, BASE + 0x2310);
	for (uint64_t at = 0x2f17; at <= 0x2f1c; at += at == 0x2f17 ? 3 : 2) {
		reg[RIP] = BASE + at;
		reg[RAX] = 0;
		EXPECT(UNWIND_ROOT_LISTED, BASE + at);
		reg[RAX] = 4711; /* the thread that called it */
		EXPECT(UNWIND_ROOT, BASE + at, BASE + 0x2110, BASE + 0x2310);
	}
}
END_TEST

/* How Go's runtime goes over to a thread's own stack; the tables know nothing of it. */
static const struct {
	const char *text;
	uint8_t before[12], after[15];
	enum unwind_end end; /* UNWIND_ROOT_LISTED: nothing of the kind, the table holds */
} go[] = {
	{"mcall", {[5] = 0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4}, {0x90, 0x58}, UNWIND_ROOT},
	{"morestack", {0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xe8, 1, 2, 3, 4}, {0xe8, 1, 2, 3, 4, 0xc3}, UNWIND_ROOT},
	{"clone", {[9] = 0x41, 0xff, 0xd4}, {0xbf, 0x6f, 0, 0, 0, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05}, UNWIND_ROOT},
	{"rt0_go", {[7] = 0xe8, 1, 2, 3, 4}, {0xe8, 1, 2, 3, 4, 0xc3, 0x48, 0xc7, 0x04, 0x24, 2}, UNWIND_ROOT},
	{"rt0_go in osinit", {[7] = 0xe8, 1, 2, 3, 4}, {0xe8, 1, 2, 3, 4, 0x48, 0x8d, 0x05, 1, 2, 3, 4, 0x50, 0xe8}, UNWIND_ROOT},
	{"rt0_go in schedinit", {[7] = 0xe8, 1, 2, 3, 4}, {0x48, 0x8d, 0x05, 1, 2, 3, 4, 0x50, 0xe8}, UNWIND_ROOT},
	{"systemstack", {[4] = 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7}, {0x64, 0x48}, UNWIND_SWITCHED},
	{"asmcgocall", {[3] = 0x48, 0x89, 0x3c, 0x24, 0xe8, 1, 2, 3, 4}, {0x48, 0x8b, 0x7c, 0x24, 8}, UNWIND_SWITCHED},
	{"mstart", {0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xe8, 1, 2, 3, 4}, {0xc3}, UNWIND_ROOT_LISTED},
	{"mcall until Go 1.16", {[3] = 0x50, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7}, {0x58}, UNWIND_ROOT},
	{"asmcgocall on that stack", {[3] = 0x48, 0x89, 0x14, 0x24, 0xe8, 1, 2, 3, 4}, {0x48, 0x8b, 0x34, 0x24}, UNWIND_ROOT_LISTED},
};

static void put_go(uint64_t at, int i)
{
	memcpy(tiny.image + at - 12, go[i].before, 12);
	memcpy(tiny.image + at, go[i].after, 15);
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + at);
	word(4, 0);
}

START_TEST(go_leaves_a_stack_whatever_its_tables_say)
{
	uint8_t kept[TINY_CODE - TINY_EH];

	memcpy(kept, tiny.image + TINY_EH, sizeof(kept));
	tiny_section(&tiny, ".gopclntab", 0, kept, sizeof(kept));
	put_go(0x2150, _i);
	reopen();
	EXPECT(go[_i].end, BASE + 0x2010, BASE + 0x2150);
	ck_assert_uint_eq(out.fail_addr, 0);
}
END_TEST

/* The stack that the thread left: 0x2110 was called there, by 0x2310. */
#define OTHER 0xc000001000ULL

static uint64_t other_stack[32];
static struct unwind_other other;

static void leave_stack(uint64_t pc)
{
	uint8_t kept[TINY_CODE - TINY_EH];

	memcpy(kept, tiny.image + TINY_EH, sizeof(kept));
	tiny_section(&tiny, ".gopclntab", 0, kept, sizeof(kept));
	memset(other_stack, 0, sizeof(other_stack));
	other = (struct unwind_other){.addr = OTHER, .bytes = (const uint8_t *)other_stack, .len = sizeof(other_stack),
				      .pc = pc, .sp = OTHER + 64, .id = 0xc000000100};
	in.other = &other;
	other_stack[8] = BASE + 0x2110; /* of 0x2000, which has no frame */
	other_stack[8 + 4] = BASE + 0x2310;
}

START_TEST(unwinding_goes_on_in_the_stack_that_was_left)
{
	leave_stack(BASE + 0x2008);
	other.stand_in = true;
	put_go(0x2150, 6 + _i);
	reopen();
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110, BASE + 0x2310);
	ck_assert_uint_eq(out.frames[2].flags, FRAME_CALLER);
	ck_assert_uint_le(out.stack_used, 128 + 8 * 16);
	/* Interrupted there. */
	reg[RIP] = BASE + 0x214f;
	EXPECT(UNWIND_ROOT, BASE + 0x214f, BASE + 0x2110, BASE + 0x2310);
	/* A pc that stands for nothing is not what systemstack has left there. */
	reg[RIP] = BASE + 0x2010;
	other.stand_in = false;
	EXPECT(UNWIND_SWITCHED, BASE + 0x2010, BASE + 0x2150);
}
END_TEST

START_TEST(a_root_that_keeps_the_stack_it_left_is_none)
{
	leave_stack(BASE + 0x2010);
	put_go(0x2150, 0);
	other_stack[8] = BASE + 0x2310;
	reopen();
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150);
	word(1, other.id);
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2010, BASE + 0x2310);
	/* It was taken up by another thread meanwhile: the copied stack is another one. */
	other.id++;
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150);
}
END_TEST

/* newstack, called by morestack, copies the stack of the goroutine that it has in its frame. */
START_TEST(a_root_whose_callee_keeps_the_stack_it_left_is_none)
{
	leave_stack(BASE + 0x2010);
	put_go(0x2150, 1);
	other_stack[8] = BASE + 0x2310;
	reopen();
	reg[RIP] = BASE + 0x2110;
	word(0, 0);
	word(3, BASE + 0x2150);
	EXPECT(UNWIND_ROOT, BASE + 0x2110, BASE + 0x2150);
	/* In its own frame, anything may be. */
	word(4, other.id);
	EXPECT(UNWIND_ROOT, BASE + 0x2110, BASE + 0x2150);
	word(_i, other.id);
	EXPECT(UNWIND_ROOT, BASE + 0x2110, BASE + 0x2150, BASE + 0x2010, BASE + 0x2310);
	/* The goroutine was given up, and the thread is about to go on with another one. */
	other.id++;
	EXPECT(UNWIND_ROOT, BASE + 0x2110, BASE + 0x2150);
}
END_TEST

START_TEST(the_stack_that_was_left_may_be_deeper_than_its_copy)
{
	leave_stack(BASE + 0x2008);
	other.stand_in = true;
	other.len = 64 + 8 * 4; /* up to the return address of 0x2100 */
	put_go(0x2150, 6);
	reopen();
	EXPECT(UNWIND_UNREADABLE, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110);
	other.cut = true;
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110);
	ck_assert_uint_eq(out.fail_addr, OTHER + 64 + 8 * 4);
	ck_assert(out.fail_in_other);
	/* The far part has what is missing. */
	other.far_addr = OTHER + 64 + 8 * 4;
	other.far_len = 8;
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110, BASE + 0x2310);
	other.far_addr += 8;
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110);
	other.far_len = 0;
	/* A stack pointer that is not in the copy. */
	other.sp = OTHER - 64;
	EXPECT(UNWIND_SWITCHED, BASE + 0x2010, BASE + 0x2150);
}
END_TEST

START_TEST(beyond_its_copy_frame_records_lead_on)
{
	struct unwind_record records[] = {
		{OTHER + 64 + 8 * 3, OTHER + 0x1000, BASE + 0x2120}, /* 0x2110, called by 0x2120 */
		{OTHER + 64 + 8 * 7, OTHER + 0x2000, BASE + 0x2310},
		{OTHER + 64 + 8 * 90, 0, 0},
	};

	leave_stack(BASE + 0x2008);
	other.stand_in = true;
	other.cut = true;
	other.len = 64 + 8; /* up to the return address of 0x2000 */
	other.records = records;
	put_go(0x2150, 6);
	reopen();
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110);
	other.nr_records = 3;
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110, BASE + 0x2120, BASE + 0x2310);
	other.nr_records = 1;
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110, BASE + 0x2120);
	ck_assert_uint_eq(out.fail_addr, OTHER + 64 + 8 * 8);
	/* A word that is in no record. */
	records[0].at -= 8;
	EXPECT(UNWIND_SHORT, BASE + 0x2010, BASE + 0x2150, BASE + 0x2110);
}
END_TEST

/* mov $15,%rax; syscall: its table is that of a function that was called. */
START_TEST(what_go_returns_from_a_signal_by_is_no_function)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 5};

	leave_stack(BASE + 0x2008);
	memcpy(tiny.image + 0x2110, code, sizeof(code));
	reopen();
	word(20, STACK + 400);
	word(21, BASE + 0x2000);
	word(50, BASE + 0x2310);
	for (uint64_t at = 0x2110; at <= 0x2117; at += 7) {
		reg[RIP] = BASE + at;
		EXPECT(UNWIND_ROOT, BASE + at, BASE + 0x2000, BASE + 0x2310);
		ck_assert_uint_eq(out.frames[0].flags, FRAME_SIGNAL);
	}
}
END_TEST

START_TEST(what_looks_like_go_elsewhere_is_not)
{
	put_go(0x2150, _i);
	reopen();
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010, BASE + 0x2150);
}
END_TEST

START_TEST(code_that_left_for_another_stack_names_the_bytes)
{
	/* mov %rbx,%rsp; ret */
	memcpy(tiny.image + 0x2f10, (const uint8_t[]){0x48, 0x89, 0xdc, 0xc3}, 4);
	reopen();
	reg[RIP] = BASE + 0x2f10;
	reg[RBX] = STACK + (1 << 30);
	EXPECT(UNWIND_UNREADABLE, BASE + 0x2f10);
	ck_assert_uint_eq(out.fail_addr, STACK + (1 << 30));
}
END_TEST

START_TEST(stack_made_by_hand_ends_at_its_first_function)
{
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2800); /* nothing before it, and no call */
	EXPECT(UNWIND_ROOT_LISTED, BASE + 0x2010, BASE + 0x2800);
}
END_TEST

START_TEST(call_through_null_shows_its_caller)
{
	reg[RIP] = 0;
	word(0, BASE + 0x2110);
	word(4, BASE + 0x2310);
	EXPECT(UNWIND_ROOT, 0, BASE + 0x2110, BASE + 0x2310);
	ck_assert_ptr_null(out.frames[0].map);
}
END_TEST

START_TEST(uncovered_address_is_asked_for_then_kept)
{
	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x9000000);
	ck_assert_int_eq(run(false), -EAGAIN);
	ck_assert_ptr_null(waits);
	ck_assert_uint_eq(out.fail_pc, BASE + 0x9000000);
	EXPECT(UNWIND_UNMAPPED, BASE + 0x2010, BASE + 0x9000000);
}
END_TEST

START_TEST(nonsense_address_is_no_frame)
{
	reg[RIP] = BASE + 0x2010;
	word(0, 0xdeadbeefcafebabe);
	ck_assert_int_eq(run(false), 0);
	EXPECT(UNWIND_UNMAPPED, BASE + 0x2010);
}
END_TEST

START_TEST(file_not_opened_yet_is_waited_for)
{
	space->maps[1].file->state = MAPPED_NEW;
	reg[RIP] = BASE + 0x2010;
	ck_assert_int_eq(run(false), -EAGAIN);
	ck_assert_ptr_eq(waits, &space->maps[1]);
	EXPECT(UNWIND_NO_FILE, BASE + 0x2010);
	space->maps[1].file->state = MAPPED_FAILED;
	ck_assert_int_eq(run(false), 0);
	ck_assert_int_eq(out.end, UNWIND_NO_FILE);
}
END_TEST

START_TEST(unknown_stack_pointer_is_no_stack)
{
	reg[RIP] = BASE + 0x2010;
	in.valid &= ~(1ULL << RSP);
	ck_assert_int_eq(run(true), 0);
	ck_assert_int_eq(out.end, UNWIND_REGISTER);
	ck_assert_uint_eq(out.count, 0);
}
END_TEST

START_TEST(second_time_comes_from_the_cache)
{
	struct unwind_stats first, second;

	reg[RIP] = BASE + 0x2010;
	word(0, BASE + 0x2110);
	word(4, BASE + 0x2310);
	ck_assert_int_eq(run(true), 0);
	unwinder_stats(unwinder, &first);
	ck_assert_int_eq(run(true), 0);
	unwinder_stats(unwinder, &second);
	ck_assert_uint_eq(first.cache_misses, 3);
	ck_assert_uint_eq(second.cache_misses, 3);
	ck_assert_uint_eq(second.cache_hits, first.cache_hits + 3);
	ck_assert_uint_eq(second.ends[UNWIND_ROOT], 2);
}
END_TEST

START_TEST(full_cache_still_answers)
{
	struct unwind_limits tight = {.rules = 1};

	unwinder_free(unwinder);
	ck_assert_int_eq(unwinder_new(&tight, &unwinder), 0);
	for (unsigned i = 0; i < 0x100; i++) {
		reg[RIP] = BASE + 0x2000 + i;
		word(0, BASE + 0x2110 + i % 0x80);
		word(4, BASE + 0x2310);
		EXPECT(UNWIND_ROOT, reg[RIP], stack[16], BASE + 0x2310);
	}
}
END_TEST

START_TEST(arm64_leaf_returns_to_its_link_register)
{
	teardown();
	tiny_init(&tiny, EM_AARCH64, 0);
	tiny_cie(&tiny, "zR", -8, 30, BYTES(0x0c, 31, 0));
	tiny_fde(&tiny, 0x2000, 0x100, BYTES(0));
	tiny_fde(&tiny, 0x2100, 0x100, BYTES(0x2d, 0x0e, 32, 0x9d, 4, 0x9e, 3));
	tiny_fde(&tiny, 0x2300, 0x100, BYTES(0x07, 30));
	binary = tiny_open(&tiny);
	space = tiny_space(binary, BASE);
	ck_assert_int_eq(unwinder_new(NULL, &unwinder), 0);
	in.arch = OTP_ARCH_ARM64;
	in.valid = (1ULL << OTP_REGS_ARM64) - 1;
	reg[31] = STACK;
	reg[32] = BASE + 0x2010;
	reg[30] = BASE + 0x2110;
	word(1, 0x002a000000000000ULL | (BASE + 0x2310)); /* signed */
	EXPECT(UNWIND_ROOT, BASE + 0x2010, BASE + 0x2110, BASE + 0x2310);
}
END_TEST

START_TEST(ends_have_names_and_roots_no_marker)
{
	for (unsigned i = 0; i < UNWIND_END_NR; i++) {
		ck_assert_ptr_nonnull(unwind_end_name(i));
		ck_assert_int_eq(unwind_end_is_root(i), unwind_marker((uint32_t)i) == NULL);
	}
}
END_TEST

Suite *unwind_suite(void)
{
	Suite *s = suite_create("unwind");
	TCase *t = tcase_create("unwind");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, chain_of_three_ends_at_undefined_return_address);
	tcase_add_test(t, return_address_behind_a_function_belongs_to_it);
	tcase_add_test(t, saved_register_is_used_by_a_later_frame);
	tcase_add_test(t, frame_pointer_cfa_restores_frame_pointer);
	tcase_add_test(t, copy_that_ends_early_is_short_and_says_what_it_wants);
	tcase_add_test(t, far_stack_does_not_ask_for_a_larger_copy);
	tcase_add_test(t, frame_below_the_last_one_is_a_loop);
	tcase_add_test(t, huge_frame_is_crossed_into_the_base_copy);
	tcase_add_test(t, switched_stack_leads_back_once_to_a_lower_base);
	tcase_add_test(t, page_that_was_not_there_is_not_read_as_zeros);
	tcase_add_test(t, interrupted_code_is_looked_up_as_it_is);
	tcase_add_test(t, a_frame_beneath_a_red_zone_leads_to_interrupted_code);
	tcase_add_test(t, trampoline_that_leads_to_itself_ends);
	tcase_add_test(t, private_convention_holds_within_one_file_only);
	tcase_add_test(t, generated_code_is_left_by_its_frame_pointer);
	tcase_add_test(t, code_of_a_file_that_is_no_program_is_left_like_generated_code);
	tcase_add_test(t, generated_code_is_left_into_code_without_frame_pointers);
	tcase_add_test(t, implausible_frame_pointer_is_not_followed);
	tcase_add_test(t, followed_chain_that_ends_in_zero_is_a_root);
	tcase_add_test(t, caller_of_generated_code_is_searched_for);
	tcase_add_test(t, caller_is_found_beyond_a_frame_of_a_page);
	tcase_add_test(t, buffer_of_pages_is_left_by_the_stack_pointer_that_it_keeps);
	tcase_add_test(t, buffer_of_the_heap_is_left_to_the_bytes_that_were_copied_besides);
	tcase_add_test(t, former_call_that_leads_to_no_code_is_passed_over_wherever_it_ends);
	tcase_add_test(t, search_that_fails_asks_for_no_larger_copy);
	tcase_add_test(t, generated_code_may_be_called_by_address_from_its_own_region);
	tcase_add_test(t, former_call_whose_callers_do_not_fit_is_passed_over);
	tcase_add_test(t, former_call_by_the_one_who_called_generated_code_is_passed_over);
	tcase_add_test(t, caller_may_have_been_jumped_to_by_what_was_called);
	tcase_add_test(t, frame_pointer_that_generated_code_left_alone_is_the_callers);
	tcase_add_test(t, frame_pointer_that_generated_code_saved_is_found);
	tcase_add_test(t, generated_code_is_not_main);
	tcase_add_test(t, call_by_pointer_does_not_lead_to_a_function_that_is_always_called_by_address);
	tcase_add_test(t, call_by_pointer_leads_to_no_function_of_a_large_file_that_nothing_points_to);
	tcase_add_test(t, caller_may_have_called_what_jumped_to_generated_code);
	tcase_add_test(t, search_waits_for_a_file_that_is_not_open);
	tcase_add_test(t, search_goes_on_beyond_a_copy_that_is_too_short);
	tcase_add_test(t, code_that_may_be_a_runtimes_is_not_searched_from);
	tcase_add_test(t, code_without_frame_pointers_is_not_left_by_one);
	tcase_add_loop_test(t, what_a_runtime_says_of_a_files_code_goes_before_a_guess, 0, ARRAY_SIZE(guessed));
	tcase_add_test(t, unwinding_goes_through_the_heap_and_back);
	tcase_add_loop_test(t, what_is_cut_in_the_heap_goes_on_where_it_was_entered, 0, 5);
	tcase_add_loop_test(t, the_heap_is_not_entered_elsewhere, 0, 4);
	tcase_add_test(t, a_runtime_knows_code_of_a_file_that_could_not_be_opened);
	tcase_add_test(t, a_runtime_knows_code_that_lies_behind_a_program_in_its_file);
	tcase_add_test(t, code_that_is_interpreted_need_not_be_mapped);
	tcase_add_loop_test(t, each_runtime_goes_before_its_files_tables, 0, 2);
	tcase_add_test(t, compiled_code_is_left_to_what_called_it);
	tcase_add_test(t, compiled_code_keeps_a_frame_pointer_that_leads_to_a_return_address);
	tcase_add_test(t, compiled_code_shares_the_frame_of_what_jumped_to_it);
	tcase_add_test(t, compiled_code_leaves_the_frame_pointer_of_what_jumped_to_it);
	tcase_add_test(t, call_of_a_member_is_none_of_the_gate);
	tcase_add_test(t, private_code_is_not_what_a_gate_to_shared_code_enters);
	tcase_add_test(t, way_back_beyond_the_copy_asks_for_a_larger_one);
	tcase_add_test(t, code_that_is_not_generated_has_no_gate);
	tcase_add_test(t, zero_return_address_is_a_root);
	tcase_add_test(t, haskell_code_is_left_by_what_StgRun_saved);
	tcase_add_test(t, entry_point_without_table_is_a_root);
	tcase_add_test(t, code_that_does_not_return_leads_to_a_root_nearby);
	tcase_add_test(t, fiber_ends_where_its_context_was_made);
	tcase_add_test(t, root_far_up_the_stack_is_not_looked_for);
	tcase_add_test(t, new_thread_begins_behind_clone);
	tcase_add_loop_test(t, go_leaves_a_stack_whatever_its_tables_say, 0, NR(go));
	tcase_add_loop_test(t, unwinding_goes_on_in_the_stack_that_was_left, 0, 2);
	tcase_add_test(t, a_root_that_keeps_the_stack_it_left_is_none);
	tcase_add_loop_test(t, a_root_whose_callee_keeps_the_stack_it_left_is_none, 0, 3);
	tcase_add_test(t, the_stack_that_was_left_may_be_deeper_than_its_copy);
	tcase_add_test(t, beyond_its_copy_frame_records_lead_on);
	tcase_add_test(t, what_go_returns_from_a_signal_by_is_no_function);
	tcase_add_loop_test(t, what_looks_like_go_elsewhere_is_not, 0, NR(go));
	tcase_add_test(t, code_that_left_for_another_stack_names_the_bytes);
	tcase_add_test(t, stack_made_by_hand_ends_at_its_first_function);
	tcase_add_test(t, call_through_null_shows_its_caller);
	tcase_add_test(t, uncovered_address_is_asked_for_then_kept);
	tcase_add_test(t, nonsense_address_is_no_frame);
	tcase_add_test(t, file_not_opened_yet_is_waited_for);
	tcase_add_test(t, unknown_stack_pointer_is_no_stack);
	tcase_add_test(t, second_time_comes_from_the_cache);
	tcase_add_test(t, full_cache_still_answers);
	tcase_add_test(t, arm64_leaf_returns_to_its_link_register);
	tcase_add_test(t, ends_have_names_and_roots_no_marker);
	suite_add_tcase(s, t);
	return s;
}
