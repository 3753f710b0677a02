/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends its CPU time in the kernel, below user frames that it knows:
 * read of /dev/urandom in io_read, called by io_loop, called by main.
 *   kernelio SECONDS
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define noclone __attribute__((noinline, noipa))

static char data[65536];

noclone static ssize_t io_read(int fd)
{
	ssize_t n = read(fd, data, sizeof(data));

	__asm__ volatile("" ::: "memory");
	return n;
}

noclone static int io_loop(int fd, double seconds)
{
	struct timespec ts;

	do {
		if (io_read(fd) < 0)
			return 1;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	} while ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9 < seconds);
	return 0;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	int r = fd < 0 || io_loop(fd, argc > 1 ? atof(argv[1]) : 1);

	__asm__ volatile("" ::: "memory");
	return r;
}
