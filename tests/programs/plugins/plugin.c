// SPDX-License-Identifier: Apache-2.0
/* A library that is loaded, called and unloaded; NAME is its one function. PAD moves it within the file. */
#include <time.h>


void NAME(int ms);
void pad(void);

#ifdef PAD
void pad(void)
{
	for (volatile int i = 0; i < 3; i++)
		__asm__ volatile("nop; nop; nop; nop" ::: "memory");
}
#endif

void NAME(int ms)
{
	struct timespec t;
	double end;
	volatile unsigned long sink = 0;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (double)t.tv_sec + (double)t.tv_nsec / 1e9 + ms / 1e3;
	do {
		for (int i = 0; i < 50000; i++)
			sink += (unsigned long)i;
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < end);
}
