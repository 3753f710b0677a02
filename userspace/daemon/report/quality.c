// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/quality.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	bool named;
} sources[] = {
#define X(NAME, name, named) [NAME_##NAME] = {name, named},
	NAME_SOURCES(X)
#undef X
};

const char *name_source_name(uint32_t source)
{
	return source < ARRAY_SIZE(sources) ? sources[source].name : NULL;
}

bool name_source_is_name(uint32_t source)
{
	return source < ARRAY_SIZE(sources) && sources[source].named;
}

static void quality_set_names(struct ledger_workload *to, const struct workload *w, const struct str *exe)
{
	const char *service = w->service ? str_c(w->service) : "";

	snprintf(to->service, sizeof(to->service), "%s", *service ? service : "?");
	snprintf(to->executable, sizeof(to->executable), "%s", exe ? str_c(exe) : "");
}

static bool quality_is_called(const struct ledger_workload *w, const struct ledger_workload *name)
{
	return strncmp(w->service, name->service, sizeof(w->service)) == 0 &&
	       strncmp(w->executable, name->executable, sizeof(w->executable)) == 0;
}

const struct ledger_workload *quality_find(const struct ledger_engine *l, const struct workload *w,
					   const struct str *exe)
{
	struct ledger_workload name;

	quality_set_names(&name, w, exe);
	for (size_t i = 0; i < ARRAY_SIZE(l->workloads); i++)
		if (quality_is_called(&l->workloads[i], &name))
			return &l->workloads[i];
	return NULL;
}

static struct ledger_workload *quality_find_or_replace(struct ledger_engine *l, const struct workload *w,
						       const struct str *exe, uint64_t samples)
{
	struct ledger_workload *least = &l->workloads[0];
	const struct ledger_workload *known = quality_find(l, w, exe);

	if (known)
		return &l->workloads[known - l->workloads];
	for (size_t i = 1; i < ARRAY_SIZE(l->workloads); i++)
		if (l->workloads[i].recent < least->recent)
			least = &l->workloads[i];
	if (least->service[0] && least->recent >= samples)
		return NULL;
	*least = (struct ledger_workload){0};
	quality_set_names(least, w, exe);
	return least;
}

static void quality_add_frames(uint64_t kinds[LEDGER_KINDS_MAX], uint64_t guessed[LEDGER_GUESSES_MAX],
			       const struct ledger_quality *q)
{
	for (int i = 0; i < LEDGER_KINDS_MAX; i++)
		kinds[i] += q->kinds[i];
	for (int i = 0; i < LEDGER_GUESSES_MAX; i++)
		guessed[i] += q->guessed[i];
}

static void quality_add_stacks(struct ledger_quality *to, const struct ledger_quality *q)
{
	to->stacks += q->stacks;
	to->stacks_root += q->stacks_root;
	to->frames += q->frames;
	for (int i = 0; i < LEDGER_ENDS_MAX; i++)
		to->cut[i] += q->cut[i];
	for (int i = 0; i < LEDGER_SOURCES_MAX; i++)
		to->by[i] += q->by[i];
	quality_add_frames(to->kinds, to->guessed, q);
}

void quality_add(struct ledger_engine *l, const struct workload *w, const struct str *exe, uint64_t samples,
		 const struct ledger_quality *q)
{
	struct ledger_workload *row = quality_find_or_replace(l, w, exe, samples);

	l->frames += q->frames;
	for (uint32_t i = 0; i < ARRAY_SIZE(sources); i++) {
		l->named_by[i] += q->by[i];
		l->frames_named += sources[i].named ? q->by[i] : 0;
	}
	quality_add_frames(l->kinds, l->guessed, q);
	if (!row)
		return;
	row->recent += samples;
	quality_add_stacks(&row->quality, q);
}

void quality_age(struct ledger_engine *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->workloads); i++)
		l->workloads[i].recent -= l->workloads[i].recent / 2;
}
