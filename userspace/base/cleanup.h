/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup on scope exit and the few macros that every file needs.
 * Called by all of userspace. Destructors named here accept NULL.
 */
#ifndef OTP_BASE_CLEANUP_H
#define OTP_BASE_CLEANUP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ALIGN_DOWN(n, a) ((n) & ~((__typeof__(n))(a)-1))
#define ALIGN_UP(n, a) (((n) + ((a)-1)) & ~((__typeof__(n))(a)-1))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/* The success line hands the object over: *slot becomes empty. */
#define steal_ptr(slot)                     \
	({                                  \
		__auto_type _p = *(slot);   \
		*(slot) = NULL;             \
		_p;                         \
	})

static inline int steal_fd(int *slot)
{
	int fd = *slot;

	*slot = -1;
	return fd;
}

static inline void freep(void *slot)
{
	free(*(void **)slot);
}

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#endif
