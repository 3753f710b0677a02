/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows its own CPU shares: three functions at about 50, 30 and 20 %, each
 * called below 20 levels of recursion. It measures the CPU time of every call
 * by its thread clock and prints, as JSON, the nanoseconds of each function
 * and of the whole run: truth for the shares, the count and the stacks.
 *   shares SECONDS
 * Stacks are, from the leaf: work_X, descend x 20, run_rounds, main, then what
 * the C library puts above main.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 20
#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Three different bodies, so that no linker folds them into one. */
noclone static void work_half(uint64_t n)
{
	uint64_t x = sink | 1;

	while (n--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

noclone static void work_third(uint64_t n)
{
	uint64_t x = sink | 1;

	while (n--)
		x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + 3;
	sink = x;
}

noclone static void work_fifth(uint64_t n)
{
	uint64_t x = sink | 1;

	while (n--)
		x = (x << 7 | x >> 57) + (x ^ 0x9e3779b97f4a7c15u) * 5;
	sink = x;
}

typedef void work_fn(uint64_t n);

/* The barrier after the call keeps it from becoming a jump: every level is a frame. */
noclone static void descend(int depth, work_fn *work, uint64_t n)
{
	if (depth > 1)
		descend(depth - 1, work, n);
	else
		work(n);
	__asm__ volatile("" ::: "memory");
}

static struct {
	const char *name;
	work_fn *work;
	unsigned share;
	uint64_t per_ms; /* loops in a millisecond, as measured */
	uint64_t ns;
} parts[] = {
	{ "work_half", work_half, 50, 0, 0 },
	{ "work_third", work_third, 30, 0, 0 },
	{ "work_fifth", work_fifth, 20, 0, 0 },
};

#define NR_PARTS (sizeof(parts) / sizeof(parts[0]))

noclone static uint64_t timed(size_t i, uint64_t loops)
{
	uint64_t start = cpu_ns();

	descend(DEPTH, parts[i].work, loops);
	return cpu_ns() - start;
}

/* Rounds of 10 ms of CPU each, so that every part of the run has the same mix. */
noclone static void run_rounds(uint64_t total_ns)
{
	uint64_t start = cpu_ns();
	size_t i;

	for (i = 0; i < NR_PARTS; i++) {
		uint64_t ns = timed(i, 2000000);

		parts[i].per_ms = 2000000u * 1000000ull / ns;
		parts[i].ns += ns;
	}
	while (cpu_ns() - start < total_ns)
		for (i = 0; i < NR_PARTS; i++)
			parts[i].ns += timed(i, parts[i].per_ms * parts[i].share / 10);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct timespec total;

	run_rounds((uint64_t)(seconds * 1e9));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &total);
	printf("{\"pid\": %d, \"depth\": %d, \"total_ns\": %llu", getpid(), DEPTH,
	       (unsigned long long)total.tv_sec * 1000000000u + (unsigned long long)total.tv_nsec);
	for (size_t i = 0; i < NR_PARTS; i++)
		printf(", \"%s\": %llu", parts[i].name, (unsigned long long)parts[i].ns);
	printf("}\n");
	return 0;
}
