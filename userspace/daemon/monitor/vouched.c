// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/vouched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void vouched_done(struct vouched *v)
{
	map_done(&v->by_pid);
	free(v->all);
	*v = (struct vouched){0};
}

static struct vouched_process *vouched_find(const struct vouched *v, uint32_t pid)
{
	const uint64_t *index = map_find(&v->by_pid, pid);

	return index ? &v->all[*index - 1] : NULL;
}

/* An entry for the process: its own, or the oldest. */
static struct vouched_process *vouched_take(struct vouched *v, uint32_t pid)
{
	struct vouched_process *p = vouched_find(v, pid);

	if (p)
		return p;
	if (!v->all)
		v->all = calloc(VOUCHED_MAX, sizeof(*v->all));
	if (!v->all)
		return NULL;
	p = &v->all[v->next];
	if (p->pid)
		map_remove(&v->by_pid, p->pid);
	*p = (struct vouched_process){0};
	if (map_put(&v->by_pid, pid, v->next + 1) < 0)
		return NULL;
	v->next = (v->next + 1) % VOUCHED_MAX;
	return p;
}

static bool vouched_has(const struct vouched_process *p, const struct otp_walk *plan)
{
	for (uint32_t i = 0; i < p->nr; i++)
		if (!memcmp(&p->plan[i], plan, sizeof(*plan)))
			return true;
	return false;
}

int vouched_add(struct vouched *v, uint32_t pid, uint64_t start_ns, const struct otp_walk *plan, uint64_t now_ns)
{
	struct vouched_process *p = vouched_take(v, pid);

	if (!p)
		return -ENOMEM;
	if (p->start_ns != start_ns)
		*p = (struct vouched_process){.pid = pid, .start_ns = start_ns};
	p->until_ns = now_ns + VOUCHED_USE_NS;
	if (vouched_has(p, plan))
		return 0;
	if (p->nr == VOUCHED_PLANS) /* after an exec: the oldest are of the program before */
		memmove(p->plan, p->plan + 1, --p->nr * sizeof(p->plan[0]));
	p->plan[p->nr++] = *plan;
	return 0;
}

/* The first walks that are set fix the program; after another exec a decoder has to vouch anew. */
static bool vouched_is_of(struct vouched_process *p, const struct otp_walks *w, uint64_t now_ns)
{
	if (p->start_ns != w->start_ns)
		return false;
	if (p->exec_id == w->exec_id && !p->until_ns)
		return true;
	if (!p->until_ns || now_ns >= p->until_ns)
		return false;
	p->until_ns = 0;
	p->exec_id = w->exec_id;
	return true;
}

bool vouched_allows(struct vouched *v, uint32_t pid, const struct otp_walks *w, uint64_t now_ns)
{
	struct vouched_process *p = vouched_find(v, pid);

	for (int i = 0; p && i < OTP_WALK_PLANS; i++)
		if (w->plan[i].start != OTP_WALK_NONE && !vouched_has(p, &w->plan[i]))
			return false;
	return p && vouched_is_of(p, w, now_ns);
}
