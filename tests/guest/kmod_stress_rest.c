// SPDX-License-Identifier: Apache-2.0
/*
 * Samplers that together ask for all of a CPU: as many as the module admits,
 * each at its highest rate, each copying all of a deep stack. Their ticks run
 * with interrupts off, and the rest after each of them is meant to leave most
 * of the CPU to others.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kmod_stress.h"

#define SAMPLERS 4 /* sessions_max, unless the module was loaded otherwise */
#define CPU	 0
#define DEPTH	 (640u << 10)
/*
 * The rest is four times as long as the tick: a fifth of the CPU goes to ticks.
 * What a host takes from a guest during a tick counts here as the tick's, but
 * not in the rest, so there is room for that, and another try. Rests of each
 * sampler's own would give ticks half of the CPU and more in every try.
 */
#define SHARE_MAX 0.3
#define TRIES	  4

static void rest_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static __attribute__((noinline)) void spin_deep(void)
{
	volatile uint8_t stack[DEPTH];

	memset((void *)stack, 1, sizeof(stack));
	for (;;)
		stack[0]++;
}

static pid_t spin_deep_start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		rest_pin(CPU);
		spin_deep();
	}
	return pid;
}

static struct otprof_times times_of(const struct owner *o)
{
	struct otprof_times t = {0};

	call(o->dev, OTPROF_IOC_TIMES, &t);
	return t;
}

static int open_greedy(struct owner *o)
{
	struct otprof_config c = config_good(OTPROF_RATE_MAX, 1 << 23);

	memset(c.cpus, 0, sizeof(c.cpus));
	c.cpus[CPU / 64] = 1ULL << CPU % 64;
	c.defaults.stack_bytes = OTP_STACK_LIMIT;
	c.defaults.base_bytes = OTP_BASE_LIMIT;
	c.defaults.stack_budget = OTP_BUDGET_LIMIT;
	c.defaults.wake_bytes = 0;
	return owner_open(o, &c);
}

/* Rings are emptied unread, so that none is ever full. */
static uint64_t run_for(struct owner o[SAMPLERS], unsigned long ms)
{
	uint64_t began = now_ms();

	while (now_ms() < began + ms) {
		for (int i = 0; i < SAMPLERS; i++)
			owner_release(&o[i], owner_seen(&o[i]));
		sleep_us(1000);
	}
	return now_ms() - began;
}

struct window {
	uint64_t ns, run_ns, runs, fewest; /* of its time, ticks: all, and those of the sampler that had fewest */
};

static struct window measure(struct owner o[SAMPLERS], unsigned long ms)
{
	struct otprof_times before[SAMPLERS];
	struct window w = {.fewest = ~0ULL};

	for (int i = 0; i < SAMPLERS; i++)
		before[i] = times_of(&o[i]);
	w.ns = run_for(o, ms) * 1000000;
	for (int i = 0; i < SAMPLERS; i++) {
		struct otprof_times after = times_of(&o[i]);
		uint64_t n = after.runs - before[i].runs;

		w.run_ns += after.run_ns - before[i].run_ns;
		w.runs += n;
		w.fewest = n < w.fewest ? n : w.fewest;
	}
	return w;
}

static double share_of(const struct window *w)
{
	return (double)w->run_ns / (double)w->ns;
}

/* What they take of the time, and that none waits for the others for ever. */
static bool greedy(struct owner o[SAMPLERS], unsigned long ms)
{
	struct window w;
	bool good;

	run_for(o, ms / 4); /* until each knows how long its ticks take */
	w = measure(o, ms);
	for (int i = 1; i < TRIES && share_of(&w) >= SHARE_MAX; i++)
		w = measure(o, ms);
	good = fact(share_of(&w) < SHARE_MAX, "%d samplers of one CPU take %.1f %% of it, in %llu ticks of %.1f us", SAMPLERS,
		    100 * share_of(&w), (unsigned long long)w.runs, (double)w.run_ns / 1e3 / (double)(w.runs ? w.runs : 1));
	return fact(w.fewest * SAMPLERS * 2 > w.runs, "each has its turn: %llu ticks at least",
		    (unsigned long long)w.fewest) && good;
}

bool stress_rest(unsigned long ms)
{
	struct owner o[SAMPLERS];
	pid_t pid = spin_deep_start();
	int err = 0, n;
	cpu_set_t before;
	bool good;

	sched_getaffinity(0, sizeof(before), &before);
	rest_pin(sysconf(_SC_NPROCESSORS_ONLN) > 1);
	for (n = 0; n < SAMPLERS && !err; n++)
		err = open_greedy(&o[n]);
	good = err ? fact(false, "sampler %d: %s", n, strerror(-err)) : greedy(o, ms);
	while (n)
		owner_close(&o[--n]);
	spin_end(pid);
	sched_setaffinity(0, sizeof(before), &before);
	return good;
}
