// SPDX-License-Identifier: Apache-2.0
/* The walker that samplers share: a plan, and the memory that it walks, from anywhere. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input's bytes behind the plans, over and over, from address 0 on, up to a last one. */
#define MEMORY (1u << 20)

static const uint8_t *memory;
static size_t memory_len;
static uint64_t reads;

static int read_memory(void *to, uint64_t len, uint64_t from)
{
	reads++;
	if (!len || len > 1024 || len % 8)
		abort();
	if (!memory_len || from > MEMORY - len)
		return -1;
	for (uint64_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = memory[(from + i) % memory_len];
	return 0;
}

#include <linux/types.h>
#define OTP_WALK_READ(to, len, from) read_memory(to, len, from)
#define OTP_WALK_OPAQUE(x)
#include "kmod/uapi/otprof_walk.h"

static struct otp_walker walker;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otp_walks_ready ready;
	struct otp_walks walks;

	if (size < sizeof(walks))
		return 0;
	memcpy(&walks, data, sizeof(walks));
	if (!otp_walk_sound(&walks))
		return 0;
	memory = data + sizeof(walks);
	memory_len = size - sizeof(walks);
	reads = 0;
	walker.taken = 0;
	otp_walks_prepare(&ready, &walks, 1);
	for (uint32_t i = 0; i < OTP_WALK_PLANS; i++) {
		walker.ready = ready.plan[i];
		if (walks.plan[i].start != OTP_WALK_NONE &&
		    otp_walk_run(&walker, walks.start_ns, walks.generation, i) + sizeof(struct otp_section) > OTP_WALK_BYTES)
			abort();
	}
	if (walker.taken * 8 > OTP_WALK_BYTES || reads > OTP_WALK_READS + 64)
		abort();
	return 0;
}
