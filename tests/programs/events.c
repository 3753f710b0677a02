// SPDX-License-Identifier: Apache-2.0
/*
 * A program that knows how many events it makes, and where: page faults and
 * context switches, each in two functions of a known ratio.
 *
 *   events faults|switches COUNT [SPIN_US]
 *
 * COUNT events in few(), three times as many in many(), with so many
 * microseconds of work before each. Ends by printing what the kernel itself
 * counted for the two: "few N many M".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul

static volatile char sink;
static long spin_ns;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(void)
{
	if (spin_ns)
		for (long end = now_ns() + spin_ns; now_ns() < end;)
			;
}

/* A page that nobody has touched is one fault. */
__attribute__((noinline)) static void touch(char *at, unsigned long pages)
{
	for (unsigned long i = 0; i < pages; i++) {
		spin();
		at[i * PAGE] = 1;
	}
	sink = at[0];
}

/* A sleep is one switch. */
__attribute__((noinline)) static void wait_often(unsigned long times)
{
	const struct timespec t = {.tv_nsec = 1000};

	for (unsigned long i = 0; i < times; i++) {
		spin();
		nanosleep(&t, NULL);
	}
	sink = 0;
}

static long counted(int faults)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return faults ? u.ru_minflt + u.ru_majflt : u.ru_nvcsw + u.ru_nivcsw;
}

__attribute__((noinline)) static void few(char *at, unsigned long count)
{
	if (at)
		touch(at, count);
	else
		wait_often(count);
	sink = 1;
}

__attribute__((noinline)) static void many(char *at, unsigned long count)
{
	if (at)
		touch(at, 3 * count);
	else
		wait_often(3 * count);
	sink = 2;
}

/* Small pages only: a huge one is touched once. */
static char *pages(unsigned long count)
{
	char *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	madvise(at, count * PAGE, MADV_NOHUGEPAGE);
	return at;
}

int main(int argc, char **argv)
{
	int faults = argc > 1 && strcmp(argv[1], "faults") == 0;
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	char *at = faults ? pages(4 * count) : NULL;
	long start, between, end;

	spin_ns = argc > 3 ? strtol(argv[3], NULL, 10) * 1000 : 0;
	start = counted(faults);
	few(at, count);
	between = counted(faults);
	many(at ? at + count * PAGE : NULL, count);
	end = counted(faults);
	printf("few %ld many %ld\n", between - start, end - between);
	return 0;
}
