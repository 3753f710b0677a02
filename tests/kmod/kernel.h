/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module's pure files (ring, schedule) need of the kernel, for
 * userspace: the same orders of memory by the compiler's own atomics, so that
 * the thread sanitizer understands them. Included by their headers where there
 * is no kernel.
 */
#ifndef OTP_TESTS_KMOD_KERNEL_H
#define OTP_TESTS_KMOD_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define ____cacheline_aligned_in_smp __attribute__((aligned(64)))

#define READ_ONCE(x)               __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define smp_load_acquire(p)        __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define smp_store_release(p, v)    __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define xchg(p, v)                 __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

#define max(a, b) ((a) > (b) ? (a) : (b))

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 cmpxchg(u64 *at, u64 old, u64 new)
{
	__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

#endif
