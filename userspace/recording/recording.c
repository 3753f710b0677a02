// SPDX-License-Identifier: Apache-2.0
#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define UNKNOWN_SERVICE "unknown service"

void recording_tables(struct recording *r, struct intern *ret[RECORDING_TABLES])
{
	struct intern *all[RECORDING_TABLES] = {
		&r->strings, &r->values, &r->attributes, &r->sets, &r->functions, &r->mappings, &r->locations,
		&r->links, &r->stacks, &r->resources, &r->scopes, &r->series, &r->samples,
	};

	memcpy(ret, all, sizeof(all));
}

/* Number 0 of each table is its zero value; series and samples have none. */
static int recording_add_zeros(struct recording *r)
{
	static const uint64_t zero[8];
	uint32_t n;
	int e = 0;

	e |= intern_number(&r->strings, "", 1, &n);
	e |= intern_number(&r->strings, UNKNOWN_SERVICE, sizeof(UNKNOWN_SERVICE), &n);
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
	if (e || array_reach(&r->workloads, 0, &r->workloads_cap, sizeof(*r->workloads)) < 0)
		return -ENOMEM;
	r->workloads[0].service = RECORDING_UNKNOWN_SERVICE;
	return 0;
}

int recording_new(const struct recording_limits *limits, struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct intern *tables[RECORDING_TABLES];
	size_t i;

	if (!r)
		return -ENOMEM;
	r->limits = *limits;
	recording_tables(r, tables);
	for (i = 0; i < RECORDING_TABLES; i++)
		intern_init(tables[i], limits->entries, limits->bytes);
	if (recording_add_zeros(r) < 0) {
		recording_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

struct recording *recording_free(struct recording *r)
{
	struct intern *tables[RECORDING_TABLES];
	size_t i;

	if (!r)
		return NULL;
	recording_tables(r, tables);
	for (i = 0; i < RECORDING_TABLES; i++)
		intern_done(tables[i]);
	free(r->sums);
	free(r->times);
	free(r->workloads);
	free(r);
	return NULL;
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
