/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain over a frame that is larger than any copy, and one most of whose
 * pages are never touched.
 *   deep_arm64
 */
#include <stdint.h>
#include <string.h>

#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;

noclone static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a ^ (b >> 29)) * 0xbf58476d1ce4e5b9u + b;
}

noclone static void leaf(void)
{
	for (unsigned i = 0; i < 1000; i++)
		sink = mix(sink, i);
}

noclone static void sparse(void)
{
	volatile char room[10 << 10];

	room[0] = 1;
	leaf();
	sink += (uint64_t)room[0];
}

noclone static void huge(void)
{
	char room[300 << 10];

	memset(room, 1, sizeof(room));
	for (;;) {
		sparse();
		sink += (uint64_t)room[sink % sizeof(room)];
	}
}

int main(void)
{
	huge();
	return 0;
}
