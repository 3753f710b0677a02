// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t burn_nested(uint64_t x);
uint64_t burn_generic(uint64_t x);

static volatile uint64_t result;
static double took[2];

static double cpu_time(void) // truth: cpu_time
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // calls clock_gettime
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void account(unsigned i, double *since) // truth: account
{
	double now = cpu_time(); // calls cpu_time

	took[i] += now - *since;
	*since = now;
}

int main(int argc, char **argv) // truth: main
{
	double end = argc > 1 ? atof(argv[1]) : 1, since = cpu_time(); // calls cpu_time

	while (since < end) {
		result += burn_nested(result + 1); // calls burn_nested
		account(0, &since); // calls account
		result += burn_generic(result + 1); // calls burn_generic
		account(1, &since); // calls account
	}
	printf("burn_nested %f\nburn_generic %f\n", took[0], took[1]);
	return 0;
}
