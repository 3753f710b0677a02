// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/index_turns.h"

#include "base/cleanup.h"
#include "base/clock.h"

#define LIMIT_NS	(600 * NSEC_PER_SEC)
#define LIMIT_SHARED_NS (60 * NSEC_PER_SEC)
#define HALF_LIFE_NS	(600 * NSEC_PER_SEC)
#define ELSEWHERE	(1ull << 63) /* no user id */

uint64_t index_turns_owner(uint32_t uid, uint64_t dev, const uint64_t host_devices[INDEX_HOST_DEVICES])
{
	if (uid)
		return uid;
	for (size_t i = 0; i < INDEX_HOST_DEVICES; i++)
		if (host_devices[i] && dev == host_devices[i])
			return INDEX_OWNER_HOST;
	return ELSEWHERE | dev;
}

/* --- the queue --- */

static size_t index_turns_count(const uint64_t *queue, size_t n, uint64_t owner)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += queue[i] == owner;
	return count;
}

bool index_turns_admit(const uint64_t *queue, size_t n, uint64_t owner)
{
	size_t hosts = index_turns_count(queue, n, INDEX_OWNER_HOST);

	if (n >= INDEX_QUEUE)
		return false;
	if (owner == INDEX_OWNER_HOST)
		return hosts < INDEX_QUEUE / 4 * 3;
	return n - hosts < INDEX_QUEUE / 4 * 3 && index_turns_count(queue, n, owner) < INDEX_QUEUE / 4;
}

uint64_t index_turns_limit_ns(const uint64_t *queue, size_t n)
{
	bool shared = n && queue[0] != INDEX_OWNER_HOST && index_turns_count(queue, n, queue[0]) < n;

	return shared ? LIMIT_SHARED_NS : LIMIT_NS;
}

/* --- times --- */

static uint64_t index_used_now(const struct index_used *u, uint64_t now)
{
	uint64_t halves = now > u->at_ns ? (now - u->at_ns) / HALF_LIFE_NS : 0;

	return halves < 64 ? u->ns >> halves : 0;
}

static void index_used_add(struct index_used *u, uint64_t ns, uint64_t now)
{
	uint64_t age = now > u->at_ns ? now - u->at_ns : 0;

	u->ns = index_used_now(u, now) + ns;
	/* The part of a half-life that has passed counts the next time. */
	u->at_ns = age >= HALF_LIFE_NS ? now - age % HALF_LIFE_NS : u->at_ns;
}

static const struct index_used *index_turns_find(const struct index_turns *t, uint64_t owner)
{
	static const struct index_used nothing;

	for (size_t i = 0; i < INDEX_OWNERS; i++)
		if (t->each[i].at_ns && t->each[i].owner == owner)
			return &t->each[i];
	return &nothing;
}

static struct index_used *index_turns_add_owner(struct index_turns *t, uint64_t owner, uint64_t now)
{
	struct index_used *least = &t->each[0];

	for (size_t i = 1; i < INDEX_OWNERS; i++)
		if (index_used_now(&t->each[i], now) < index_used_now(least, now))
			least = &t->each[i];
	*least = (struct index_used){.owner = owner, .at_ns = now};
	return least;
}

void index_turns_charge(struct index_turns *t, uint64_t owner, uint64_t ns, uint64_t now)
{
	const struct index_used *u = index_turns_find(t, owner);

	if (owner == INDEX_OWNER_HOST) {
		index_used_add(&t->host, ns, now);
		return;
	}
	index_used_add(u->at_ns ? &t->each[u - t->each] : index_turns_add_owner(t, owner, now), ns, now);
	index_used_add(&t->others, ns, now);
}

/* n: no file of other owners. */
static size_t index_turns_next_other(const struct index_turns *t, const uint64_t *queue, size_t n, uint64_t now)
{
	uint64_t least = UINT64_MAX;
	size_t best = n;

	for (size_t i = 0; i < n; i++) {
		uint64_t used;

		if (queue[i] == INDEX_OWNER_HOST)
			continue;
		used = index_used_now(index_turns_find(t, queue[i]), now);
		if (used < least) {
			least = used;
			best = i;
		}
	}
	return best;
}

size_t index_turns_next(const struct index_turns *t, const uint64_t *queue, size_t n, uint64_t now)
{
	size_t other = index_turns_next_other(t, queue, n, now), host = 0;

	while (host < n && queue[host] != INDEX_OWNER_HOST)
		host++;
	if (host == n)
		return other;
	return other == n || index_used_now(&t->host, now) <= index_used_now(&t->others, now) ? host : other;
}
