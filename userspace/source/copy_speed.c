// SPDX-License-Identifier: Apache-2.0
#include "source/copy_speed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kmod/uapi/otprof_copy.h"

#define LIMIT_NS    50000
#define LIMIT_RT_NS 20000
#define COPY_BYTES  131072u
#define COPIES	    31

/* The configuration is part of the version: Linux, init/Makefile, UTS_VERSION ("#1 SMP PREEMPT_RT ..."). */
bool kernel_is_rt(void)
{
	struct utsname uts;

	return uname(&uts) == 0 && strstr(uts.version, "PREEMPT_RT");
}

uint64_t copy_speed_limit_ns(void)
{
	return kernel_is_rt() ? LIMIT_RT_NS : LIMIT_NS;
}

static int copy_speed_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The compiler may not leave out a copy whose bytes nobody reads. */
static uint64_t copy_speed_once(void *to, const void *from)
{
	uint64_t began = clock_now_ns();

	memcpy(to, from, COPY_BYTES);
	__asm__ volatile("" : : "r"(to) : "memory");
	return clock_now_ns() - began;
}

/* The median: a copy that the machine interrupted says nothing. Each is of other bytes, as stacks are. */
static uint64_t copy_speed_measure(void)
{
	const size_t size = (COPIES + 1) * (size_t)COPY_BYTES;
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t ns[COPIES];

	if (at == MAP_FAILED)
		return 0;
	for (size_t i = 0; i < COPIES; i++)
		ns[i] = copy_speed_once(at, at + (i + 1) * COPY_BYTES);
	munmap(at, size);
	qsort(ns, COPIES, sizeof(ns[0]), copy_speed_compare);
	return ns[COPIES / 2];
}

uint32_t copy_speed_tick_bytes(void)
{
	static uint64_t ns;

	ns = ns ? ns : copy_speed_measure();
	return otp_tick_bytes(COPY_BYTES, ns, copy_speed_limit_ns());
}
