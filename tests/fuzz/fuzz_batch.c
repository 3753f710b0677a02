// SPDX-License-Identifier: Apache-2.0
/*
 * A ring from anywhere through the engine's batch: samples with their chunks,
 * losses, and the perf records of process life that a sampler wrote into it.
 */
#include <string.h>

#include "daemon/engine/batch.h"
#include "ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING 8192

static uint64_t sum;

static void touch(const void *p, size_t len)
{
	for (size_t i = 0; p && i < len; i++)
		sum += ((const uint8_t *)p)[i];
}

static void read_item(struct batch *b, const struct batch_item *it)
{
	struct proc_event ev;
	struct sample s;

	if (it->kind == BATCH_EVENT) {
		touch(batch_event_bytes(b, it), it->size);
		if (batch_event(b, it, &ev) == 0)
			touch(ev.name, ev.name_len);
	} else if (batch_sample(b, it, &s) == 0) {
		touch(s.stack, s.stack_len);
		touch(s.kernel, s.nr_kernel * sizeof(*s.kernel));
		for (int i = 0; i < OTP_WALK_PLANS; i++)
			if (s.walks[i])
				touch(s.walks[i], sample_walk_bytes(s.walks[i]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t area[2 * RING] __attribute__((aligned(8)));
	unsigned long consumer = 0, producer;
	struct batch b = {0};
	const struct otp_rec *rec;
	struct ring r;
	uint64_t pos = 0;

	size = size < RING ? size & ~7UL : RING;
	producer = size;
	memset(area, 0, sizeof(area));
	memcpy(area, data, size);
	memcpy(area + RING, area, RING);
	ring_wrap(&r, &consumer, &producer, area, RING);
	while (ring_next(&r, &pos, ring_producer(&r), &rec) > 0)
		batch_add_ring(&b, rec);
	touch(batch_incomplete(&b), sizeof(struct otp_rec));
	batch_sort(&b);
	for (size_t i = 0; i < batch_count(&b); i++)
		read_item(&b, batch_item(&b, i));
	batch_done(&b);
	return 0;
}
