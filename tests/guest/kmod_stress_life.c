// SPDX-License-Identifier: Apache-2.0
/* Owners that are killed at any moment of their lives, with the module loaded and unloaded around them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod_stress.h"

#define MODULE_FILE "/otprof.ko"
#define LIFE_US     40000 /* an owner is killed within */
#define GONE_MS     10000 /* the module must be free within */

/* It reads as a reader does, not at all, or lies. */
static void read_some(struct owner *o, struct rng *r)
{
	uint64_t seen = owner_seen(o);
	uint32_t len;

	switch (rng_next(r) % 4) {
	case 0:
		while (owner_next(o, seen, &len))
			;
		owner_release(o, o->pos);
		break;
	case 1:
		owner_release(o, rng_next(r));
		break;
	case 2:
		poll(&(struct pollfd){.fd = o->ring, .events = POLLIN}, 1, 2);
		break;
	default:
		sleep_us(500);
	}
}

static void change_some(struct owner *o, struct rng *r)
{
	struct otprof_set_plan p = {.op = OTPROF_SET, .pid = (uint32_t)(rng_next(r) % 400)};

	p.plan.generation = 1;
	p.plan.any_exec = 1;
	p.plan.stack_bytes = (uint32_t)(rng_next(r) % OTP_STACK_LIMIT);
	call(o->dev, OTPROF_IOC_PLAN, &p);
	if (rng_next(r) % 8 == 0)
		call(o->dev, OTPROF_IOC_PERIOD, &(uint64_t){1000000000 / (1 + rng_next(r) % 4000)});
	if (rng_next(r) % 8 == 0) {
		call(o->dev, OTPROF_IOC_STOP, NULL);
		call(o->dev, OTPROF_IOC_START, NULL);
	}
}

/* A reader that stays when the owner is gone, for a moment. */
static void leave_reader(const struct owner *o, struct rng *r)
{
	if (fork() != 0)
		return;
	close(o->dev);
	sleep_us(rng_next(r) % LIFE_US);
	_exit(0);
}

static _Noreturn void live(void)
{
	struct rng r = rng_new();
	struct otprof_config c = config_good(1 + rng_next(&r) % 4000, 4096u << rng_next(&r) % 8);
	struct owner o;

	c.flags = rng_next(&r) % 2 ? OTPROF_CONFIG_LIFE : 0;
	if (owner_open(&o, &c) < 0)
		_exit(1);
	if (rng_next(&r) % 4 == 0)
		leave_reader(&o, &r);
	for (;;) {
		read_some(&o, &r);
		change_some(&o, &r);
	}
}

/* One life, or two at a time. */
static void live_and_die(struct rng *r)
{
	pid_t pid[2] = {-1, -1};

	for (unsigned int i = 0; i < 1 + rng_next(r) % 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			live();
	}
	sleep_us(rng_next(r) % LIFE_US);
	for (unsigned int i = 0; i < 2; i++)
		if (pid[i] > 0)
			spin_end(pid[i]);
}

static int load(void)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, "", 0) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/* Whoever still holds it goes by himself, soon. */
static int unload(void)
{
	uint64_t end = now_ms() + GONE_MS;
	int err;

	while ((err = syscall(SYS_delete_module, "otprof", O_NONBLOCK) < 0 ? -errno : 0) == -EAGAIN || err == -EBUSY) {
		if (now_ms() > end)
			return err;
		sleep_us(1000);
	}
	return err;
}

/* Ends with the module loaded, as it began. */
bool stress_loads(unsigned long times)
{
	struct rng r = rng_new();
	unsigned long i;
	int err = unload();

	for (i = 0; i < times && err == 0; i++) {
		err = load();
		if (err == 0) {
			live_and_die(&r);
			err = unload();
		}
		if (i % 100 == 99)
			printf("# %lu loads so far\n", i + 1);
	}
	err = err ? err : load();
	return fact(err == 0, "%lu of %lu times loaded, used by owners that were killed, and unloaded: %s", i, times,
		    strerror(-err)) &&
	       fact(owner_works(), "the module that was loaded last samples");
}

/* As many samplers as there may be: none of the dead still counts. */
static bool all_places_are_free(void)
{
	int fd[4], got = 0;

	for (int i = 0; i < 4; i++) {
		fd[i] = dev_new();
		got += fd[i] >= 0;
	}
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	return got == 4;
}

bool stress_owners(unsigned long times)
{
	struct rng r = rng_new();

	for (unsigned long i = 0; i < times; i++)
		live_and_die(&r);
	/* The last descriptor of one that was killed closes a little later. */
	for (int i = 0; i < 40 && !all_places_are_free(); i++)
		usleep(50000);
	return fact(all_places_are_free(), "%lu owners killed at random moments: their places are free", times) &&
	       fact(owner_works(), "and a new owner gets samples");
}
