// SPDX-License-Identifier: Apache-2.0
/* Which series of a recording belong into one picture, and what is said of them. */
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "recording/recording.h"

static const struct rec_series *series_at(const struct recording *r, uint32_t n)
{
	return intern_key(&r->series, n);
}

static bool is_cpu(const struct recording *r, const struct rec_series *s)
{
	return strcmp(recording_str(r, s->type), "samples") == 0 &&
	       strcmp(recording_str(r, s->period_type), "cpu") == 0;
}

static const struct rec_series *choose(const struct recording *r)
{
	uint32_t i;

	for (i = 0; i < r->series.count; i++)
		if (is_cpu(r, series_at(r, i)))
			return series_at(r, i);
	return r->series.count ? series_at(r, 0) : NULL;
}

bool recording_in_view(const struct recording *r, const struct rec_view *v, uint32_t series)
{
	const struct rec_series *s = series_at(r, series);

	return s->type == v->type && s->unit == v->unit && s->period_type == v->period_type &&
	       s->period_unit == v->period_unit;
}

/* Counts distinct texts; the map's keys are hashes of them. */
static void count_text(struct map *seen, const char *text, uint32_t *count)
{
	uint64_t key = hash_bytes(text, strlen(text), 0);

	if (!map_find(seen, key) && map_put(seen, key, 1) == 0)
		++*count;
}

static void view_series(const struct recording *r, struct rec_view *v, uint32_t n, struct map *services,
			struct map *hosts)
{
	const struct rec_series *s = series_at(r, n);
	const char *host = recording_resource_text(r, n, "host.name");
	struct rec_times t = n < r->times_cap ? r->times[n] : (struct rec_times){0};

	if (s->period != v->period)
		v->period_mixed = true;
	if (t.start_ns && (!v->start_ns || t.start_ns < v->start_ns))
		v->start_ns = t.start_ns;
	v->end_ns = MAX(v->end_ns, t.end_ns);
	count_text(services, recording_service(r, n), &v->services);
	if (!host)
		return;
	count_text(hosts, host, &v->hosts);
	v->host = v->hosts == 1 ? host : NULL;
}

void recording_view(const struct recording *r, struct rec_view *ret)
{
	_cleanup_(map_done) struct map services = {0}, hosts = {0};
	const struct rec_series *s = choose(r);
	uint32_t i;

	*ret = (struct rec_view){0};
	if (!s)
		return;
	*ret = (struct rec_view){.type = s->type, .unit = s->unit, .period_type = s->period_type,
				 .period_unit = s->period_unit, .period = s->period};
	for (i = 0; i < r->series.count; i++)
		if (recording_in_view(r, ret, i))
			view_series(r, ret, i, &services, &hosts);
	for (i = 0; i < r->samples.count; i++) {
		const struct rec_sample *sample = intern_key(&r->samples, i);

		if (recording_in_view(r, ret, sample->series))
			ret->samples += r->sums[i];
		else
			ret->other += r->sums[i];
	}
}
