/* SPDX-License-Identifier: Apache-2.0 */
/* A ring in plain memory, into which a test puts small records. */
#ifndef OTP_TESTS_UNIT_RING_FIXTURE_H
#define OTP_TESTS_UNIT_RING_FIXTURE_H

#include <string.h>

#include "ring/ring.h"

#define RING_FIXTURE_BYTES  4096
#define RING_FIXTURE_RECORD 24 /* bytes that one takes of the ring */

struct ring_fixture {
	unsigned long consumer, producer;
	uint8_t data[2 * RING_FIXTURE_BYTES] __attribute__((aligned(8)));
};

/* Empty; reader is wrapped around it. */
static inline void ring_fixture_open(struct ring_fixture *f, struct ring *reader)
{
	memset(f, 0, sizeof(*f));
	ring_wrap(reader, &f->consumer, &f->producer, f->data, RING_FIXTURE_BYTES);
}

/* bits: of the ring's header, besides the length. */
static inline void ring_fixture_put(struct ring_fixture *f, enum otp_rec_type type, uint32_t bits)
{
	uint8_t *at = f->data + f->producer;

	*(struct otp_ring_hdr *)(void *)at = (struct otp_ring_hdr){.len = 16 | bits};
	*(struct otp_rec *)(void *)(at + OTP_RING_HDR) = (struct otp_rec){.type = type, .len = 16};
	f->producer += RING_FIXTURE_RECORD;
}

#endif
