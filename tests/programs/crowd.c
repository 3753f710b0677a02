/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd PROCESSES THREADS SECONDS: so many processes with THREADS threads in
 * all, each of which works a little, at a depth of its own, and sleeps. It
 * prints "ready" when all run.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define noclone __attribute__((noinline, noipa))
#define STACK_BYTES 32768
#define NAP_US	    200 /* for each thread that there is: all together keep about an eighth of a CPU busy */

static volatile uint64_t sink;
static unsigned int nap_us;
static int started[2];

noclone static void crowd_work(void)
{
	for (int i = 0; i < 15000; i++)
		sink = sink * 2862933555777941757u + 3037000493u;
}

noclone static void crowd_deep(unsigned int depth)
{
	if (depth)
		crowd_deep(depth - 1);
	else
		crowd_work();
	__asm__ volatile("" ::: "memory");
}

static void *member(void *arg)
{
	unsigned int depth = (unsigned int)(uintptr_t)arg % 60, seed = (unsigned int)(uintptr_t)arg;

	if (write(started[1], "x", 1) != 1)
		return NULL;
	for (;;) {
		unsigned int us = nap_us / 2 + (unsigned int)rand_r(&seed) % nap_us;
		struct timespec nap = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

		nanosleep(&nap, NULL);
		crowd_deep(depth);
	}
}

static void process(unsigned int first, unsigned int threads)
{
	pthread_attr_t attr;
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (unsigned int i = 1; i < threads; i++)
		if (pthread_create(&t, &attr, member, (void *)(uintptr_t)(first + i)))
			_exit(1);
	member((void *)(uintptr_t)first);
}

int main(int argc, char **argv)
{
	unsigned int processes = argc > 1 ? (unsigned int)atoi(argv[1]) : 10;
	unsigned int threads = argc > 2 ? (unsigned int)atoi(argv[2]) : 100, i;
	unsigned int each = threads / (processes ? processes : 1);
	char byte;

	if (!each || pipe(started) < 0)
		return 2;
	nap_us = threads * NAP_US;
	setpriority(PRIO_PROCESS, 0, 19); /* a thousand that want to run must not starve the rest of the host */
	for (i = 0; i < processes; i++)
		if (fork() == 0)
			process(i * each, each);
	for (i = 0; i < processes * each; i++)
		if (read(started[0], &byte, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	sleep(argc > 3 ? (unsigned int)atoi(argv[3]) : 60);
	return 0;
}
