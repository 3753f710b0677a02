// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/ustack.h"

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"

/* Returns the bytes copied, up to the first unreadable one. */
static u32 ustack_copy(void *to, u32 want, u64 addr)
{
	if (addr >= OTPROF_USER_END)
		return 0;
	if (want > OTPROF_USER_END - addr)
		want = OTPROF_USER_END - addr;
	return (want - otprof_compat_copy_user(to, (const void __user *)(unsigned long)addr, want)) & ~7U;
}

static u32 page_left(u64 addr, u32 most)
{
	return min_t(u64, most, PAGE_SIZE - (addr & ~PAGE_MASK));
}

/*
 * Copies up to the last readable byte. A copy that reads ahead of its stores
 * (arm64's, in blocks of 64 bytes) drops the bytes read when the next page
 * faults; a second copy of the rest of the page alone does not fault.
 */
static u32 ustack_copy_range(void *to, u32 want, u64 addr)
{
	u32 got = ustack_copy(to, want, addr);

	if (got < want && ((addr + got) & ~PAGE_MASK))
		got += ustack_copy(to + got, page_left(addr + got, want - got), addr + got);
	return got;
}

/* One step in most cases; at most two for each page. */
u32 otprof_ustack_copy(void *to, u32 want, u64 addr, bool *ret_holes)
{
	u32 at = 0, end = 0;

	while (at < want) {
		u32 got = ustack_copy_range(to + at, want - at, addr + at);

		if (got && end != at)
			*ret_holes = true;
		if (got)
			end = at + got;
		at += got;
		got = page_left(addr + at, want - at);
		memset(to + at, 0, got);
		at += got;
	}
	return end;
}

bool otprof_ustack_read(void *to, u32 len, u64 addr)
{
	return ustack_copy(to, len, addr) == len;
}

bool otprof_ustack_there(u64 addr)
{
	u64 word;

	return otprof_ustack_read(&word, sizeof(word), addr);
}

u64 otprof_ustack_word(u64 addr)
{
	u64 word;

	return otprof_ustack_read(&word, sizeof(word), addr) ? word : 0;
}
