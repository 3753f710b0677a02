// SPDX-License-Identifier: Apache-2.0
#include "daemon/blame.h"

#include "base/cleanup.h"

#define BANS_ALL 2 /* bans of one user before all of the user's is banned */

static bool blame_covers(const struct blame *ban, const struct blame *who)
{
	if (ban->uid != who->uid)
		return false;
	return ban->dev ? ban->dev == who->dev : ban->pid ? ban->pid == who->pid && !who->dev : true;
}

bool blame_is_banned(const struct blame *ban, uint32_t count, const struct blame *who)
{
	for (uint32_t i = 0; i < count; i++)
		if (blame_covers(&ban[i], who))
			return true;
	return false;
}

static uint32_t bans_of(const struct bans *b, uint32_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->count; i++)
		n += b->ban[i].uid == uid;
	return n;
}

/* A full list loses the ban that ends first. */
static uint32_t bans_place(struct bans *b)
{
	uint32_t first = 0;

	if (b->count < BLAME_MAX)
		return b->count++;
	for (uint32_t i = 1; i < b->count; i++)
		if (b->until_ns[i] < b->until_ns[first])
			first = i;
	return first;
}

void bans_add(struct bans *b, const struct blame *who, uint64_t until_ns)
{
	struct blame ban = {.uid = who->uid, .pid = who->dev ? 0 : who->pid, .dev = who->dev};
	uint32_t place;

	if (ban.uid && bans_of(b, ban.uid) + 1 >= BANS_ALL)
		ban = (struct blame){.uid = who->uid};
	place = bans_place(b);
	b->ban[place] = ban;
	b->until_ns[place] = until_ns;
}

void bans_extend(struct bans *b, const struct blame *who, uint64_t until_ns)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (blame_covers(&b->ban[i], who))
			b->until_ns[i] = MAX(b->until_ns[i], until_ns);
}

bool bans_expire(struct bans *b, uint64_t now_ns)
{
	uint32_t kept = 0, count = b->count;

	for (uint32_t i = 0; i < count; i++) {
		if (now_ns >= b->until_ns[i])
			continue;
		b->ban[kept] = b->ban[i];
		b->until_ns[kept++] = b->until_ns[i];
	}
	b->count = kept;
	return kept != count;
}

uint64_t bans_next_ns(const struct bans *b)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < b->count; i++)
		next = MIN(next, b->until_ns[i]);
	return next;
}
