/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses 50 ms of CPU (or the milliseconds given) in short_work and is gone.
 * With a path as second argument it unlinks that first: its own binary, say.
 * Stacks are short_work, short_middle, main and the C library's entry.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;

noclone static int short_work(uint64_t ns)
{
	struct timespec ts;
	uint64_t i;

	do {
		for (i = 0; i < 20000; i++)
			sink = sink * 2862933555777941757u + 3037000493u;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	} while ((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec < ns);
	return (int)(sink & 1);
}

noclone static int short_middle(uint64_t ns)
{
	int r = short_work(ns);

	__asm__ volatile("" ::: "memory");
	return r;
}

int main(int argc, char **argv)
{
	uint64_t ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 50;
	int r;

	if (argc > 2)
		unlink(argv[2]);
	r = short_middle(ms * 1000000u);
	__asm__ volatile("" ::: "memory");
	return r < 0;
}
