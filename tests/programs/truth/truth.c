// SPDX-License-Identifier: Apache-2.0
/* truth SECONDS: four chains of calls for so much CPU time; prints how much each of them took. */
#include "truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double took[4];
static volatile uint64_t result;

static double cpu_time(void) // truth: cpu_time
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // calls clock_gettime
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9; // burn
}

static NOINLINE uint64_t by_pointer(uint64_t (*volatile fn)(uint64_t, unsigned), uint64_t x) // truth: by_pointer
{
	x = fn(x, ROUNDS); // calls visit
	return x * 5;
}

static NOINLINE uint64_t descend(uint64_t x, unsigned depth) // truth: descend
{
	if (depth)
		x = descend(x, depth - 1); // calls descend
	else
		x = plain(x, ROUNDS); // calls plain
	return x >> 1 ^ depth; // a sum would become a loop
}

/* Inlined here and, by another way, in nested(). */
INLINE uint64_t directly(uint64_t x) // truth: directly
{
	for (unsigned i = 0; i < ROUNDS; i++) // burn
		x = scramble(x + 1);          // calls scramble
	return x;
}

static void account(unsigned i, double *since) // truth: account
{
	double now = cpu_time(); // calls cpu_time

	took[i] += now - *since; // burn
	*since = now;            // burn
}

static NOINLINE void once(double *since) // truth: once
{
	result += nested(result, ROUNDS); // calls nested
	account(0, since); // calls account
	result += by_pointer(visit, result); // calls by_pointer
	account(1, since); // calls account
	result += descend(result, 5); // calls descend
	account(2, since); // calls account
	result += directly(result); // calls directly
	account(3, since); // calls account
}

int main(int argc, char **argv) // truth: main
{
	double end = argc > 1 ? atof(argv[1]) : 1, since = cpu_time(); // calls cpu_time

	while (since < end) // burn
		once(&since); // calls once
	printf("nested %f\nby_pointer %f\ndescend %f\ndirectly %f\n", took[0], took[1], took[2], took[3]); // burn
	return 0;
}
