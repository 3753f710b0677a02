// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/metrics_clients.h"

#include <stdlib.h>
#include <sys/socket.h>

static void metrics_clients_evict(const struct metrics_clients *all, const struct metrics_client *new)
{
	const struct metrics_client *idlest = NULL;

	for (const struct metrics_client *c = all->first; c; c = c->next)
		if (c != new && !c->waits && (!idlest || c->since_ns < idlest->since_ns))
			idlest = c;
	if (idlest)
		shutdown(idlest->fd, SHUT_RDWR);
}

struct metrics_client *metrics_client_begin(struct metrics_clients *all, int fd, uint32_t max, uint64_t now_ns)
{
	struct metrics_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct metrics_client){.next = all->first, .fd = fd, .since_ns = now_ns};
	all->first = c;
	if (++all->count > max)
		metrics_clients_evict(all, c);
	return c;
}

void metrics_client_end(struct metrics_clients *all, struct metrics_client *c)
{
	for (struct metrics_client **link = &all->first; *link; link = &(*link)->next) {
		if (*link != c)
			continue;
		*link = c->next;
		all->count--;
		free(c);
		return;
	}
}

void metrics_clients_expire(const struct metrics_clients *all, uint64_t now_ns, uint64_t age_ns)
{
	for (const struct metrics_client *c = all->first; c; c = c->next)
		if (!c->waits && now_ns - c->since_ns >= age_ns)
			shutdown(c->fd, SHUT_RDWR);
}
