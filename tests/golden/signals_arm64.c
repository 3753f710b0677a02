/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses its CPU inside a signal handler and between signals. It returns from
 * the handler through a trampoline of its own, as musl's programs do: code
 * without tables that is known by its instructions.
 *   signals_arm64
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SA_RESTORER_FLAG 0x04000000
#define noclone __attribute__((noinline, noipa))

static volatile uint64_t sink;

void restorer(void);
__asm__(".text\n.balign 16\nnop\n.global restorer\n.type restorer,%function\n"
	"restorer: mov x8,#139\nsvc #0\n.size restorer,.-restorer\n");

noclone static void inner(uint64_t n)
{
	while (n--)
		sink = sink * 6364136223846793005u + 1442695040888963407u;
}

noclone static void handler(int number)
{
	inner(100000 + (uint64_t)number);
	__asm__ volatile("" ::: "memory");
}

/* A leaf keeps its return address in x30: only the signal frame has it. */
noclone static void leaf(uint64_t n)
{
	uint64_t x = sink;

	while (n--)
		x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u + 3;
	sink = x;
}

noclone static void loop(void)
{
	for (;;)
		leaf(1000000);
}

int main(void)
{
	struct { /* the kernel's, include/linux/signal_types.h */
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {handler, SA_RESTORER_FLAG, restorer, 0};
	struct itimerval every = {{0, 10000}, {0, 10000}};

	if (syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, sizeof(action.mask)) < 0)
		return EXIT_FAILURE;
	setitimer(ITIMER_REAL, &every, NULL);
	loop();
	return 0;
}
