/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works in step with the clock: at each multiple of PERIOD_US on the monotonic
 * clock it uses WORK_US of CPU time, then sleeps until the next multiple. It
 * prints, as JSON, the CPU time that the process has used: truth for the
 * number of its samples.
 *   lockstep SECONDS PERIOD_US WORK_US
 * A sampler whose ticks keep a fixed phase to the clock either hits the work
 * each time or never.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ull

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void work(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns, x = sink | 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

/* A period that passed while the program waited for a CPU is left out: the next work is in step again. */
static void run(uint64_t end_ns, uint64_t period_ns, uint64_t work_ns)
{
	uint64_t next;

	while ((next = (clock_ns(CLOCK_MONOTONIC) / period_ns + 1) * period_ns) < end_ns) {
		sleep_until(next);
		work(work_ns);
	}
}

int main(int argc, char **argv)
{
	uint64_t seconds, period_us, work_us;

	if (argc != 4)
		return 2;
	seconds = strtoull(argv[1], NULL, 0);
	period_us = strtoull(argv[2], NULL, 0);
	work_us = strtoull(argv[3], NULL, 0);
	if (!period_us || work_us >= period_us)
		return 2;
	prctl(PR_SET_TIMERSLACK, 1);
	run(clock_ns(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC, period_us * 1000, work_us * 1000);
	printf("{\"pid\": %d, \"period_us\": %llu, \"cpu_ns\": %llu}\n", getpid(), (unsigned long long)period_us,
	       (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
