// SPDX-License-Identifier: Apache-2.0
#include "truth.h"

NOINLINE uint64_t plain(uint64_t x, unsigned n) // truth: plain
{
	for (unsigned i = 0; i < n; i++) // burn
		x = x * 3 + (x >> 5);    // burn
	return x;
}

NOINLINE uint64_t nested(uint64_t x, unsigned n) // truth: nested
{
	for (unsigned i = 0; i < n; i++) // burn
		x = twice(x);            // calls twice
	return x;
}

/* Called by address only, with a frame of its own. */
NOINLINE uint64_t visit(uint64_t x, unsigned n) // truth: visit
{
	volatile uint64_t kept[64];

	for (unsigned i = 0; i < n; i++) { // burn
		kept[i % 64] = x;          // burn
		x = scramble(x);           // calls scramble
	}
	return x ^ kept[n % 64];
}
