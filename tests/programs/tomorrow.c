/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the marks of a Ruby that nobody knows yet. Uses CPU time for the
 * seconds given, in tomorrow_work.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

const char ruby_version[] = "9.9.9";
static volatile uint64_t sink;

__attribute__((noinline, noipa)) static void tomorrow_work(void)
{
	for (int i = 0; i < 200000; i++)
		sink = sink * 2862933555777941757u + 3037000493u;
}

__attribute__((noinline, noipa)) void ruby_run_node(time_t until)
{
	while (time(NULL) < until)
		tomorrow_work();
}

int main(int argc, char **argv)
{
	ruby_run_node(time(NULL) + (argc > 1 ? atoi(argv[1]) : 10));
	return sink == (uint64_t)(uintptr_t)ruby_version;
}
