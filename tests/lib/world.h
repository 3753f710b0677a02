/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up memory of one process, for tests of runtimes: the test puts an
 * interpreter into it, and both the walker and a struct memory read it.
 *
 * A test includes it once, before whatever else includes the walker. It may
 * define before: WORLD_BYTES, the size; WORLD_TICK_READ(to, len, from), what the
 * walker reads by, if that may fail where the memory is there.
 */
#ifndef OTP_TESTS_WORLD_H
#define OTP_TESTS_WORLD_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define WORLD 0x7f0000000000ULL /* its first address */
#ifndef WORLD_BYTES
#define WORLD_BYTES (1u << 20)
#endif

static uint8_t world[WORLD_BYTES];

static int world_read(void *to, size_t len, uint64_t from)
{
	if (from < WORLD || from - WORLD > WORLD_BYTES || len > WORLD_BYTES - (from - WORLD))
		return -EFAULT;
	memcpy(to, world + (from - WORLD), len);
	return 0;
}

#ifdef WORLD_TICK_READ
static int WORLD_TICK_READ(void *to, size_t len, uint64_t from);
#else
#define WORLD_TICK_READ world_read
#endif

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) WORLD_TICK_READ(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

#include "runtime/memory.h"

static int memory_of_world(struct memory *m, uint64_t addr, void *to, size_t len)
{
	(void)m;
	return world_read(to, len, addr);
}

static struct memory memory = {.read = memory_of_world};

static void put(uint64_t at, const void *from, size_t len)
{
	memcpy(world + (at - WORLD), from, len);
}

static void put64(uint64_t at, uint64_t v)
{
	put(at, &v, sizeof(v));
}

static inline void put32(uint64_t at, uint32_t v)
{
	put(at, &v, sizeof(v));
}

#endif
