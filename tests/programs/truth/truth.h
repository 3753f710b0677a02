/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that say in their source what a stack of theirs looks like:
 *   truth: NAME   a function begins; it ends at the brace below its first column
 *   burn          code of its own on this line
 *   calls NAME    on this line it calls NAME, or NAME is inlined; where no function of that
 *                 name is marked, it is a library's
 * From these marks truth.py makes what every sample must be one of.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif
#define INLINE static inline __attribute__((always_inline))

/* Rounds of a loop: some milliseconds. */
#define ROUNDS 2000000u

uint64_t plain(uint64_t x, unsigned n);
uint64_t nested(uint64_t x, unsigned n);
uint64_t visit(uint64_t x, unsigned n);

INLINE uint64_t scramble(uint64_t x) // truth: scramble
{
	x ^= x << 13; // burn
	x ^= x >> 7;  // burn
	x ^= x << 17; // burn
	return x;     // burn
}

INLINE uint64_t twice(uint64_t x) // truth: twice
{
	x = scramble(x);    // calls scramble
	x += 3;	            // burn
	return scramble(x); // calls scramble
}

#endif
