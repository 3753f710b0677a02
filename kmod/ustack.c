// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/ustack.h"

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"

/* Bytes copied: up to the first that is not there. */
static u32 copy(void *to, u32 want, u64 addr)
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
 * To the last byte that is there. A copy that reads ahead of what it stores
 * (arm64's, by blocks of 64 bytes) drops what it has read when the next page is
 * missing; its rest of the page alone does not end in a fault.
 */
static u32 copy_all(void *to, u32 want, u64 addr)
{
	u32 got = copy(to, want, addr);

	if (got < want && ((addr + got) & ~PAGE_MASK))
		got += copy(to + got, page_left(addr + got, want - got), addr + got);
	return got;
}

/* One step in most cases; else two for every page at the most. */
u32 otprof_ustack_copy(void *to, u32 want, u64 addr, bool *ret_holes)
{
	u32 at = 0, end = 0;

	while (at < want) {
		u32 got = copy_all(to + at, want - at, addr + at);

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

bool otprof_ustack_there(u64 addr)
{
	u64 word;

	return copy(&word, sizeof(word), addr) == sizeof(word);
}
