// SPDX-License-Identifier: Apache-2.0
/*
 * stacks MODE SECONDS [PLUGIN...]: stays busy at the end of a call chain that
 * is hard to follow. The functions of a chain are named after its mode; the
 * test knows which callers each burn_MODE must have.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#ifdef __GLIBC__ /* musl has no contexts */
#include <ucontext.h>
#endif
#include <unistd.h>

#define FN __attribute__((noinline, noclone))
#define KEEP() __asm__ volatile("" ::: "memory")

static double deadline;
static volatile uint64_t sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Inlined into every burner, so that the burner is the leaf but for the clock. */
static inline __attribute__((always_inline)) void burn_ms(unsigned ms)
{
	double end = now() + ms / 1e3;

	do
		for (int i = 0; i < 50000; i++)
			sink += (uint64_t)i * sink + 1;
	while (now() < end);
}

/* --- a signal handler on a stack of its own, from deep in another --- */

FN void burn_altstack(void)
{
	burn_ms(30);
	KEEP();
}

static void on_signal(int sig)
{
	burn_altstack();
	KEEP();
}

static void use_altstack(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t s = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&s, NULL);
	sigaction(SIGUSR1, &sa, NULL);
}

FN void interrupted_altstack(int depth)
{
	char room[2000];

	memset(room, depth, sizeof(room));
	if (depth)
		interrupted_altstack(depth - 1);
	else
		while (now() < deadline)
			raise(SIGUSR1);
	sink += (uint64_t)room[depth];
	KEEP();
}

static void mode_altstack(void)
{
	use_altstack();
	interrupted_altstack(5);
}

static void *thread_altstack(void *arg)
{
	use_altstack();
	interrupted_altstack(5);
	return NULL;
}

static void in_thread(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, NULL))
		exit(1);
	pthread_join(t, NULL);
}

static void mode_threadalt(void)
{
	in_thread(thread_altstack);
}

/* --- a coroutine ends at its own root --- */

#ifdef __GLIBC__
static ucontext_t main_context, coroutine;

FN void burn_coroutine(void)
{
	burn_ms(30);
	KEEP();
}

static void coroutine_body(void)
{
	for (;;) {
		burn_coroutine();
		swapcontext(&coroutine, &main_context);
	}
}

static void mode_coroutine(void)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_size = 65536;
	coroutine.uc_stack.ss_sp = malloc(coroutine.uc_stack.ss_size);
	makecontext(&coroutine, coroutine_body, 0);
	while (now() < deadline)
		swapcontext(&main_context, &coroutine);
}
#endif

/* --- called back by the C library --- */

FN int burn_qsort(const void *a, const void *b)
{
	burn_ms(5);
	KEEP();
	return *(const int *)a - *(const int *)b;
}

FN void mode_qsort(void)
{
	while (now() < deadline) {
		int v[8] = {5, 2, 8, 1, 9, 3, 7, 4};

		qsort(v, 8, sizeof(int), burn_qsort);
		sink += (uint64_t)v[0];
	}
}

/* --- deep, and large --- */

FN void burn_recursion(void)
{
	burn_ms(30);
	KEEP();
}

FN void recurse(int depth)
{
	char room[176];

	memset(room, depth, sizeof(room));
	if (depth)
		recurse(depth - 1);
	else
		while (now() < deadline)
			burn_recursion();
	sink += (uint64_t)room[depth & 127];
	KEEP();
}

FN void mode_recursion(void)
{
	recurse(1999);
	KEEP();
}

FN void burn_hugeframe(void)
{
	burn_ms(30);
	KEEP();
}

FN void mode_hugeframe(void)
{
	char room[700 << 10];

	memset(room, 1, sizeof(room));
	while (now() < deadline)
		burn_hugeframe();
	sink += (uint64_t)room[deadline > 0];
	KEEP();
}

FN void burn_successors(void)
{
	burn_ms(20);
	KEEP();
}

FN void successors_room(void)
{
	char room[700 << 10];

	memset(room, 1, sizeof(room));
	burn_successors();
	sink += (uint64_t)room[deadline > 0];
	KEEP();
}

static const char *self;

/* One program after the other in this process: what is learned of one is of use to the next by its name only. */
FN void mode_successors(void)
{
	char below[30 << 10], left[32];

	memset(below, 1, sizeof(below));
	successors_room();
	sink += (uint64_t)below[deadline > 0];
	snprintf(left, sizeof(left), "%.3f", deadline - now());
	if (left[0] != '-')
		execl(self, "stacks", "successors", left, NULL);
}

FN void burn_hole(void)
{
	burn_ms(30);
	KEEP();
}

/* Most of the array's pages are never touched. */
FN void mode_hole(void)
{
	volatile char room[56 << 10];

	room[0] = 1;
	while (now() < deadline)
		burn_hole();
	sink += (uint64_t)room[0];
	KEEP();
}

/* --- threads that come and go --- */

FN void burn_threads(void)
{
	burn_ms(15);
	KEEP();
}

static void *short_thread(void *arg)
{
	burn_threads();
	KEEP();
	return NULL;
}

static void mode_threads(void)
{
	while (now() < deadline)
		in_thread(short_thread);
}

/* --- a child on its parent's stack --- */

FN void burn_vfork(void)
{
	burn_ms(15);
	KEEP();
}

FN void mode_vfork(void)
{
	while (now() < deadline) {
		pid_t pid = vfork();

		if (!pid) {
			burn_vfork();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* --- assembly without call frame information --- */

#ifdef __x86_64__
void asm_caller(void (*fn)(void));
__asm__(".pushsection .text\n"
	".globl asm_caller\n.type asm_caller,@function\n"
	"asm_caller:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n"
	"	mov %rsp,%rbx\n"
	"	sub $0x248,%rsp\n	and $-64,%rsp\n"
	"	mov %rbx,0x100(%rsp)\n"
	"	xor %ebp,%ebp\n	mov $7,%r12d\n"
	"	call *%rdi\n"
	"1:	dec %r12d\n	jne 1b\n"
	"	mov 0x100(%rsp),%rsp\n"
	"	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".size asm_caller,.-asm_caller\n"
	".popsection\n");

FN void burn_assembly(void)
{
	burn_ms(30);
	KEEP();
}

FN void mode_assembly(void)
{
	while (now() < deadline)
		asm_caller(burn_assembly);
}
#endif

/* --- one library after the other at the same address --- */

static char **plugins;

FN void mode_plugins(void)
{
	for (int i = 0; now() < deadline; i++) {
		void *h = dlopen(plugins[i & 1], RTLD_NOW);
		void (*burn)(int) = h ? (void (*)(int))dlsym(h, i & 1 ? "burn_plugin_b" : "burn_plugin_a") : NULL;

		if (!burn) {
			fprintf(stderr, "stacks: %s\n", dlerror());
			exit(1);
		}
		burn(200);
		dlclose(h);
	}
}

static const struct { const char *name; void (*run)(void); } modes[] = {
	{"altstack", mode_altstack}, {"threadalt", mode_threadalt},
#ifdef __GLIBC__
	{"coroutine", mode_coroutine},
#endif
	{"qsort", mode_qsort}, {"recursion", mode_recursion}, {"hugeframe", mode_hugeframe}, {"hole", mode_hole},
	{"successors", mode_successors},
	{"threads", mode_threads}, {"vfork", mode_vfork}, {"plugins", mode_plugins},
#ifdef __x86_64__
	{"assembly", mode_assembly},
#endif
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: stacks MODE SECONDS [PLUGIN PLUGIN]\n");
		return 2;
	}
	deadline = now() + atof(argv[2]);
	plugins = argv + 3;
	self = realpath("/proc/self/exe", NULL);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, argv[1])) {
			modes[i].run();
			return 0;
		}
	fprintf(stderr, "stacks: no mode %s\n", argv[1]);
	return 2;
}
