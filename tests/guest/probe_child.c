// SPDX-License-Identifier: Apache-2.0
/* Children that know their registers and their stack. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe_loop.h"

static void *map(size_t len, int flags)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* A stack between two unreadable pages, every word known and resident. */
uint64_t child_make_stack(struct stage *stage, int flags)
{
	uint8_t *base = map(STACK_BYTES + 8192, flags);
	uint64_t *word = (uint64_t *)(base + 4096);

	mprotect(base, 4096, PROT_NONE);
	mprotect(base + 4096 + STACK_BYTES, 4096, PROT_NONE);
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		word[i] = (uint64_t)(uintptr_t)&word[i] ^ STACK_KEY;
	stage->stack_start = (uint64_t)(uintptr_t)word;
	stage->stack_end = stage->stack_start + STACK_BYTES;
	return stage->stack_start;
}

static void announce(struct stage *stage, uint64_t sp, const char *ip_start, const char *ip_end)
{
	stage->sp = sp;
	stage->ip_start = (uint64_t)(uintptr_t)ip_start;
	stage->ip_end = (uint64_t)(uintptr_t)ip_end;
	stage->ready = 1;
}

_Noreturn static void play_user(struct stage *stage, uint64_t sp, uint64_t fp)
{
	announce(stage, sp, spin_user_loop, spin_user_end);
	spin_user(sp, fp);
}

_Noreturn static void play_kernel(struct stage *stage, uint64_t sp)
{
	int fd = open("/dev/urandom", O_RDONLY);

	announce(stage, sp, spin_kernel_loop, spin_kernel_end);
	spin_kernel(sp, 0, (uint64_t)fd, (uint64_t)(uintptr_t)map(65536, 0), 65536);
}

static void burn(uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns;

	while (clock_now_ns() < end)
		;
}

_Noreturn static void play_exec(struct stage *stage)
{
	stage->ready = 1;
	burn(200 * NSEC_PER_MSEC);
	execl("/proc/self/exe", "otp-second", "--child", (char *)NULL);
	_exit(1);
}

int child_main(void)
{
	burn(60 * NSEC_PER_SEC); /* at most: its parent ends it */
	return 0;
}

_Noreturn static void play_fork(struct stage *stage)
{
	stage->ready = 1;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			burn(50 * NSEC_PER_MSEC);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

_Noreturn static void play(enum scene scene, struct stage *stage)
{
	uint64_t start = child_make_stack(stage, 0), end = stage->stack_end;

	switch (scene) {
	case SCENE_USER:
		play_user(stage, end - 400000, 0);
	case SCENE_KERNEL:
		play_kernel(stage, end - 400000);
	case SCENE_TOP:
		play_user(stage, end - TOP_LEFT, 0);
	case SCENE_BOTTOM:
		play_user(stage, start + 64, 0);
	case SCENE_COMPAT:
		spin_compat(stage, child_make_stack);
		break;
	case SCENE_EXEC:
		play_exec(stage);
	case SCENE_FORK:
		play_fork(stage);
	}
	_exit(1);
}

pid_t child_start(enum scene scene, struct stage *stage, int cpu)
{
	pid_t pid;

	memset(stage, 0, sizeof(*stage));
	pid = fork();
	if (pid == 0) {
		cpu_set_t set;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CPU_ZERO(&set);
		CPU_SET(cpu < 0 ? 0 : cpu, &set);
		if (cpu >= 0)
			sched_setaffinity(0, sizeof(set), &set);
		play(scene, stage);
	}
	while (pid > 0 && !stage->ready)
		sleep_ms(5);
	return pid;
}

void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

uint64_t child_cpu_ns(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) == 0 ? clock_read_ns(id) : 0;
}
