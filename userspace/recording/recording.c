// SPDX-License-Identifier: Apache-2.0
#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/utf8.h"

static void recording_tables(struct recording *r, struct intern *tables[13])
{
	struct intern *all[13] = {
		&r->strings, &r->values, &r->attributes, &r->sets, &r->functions, &r->mappings, &r->locations,
		&r->links, &r->stacks, &r->resources, &r->scopes, &r->series, &r->samples,
	};

	memcpy(tables, all, sizeof(all));
}

/* Number 0 of each table is its zero value; series and samples have none. */
static int add_zeros(struct recording *r)
{
	static const uint64_t zero[8];
	uint32_t n;
	int e = 0;

	e |= intern_number(&r->strings, "", 1, &n);
	e |= intern_number(&r->values, "", 0, &n);
	e |= intern_number(&r->attributes, zero, sizeof(struct rec_attribute), &n);
	e |= intern_number(&r->sets, "", 0, &n);
	e |= intern_number(&r->functions, zero, sizeof(struct rec_function), &n);
	e |= intern_number(&r->mappings, zero, sizeof(struct rec_mapping), &n);
	e |= intern_number(&r->locations, zero, sizeof(struct rec_location), &n);
	e |= intern_number(&r->links, zero, sizeof(struct rec_link), &n);
	e |= intern_number(&r->stacks, "", 0, &n);
	e |= intern_number(&r->resources, zero, sizeof(struct rec_resource), &n);
	e |= intern_number(&r->scopes, zero, sizeof(struct rec_scope), &n);
	return e ? -ENOMEM : 0;
}

int recording_new(struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct intern *tables[13];
	size_t i;

	if (!r)
		return -ENOMEM;
	recording_tables(r, tables);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		intern_init(tables[i], RECORDING_TABLE_MAX, SIZE_MAX);
	if (add_zeros(r) < 0) {
		recording_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

struct recording *recording_free(struct recording *r)
{
	struct intern *tables[13];
	size_t i;

	if (!r)
		return NULL;
	recording_tables(r, tables);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		intern_done(tables[i]);
	free(r->counts);
	free(r->times);
	free(r);
	return NULL;
}

int recording_string(struct recording *r, const char *s, size_t len, uint32_t *ret)
{
	_cleanup_(buf_done) struct buf b = {0};

	utf8_add_clean(&b, s, len);
	buf_add(&b, "", 1);
	if (b.failed)
		return -ENOMEM;
	return intern_number(&r->strings, b.data, b.len, ret);
}

/* Makes room for element n of an array of zeroed elements. */
static int grow(void *array, uint32_t *cap, uint32_t n, size_t size)
{
	void **at = array, *p;
	uint32_t want = MAX(*cap * 2, MAX(n + 1, 64u));

	if (n < *cap)
		return 0;
	p = reallocarray(*at, want, size);
	if (!p)
		return -ENOMEM;
	memset((uint8_t *)p + *cap * size, 0, (want - *cap) * size);
	*at = p;
	*cap = want;
	return 0;
}

int recording_add(struct recording *r, const struct rec_sample *s, uint64_t count)
{
	uint64_t total, frames = r->frames + intern_len(&r->stacks, s->stack) / sizeof(uint32_t) + 1;
	uint32_t n;
	int e;

	if (__builtin_add_overflow(r->total, count, &total) || total > RECORDING_TOTAL_MAX ||
	    frames > RECORDING_FRAMES_MAX)
		return -E2BIG;
	e = intern_number(&r->samples, s, sizeof(*s), &n);
	if (!e)
		e = grow(&r->counts, &r->counts_cap, n, sizeof(*r->counts));
	if (e < 0)
		return e;
	r->counts[n] += count;
	r->total = total;
	r->frames = frames;
	return 0;
}

int recording_span(struct recording *r, uint32_t series, uint64_t start_ns, uint64_t end_ns)
{
	struct rec_times *t;

	if (grow(&r->times, &r->times_cap, series, sizeof(*r->times)) < 0)
		return -ENOMEM;
	t = &r->times[series];
	if (start_ns && (!t->start_ns || start_ns < t->start_ns))
		t->start_ns = start_ns;
	t->end_ns = MAX(t->end_ns, end_ns);
	return 0;
}

const struct rec_attribute *recording_find(const struct recording *r, uint32_t set, const char *key)
{
	size_t n, i;
	const uint32_t *numbers = recording_set(r, set, &n);

	for (i = 0; i < n; i++) {
		const struct rec_attribute *a = intern_key(&r->attributes, numbers[i]);

		if (strcmp(recording_str(r, a->key), key) == 0)
			return a;
	}
	return NULL;
}

const char *recording_text(const struct recording *r, uint32_t set, const char *key)
{
	const struct rec_attribute *a = recording_find(r, set, key);

	return a ? recording_str(r, a->text) : NULL;
}

const char *recording_resource_text(const struct recording *r, uint32_t series, const char *key)
{
	const struct rec_series *s = intern_key(&r->series, series);
	const struct rec_resource *res = intern_key(&r->resources, s->resource);

	return recording_text(r, res->attributes, key);
}

const char *recording_service(const struct recording *r, uint32_t series)
{
	static const char *const keys[] = {"service.name", "process.executable.name", "container.id"};
	const char *text;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		text = recording_resource_text(r, series, keys[i]);
		if (text && *text)
			return text;
	}
	return "unknown service";
}

const char *recording_strerror(int err)
{
	switch (-err) {
	case EBADMSG:
		return "not a valid OTLP profiles request";
	case E2BIG:
	case ENOSPC:
		return "larger than this tool handles";
	default:
		return strerror(-err);
	}
}
