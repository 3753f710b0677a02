// SPDX-License-Identifier: Apache-2.0
#include "profile/assemble.h"

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/clean.h"
#include "profile/wire_size.h"

/* Upper bounds: heads of nested messages, profile with its times, id and types, scope. */
#define REQUEST_HEAD  32
#define RESOURCE_HEAD 128
#define PROFILE_HEAD  128
#define VALUE_MAX     10
/* Bytes of a location, and of a frame of a stack, in a profile that Pyroscope converted. */
#define CONVERTED_LOCATION 64
#define CONVERTED_FRAME    3

int out_request_init(struct out_request *q, const struct names *n)
{
	*q = (struct out_request){.bytes = REQUEST_HEAD};
	intern_init(&q->identities, INT32_MAX, SIZE_MAX);
	q->seen = calloc(MAX(n->nr_locations, 1u), sizeof(*q->seen));
	return q->seen ? dictionary_init(&q->dict, n) : -ENOMEM;
}

/* All profiles of an origin share these strings. */
static int out_add_types(struct out_request *q, const struct origins *origins, uint32_t slot)
{
	const struct origin_types *from = origin_types(origins->slot[slot].origin);
	struct out_types *to = &q->types[slot];
	int r;

	if (to->type)
		return 0;
	r = dictionary_text(&q->dict, from->type, &to->type);
	if (r == 0)
		r = dictionary_text(&q->dict, from->unit, &to->unit);
	if (r == 0)
		r = dictionary_text(&q->dict, from->period_type, &to->period_type);
	if (r == 0)
		r = dictionary_text(&q->dict, from->period_unit, &to->period_unit);
	return r;
}

void out_request_done(struct out_request *q)
{
	dictionary_done(&q->dict);
	intern_done(&q->identities);
	free(q->samples);
	free(q->profiles);
	free(q->resources);
	free(q->seen);
	*q = (struct out_request){0};
}

static size_t out_resource_bytes(const struct workload *w)
{
	size_t bytes = RESOURCE_HEAD;

	/* Heads of key, value and pair: at most 32 bytes an attribute. */
	for (uint32_t i = 0; i < w->count; i++)
		bytes += w->attributes[i].key->len + w->attributes[i].value->len + 32;
	return bytes;
}

static size_t out_sample_bytes(const struct out_sample *s)
{
	size_t attributes = 0;

	for (uint32_t i = 0; i < s->attributes.count; i++)
		attributes += size_varint(s->attributes.of[i]);
	return size_block(size_number(s->stack) + (attributes ? size_block(attributes) : 0) + 2 + VALUE_MAX);
}

static int out_begin_profile(struct out_request *q, uint32_t slot)
{
	struct out_resource *res = &q->resources[q->nr_resources - 1];

	if (array_reserve(&q->profiles, q->nr_profiles, &q->cap_profiles, sizeof(*q->profiles)) < 0)
		return -ENOMEM;
	q->profiles[q->nr_profiles++] = (struct out_profile){.slot = slot, .first = q->nr_samples};
	res->count++;
	q->bytes += PROFILE_HEAD;
	q->profile_bytes = 0;
	intern_reset(&q->identities);
	return 0;
}

static int out_begin_resource(struct out_request *q, const struct workload *w, uint32_t slot)
{
	if (array_reserve(&q->resources, q->nr_resources, &q->cap_resources, sizeof(*q->resources)) < 0)
		return -ENOMEM;
	q->resources[q->nr_resources++] = (struct out_resource){.workload = w, .first = q->nr_profiles};
	q->bytes += out_resource_bytes(w);
	return out_begin_profile(q, slot);
}

/* Bytes that the stack adds to a converted profile, which has its own copy of all that it uses. */
static size_t out_converted_bytes(struct out_request *q, const uint32_t *stack, uint32_t count, bool take)
{
	size_t bytes = (size_t)count * CONVERTED_FRAME;

	for (uint32_t i = 0; i < count; i++) {
		if (q->seen[stack[i]] == q->nr_profiles)
			continue;
		if (take)
			q->seen[stack[i]] = q->nr_profiles;
		bytes += CONVERTED_LOCATION + q->dict.names->locations[stack[i]].text_bytes;
	}
	return bytes;
}

static int out_choose_profile(struct out_request *q, const struct workload *w, uint32_t slot, const uint32_t *stack,
			      uint32_t count)
{
	struct out_profile *p;

	if (!q->nr_resources || q->resources[q->nr_resources - 1].workload != w)
		return out_begin_resource(q, w, slot);
	p = &q->profiles[q->nr_profiles - 1];
	if (p->slot != slot)
		return out_begin_profile(q, slot);
	if (p->count < PROFILE_SAMPLES_MAX &&
	    q->profile_bytes + out_converted_bytes(q, stack, count, false) <= PROFILE_BYTES_MAX)
		return 0;
	return p->count ? out_begin_profile(q, slot) : 0;
}

/* Samples of equal stack and attributes become one, even if the builder counted them separately. */
static int out_put_sample(struct out_request *q, struct out_sample *s, uint64_t samples)
{
	struct out_profile *p = &q->profiles[q->nr_profiles - 1];
	uint32_t number;
	int r;

	if (array_reserve(&q->samples, q->nr_samples, &q->cap_samples, sizeof(*q->samples)) < 0)
		return -ENOMEM;
	r = intern_add(&q->identities, s, offsetof(struct out_sample, value), &number);
	if (r < 0)
		return r;
	q->total.of[p->slot] += samples;
	if (r == 0) {
		q->samples[p->first + number].value += s->value;
		return 0;
	}
	q->samples[q->nr_samples++] = *s;
	q->bytes += out_sample_bytes(s);
	p->count++;
	return 0;
}

/* The state to restore after an addition that does not fit. */
struct out_mark {
	struct dictionary_mark dict;
	struct out_types types[OTP_ORIGINS_MAX];
	uint32_t nr_profiles, nr_resources, profiles_of_last;
	size_t bytes;
};

static void out_mark_set(const struct out_request *q, struct out_mark *ret)
{
	dictionary_mark(&q->dict, &ret->dict);
	memcpy(ret->types, q->types, sizeof(ret->types));
	ret->nr_profiles = q->nr_profiles;
	ret->nr_resources = q->nr_resources;
	ret->profiles_of_last = q->nr_resources ? q->resources[q->nr_resources - 1].count : 0;
	ret->bytes = q->bytes;
}

/* The caller closes the request after this, so the state of the open profile is not restored. */
static void out_mark_restore(struct out_request *q, const struct out_mark *to)
{
	dictionary_return(&q->dict, &to->dict);
	q->nr_profiles = to->nr_profiles;
	q->nr_resources = to->nr_resources;
	if (q->nr_resources)
		q->resources[q->nr_resources - 1].count = to->profiles_of_last;
	q->bytes = to->bytes;
	/* Profiles that stay need their types; strings of types added since are removed. */
	memcpy(q->types, to->types, sizeof(q->types));
}

static int out_translate_sample(struct out_request *q, const struct profile_builder *b, uint32_t number,
				struct out_sample *s, uint32_t *scratch)
{
	const struct sample_key *key = builder_sample(b, number);
	const struct workload *w = builder_workload(b, key->workload);
	uint32_t count;
	const uint32_t *stack = builder_stack(b, key->stack, &count);
	int r = out_choose_profile(q, w, key->slot, stack, count);

	if (r == 0)
		r = out_add_types(q, &b->cfg->origins, key->slot);
	if (r == 0)
		r = dictionary_stack(&q->dict, stack, count, scratch, &s->stack);
	if (r == 0)
		r = sample_attributes(&q->dict, key, w, b->cfg->attributes, &s->attributes);
	if (r == 0)
		q->profile_bytes += out_converted_bytes(q, stack, count, true);
	s->value = b->counts[number].value;
	return r;
}

int out_request_add(struct out_request *q, const struct profile_builder *b, uint32_t sample, size_t max,
		    uint32_t *scratch)
{
	struct out_sample s;
	struct out_mark before;
	int r;

	memset(&s, 0, sizeof(s)); /* compared as bytes */
	out_mark_set(q, &before);
	r = out_translate_sample(q, b, sample, &s, scratch);
	if (r == 0 && q->bytes + out_sample_bytes(&s) + q->dict.bytes > max)
		r = -EMSGSIZE;
	if (r == 0)
		r = out_put_sample(q, &s, b->counts[sample].samples);
	if (r < 0)
		out_mark_restore(q, &before);
	return r;
}
