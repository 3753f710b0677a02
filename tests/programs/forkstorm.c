/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks and execs as many children a second as asked for, for so many
 * seconds, and prints how many it made. A child execs this program again,
 * which returns at once; with -n it only forks.
 *   forkstorm [-n] RATE SECONDS
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IN_FLIGHT_MAX 64

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void spawn(int exec_too)
{
	pid_t pid = exec_too ? vfork() : fork();

	if (pid < 0)
		return;
	if (pid == 0) {
		if (exec_too)
			execl("/proc/self/exe", "forkstorm-child", "--child", (char *)NULL);
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	int exec_too = 1, living = 0;
	uint64_t made = 0, wanted;
	double rate, seconds, start;

	if (argc > 1 && strcmp(argv[1], "--child") == 0)
		return 0;
	if (argc > 1 && strcmp(argv[1], "-n") == 0) {
		exec_too = 0;
		argc--;
		argv++;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: forkstorm [-n] RATE SECONDS\n");
		return 2;
	}
	rate = atof(argv[1]);
	seconds = atof(argv[2]);
	wanted = (uint64_t)(rate * seconds);
	start = now();
	while (made < wanted && now() - start < 2 * seconds) {
		if (now() - start < (double)made / rate) {
			usleep(200);
			continue;
		}
		spawn(exec_too);
		made++;
		living++;
		while (living > 0 && waitpid(-1, NULL, living < IN_FLIGHT_MAX ? WNOHANG : 0) > 0)
			living--;
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("{\"made\": %llu, \"seconds\": %.3f}\n", (unsigned long long)made, now() - start);
	return 0;
}
