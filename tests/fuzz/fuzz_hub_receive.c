// SPDX-License-Identifier: Apache-2.0
/*
 * A body that somebody posts to the hub: the first byte says whether it is JSON and whether it is compressed. What was
 * taken is kept in a slot, and the ledger balances.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "hub/receive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1790000000000000000ULL

static const struct otlp_limits limits = {.request_bytes = 1u << 20, .memory_bytes = 64u << 20, .depth = 1024};

static void post(struct store *s, const uint8_t *data, size_t size)
{
	struct receive_call c = {
		.content_type = data[0] & 1 ? "application/json" : "application/x-protobuf",
		.content_encoding = data[0] & 2 ? "gzip" : NULL,
		.body = data + 1,
		.len = size - 1,
		.now_ns = NOW,
	};
	struct api_reply reply = {0};

	receive_serve(s, &limits, &c, &reply);
	api_reply_done(&reply);
}

static void check(const struct store *s)
{
	struct store_counts c;

	store_counts(s, &c);
	if (c.slots.taken != c.slots.kept + c.slots.folded + c.slots.evicted + c.slots.refused)
		abort();
	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot && slot_memory(s->list[i]->slot) > s->limits.slot_max_bytes)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(store_freep) struct store *s = NULL;
	struct hub_limits l = hub_limits_default;
	const struct gone *evicted;

	l.max_slots = 4;
	l.slot_max_bytes = SLOT_BYTES_MIN;
	if (!size || store_new(&l, &s) < 0)
		return 0;
	post(s, data, size);
	for (uint32_t i = 0; i < MIN(s->count, 6u); i++)
		store_open(s, s->list[i], NOW, &evicted);
	post(s, data, size);
	post(s, data, size);
	check(s);
	return 0;
}
