/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that computes, and a main that waits for it; on the way down a
 * frame with a variable-sized array, which is found by its frame pointer, and
 * one with enough registers saved that they need pairs.
 *   threads_arm64
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;
static volatile unsigned limit = 40;

noclone static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a ^ (b >> 29)) * 0xbf58476d1ce4e5b9u + b;
}

/* Every value lives across every call: x19 to x28 are all saved. */
noclone static uint64_t crowded(uint64_t n)
{
	uint64_t v[10];

	for (unsigned i = 0; i < 10; i++)
		v[i] = mix(n, i);
	for (unsigned i = 0; i < 200; i++) {
		v[0] = mix(v[9], v[1]);
		v[1] = mix(v[0], v[2]) + v[3] + v[4];
		v[5] = mix(v[1], v[6]) + v[7] + v[8];
		v[9] = mix(v[5], v[9]) + v[2];
	}
	return v[0] + v[5] + v[9];
}

noclone static uint64_t sized(unsigned words)
{
	uint64_t *room = __builtin_alloca(words * sizeof(*room));

	memset(room, 1, words * sizeof(*room));
	room[0] = crowded(room[words - 1]);
	return room[0] + room[words - 1];
}

static void *body(void *arg)
{
	while (limit)
		for (unsigned words = 1; words < limit; words++)
			sink += sized(words);
	return arg;
}

int main(void)
{
	pthread_t thread;
	sigset_t all;

	if (pthread_create(&thread, NULL, body, NULL))
		return 1;
	/* What stops the program stops the thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return pthread_join(thread, NULL);
}
