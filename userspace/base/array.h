/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by doubling, whose pointer, count and capacity are fields
 * of the caller, who owns and bounds them; and the search in a sorted one.
 * Called by all of userspace. -ENOMEM changes nothing.
 */
#ifndef OTP_BASE_ARRAY_H
#define OTP_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
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

/*
 * Binary search: how many of the elements 0 to count - 1 (uint32_t) have what holds, an expression, says of the element i.
 * Those that have it precede those that have not. It is evaluated again and again, and contains no such search itself.
 */
#define ARRAY_COUNT_WHILE(count, i, holds)                            \
	({                                                            \
		uint32_t low_ = 0, high_ = (count);                   \
								      \
		while (low_ < high_) {                                \
			const uint32_t i = low_ + (high_ - low_) / 2; \
								      \
			if (holds)                                    \
				low_ = i + 1;                         \
			else                                          \
				high_ = i;                            \
		}                                                     \
		low_;                                                 \
	})

/*
 * The number of elements whose uint64_t at offset is at most key.
 * array: sorted by it; elements of size bytes, aligned for it.
 */
static inline uint32_t array_count_up_to(const void *array, uint32_t count, size_t size, size_t offset, uint64_t key)
{
	const uint8_t *at = array;

	return ARRAY_COUNT_WHILE(count, i, *(const uint64_t *)(const void *)(at + i * size + offset) <= key);
}

#endif
