// SPDX-License-Identifier: Apache-2.0
/* A C program that calls Go, linked with modes.go as an archive or a library. Usage: host SECONDS. */
#include <stdlib.h>

void Enter(int seconds);

static __attribute__((noinline)) void host_descend(int depth, int seconds)
{
	if (depth == 1)
		Enter(seconds);
	else
		host_descend(depth - 1, seconds);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	host_descend(5, argc > 1 ? atoi(argv[1]) : 1);
	return 0;
}
