// SPDX-License-Identifier: Apache-2.0
/* The data area of a ring from anywhere: 8 bytes of producer position, then data. */
#include <stdlib.h>
#include <string.h>

#include "ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING 4096

static uint64_t sum;

static void touch(const void *p, uint32_t len)
{
	for (uint32_t i = 0; p && i < len; i++)
		sum += ((const uint8_t *)p)[i];
}

static void read_record(const struct otp_rec *rec)
{
	touch(rec, rec->len);
	if (rec->type != OTP_REC_SAMPLE || rec->len < sizeof(struct otp_sample))
		return;
	for (int type = 0; type < 9; type++) {
		uint32_t len = 0;

		touch(sample_section((const void *)rec, (enum otp_section_type)type, &len), len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t area[2 * RING] __attribute__((aligned(8)));
	unsigned long consumer = 0, producer = 0;
	const struct otp_rec *rec;
	struct ring r;
	uint64_t pos;

	if (size < 8)
		return 0;
	memcpy(&producer, data, 8);
	memset(area, 0, sizeof(area));
	memcpy(area, data + 8, size - 8 < RING ? size - 8 : RING);
	memcpy(area + RING, area, RING);
	ring_wrap(&r, &consumer, &producer, area, RING);
	pos = ring_consumer(&r);
	while (ring_next(&r, &pos, ring_producer(&r), &rec) > 0)
		read_record(rec);
	ring_follow(&r, pos);
	if (consumer != pos)
		abort(); /* what was read is freed */
	ring_follow(&r, producer);
	if (consumer > producer)
		abort();
	ring_release(&r, pos);
	return 0;
}
