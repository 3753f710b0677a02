// SPDX-License-Identifier: Apache-2.0
/* The walker that samplers share, over memory of the test's own. */
#include <check.h>
#include <string.h>

#include "base/cleanup.h"

#define MEMORY 65536u
#define AT     0x10000ull /* the address of the first byte */

static union {
	uint8_t byte[MEMORY];
	uint64_t word[MEMORY / 8];
} memory;

static uint64_t lowest; /* readable address */
static uint64_t hole, hole_end; /* not readable */
static uint32_t reads;

static int read_memory(void *to, uint64_t len, uint64_t from)
{
	reads++;
	ck_assert(len && len <= 1024 && len % 8 == 0);
	if (from < MAX(AT, lowest) || from - AT > MEMORY - len || (from < hole_end && from + len > hole))
		return -1;
	memcpy(to, memory.byte + (from - AT), len);
	return 0;
}

#define OTP_WALK_READ(to, len, from) read_memory(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

Suite *walk_suite(void);

static struct otp_walker w;
static struct otp_walked head;

static void poke(uint64_t addr, uint64_t value)
{
	memcpy(memory.byte + (addr - AT), &value, sizeof(value));
}

static uint64_t word(uint32_t i)
{
	return w.out[OTP_WALK_HEAD + i];
}

static uint32_t run(const struct otp_walk *p, uint64_t tls)
{
	uint32_t bytes;

	otp_walk_prepare(&w.ready, p);
	bytes = otp_walk_run(&w, tls, 9, 1);
	memcpy(&head, w.out, sizeof(head));
	ck_assert_uint_eq(bytes, sizeof(head) + 8 * (head.root_words + (uint32_t)head.frames * head.frame_words));
	ck_assert_uint_eq(head.generation, 9);
	ck_assert_uint_eq(head.plan, 1);
	ck_assert_uint_lt(head.end, OTP_WALK_END_NR);
	ck_assert_uint_le(w.taken * 8, OTP_WALK_BYTES);
	return bytes;
}

static void setup(void)
{
	memset(&memory, 0, sizeof(memory));
	memset(&w, 0, sizeof(w));
	lowest = 0;
}

#define FRAME(i) (AT + 0x1000 + 64ull * (i))
#define CODE(i)	 (AT + 0x8000 + 32ull * (i))

/* n frames: an id, a pointer to code, the next; of code, a line and a pointer to a word. */
static void make_list(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		poke(FRAME(i), 0x100 + i);
		poke(FRAME(i) + 8, CODE(i) | 1);
		poke(FRAME(i) + 16, i + 1 < n ? FRAME(i + 1) | 2 : 0);
		poke(CODE(i), 0x200 + i);
		poke(CODE(i) + 8, CODE(i) + 16);
		poke(CODE(i) + 16, 0x300 + i);
	}
	poke(AT + 0x40, AT + 0x80); /* a slot of thread storage: the state */
	poke(AT + 0x80, 0x51);
	poke(AT + 0x88, FRAME(0) | 1);
}

static struct otp_walk list(void)
{
	return (struct otp_walk){
		.start = OTP_WALK_TLS, .nr_chain = 2, .chain = {0x40, 8}, .root_at = 1, .root_keep = 1, .nr_subs = 2, .link = 2,
		.tag = 3, .keep = 1, .frames_max = 100,
		.sub = {{.from = 0, .at = 1, .tag = 7, .keep = 1}, {.from = 1, .at = 1, .keep = 1}}};
}

START_TEST(a_list_is_copied_with_its_root_and_subs_of_subs)
{
	struct otp_walk p = list();

	make_list(3);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 3);
	ck_assert_uint_eq(head.frame_words, 4);
	ck_assert_uint_eq(head.root_words, 1);
	ck_assert_uint_eq(word(0), 0x51);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(word(1 + 4 * i), FRAME(i));
		ck_assert_uint_eq(word(2 + 4 * i), 0x100 + i);
		ck_assert_uint_eq(word(3 + 4 * i), 0x200 + i);
		ck_assert_uint_eq(word(4 + 4 * i), 0x300 + i);
	}
}
END_TEST

START_TEST(a_missing_sub_is_zeros_with_a_bit)
{
	struct otp_walk p = list();

	make_list(3);
	poke(FRAME(0) + 8, 1); /* only its tag */
	poke(FRAME(1) + 8, 0x20);
	poke(CODE(2) + 8, 0);
	run(&p, AT);
	ck_assert_uint_eq(head.frames, 3);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(word(1 + 4 * i), FRAME(i) | OTP_WALK_MISSING(0) | OTP_WALK_MISSING(1));
		ck_assert_uint_eq(word(3 + 4 * i), 0);
		ck_assert_uint_eq(word(4 + 4 * i), 0);
	}
	ck_assert_uint_eq(word(9), FRAME(2) | OTP_WALK_MISSING(1));
	ck_assert_uint_eq(word(11), 0x202);
}
END_TEST

START_TEST(frames_of_other_kinds_have_no_subs)
{
	struct otp_walk p = list();

	p.kinds = 1 << 2 | 1 << 5;
	make_list(4);
	for (uint32_t i = 0; i < 4; i++) {
		poke(FRAME(i), 0xf0 | (i == 3 ? 5 : i));
		poke(FRAME(i) + 8, i % 2 ? 0x20 : CODE(i));
	}
	poke(FRAME(3) + 8, CODE(3));
	run(&p, AT);
	ck_assert_uint_eq(head.frames, 4);
	ck_assert_uint_lt(w.reads, OTP_WALK_FAULT);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(word(1 + 4 * i), FRAME(i) | (i < 2 ? OTP_WALK_MISSING(0) | OTP_WALK_MISSING(1) : 0));
		ck_assert_uint_eq(word(3 + 4 * i), i < 2 ? 0 : 0x200 + i);
		ck_assert_uint_eq(word(4 + 4 * i), i < 2 ? 0 : 0x300 + i);
	}
}
END_TEST

/* As on a stack that grows upward: n frames of 64 bytes, the innermost on top, with what make_list puts into them. */
#define ABOVE(base, n, i) ((base) + 64ull * ((n) - 1 - (i)))

static void make_stack(uint64_t base, uint32_t n)
{
	make_list(n);
	for (uint32_t i = 0; i < n; i++) {
		poke(ABOVE(base, n, i), 0x100 + i);
		poke(ABOVE(base, n, i) + 8, CODE(i) | 1);
		poke(ABOVE(base, n, i) + 16, i + 1 < n ? ABOVE(base, n, i + 1) | 2 : 0);
	}
	poke(AT + 0x88, ABOVE(base, n, 0) | 1);
}

static void expect_stack(uint64_t base, uint32_t n)
{
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, n);
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(word(1 + 4 * i), ABOVE(base, n, i));
		ck_assert_uint_eq(word(2 + 4 * i), 0x100 + i);
		ck_assert_uint_eq(word(3 + 4 * i), 0x200 + i);
		ck_assert_uint_eq(word(4 + 4 * i), 0x300 + i);
	}
}

START_TEST(frames_that_lie_together_are_read_together)
{
	struct otp_walk p = list();
	uint32_t alone;

	make_stack(AT + 0x2008, 50);
	reads = 0;
	run(&p, AT);
	expect_stack(AT + 0x2008, 50);
	alone = reads;
	p.below = 1;
	reads = w.taken = 0;
	run(&p, AT);
	expect_stack(AT + 0x2008, 50);
	ck_assert_uint_eq(alone - reads, 50 - 4); /* 3208 bytes from one page's beginning */
	make_stack(AT + 0x2000 - 64 * 7 - 16, 50); /* one of them lies in two pages */
	w.taken = 0;
	run(&p, AT);
	expect_stack(AT + 0x2000 - 64 * 7 - 16, 50);
	make_stack(AT + 0x2004, 20); /* not of words */
	w.taken = 0;
	run(&p, AT);
	expect_stack(AT + 0x2004, 20);
}
END_TEST

/* What lies before a stack need not be there. */
START_TEST(no_page_is_read_in_which_no_frame_lies)
{
	struct otp_walk p = list();

	p.below = 1;
	for (uint64_t base = AT + 0x2000; base < AT + 0x2400; base += 0x1f8) {
		make_stack(base, 20);
		lowest = AT + 0x2000;
		p.start = OTP_WALK_AT;
		p.base = base;
		p.nr_chain = p.root_at = p.root_keep = 0;
		p.base = ABOVE(base, 20, 0);
		w.taken = 0;
		run(&p, 0);
		ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
		ck_assert_uint_eq(head.frames, 20);
		ck_assert_uint_lt(w.reads, OTP_WALK_FAULT);
		lowest = 0;
	}
}
END_TEST

START_TEST(an_object_that_the_frame_before_meant_is_not_read_again)
{
	struct otp_walk p = list();

	make_list(5);
	for (uint32_t i = 0; i < 5; i++)
		poke(FRAME(i) + 8, i == 3 ? 0 : CODE(1));
	reads = 0;
	run(&p, AT);
	ck_assert_uint_eq(reads, 2 + 1 + 5 + 2 * 2);
	for (uint32_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(word(1 + 4 * i), FRAME(i) | (i == 3 ? OTP_WALK_MISSING(0) | OTP_WALK_MISSING(1) : 0));
		ck_assert_uint_eq(word(3 + 4 * i), i == 3 ? 0 : 0x201);
		ck_assert_uint_eq(word(4 + 4 * i), i == 3 ? 0 : 0x301);
	}
	/* Nor is anything held for the next sample. */
	poke(CODE(1), 0x777);
	w.taken = 0;
	run(&p, AT);
	ck_assert_uint_eq(word(3), 0x777);
}
END_TEST

START_TEST(an_unreadable_frame_ends_the_walk)
{
	struct otp_walk p = list();

	make_list(3);
	poke(FRAME(1) + 16, 0x4000);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	ck_assert_uint_eq(head.frames, 2);
}
END_TEST

START_TEST(a_chain_that_ends_early_says_why)
{
	struct otp_walk p = list();

	make_list(1);
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	run(&p, AT + MEMORY);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	ck_assert_uint_eq(head.root_words, 0);
	poke(AT + 0x88, 0);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	ck_assert_uint_eq(head.frames, 0);
}
END_TEST

START_TEST(the_root_is_kept_where_the_chain_ends_behind_it)
{
	struct otp_walk p = list();

	make_list(1);
	p.root_at = (uint8_t)(p.nr_chain - 1);
	p.root_keep = 1;
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.root_words, 1);
	poke(AT + 0x88, 0);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	ck_assert_uint_eq(head.frames, 0);
	ck_assert_uint_eq(head.root_words, p.nr_chain > 1 ? 1 : 0);
}
END_TEST

/* A table of as many slots at FRAME(8), in which the list is in one of them. */
static struct otp_walk tabled(uint32_t mask, uint32_t used, uint32_t slot)
{
	struct otp_walk p = list();

	make_list(3);
	poke(AT + 0x88, FRAME(8));
	poke(FRAME(8) + 16, (uint64_t)used << 32 | mask);
	poke(FRAME(8) + 40 + 8ull * slot, FRAME(0) | 1);
	p.hashed = (struct otp_walk_hashed){.hash = 0x9876543287650ad5, .size = 16, .slots = 40};
	return p;
}

static const struct { uint32_t mask, used, slot; } tables[] = {
	{7, 4, 1}, {7, 5, 1}, {7, 6, 5}, {15, 8, 5}, {0xff, 0xd5, 0x55}, {0xff, 0xd6, 0xd5}, {0xfff, 0xad5, 0x2d5}, {0, 1, 0},
};

START_TEST(a_list_may_be_in_a_table_of_any_size)
{
	struct otp_walk p = tabled(tables[_i].mask, tables[_i].used, tables[_i].slot);
	struct otp_walks walks = {.generation = 1, .plan = {p}};

	ck_assert(otp_walk_sound(&walks));
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 3);
	ck_assert_uint_eq(head.root_words, 1);
	ck_assert_uint_eq(word(1), FRAME(0));
}
END_TEST

START_TEST(a_table_without_the_list_leaves_the_root)
{
	struct otp_walk p = tabled(7, 6, 4);

	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	ck_assert_uint_eq(head.root_words, 1);
	/* Neither of these is followed further than to a read that fails. */
	poke(FRAME(8) + 16, UINT64_MAX);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	poke(AT + 0x88, 8);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	ck_assert_uint_eq(head.root_words, 1);
}
END_TEST

START_TEST(a_list_that_loops_ends_at_the_bound_of_frames)
{
	struct otp_walk p = list();

	make_list(2);
	poke(FRAME(1) + 16, FRAME(0));
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_FRAMES);
	ck_assert_uint_eq(head.frames, 100);
	make_list(100);
	w.taken = 0;
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE); /* as many as are allowed */
}
END_TEST

START_TEST(large_frames_end_at_the_bound_of_bytes_and_leave_room_for_the_next_plan)
{
	struct otp_walk p = list(), q = list();

	make_list(2);
	poke(FRAME(1) + 16, FRAME(0));
	p.keep = 0xffff;
	p.sub[0].keep = 0xffff;
	p.frames_max = OTP_WALK_FRAMES;
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_BYTES);
	ck_assert_uint_eq(head.frames, (OTP_WALK_OUT - 20 - 3 - 1) / 34);
	q.root_keep = 0xffff;
	run(&q, AT);
	ck_assert_uint_eq(head.root_words, 16);
	ck_assert_uint_eq(word(0), 0x51);
}
END_TEST

START_TEST(pointers_that_fault_end_the_walk_after_a_few)
{
	struct otp_walk p = list();

	make_list(2);
	poke(FRAME(1) + 16, FRAME(0));
	poke(FRAME(0) + 8, 0x20);
	poke(FRAME(1) + 8, 0x20);
	p.frames_max = OTP_WALK_FRAMES;
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_READS);
	ck_assert_uint_le(head.frames, OTP_WALK_READS / OTP_WALK_FAULT);
}
END_TEST

#define NODE(i) (AT + 0x100 + 32ull * (i))

/* Arrays of 4, 0 and 2 frames, whose last is the innermost. */
static struct otp_walk arrays(void)
{
	static const int32_t top[3] = {3, -1, 1};

	for (uint32_t i = 0; i < 6; i++)
		poke(FRAME(i), 0x100 + i);
	for (uint32_t i = 0; i < 3; i++) {
		poke(NODE(i), FRAME(i ? 4 : 0));
		poke(NODE(i) + 8, (uint32_t)top[i]);
		poke(NODE(i) + 16, i < 2 ? NODE(i + 1) : 0);
	}
	return (struct otp_walk){.start = OTP_WALK_AT, .base = NODE(0), .step = OTP_WALK_ARRAY, .keep = 1, .frames_max = 100,
				 .stride = -64, .outer = 16, .first = {.count_at = 8, .scale = 64}};
}

START_TEST(arrays_go_on_with_the_next_outer_one)
{
	static const uint32_t order[] = {3, 2, 1, 0, 5, 4};
	struct otp_walk p = arrays();

	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, ARRAY_SIZE(order));
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++) {
		ck_assert_uint_eq(word(2 * i), FRAME(order[i]));
		ck_assert_uint_eq(word(2 * i + 1), 0x100 + order[i]);
	}
}
END_TEST

START_TEST(an_array_may_go_upward_to_a_limit_of_its_own)
{
	struct otp_walk p = arrays();

	p.stride = 64;
	p.outer = 0;
	p.last = (struct otp_walk_edge){.count_at = 8, .scale = 64, .bias = -64};
	p.first.scale = 0;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 3);
	ck_assert_uint_eq(word(4), FRAME(2));
}
END_TEST

START_TEST(empty_arrays_that_loop_end)
{
	struct otp_walk p = arrays();

	poke(NODE(0) + 8, (uint32_t)-1);
	poke(NODE(0) + 16, NODE(0));
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_READS);
	ck_assert_uint_le(w.reads, OTP_WALK_READS + 8);
}
END_TEST

/* A descriptor, a pointer to another one, and 1000 bytes of a stack whose words are their addresses. */
#define LOW   (AT + 0x4000)
#define HIGH  (LOW + 1000)
#define OTHER (AT + 0x200)

static struct otp_walk left_stack(uint64_t saved, uint64_t other)
{
	poke(NODE(0), LOW);
	poke(NODE(0) + 8, HIGH);
	poke(NODE(0) + 16, saved);
	poke(NODE(0) + 24, OTHER);
	poke(OTHER + 8, other);
	for (uint64_t at = LOW - OTP_WALK_BLOCK; at < HIGH + OTP_WALK_BLOCK; at += 8)
		poke(at, at);
	return (struct otp_walk){.start = OTP_WALK_AT, .base = NODE(0), .step = OTP_WALK_STACK, .root_keep = 1 << 2,
				 .keep = 0xffff, .frames_max = 100, .stride = OTP_WALK_BLOCK,
				 .first.at = 16, .last.at = 8};
}

/* From the word below the saved stack pointer to the end, and not a byte beyond. */
static void expect_copied(uint64_t saved)
{
	uint64_t at = word(head.root_words) & OTP_WALK_ADDRESS;

	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.root_words, 2);
	ck_assert_uint_eq(word(1), saved);
	ck_assert_uint_eq(head.frame_words, OTP_WALK_WORDS + 1);
	ck_assert_uint_le(at, (saved & ~7ull) - 8);
	ck_assert_uint_gt(at + OTP_WALK_BLOCK, (saved & ~7ull) - 8);
	ck_assert_uint_eq(at + OTP_WALK_BLOCK * head.frames, HIGH);
	for (uint32_t i = 0; i < head.frames; i++)
		for (uint32_t k = 0; k <= OTP_WALK_WORDS; k++)
			ck_assert_uint_eq(word(head.root_words + i * (OTP_WALK_WORDS + 1) + k),
					  at + OTP_WALK_BLOCK * i + (k ? 8 * (k - 1) : 0));
}

START_TEST(a_stack_that_was_left_is_copied_up_to_its_end)
{
	static const uint64_t saved[] = {LOW + 8, LOW + 500, HIGH - 8, HIGH - 120, HIGH - 128};
	struct otp_walk p = left_stack(saved[_i], 0);

	run(&p, 0);
	expect_copied(saved[_i]);
}
END_TEST

START_TEST(of_a_stack_too_deep_to_copy_the_outermost_bytes_are)
{
	struct otp_walk p = left_stack(LOW + 8, 0);
	uint64_t at;

	p.frames_max = 6;
	p.far = 2 * OTP_WALK_BLOCK;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 6);
	for (uint32_t i = 0; i < 6; i++) {
		at = word(head.root_words + i * (OTP_WALK_WORDS + 1));
		ck_assert_uint_eq(at, HIGH - (i < 4 ? 8 - i : 6 - i) * OTP_WALK_BLOCK);
		ck_assert_uint_eq(word(head.root_words + i * (OTP_WALK_WORDS + 1) + 1), at);
	}
	/* One that just fits has no gap. */
	p.frames_max = 8;
	run(&p, 0);
	expect_copied(LOW + 8);
}
END_TEST

/* Of such a stack, whose frames have records of two words, of which the frame pointer is the first. */
static struct otp_walk with_records(const uint64_t *at, unsigned n, uint64_t last)
{
	struct otp_walk p = left_stack(LOW + 8, 0);

	p.frames_max = 6;
	p.far = 2 * OTP_WALK_BLOCK;
	p.held.frame = 32;
	poke(NODE(0) + 32, at[0]);
	for (unsigned i = 0; i < n; i++)
		poke(at[i], i + 1 < n ? at[i + 1] : last);
	return p;
}

/* Block i of what was copied holds n records and then zeros; next: of the last one. */
static void expect_records(uint32_t i, const uint64_t *at, unsigned n, uint64_t next)
{
	const uint32_t from = head.root_words + i * (OTP_WALK_WORDS + 1);

	ck_assert_uint_eq(word(from), at[0] | OTP_WALK_MISSING(0));
	for (unsigned k = 0; k < OTP_WALK_WORDS / 2; k++) {
		ck_assert_uint_eq(word(from + 1 + 2 * k), k + 1 < n ? at[k + 1] : k + 1 == n ? next : 0);
		ck_assert_uint_eq(word(from + 2 + 2 * k), k < n ? at[k] + 8 : 0);
	}
}

static void expect_bytes(uint32_t i, uint64_t at)
{
	ck_assert_uint_eq(word(head.root_words + i * (OTP_WALK_WORDS + 1)), at);
	ck_assert_uint_eq(word(head.root_words + i * (OTP_WALK_WORDS + 1) + 1), at);
}

/* Four blocks of bytes end there. */
#define NEAR_END (HIGH - 4 * OTP_WALK_BLOCK)

START_TEST(of_a_stack_too_deep_to_copy_the_frame_records_are)
{
	const uint64_t at[] = {LOW + 16, NEAR_END - 32, NEAR_END - 8, HIGH - 400, HIGH - 320, HIGH - 240, HIGH - 160, HIGH - 80,
			       HIGH - 40, HIGH - 16};
	struct otp_walk p = with_records(at, 10, 0);

	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 6);
	expect_bytes(3, NEAR_END - OTP_WALK_BLOCK);
	expect_records(4, at, 8, at[8]);
	expect_records(5, at + 8, 2, 0);
	/* Of another saved stack pointer. */
	p.via = 24;
	p.via_at = 8;
	poke(OTHER + 8, at[0] + 16);
	poke(NODE(0) + 16, 0);
	poke(NODE(0) + 32, 0);
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	expect_records(5, at + 8, 2, 0);
	/* More of them than may be copied. */
	p.frames_max = 5;
	p.far = OTP_WALK_BLOCK;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_FRAMES);
	ck_assert_uint_eq(head.frames, 5);
}
END_TEST

/* Those in the bytes are passed by. */
START_TEST(frame_records_that_were_copied_are_not_copied_again)
{
	uint64_t at[20];
	struct otp_walk p;

	for (unsigned i = 0; i < 18; i++)
		at[i] = LOW + 16 + 24 * i;
	at[18] = HIGH - 64;
	at[19] = HIGH - 24;
	p = with_records(at, 20, 0);
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 5);
	expect_records(4, at + 16, 4, 0);
}
END_TEST

/* As at a callback, whose frame pointer is C code's, or where there is none. Then the outermost bytes are copied. */
START_TEST(where_frame_records_are_broken_bytes_follow)
{
	const uint64_t at[] = {LOW + 16, HIGH - 304, HIGH - 200}, near[] = {LOW + 16, LOW + 40};
	const uint64_t last[] = {AT + 0x100, HIGH, HIGH - 8, HIGH - 100, LOW + 16, 1};
	struct otp_walk p = with_records(at, 3, last[_i]);

	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 6);
	expect_records(4, at, 3, 0);
	expect_bytes(5, HIGH - OTP_WALK_BLOCK);
	/* Before the bytes' end. */
	p = with_records(near, 2, last[_i]);
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 6);
	expect_bytes(4, HIGH - 2 * OTP_WALK_BLOCK);
	expect_bytes(5, HIGH - OTP_WALK_BLOCK);
	/* The frame pointer that was saved is none. */
	poke(NODE(0) + 32, last[_i]);
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 6);
	expect_bytes(4, HIGH - 2 * OTP_WALK_BLOCK);
}
END_TEST

START_TEST(the_blocks_of_a_stack_fit_a_sample)
{
	struct otp_walk p = left_stack(LOW + 8, 0);

	poke(NODE(0), LOW - 0x2000);
	poke(NODE(0) + 8, LOW + 0x4000);
	poke(NODE(0) + 16, LOW - 0x1ff8);
	p.root_keep = 0xffff;
	p.frames_max = OTP_WALK_BLOCKS;
	p.far = 32 * OTP_WALK_BLOCK;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, OTP_WALK_BLOCKS);
	p.far = 0;
	w.taken = 0;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_FRAMES);
	ck_assert_uint_eq(head.frames, OTP_WALK_BLOCKS);
}
END_TEST

START_TEST(a_stack_that_the_thread_is_on_is_not_copied)
{
	struct otp_walk p = left_stack(LOW + 500, 0);

	for (uint64_t sp = LOW; sp < HIGH; sp += HIGH - 8 - LOW) {
		w.sp = sp;
		run(&p, 0);
		ck_assert_uint_eq(head.frames, 0);
		ck_assert_uint_eq(head.root_words, 1);
		ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	}
	w.sp = HIGH;
	run(&p, 0);
	expect_copied(LOW + 500);
}
END_TEST

/* It follows the root's words, before the saved stack pointer. */
START_TEST(another_word_is_copied_with_the_roots)
{
	struct otp_walk p = left_stack(LOW + 500, 0);

	p.held.also = OTHER + 8;
	poke(OTHER + 8, 77);
	run(&p, 0);
	ck_assert_uint_eq(head.root_words, 3);
	ck_assert_uint_eq(word(1), 77);
	ck_assert_uint_eq(word(2), LOW + 500);
	p.held.also = 8;
	run(&p, 0);
	ck_assert_uint_eq(head.root_words, 3);
	ck_assert_uint_eq(word(1), OTP_WALK_UNREAD);
}
END_TEST

/* While its code runs; elsewhere the stack may have grown since it was saved, down to the stack's lower end. */
START_TEST(an_interpreter_has_its_stack_pointer_in_a_register)
{
	struct otp_walk p = left_stack(LOW + 500, 0);

	p.first.bias = -300;
	p.held = (struct otp_walk_held){.code = 0x5000, .code_len = 0x100, .at_reg = 13};
	w.regs[13] = LOW + 800;
	w.pc = 0x50ff;
	run(&p, 0);
	expect_copied(LOW + 800);
	w.pc = 0x5100;
	run(&p, 0);
	expect_copied(LOW + 200);
	/* It is none of the stack. */
	w.pc = 0x5000;
	w.regs[13] = HIGH;
	run(&p, 0);
	expect_copied(LOW + 200);
	p.first.bias = -600;
	run(&p, 0);
	expect_copied(LOW);
	w.pc = 0;
}
END_TEST

/* From a page on that can be read; a block that lies across its beginning is left out. */
START_TEST(what_was_never_touched_below_a_stack_is_passed_by)
{
	struct otp_walk p = left_stack(LOW - 0x3f8, 0);

	poke(NODE(0), LOW - 0x2000);
	p.held.at_reg = 1;
	hole = LOW - 0x2000;
	for (hole_end = LOW - 0x1000; hole_end <= LOW; hole_end += 0x1000) {
		run(&p, 0);
		ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
		ck_assert_uint_eq(word(1), LOW - 0x3f8);
		ck_assert_uint_eq(word(2), hole_end == LOW ? HIGH - 7 * OTP_WALK_BLOCK : HIGH - 16 * OTP_WALK_BLOCK);
		ck_assert_uint_eq(head.frames, hole_end == LOW ? 7 : 16);
		ck_assert_uint_lt(w.reads, 2 * OTP_WALK_FAULT);
		w.taken = 0;
	}
	/* Several pages, and all. */
	p.first.bias = -0x1800;
	hole_end = LOW;
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 7);
	w.taken = 0;
	hole_end = HIGH;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 0);
	hole = hole_end = 0;
}
END_TEST

START_TEST(a_stack_is_copied_up_to_what_cannot_be_read)
{
	struct otp_walk p = left_stack(LOW + 8, 0);

	hole = LOW;
	hole_end = LOW + 200;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	ck_assert_uint_eq(head.frames, 0);
	hole = hole_end = 0;
	p.held.at_reg = 1;
	poke(NODE(0), AT + MEMORY - 1000);
	poke(NODE(0) + 8, AT + MEMORY + 1000);
	poke(NODE(0) + 16, AT + MEMORY - 992);
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	ck_assert_uint_gt(head.frames, 0);
}
END_TEST

START_TEST(a_stack_pointer_out_of_its_stack_is_not_followed)
{
	static const uint64_t saved[] = {0, LOW - 8, HIGH, (uint64_t)-8};
	struct otp_walk p = left_stack(saved[_i], saved[_i]);

	p.via = 24;
	p.via_at = 8;
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 0);
	ck_assert_uint_eq(head.root_words, 1);
}
END_TEST

START_TEST(another_saved_stack_pointer_goes_before)
{
	struct otp_walk p = left_stack(LOW + 500, LOW + 800);

	p.via = 24;
	p.via_at = 8;
	run(&p, 0);
	expect_copied((LOW + 800) | OTP_WALK_VIA);
	/* It is not there, or is none. */
	poke(OTHER + 8, 0);
	run(&p, 0);
	expect_copied(LOW + 500);
	poke(NODE(0) + 24, 16);
	run(&p, 0);
	expect_copied(LOW + 500);
}
END_TEST

/* A call of the race detector's C code, and a signal handler: nothing says where the stack ends, but which one it is. */
START_TEST(of_a_stack_that_was_left_without_a_word_the_outermost_bytes_are_copied)
{
	struct otp_walk p = left_stack(0, 0);

	p.via = 24;
	p.via_at = 8;
	p.held.home = 1;
	p.nr_chain = 1;
	p.base = AT + 0x300;
	poke(AT + 0x300, NODE(0));
	run(&p, 0);
	expect_copied((LOW + 8) | OTP_WALK_VIA);
	p.frames_max = 2;
	run(&p, 0);
	expect_copied((HIGH - 2 * OTP_WALK_BLOCK + 8) | OTP_WALK_VIA);
	/* What was saved may still be right, in a signal handler. */
	poke(NODE(0) + 16, HIGH - 100);
	run(&p, 0);
	ck_assert_uint_eq(word(1), (HIGH - 100) & ~1ull);
	ck_assert_uint_eq(word(2), HIGH - 2 * OTP_WALK_BLOCK);
	/* It was left for the stack of this one: it is. */
	poke(OTHER, NODE(0));
	p.frames_max = 100;
	run(&p, 0);
	expect_copied(HIGH - 100);
	/* What is known goes before. */
	poke(OTHER, 0);
	poke(OTHER + 8, LOW + 800);
	run(&p, 0);
	expect_copied((LOW + 800) | OTP_WALK_VIA);
}
END_TEST

/* As counters that are elsewhere: they are there where the array is empty, and all ones where they cannot be read. */
START_TEST(an_array_may_have_words_from_elsewhere)
{
	struct otp_walk p = {.start = OTP_WALK_AT, .base = NODE(0), .step = OTP_WALK_ARRAY, .root_keep = 1, .frames_max = 1,
			     .stride = 8, .first = {.bias = 8}, .also.at = {OTHER + 8}};

	poke(NODE(0), 0x77);
	poke(OTHER + 8, 0x55);
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.root_words, 2);
	ck_assert_uint_eq(word(0), 0x77);
	ck_assert_uint_eq(word(1), 0x55);
	p.also.at[0] = 16;
	run(&p, 0);
	ck_assert_uint_eq(head.root_words, 2);
	ck_assert_uint_eq(word(1), OTP_WALK_UNREAD);
	p.also.at[1] = OTHER + 8;
	run(&p, 0);
	ck_assert_uint_eq(head.root_words, 3);
	ck_assert_uint_eq(word(1), OTP_WALK_UNREAD);
	ck_assert_uint_eq(word(2), 0x55);
	p.also.at[0] = 0;
	run(&p, 0);
	ck_assert_uint_eq(head.root_words, 2);
	ck_assert_uint_eq(word(1), 0x55);
}
END_TEST

/* --- chunks --- */

#define ENTRY (AT + 0x300)
#define OWNER (AT + 0x400)
#define CHUNK(i) (AT + 0x4000 + 0x1000ull * (i))
#define CHUNK_STACK 48

/* A chunk of so many words, with frames from sp on, and a compressed pointer to the next one. Words are their addresses. */
static void make_chunk(uint32_t i, uint32_t sp, uint32_t size, bool last)
{
	for (uint64_t at = CHUNK(i); at < CHUNK(i) + CHUNK_STACK + 8 * MIN(size, 300u); at += 8)
		poke(at, at);
	poke(CHUNK(i) + 24, sp);
	poke(CHUNK(i) + 8, (uint64_t)size << 32 | 0x1234);
	poke(CHUNK(i) + 40, (uint64_t)0x99 << 32 | (last ? 0 : (CHUNK(i + 1) - AT) >> 3));
}

static struct otp_walk chunks(void)
{
	poke(AT + 0x40, AT + 0x80);
	poke(AT + 0x80 + 8, ENTRY);
	poke(ENTRY + 16, OWNER);
	poke(AT + 0x500, 0x55);
	poke(OWNER + 32, (CHUNK(0) - AT) >> 3 << 32 | 7);
	return (struct otp_walk){.start = OTP_WALK_TLS, .nr_chain = 2, .chain = {0x40, 8}, .step = OTP_WALK_CHUNKS,
				 .keep = 0xffff, .stride = OTP_WALK_BLOCK, .frames_max = 100,
				 .chunks = {.base = AT, .also = AT + 0x500, .shift = 3, .owner = 16, .chunk = 36, .outer = 40, .sp = 24, .end = 12,
					    .stack = CHUNK_STACK}};
}

/* The blocks of a chunk, from this one on; returns the next. */
static uint32_t expect_chunk(uint32_t block, uint32_t i, uint32_t sp, uint32_t size)
{
	const uint64_t low = CHUNK(i) + CHUNK_STACK + 8 * sp - 16, end = CHUNK(i) + CHUNK_STACK + 8 * size;
	uint32_t at = head.root_words + block++ * (OTP_WALK_WORDS + 1);
	uint64_t from;

	ck_assert_uint_eq(word(at), CHUNK(i) | OTP_WALK_MISSING(0));
	ck_assert_uint_eq(word(at + 1), CHUNK(i));
	ck_assert_uint_eq(word(at + 4), sp);
	if (sp >= size)
		return block;
	from = word(at + OTP_WALK_WORDS + 1);
	ck_assert_uint_le(from, low);
	ck_assert_uint_gt(from + OTP_WALK_BLOCK, low);
	for (; from < end; from += OTP_WALK_BLOCK, block++) {
		at = head.root_words + block * (OTP_WALK_WORDS + 1);
		ck_assert_uint_eq(word(at), from);
		ck_assert_uint_eq(word(at + OTP_WALK_WORDS), from + OTP_WALK_BLOCK - 8);
	}
	ck_assert_uint_eq(from, end);
	return block;
}

START_TEST(chunks_are_copied_from_their_stack_pointer_to_their_end)
{
	struct otp_walk p = chunks();

	make_chunk(0, 20, 90, false);
	make_chunk(1, 64, 64, false); /* it has no frames */
	make_chunk(2, 3, 200, true);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.step, OTP_WALK_CHUNKS);
	ck_assert_uint_eq(head.root_words, 3);
	ck_assert_uint_eq(word(0), ENTRY);
	ck_assert_uint_eq(word(1), OWNER);
	ck_assert_uint_eq(word(2), 0x55);
	ck_assert_uint_eq(expect_chunk(expect_chunk(expect_chunk(0, 0, 20, 90), 1, 64, 64), 2, 3, 200), head.frames);
}
END_TEST

START_TEST(pointers_to_chunks_may_be_whole)
{
	struct otp_walk p = chunks();

	p.chunks.wide = 1;
	p.chunks.chunk = 40;
	p.chunks.outer = 32;
	poke(OWNER + 40, CHUNK(0));
	make_chunk(0, 20, 90, true);
	poke(CHUNK(0) + 32, 0);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(expect_chunk(0, 0, 20, 90), head.frames);
}
END_TEST

/* The thread is none of the runtime's, runs no coroutine, or one that has nothing in the heap. */
START_TEST(where_there_are_no_chunks_little_is_read)
{
	static const struct { uint64_t at, end, words; } none[] = {
		{AT + 0x40, OTP_WALK_END_NO_ROOT, 0}, {AT + 0x88, OTP_WALK_END_NO_ROOT, 0},
		{ENTRY + 16, OTP_WALK_END_NO_ROOT, 0}, {OWNER + 32, OTP_WALK_END_DONE, 3},
	};
	struct otp_walk p = chunks();

	poke(none[_i].at, 0);
	reads = 0;
	run(&p, AT);
	ck_assert_uint_eq(head.end, none[_i].end);
	ck_assert_uint_eq(head.frames, 0);
	ck_assert_uint_eq(head.root_words, none[_i].words);
	ck_assert_uint_le(reads, 5);
}
END_TEST

START_TEST(chunks_that_lead_to_each_other_or_nowhere_end)
{
	struct otp_walk p = chunks();

	make_chunk(0, 10, 40, false);
	make_chunk(1, 10, 40, false);
	poke(CHUNK(1) + 40, (CHUNK(0) - AT) >> 3);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_FRAMES);
	poke(CHUNK(1) + 40, MEMORY >> 3);
	run(&p, AT);
	ck_assert_uint_eq(head.end, OTP_WALK_END_UNREADABLE);
	/* Sizes of nothing that is in a heap. */
	make_chunk(0, 10, OTP_WALK_CHUNK_WORDS + 1, true);
	run(&p, AT);
	ck_assert_uint_eq(head.frames, 1);
	make_chunk(0, 10, 40, true);
	poke(CHUNK(0) + 24, (uint64_t)-1);
	run(&p, AT);
	ck_assert_uint_eq(head.frames, 1);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
}
END_TEST

/* The words stay behind the root's where the chain does not lead to a list. */
START_TEST(a_roots_object_is_copied_with_it)
{
	struct otp_walk p = list();

	make_list(2);
	p.via = 24;
	p.via_at = -8;
	poke(AT + 0x80 + 24, CODE(9) + 8);
	for (uint32_t i = 0; i < 4; i++)
		poke(CODE(9) + 8 * i, 0x900 + i);
	for (int empty = 0; empty < 2; empty++) {
		run(&p, AT);
		ck_assert_uint_eq(head.root_words, 4);
		ck_assert_uint_eq(head.frames, empty ? 0 : 2);
		ck_assert_uint_eq(word(0), 0x51);
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_uint_eq(word(1 + i), 0x900 + i);
		poke(AT + 0x88, 0);
	}
}
END_TEST

START_TEST(an_object_that_is_not_there_is_zeros)
{
	static const uint64_t pointer[] = {0, 8, AT + MEMORY - 16};
	struct otp_walk p = list();

	make_list(2);
	p.via = 24;
	poke(AT + 0x80 + 24, pointer[_i]);
	run(&p, AT);
	ck_assert_uint_eq(head.root_words, 4);
	ck_assert_uint_eq(head.frames, 2);
	for (uint32_t i = 1; i < 4; i++)
		ck_assert_uint_eq(word(i), 0);
}
END_TEST

/* --- calls --- */

#define BACK	 0x5555000012ull
#define STATE(i) (AT + 0x6000 + 0x100ull * (i))
#define STACK_AT (AT + 0xa000)

static struct otp_walk calls(void)
{
	return (struct otp_walk){.start = OTP_WALK_CALL, .base = BACK, .nr_chain = 1, .chain = {0x10}, .root_keep = 1, .link = 2,
				 .tag = 3, .keep = 1, .frames_max = 100, .call_root = 8, .call_proof = 0x20, .call_at = 0x18};
}

/* A call at that place, of a state whose list begins with the given frame. */
static void make_call(uint64_t at, uint32_t state, uint64_t frame)
{
	poke(at, BACK);
	poke(at + 8, STATE(state));
	poke(STATE(state), 0x70 + state);
	poke(STATE(state) + 0x10, frame);
	poke(STATE(state) + 0x20, at + 0x18);
}

START_TEST(states_are_found_by_calls_on_the_stack)
{
	struct otp_walk p = calls();

	make_list(4);
	poke(FRAME(1) + 16, 0); /* two lists of two */
	w.sp = STACK_AT + 3;
	make_call(STACK_AT + 0x3f8, 0, FRAME(0));
	make_call(STACK_AT + 0x1400, 1, FRAME(2));
	/* Left behind: no state there, or one that has been entered again. */
	poke(STACK_AT + 0x40, BACK);
	poke(STACK_AT + 0x80, BACK);
	poke(STACK_AT + 0x88, STATE(1));
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 4);
	ck_assert_uint_eq(head.root_words, 1);
	ck_assert_uint_eq(word(0), 0x70);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(word(1 + 2 * i), FRAME(i));
}
END_TEST

START_TEST(calls_below_the_stack_pointer_are_over)
{
	struct otp_walk p = calls();

	make_list(2);
	make_call(STACK_AT, 0, FRAME(0));
	w.sp = STACK_AT + 1;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	ck_assert_uint_eq(head.frames, 0);
	w.sp = 0;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	w.sp = STACK_AT;
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 2);
}
END_TEST

START_TEST(calls_are_sought_up_to_a_bound)
{
	struct otp_walk p = calls();

	make_list(1);
	w.sp = AT;
	make_call(AT + OTP_WALK_SEEK - 8, 0, FRAME(0));
	run(&p, 0);
	ck_assert_uint_eq(head.frames, 1);
	/* The stack goes on, and what called may be further out. */
	ck_assert_uint_eq(head.end, OTP_WALK_END_READS);
	memset(&memory, 0, sizeof(memory));
	make_call(AT + OTP_WALK_SEEK, 0, FRAME(0));
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_NO_ROOT);
	ck_assert_uint_eq(head.frames, 0);
}
END_TEST

START_TEST(an_array_of_each_state_is_copied)
{
	struct otp_walk p = calls();

	p.step = OTP_WALK_ARRAY;
	p.nr_chain = 0;
	p.stride = -64;
	p.link = 0;
	p.first.at = 0x10;
	p.last.at = 0x18;
	make_list(4);
	w.sp = STACK_AT;
	make_call(STACK_AT + 8, 0, FRAME(1));
	make_call(STACK_AT + 0x80, 1, FRAME(3));
	poke(STATE(0) + 0x18, FRAME(0));
	poke(STATE(1) + 0x18, FRAME(2));
	run(&p, 0);
	ck_assert_uint_eq(head.end, OTP_WALK_END_DONE);
	ck_assert_uint_eq(head.frames, 4);
	ck_assert_uint_eq(word(1), FRAME(1));
	ck_assert_uint_eq(word(7), FRAME(2));
}
END_TEST

START_TEST(frames_have_subs_by_any_of_their_words)
{
	struct otp_walk p = list();

	make_list(2);
	poke(FRAME(0) + 24, 5ull << 16);
	poke(FRAME(1) + 24, 6ull << 16);
	p.kinds = 1u << 6;
	p.kind_word = 3;
	p.kind_shift = 16;
	run(&p, AT);
	ck_assert_uint_eq(head.frames, 2);
	ck_assert_uint_eq(word(1) & OTP_WALK_MISSING(0), OTP_WALK_MISSING(0));
	ck_assert_uint_eq(word(5), FRAME(1));
	ck_assert_uint_eq(word(7), 0x201);
}
END_TEST

static uint64_t random_next(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Any bits. */
static struct otp_walk random_plan(int round)
{
	struct otp_walk p;
	uint8_t *byte = (uint8_t *)&p;

	for (size_t i = 0; i < sizeof(p); i++)
		byte[i] = round % 7 ? (uint8_t)random_next() : round & 1 ? 0xff : 0;
	return p;
}

static void bound_chunks(struct otp_walk *p)
{
	p->stride = OTP_WALK_BLOCK;
	p->keep = 0xffff;
	p->copy_off = 0;
	p->nr_subs = p->tag = 0;
	p->chunks = (struct otp_walk_chunks){.base = AT, .shift = (uint8_t)(random_next() % 4), .wide = random_next() % 2,
					     .owner = (int16_t)(random_next() % 512), .chunk = (int16_t)(4 * (random_next() % 64)),
					     .outer = (int16_t)(4 * (random_next() % 64)), .stack = (int16_t)(random_next() % 512),
					     .sp = (int16_t)(4 * (random_next() % 32)), .end = (int16_t)(4 * (random_next() % 32))};
}

/* Brings into bounds what a validator bounds. */
static void bound_plan(struct otp_walk *p)
{
	p->start = (uint8_t)(1 + random_next() % 3);
	p->step %= p->start == OTP_WALK_CALL ? 2 : 5;
	p->nr_chain %= OTP_WALK_CHAIN + 1;
	p->nr_subs %= OTP_WALK_SUBS + 1;
	p->root_at = (uint8_t)(p->root_at % (p->nr_chain + 1));
	p->link %= OTP_WALK_WORDS;
	p->frames_max = (uint16_t)(1 + random_next() % OTP_WALK_FRAMES);
	p->below = p->step == OTP_WALK_LINK && random_next() % 2;
	p->kinds = random_next() % 65536;
	p->kind_word %= OTP_WALK_WORDS;
	p->kind_shift %= 64;
	if (p->start == OTP_WALK_CALL) {
		p->nr_chain %= 2;
		p->root_at = 0;
		p->outer = 0;
		p->call_root = p->call_proof = (int16_t)(random_next() % 64);
	}
	if (p->step == OTP_WALK_CHUNKS)
		bound_chunks(p);
	else if (p->step != OTP_WALK_SLOTS)
		p->slots = (struct otp_walk_slots){0};
	if (p->step == OTP_WALK_LINK && p->start != OTP_WALK_CALL && random_next() % 2)
		p->hashed = (struct otp_walk_hashed){.hash = random_next(), .size = (int16_t)(random_next() % 512),
						     .slots = (int16_t)(random_next() % 512)};
	if (p->step == OTP_WALK_ARRAY && p->start != OTP_WALK_CALL)
		p->also = (struct otp_walk_also){.at = {AT + random_next() % MEMORY, random_next() % 2 ? AT + random_next() % MEMORY : 0}};
	if (p->step == OTP_WALK_SLOTS) {
		p->slots.at_reg %= OTP_WALK_REGS;
		p->slots.place_reg %= OTP_WALK_REGS;
	}
	if (p->step != OTP_WALK_STACK && p->start != OTP_WALK_CALL) {
		p->low = 0;
		p->via = p->step == OTP_WALK_LINK ? (int16_t)(random_next() % 512) : 0;
		p->via_at = p->via ? (int16_t)(random_next() % 512) : 0;
	} else if (p->step == OTP_WALK_STACK) {
		p->stride = OTP_WALK_BLOCK;
		p->tag = 0;
		p->far = p->frames_max / 2 * OTP_WALK_BLOCK;
		p->held.frame = (int16_t)(random_next() % 512);
		p->held.home = p->via && random_next() % 2;
	}
	for (uint32_t i = 0; i < OTP_WALK_SUBS; i++) {
		p->sub[i].from = (uint8_t)(p->sub[i].from % (i + 1));
		p->sub[i].at %= OTP_WALK_WORDS;
		p->sub[i].high %= 32;
	}
	p->base = AT + random_next() % 1024;
	for (uint32_t i = 0; i < OTP_WALK_CHAIN; i++)
		p->chain[i] = (int32_t)(random_next() % 512);
}

/* Plans of any bits, with bounds as a validator leaves them, over memory that leads to itself. */
START_TEST(hostile_plans_and_memory_stay_within_bounds)
{
	unsigned int sound = 0;

	for (int round = 0; round < 20000; round++) {
		struct otp_walks walks = {.generation = 1, .plan = {random_plan(round)}};

		if (round % 5)
			bound_plan(&walks.plan[0]);
		if (!otp_walk_sound(&walks))
			continue;
		sound++;
		for (uint32_t i = 0; i < 512; i++)
			memory.word[random_next() % (MEMORY / 8)] = random_next() % 4 ? AT + random_next() % MEMORY : random_next();
		w.taken = 0;
		w.pc = walks.plan[0].slots.code;
		w.sp = AT + random_next() % MEMORY;
		/* Calls, of the same states again and again. */
		for (uint32_t i = 0; walks.plan[0].start == OTP_WALK_CALL && i < 512; i++)
			memory.word[random_next() % (MEMORY / 8)] = walks.plan[0].base;
		for (uint32_t i = 0; i < OTP_WALK_REGS; i++)
			w.regs[i] = AT + random_next() % MEMORY;
		run(&walks.plan[0], AT);
		run(&walks.plan[0], AT + 8);
	}
	ck_assert_uint_ge(sound, 10000);
}
END_TEST

static void break_plan(struct otp_walks *s, int how)
{
	struct otp_walk *p = &s->plan[0];

	switch (how) {
	case 0: s->generation = 0; break;
	case 1: s->reserved = 1; break;
	case 2: p->start = 4; break;
	case 3: p->start = OTP_WALK_NONE; break; /* of both */
	case 4: p->step = 5; break;
	case 5: p->nr_chain = OTP_WALK_CHAIN + 1; break;
	case 6: p->nr_subs = OTP_WALK_SUBS + 1; break;
	case 7: p->root_at = 3; break;
	case 8: p->link = OTP_WALK_WORDS; break;
	case 9: p->below = 2; break;
	case 10: p->kind_word = OTP_WALK_WORDS; break;
	case 11: p->frames_max = 0; break;
	case 12: p->frames_max = OTP_WALK_FRAMES + 1; break;
	case 13: p->step = OTP_WALK_ARRAY; break; /* of no stride */
	case 14: p->sub[0].from = 1; break;
	case 15: p->sub[1].from = 2; break;
	case 16: p->sub[1].at = OTP_WALK_WORDS; break;
	case 17: p->sub[1].high = 32; break;
	case 18: s->plan[1].nr_subs = 255; break;
	case 19: p->kinds = 1 << 16; break;
	case 20: p->step = OTP_WALK_STACK; break; /* not in blocks */
	case 21: p->via_at = 8; break; /* of no pointer */
	case 22: p->low = 8; break;
	case 23: p->slots.resumer = 8; break; /* of another step */
	case 24: p->slots.code_len = 8; break;
	case 25:
		p->step = OTP_WALK_ARRAY;
		p->stride = p->via = 8;
		break;
	case 26:
		p->step = OTP_WALK_SLOTS;
		p->slots.at_reg = OTP_WALK_REGS;
		break;
	case 27: p->kind_shift = 64; break;
	case 28: p->start = OTP_WALK_CALL; break; /* of a longer chain */
	case 29: *p = calls(); p->step = OTP_WALK_SLOTS; break;
	case 30: *p = calls(); p->outer = 8; break;
	case 31: *p = left_stack(LOW + 8, 0); p->far = 8; break; /* not in blocks */
	case 32: *p = left_stack(LOW + 8, 0); p->far = p->frames_max * OTP_WALK_BLOCK; break;
	case 33: *p = left_stack(LOW + 8, 0); p->far = -OTP_WALK_BLOCK; break;
	case 34: *p = chunks(); p->keep = 1; break;
	case 35: *p = chunks(); p->nr_subs = 1; break;
	case 36: *p = chunks(); p->chunks.end = OTP_WALK_BLOCK; break;
	case 37: *p = chunks(); p->chunks.sp = 2; break;
	case 38: *p = chunks(); p->chunks.shift = 32; break;
	case 39: *p = chunks(); p->chunks.reserved = 1; break;
	case 40: *p = chunks(); p->via = 8; break;
	case 41:
		p->step = OTP_WALK_ARRAY;
		p->stride = 8;
		p->also.reserved[1] = 1;
		break;
	case 42:
		p->hashed.slots = 8;
		p->hashed.reserved[4] = 1;
		break;
	case 43: p->hashed.hash = 1; break; /* of no table */
	case 44: *p = calls(); p->hashed.slots = 8; break;
	case 45: *p = left_stack(LOW + 8, 0); p->held.reserved[1] = 1; break;
	case 46: *p = left_stack(LOW + 8, 0); p->held.home = 1; break; /* of nowhere */
	}
}

START_TEST(walks_out_of_bounds_are_not_sound)
{
	struct otp_walks walks = {.generation = 1, .plan = {list()}};

	ck_assert(otp_walk_sound(&walks));
	break_plan(&walks, _i);
	ck_assert(!otp_walk_sound(&walks));
}
END_TEST

Suite *walk_suite(void)
{
	Suite *s = suite_create("walk");
	TCase *t = tcase_create("walk");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, a_list_is_copied_with_its_root_and_subs_of_subs);
	tcase_add_test(t, a_missing_sub_is_zeros_with_a_bit);
	tcase_add_test(t, frames_of_other_kinds_have_no_subs);
	tcase_add_test(t, frames_that_lie_together_are_read_together);
	tcase_add_test(t, no_page_is_read_in_which_no_frame_lies);
	tcase_add_test(t, an_object_that_the_frame_before_meant_is_not_read_again);
	tcase_add_test(t, an_unreadable_frame_ends_the_walk);
	tcase_add_test(t, a_chain_that_ends_early_says_why);
	tcase_add_test(t, the_root_is_kept_where_the_chain_ends_behind_it);
	tcase_add_loop_test(t, a_list_may_be_in_a_table_of_any_size, 0, ARRAY_SIZE(tables));
	tcase_add_test(t, a_table_without_the_list_leaves_the_root);
	tcase_add_test(t, a_list_that_loops_ends_at_the_bound_of_frames);
	tcase_add_test(t, large_frames_end_at_the_bound_of_bytes_and_leave_room_for_the_next_plan);
	tcase_add_test(t, pointers_that_fault_end_the_walk_after_a_few);
	tcase_add_test(t, arrays_go_on_with_the_next_outer_one);
	tcase_add_test(t, an_array_may_go_upward_to_a_limit_of_its_own);
	tcase_add_test(t, empty_arrays_that_loop_end);
	tcase_add_loop_test(t, a_stack_that_was_left_is_copied_up_to_its_end, 0, 5);
	tcase_add_test(t, of_a_stack_too_deep_to_copy_the_outermost_bytes_are);
	tcase_add_test(t, of_a_stack_too_deep_to_copy_the_frame_records_are);
	tcase_add_test(t, frame_records_that_were_copied_are_not_copied_again);
	tcase_add_loop_test(t, where_frame_records_are_broken_bytes_follow, 0, 6);
	tcase_add_test(t, the_blocks_of_a_stack_fit_a_sample);
	tcase_add_test(t, a_stack_that_the_thread_is_on_is_not_copied);
	tcase_add_test(t, an_interpreter_has_its_stack_pointer_in_a_register);
	tcase_add_test(t, what_was_never_touched_below_a_stack_is_passed_by);
	tcase_add_test(t, a_stack_is_copied_up_to_what_cannot_be_read);
	tcase_add_test(t, another_word_is_copied_with_the_roots);
	tcase_add_loop_test(t, a_stack_pointer_out_of_its_stack_is_not_followed, 0, 4);
	tcase_add_test(t, another_saved_stack_pointer_goes_before);
	tcase_add_test(t, of_a_stack_that_was_left_without_a_word_the_outermost_bytes_are_copied);
	tcase_add_test(t, chunks_are_copied_from_their_stack_pointer_to_their_end);
	tcase_add_test(t, pointers_to_chunks_may_be_whole);
	tcase_add_loop_test(t, where_there_are_no_chunks_little_is_read, 0, 4);
	tcase_add_test(t, chunks_that_lead_to_each_other_or_nowhere_end);
	tcase_add_test(t, an_array_may_have_words_from_elsewhere);
	tcase_add_test(t, a_roots_object_is_copied_with_it);
	tcase_add_loop_test(t, an_object_that_is_not_there_is_zeros, 0, 3);
	tcase_add_test(t, states_are_found_by_calls_on_the_stack);
	tcase_add_test(t, calls_below_the_stack_pointer_are_over);
	tcase_add_test(t, calls_are_sought_up_to_a_bound);
	tcase_add_test(t, an_array_of_each_state_is_copied);
	tcase_add_test(t, frames_have_subs_by_any_of_their_words);
	tcase_add_test(t, hostile_plans_and_memory_stay_within_bounds);
	tcase_add_loop_test(t, walks_out_of_bounds_are_not_sound, 0, 47);
	suite_add_tcase(s, t);
	return s;
}
