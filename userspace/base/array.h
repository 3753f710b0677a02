/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for one more in an array that grows by doubling: pointer, count and
 * capacity are the caller's own fields.
 * Called by all of userspace; bounds are the caller's. -ENOMEM changes nothing.
 */
#ifndef OTP_BASE_ARRAY_H
#define OTP_BASE_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_FIRST 32

/* array: address of the pointer. */
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

#endif
