/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses CPU at a known stack depth: dive x LEVELS, each with a frame of about
 * 64 bytes plus PAD, below main. For stacks deeper than the first copy.
 *   depth LEVELS SECONDS [PAD: 0, 200 or 2000]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;
static double seconds;

noclone static void bottom(void)
{
	struct timespec ts;
	uint64_t i;

	do {
		for (i = 0; i < 100000; i++)
			sink = sink * 2862933555777941757u + 3037000493u;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	} while ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9 < seconds);
}

#define DIVE(name, bytes)                                      \
	noclone static void name(unsigned level)               \
	{                                                      \
		volatile char pad[bytes];                      \
								\
		pad[level % sizeof(pad)] = (char)level;        \
		if (level > 1)                                 \
			name(level - 1);                       \
		else                                           \
			bottom();                              \
		sink += (uint64_t)pad[level % sizeof(pad)];    \
	}

DIVE(dive, 16)
DIVE(dive_200, 200)
DIVE(dive_2000, 2000)

int main(int argc, char **argv)
{
	unsigned levels = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
	int pad = argc > 3 ? atoi(argv[3]) : 0;

	seconds = argc > 2 ? atof(argv[2]) : 1;
	if (pad >= 2000)
		dive_2000(levels);
	else if (pad >= 200)
		dive_200(levels);
	else
		dive(levels);
	printf("{\"levels\": %u}\n", levels);
	return 0;
}
