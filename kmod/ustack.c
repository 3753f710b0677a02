// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/ustack.h"

#include <linux/uaccess.h>

#include "kmod/compat/compat.h"

/* Bytes not copied. Both keep what they could read up to the last byte. */
static unsigned long copy(void *to, const void __user *from, unsigned long n)
{
#ifdef OTPROF_HAVE_USER_NMI
	return copy_from_user_nmi(to, from, n);
#else
	unsigned long left;

	pagefault_disable();
	left = __copy_from_user_inatomic(to, from, n);
	pagefault_enable();
	return left;
#endif
}

#ifdef TASK_SIZE_MAX
#define USER_END TASK_SIZE_MAX
#else
#define USER_END TASK_SIZE
#endif

u32 otprof_ustack_copy(void *to, u32 want, u64 addr)
{
	if (addr >= USER_END)
		return 0;
	if (want > USER_END - addr)
		want = USER_END - addr;
	return (want - copy(to, (const void __user *)(unsigned long)addr, want)) & ~7U;
}

u32 otprof_ustack_walk(u64 *to, u64 fp)
{
	u64 pair[2];
	u32 n = 0;

	while (n < OTPROF_WALK_PAIRS && otprof_ustack_copy(pair, sizeof(pair), fp) == sizeof(pair)) {
		to[2 * n] = fp;
		to[2 * n + 1] = pair[1];
		n++;
		if (pair[0] <= fp)
			break;
		fp = pair[0];
	}
	return n * sizeof(pair);
}
