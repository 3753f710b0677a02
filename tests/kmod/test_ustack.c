// SPDX-License-Identifier: Apache-2.0
/*
 * The module's copy of user memory, over pages that are there or not, by every
 * kind of copy that a kernel brings: one that says each byte it took, and one
 * that reads ahead of what it stores and then keeps less than was there (Linux,
 * arch/arm64/lib/copy_template.S: blocks of 64 bytes, three quarters of the
 * last one unstored).
 */
#include <stdlib.h>

#include "tests/kmod/kernel.h"
#include "tests/kmod/test.h"

/* In place of kmod/compat/compat.h, and of the kernel's own headers. */
#define OTPROF_COMPAT_H
#define PAGE_SIZE	4096ul
#define PAGE_MASK	(~(PAGE_SIZE - 1))
#define OTPROF_USER_END 0x7ffffffff000ul
#define __user
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
static unsigned long otprof_compat_copy_user(void *to, const void *from, unsigned long n);
#include "kmod/ustack.c"

#define PAGES 8
#define BYTES (PAGES * PAGE_SIZE)
#define BLOCK 64

/* The user's memory, at an address that need not exist. */
#define BASE 0x7ff000000000ul
static u8 memory[BYTES];
static bool there[PAGES];
static bool reads_ahead;
static unsigned int copies;

static unsigned long readable(unsigned long at)
{
	unsigned long end = at;

	while (end < BYTES && there[end / PAGE_SIZE])
		end = (end & PAGE_MASK) + PAGE_SIZE;
	return end - at;
}

static unsigned long otprof_compat_copy_user(void *to, const void *from, unsigned long n)
{
	unsigned long at = (unsigned long)from - BASE, got;

	copies++;
	if ((unsigned long)from < BASE || at >= BYTES)
		return n;
	got = readable(at);
	if (got >= n)
		got = n;
	else if (reads_ahead && n >= 2 * BLOCK)
		got = got < BLOCK ? 0 : got - BLOCK / 4 * 3;
	memcpy(to, memory + at, got);
	return n - got;
}

static void pages_set(unsigned int bits)
{
	for (unsigned int i = 0; i < PAGES; i++)
		there[i] = bits >> i & 1;
	for (unsigned long i = 0; i < BYTES; i++)
		memory[i] = (u8)(i * 7 + i / PAGE_SIZE + 1) | 1; /* never 0 */
}

/* What was there arrived, what was not is zero, and the end is that of the last page that was there. */
static bool copy_is_right(unsigned long at, u32 want)
{
	static u8 to[BYTES];
	bool holes = false, gap = false, expected = false;
	u32 end = 0, got;

	memset(to, 0xee, sizeof(to));
	got = otprof_ustack_copy(to, want, BASE + at, &holes);
	for (u32 i = 0; i < want; i++) {
		bool is = at + i < BYTES && there[(at + i) / PAGE_SIZE];

		CHECK(to[i] == (is ? memory[at + i] : 0));
		expected |= is && gap;
		gap |= !is;
		end = is ? i + 1 : end;
	}
	CHECK(got == end && holes == expected);
	CHECK(want == sizeof(to) || to[want] == 0xee);
	return true;
}

static bool every_copy_is_right(unsigned int bits)
{
	pages_set(bits);
	for (unsigned long at = 0; at < 2 * PAGE_SIZE; at += 8)
		for (u32 want = 512; at + want <= BYTES; want *= 2)
			CHECK(copy_is_right(at, want));
	return true;
}

static bool all_that_is_there_arrives(void)
{
	CHECK(every_copy_is_right(0xff));
	CHECK(every_copy_is_right(0));
	return true;
}

static bool short_copy_ends_with_the_last_byte(void)
{
	for (unsigned int pages = 1; pages < PAGES; pages++)
		CHECK(every_copy_is_right((1u << pages) - 1));
	return true;
}

static bool pages_that_are_missing_are_zeroes(void)
{
	CHECK(every_copy_is_right(0xfd) && every_copy_is_right(0xfe) && every_copy_is_right(0x55));
	CHECK(every_copy_is_right(0xaa) && every_copy_is_right(0x99) && every_copy_is_right(0x6d));
	return true;
}

/* Each one is a fault, or a step over what is there. */
static bool copies_are_bounded_by_the_pages(void)
{
	for (unsigned int bits = 0; bits < 1u << PAGES; bits++) {
		pages_set(bits);
		copies = 0;
		CHECK(copy_is_right(PAGE_SIZE / 2 + 8, 7 * PAGE_SIZE));
		CHECK(copies <= 2 * PAGES + 1);
	}
	pages_set(0xff);
	copies = 0;
	CHECK(copy_is_right(8, 7 * PAGE_SIZE) && copies == 1);
	return true;
}

static bool word_at_the_end_is_there(void)
{
	pages_set(1);
	CHECK(otprof_ustack_there(BASE + PAGE_SIZE - 8) && !otprof_ustack_there(BASE + PAGE_SIZE));
	CHECK(!otprof_ustack_there(~0ULL - 7));
	return true;
}

static bool word_that_is_missing_is_zero(void)
{
	u64 word;

	pages_set(1);
	memcpy(&word, memory + 16, sizeof(word));
	CHECK(otprof_ustack_word(BASE + 16) == word);
	CHECK(!otprof_ustack_word(BASE + PAGE_SIZE) && !otprof_ustack_word(0) && !otprof_ustack_word(~0ULL - 7));
	return true;
}

static const struct test tests[] = {
	{"all that is there arrives", all_that_is_there_arrives},
	{"short copy ends with the last byte that is there", short_copy_ends_with_the_last_byte},
	{"pages that are missing are zeroes", pages_that_are_missing_are_zeroes},
	{"copies are bounded by the pages", copies_are_bounded_by_the_pages},
	{"the word at the end of a page is there", word_at_the_end_is_there},
	{"a word that is missing is zero", word_that_is_missing_is_zero},
};

int main(void)
{
	int failed = 0;

	for (int ahead = 0; ahead < 2; ahead++) {
		reads_ahead = ahead;
		failed += test_run(ahead ? "copy where it reads ahead" : "copy", tests, sizeof(tests) / sizeof(*tests));
	}
	return failed != 0;
}
