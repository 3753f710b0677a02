// SPDX-License-Identifier: Apache-2.0
/* CPUs and processes that come and go under a sampler. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod_stress.h"

#define CPU1 "/sys/devices/system/cpu/cpu1/online"

static bool switch_cpu(bool on)
{
	int fd = open(CPU1, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, on ? "1" : "0", 1) == 1;

	if (fd >= 0)
		close(fd);
	return good;
}

/* Others start, stop and end meanwhile. */
static _Noreturn void come_and_go(void)
{
	struct otprof_config c = config_good(499, 1 << 16);
	struct rng r = rng_new();
	struct owner o;

	c.flags = OTPROF_CONFIG_LIFE;
	for (;;) {
		if (owner_open(&o, &c) == 0)
			sleep_us(rng_next(&r) % 30000);
		owner_close(&o);
	}
}

static uint64_t ticks(const struct owner *o, unsigned int cpu)
{
	return owner_counters(o, cpu).ticks;
}

static bool still_ticks(const struct owner *o, unsigned int cpu)
{
	uint64_t before = ticks(o, cpu), end = now_ms() + 3000;

	while (ticks(o, cpu) == before && now_ms() < end)
		sleep_us(1000);
	return ticks(o, cpu) > before;
}

static bool change_cpus(struct owner *o, unsigned long ms)
{
	uint64_t end = now_ms() + ms;
	struct rng r = rng_new();
	struct otprof_cpus cpus = {0};
	unsigned long times = 0, still = 0, told = 0;
	bool good;

	while (now_ms() < end) {
		if (!switch_cpu(false))
			return fact(false, "CPU 1 goes offline: %s", strerror(errno));
		uint64_t before = ticks(o, 1);
		sleep_us(rng_next(&r) % 20000);
		still += ticks(o, 1) != before;
		switch_cpu(true);
		sleep_us(rng_next(&r) % 20000);
		call(o->dev, OTPROF_IOC_CPUS, &cpus);
		told += cpus.changed;
		times++;
	}
	good = fact(times > 0 && still == 0, "a CPU went and came %lu times: no tick on it while it was away", times);
	good = fact(told >= times, "the owner was told of it %lu times", told) && good;
	return fact(still_ticks(o, 0) && still_ticks(o, 1), "both CPUs are sampled at the end") && good;
}

bool stress_hotplug(unsigned long ms)
{
	struct otprof_config c = config_good(997, 1 << 16);
	pid_t spin, other;
	struct owner o;
	bool good;
	int err;

	if (access(CPU1, W_OK) < 0) {
		printf("skip - CPUs come and go: %s cannot be written\n", CPU1);
		return true;
	}
	err = owner_open(&o, &c);
	spin = spin_start();
	other = fork();
	if (other == 0)
		come_and_go();
	good = err == 0 ? change_cpus(&o, ms) : fact(false, "a sampler for the change of CPUs: %s", strerror(-err));
	spin_end(other);
	spin_end(spin);
	owner_close(&o);
	return good;
}

static void plan_for(const struct owner *o, pid_t pid, struct rng *r, unsigned long *full, unsigned long *wrong)
{
	struct otprof_set_plan p = {.op = OTPROF_SET, .pid = (uint32_t)pid};
	int err;

	p.plan.generation = (uint32_t)pid;
	p.plan.any_exec = rng_next(r) % 2;
	p.plan.start_ns = p.plan.any_exec ? 0 : rng_next(r);
	p.plan.stack_bytes = (uint32_t)(rng_next(r) % (OTP_STACK_LIMIT / 8));
	p.plan.select = rng_next(r) % 3;
	err = call(o->dev, OTPROF_IOC_PLAN, &p);
	*full += err == -E2BIG;
	*wrong += err != 0 && err != -E2BIG;
	if (rng_next(r) % 4 == 0) {
		p.op = OTPROF_REMOVE;
		*wrong += call(o->dev, OTPROF_IOC_PLAN, &p) != 0;
	}
}

static pid_t short_life(struct rng *r)
{
	uint64_t us = rng_next(r) % 4000;
	pid_t pid = fork();

	if (pid == 0) {
		for (volatile uint64_t n = 0; n < us * 20; n = n + 1)
			;
		_exit(0);
	}
	return pid;
}

/* Plans of the dead fill the table; their room is found when it is needed. */
bool stress_plans(unsigned long ms)
{
	struct otprof_config c = config_good(997, 1 << 16);
	unsigned long times = 0, full = 0, wrong = 0;
	uint64_t end = now_ms() + ms;
	struct rng r = rng_new();
	struct owner o;
	int err = owner_open(&o, &c);

	for (; err == 0 && now_ms() < end; times++) {
		pid_t pid = short_life(&r);

		plan_for(&o, pid, &r, &full, &wrong);
		if (rng_next(&r) % 2)
			plan_for(&o, getpid(), &r, &full, &wrong);
		owner_release(&o, owner_seen(&o));
		while (waitpid(-1, NULL, times % 16 ? WNOHANG : 0) > 0)
			;
	}
	while (wait(NULL) > 0)
		;
	sleep_us(1200000);
	wrong += err == 0 && call(o.dev, OTPROF_IOC_PLAN,
				  &(struct otprof_set_plan){.op = OTPROF_SET, .pid = 1, .plan = {.generation = 1}}) != 0;
	owner_close(&o);
	return fact(err == 0 && wrong == 0, "plans for %lu processes that died: %lu found the table full, %lu failed", times,
		    full, wrong);
}
