// SPDX-License-Identifier: Apache-2.0
/*
 * The epochs of the sample at hand: of which heap and epoch it is, by the words of its walk, and when an epoch was first
 * seen; which answers about functions are too old for it.
 */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "daemon/engine/runtimes_state.h"

#define EPOCH_FALL_NS	  (10 * NSEC_PER_MSEC) /* ticks at the same time may read epochs in either order */
#define EPOCH_UNWALKED_NS (2 * NSEC_PER_SEC) /* so long the walk is being set */

/* For how long before attaching the epoch was the same, most likely: a share of what the program's epochs take on average. */
static uint64_t runtimes_share_of_epoch(const struct runtime_slot *s, const struct process *p, uint64_t attached)
{
	const uint64_t began = MAX(p->start_ns, p->exec_time_ns), age = s->attached_ns - MIN(began, s->attached_ns);
	const uint64_t passed = (uint32_t)attached - 1; /* in this heap */

	return passed ? MIN(age / passed / CODES_TRUST_SHARE, CODES_TRUST_NS) : UINT64_MAX;
}

/* Whether a sample without the walk's words, as before the walk was set, is of the epoch of attaching, or of a later one. */
static bool runtimes_is_of_attaching(const struct runtime_slot *s, const struct process *p, uint64_t attached, uint64_t time_ns)
{
	const uint64_t before = s->attached_ns - MIN(time_ns, s->attached_ns);

	return (uint32_t)attached && time_ns < s->attached_ns + EPOCH_UNWALKED_NS &&
	       before <= runtimes_share_of_epoch(s, p, attached);
}

/*
 * Without the walk's words (perf does not walk, a word may be on a page that is not in memory), an epoch is not known. It is
 * at least the one that an earlier sample had; for a while, that of attaching: if that has passed when a function is read, it
 * stays unknown. Samples of before are of an earlier one, by which nothing is found.
 */
static uint64_t runtimes_epoch_unwalked(const struct runtime_slot *s, const struct process *p, uint64_t time_ns)
{
	const uint64_t attached = s->ops->epoch(&s->found->found, NULL, 0);

	if (s->nr_runs && !s->ops->moves && time_ns > s->runs[0].met_ns)
		return s->runs[0].of[0].epoch;
	if (runtimes_is_of_attaching(s, p, attached, time_ns))
		return attached;
	return (uint32_t)attached && time_ns < s->attached_ns ? attached - 1 : 0;
}

/* Likewise: regions that were first read in a later epoch than this may be other code. 0: they are held by their age alone. */
static uint64_t runtimes_code_bound(const struct runtime_slot *s, const struct process *p, uint64_t time_ns)
{
	uint64_t attached;

	if (!s->ops->code_epoch)
		return s->ops->moves ? 0 : s->epoch;
	attached = s->ops->code_epoch(&s->found->found, NULL, 0);
	return runtimes_is_of_attaching(s, p, attached, time_ns) ? attached : 0;
}

/* The epochs of the sample's heap; NULL: it was not met. */
static struct runtime_runs *runtimes_runs(const struct runtime_slot *s)
{
	for (uint32_t i = 0; i < s->nr_runs && s->epoch; i++)
		if (runtime_epoch_heap(s->runs[i].of[0].epoch) == runtime_epoch_heap(s->epoch))
			return &s->runs[i];
	return NULL;
}

/* The sample's heap comes first, and the one that was sampled longest ago makes room. false: no memory. */
static bool runtimes_meet_heap(struct runtime_slot *s)
{
	struct runtime_runs *have = runtimes_runs(s), runs = have ? *have : (struct runtime_runs){0};

	if (!have && s->nr_runs < RUNTIMES_HEAPS && array_reserve(&s->runs, s->nr_runs, &s->cap_runs, sizeof(*s->runs)) == 0)
		s->nr_runs++;
	if (!s->nr_runs)
		return false;
	have = have ? have : &s->runs[s->nr_runs - 1];
	memmove(&s->runs[1], &s->runs[0], (size_t)(have - s->runs) * sizeof(*s->runs));
	s->runs[0] = runs;
	return true;
}

/*
 * The first one of all was there before it was seen; in a heap's first one, nothing was given up before. Where one falls, it
 * is another heap, by which the former one cannot be told: of this process epochs are not known any more.
 */
static void runtimes_see_epoch(struct runtime_slot *s, uint64_t time_ns)
{
	bool first = !s->nr_runs;
	struct runtime_runs *runs;

	if (!s->epoch || !runtimes_meet_heap(s))
		return;
	runs = &s->runs[0];
	if (s->epoch < runs->of[0].epoch && time_ns > runs->met_ns + EPOCH_FALL_NS)
		s->heaps_recur = true;
	if (s->epoch <= runs->of[0].epoch)
		return;
	runs->met_ns = time_ns;
	runs->of[1] = runs->of[0];
	runs->of[0].epoch = s->epoch;
	runs->of[0].ran_ns = first || (uint32_t)s->epoch == 1;
}

void runtimes_see_run(const struct runtimes *r, struct runtime_slot *s)
{
	struct runtime_runs *runs = s->epoch_is_bound ? NULL : runtimes_runs(s);

	for (size_t i = 0; runs && i < ARRAY_SIZE(runs->of); i++)
		if (runs->of[i].epoch == s->epoch && (!runs->of[i].ran_ns || r->stack_time_ns < runs->of[i].ran_ns))
			runs->of[i].ran_ns = r->stack_time_ns;
}

uint64_t runtimes_ran_ns(const struct runtime_slot *s)
{
	const struct runtime_runs *runs = runtimes_runs(s);

	for (size_t i = 0; runs && i < ARRAY_SIZE(runs->of); i++)
		if (runs->of[i].epoch == s->epoch)
			return runs->of[i].ran_ns;
	return 0;
}

bool runtimes_epoch_begins(const struct runtimes *r, const struct runtime_slot *s)
{
	const uint64_t ran_ns = runtimes_ran_ns(s);

	return !r->stack_is_code && (!ran_ns || r->stack_time_ns < ran_ns);
}

/* That of regions; 0: it is only bounded, at most. */
static uint64_t runtimes_code_epoch(const struct runtime_slot *s, const uint64_t *root, uint32_t nr_root)
{
	if (s->ops->code_epoch)
		return nr_root ? s->ops->code_epoch(&s->found->found, root, nr_root) : 0;
	return s->epoch_is_bound ? 0 : s->epoch;
}

/* From the root's words; nr_root 0: there are none. For V8, no epoch says that the thread is in no heap: no bound replaces it. */
static void runtimes_find_epochs(struct runtime_slot *s, const struct process *p, const uint64_t *root, uint32_t nr_root,
				 uint64_t time_ns)
{
	s->epoch = nr_root ? s->ops->epoch(&s->found->found, root, nr_root) : 0;
	s->epoch_is_bound = !nr_root || (!s->epoch && !s->ops->moves);
	if (s->epoch_is_bound)
		s->epoch = runtimes_epoch_unwalked(s, p, time_ns);
	else
		runtimes_see_epoch(s, time_ns);
	if (s->heaps_recur) {
		s->epoch = 0;
		return;
	}
	s->code_epoch = runtimes_code_epoch(s, root, nr_root);
	s->code_bound = s->code_epoch ? 0 : runtimes_code_bound(s, p, time_ns);
	s->moved = nr_root && s->ops->moved ? s->ops->moved(&s->found->found, root, nr_root) : 0;
}

void runtimes_find_epoch(struct runtimes *r, const struct process *p, const struct sample *sample, uint32_t plan)
{
	struct runtime_slot *s = &r->stack_of->slot[plan];
	const struct otp_walked *w = sample->walks[plan];
	const bool walked = w && w->root_words && runtimes_slot(r, p, w, plan) == s;
	const uint64_t *root = walked ? sample_walk_words(w) : NULL;
	const uint32_t nr_root = walked ? w->root_words : 0;

	s->epoch = s->code_epoch = s->code_bound = s->moved = s->stamp = 0;
	s->epoch_is_bound = !walked;
	if (s->state != SLOT_READY)
		return;
	if (walked && s->ops->stamp)
		s->stamp = s->ops->stamp(&s->found->found, root, nr_root);
	if (s->ops->epoch)
		runtimes_find_epochs(s, p, root, nr_root, sample->head.time_ns);
}

/*
 * Where code is replaced, methods are too, and others may lie where they lay: unless there are epochs, their names are read
 * again for samples that are younger than the last reading. Where functions move they may do so at any time. Those of walked
 * frames have cookies that tell.
 */
static uint64_t runtimes_functions_after(const struct runtime_slot *s, uint64_t time_ns)
{
	if ((s->epoch && !s->ops->moves) || !s->ops->code || s->ops->frame || s->ops->names_last)
		return 0;
	if (codes_are_alert(&s->codes, time_ns))
		return time_ns;
	return s->ops->moves && time_ns > CODES_TRUST_NS ? time_ns - CODES_TRUST_NS : 0;
}

void runtimes_renew_functions(struct runtimes *r, const struct sample *sample)
{
	for (uint32_t i = 0; r->stack_of && i < r->stack_of->nr; i++) {
		struct runtime_slot *s = &r->stack_of->slot[i];

		s->functions_after_ns = runtimes_functions_after(s, sample->head.time_ns);
	}
}
