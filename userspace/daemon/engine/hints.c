// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/hints.h"

#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/adapt.h"

static uint64_t hints_key(const char comm[OTP_COMM_LEN])
{
	return hash_bytes(comm, OTP_COMM_LEN, 0);
}

static const struct hint *hints_look_up(const struct hints *h, const char comm[OTP_COMM_LEN])
{
	const uint64_t *at = map_find(&h->index, hints_key(comm));

	return at && memcmp(h->all[*at].comm, comm, OTP_COMM_LEN) == 0 ? &h->all[*at] : NULL;
}

static struct hint *hints_find(struct hints *h, const char comm[OTP_COMM_LEN])
{
	const struct hint *at = hints_look_up(h, comm);

	return at ? &h->all[at - h->all] : NULL;
}

struct otp_hint hints_given(const struct hints *h, const char comm[OTP_COMM_LEN])
{
	const struct hint *at = hints_look_up(h, comm);

	return at && at->sent ? at->now : h->start;
}

static void hints_drop(struct hints *h, struct hint *at)
{
	static const struct otp_hint none;

	map_remove(&h->index, hints_key(at->comm));
	if (at->sent)
		h->send(h->ctx, at->comm, &none);
	*at = (struct hint){0};
}

/* A free place, else that of the least recently used name. */
static struct hint *hints_place(struct hints *h)
{
	struct hint *oldest = &h->all[0];

	if (h->index.count < HINTS_MAX)
		for (int i = 0; i < HINTS_MAX; i++)
			if (!h->all[i].now.stack_bytes)
				return &h->all[i];
	for (int i = 1; i < HINTS_MAX; i++)
		if (h->all[i].used_ns < oldest->used_ns)
			oldest = &h->all[i];
	hints_drop(h, oldest);
	return oldest;
}

static void hints_begin_window(struct hint *at, uint64_t now_ns)
{
	at->since_ns = at->used_ns = now_ns;
	at->needed = (struct otp_hint){0};
	at->samples = 0;
}

void hints_done(struct hints *h)
{
	map_done(&h->index);
}

static struct hint *hints_add(struct hints *h, const char comm[OTP_COMM_LEN], uint64_t now_ns)
{
	struct hint *at = hints_place(h);

	if (map_put(&h->index, hints_key(comm), (uint64_t)(at - h->all)) < 0)
		return NULL;
	*at = (struct hint){.now = h->start};
	memcpy(at->comm, comm, OTP_COMM_LEN);
	hints_begin_window(at, now_ns);
	return at;
}

static struct hint *hints_find_or_add(struct hints *h, const char comm[OTP_COMM_LEN], uint64_t now_ns)
{
	struct hint *at = hints_find(h, comm);

	if (!at)
		return hints_add(h, comm, now_ns);
	/* Until it is sent, a name has the default sizes, which may have changed. */
	if (!at->sent)
		at->now = h->start;
	return at;
}

static void hints_send(struct hints *h, struct hint *at)
{
	at->sent = true;
	h->send(h->ctx, at->comm, &at->now);
}

void hints_grown(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *given, uint64_t now_ns)
{
	struct hint *at = hints_find_or_add(h, comm, now_ns);

	if (!at || (given->stack_bytes <= at->now.stack_bytes && given->base_bytes <= at->now.base_bytes))
		return;
	at->now.stack_bytes = MAX(at->now.stack_bytes, given->stack_bytes);
	at->now.base_bytes = MAX(at->now.base_bytes, given->base_bytes);
	hints_begin_window(at, now_ns);
	hints_send(h, at);
}

void hints_met(struct hints *h, const char comm[OTP_COMM_LEN], uint64_t now_ns)
{
	struct hint *at = hints_find_or_add(h, comm, now_ns);

	if (!at || at->sent)
		return;
	hints_begin_window(at, now_ns);
	hints_send(h, at);
}

/* The first decision is made early, later ones after a window. */
static bool hints_is_due(const struct hint *at, uint64_t now_ns)
{
	if (!at->sent)
		return at->samples >= HINTS_FIRST;
	return at->samples >= ADAPT_WINDOW_SAMPLES && now_ns >= at->since_ns + ADAPT_WINDOW_NS;
}

/* Drops the bytes that no stack needed in the window. */
static void hints_shrink(struct hints *h, struct hint *at, uint64_t now_ns)
{
	struct otp_hint now = {
		.stack_bytes = MIN(at->now.stack_bytes, adapt_shrunk(at->now.stack_bytes, at->needed.stack_bytes)),
		.base_bytes = MIN(at->now.base_bytes, adapt_base(at->needed.base_bytes)),
	};
	bool same = now.stack_bytes == at->now.stack_bytes && now.base_bytes == at->now.base_bytes;

	hints_begin_window(at, now_ns);
	if (same && at->sent)
		return;
	at->now = now;
	hints_send(h, at);
}

void hints_used(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *used, uint64_t now_ns)
{
	struct hint *at = hints_find_or_add(h, comm, now_ns);

	if (!at)
		return;
	at->used_ns = now_ns;
	at->needed.stack_bytes = MAX(at->needed.stack_bytes, used->stack_bytes);
	at->needed.base_bytes = MAX(at->needed.base_bytes, used->base_bytes);
	at->samples++;
	if (hints_is_due(at, now_ns))
		hints_shrink(h, at, now_ns);
}
