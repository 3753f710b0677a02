/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes room in an array that grows by doubling. Pointer, count and capacity
 * are fields of the caller, who owns the array and bounds it.
 * Called by all of userspace. -ENOMEM changes nothing.
 */
#ifndef OTP_BASE_ARRAY_H
#define OTP_BASE_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST 32

/* Room for one more element. array: address of the pointer. */
static inline int array_reserve(void *array, uint32_t count, uint32_t *cap, size_t size)
{
	uint32_t more = *cap ? *cap * 2 : ARRAY_FIRST;
	void *p;

	if (count < *cap)
		return 0;
	if (more <= *cap)
		return -ENOMEM;
	p = reallocarray(*(void **)array, more, size);
	if (!p)
		return -ENOMEM;
	*(void **)array = p;
	*cap = more;
	return 0;
}

/* Room for element n; elements that did not exist are zero. */
static inline int array_reach(void *array, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t had = *cap, more = had ? had : ARRAY_FIRST;
	void *p;

	if (n < had)
		return 0;
	while (more <= n)
		if (__builtin_mul_overflow(more, 2u, &more))
			return -ENOMEM;
	p = reallocarray(*(void **)array, more, size);
	if (!p)
		return -ENOMEM;
	memset((uint8_t *)p + had * size, 0, (more - had) * size);
	*(void **)array = p;
	*cap = more;
	return 0;
}

#endif
