// SPDX-License-Identifier: Apache-2.0
/* Encodes an interval: resolves names, orders samples, packs requests, finds the top function. */
#include <string.h>

#include "base/cleanup.h"
#include "profile/assemble.h"
#include "profile/builder.h"
#include "profile/names.h"
#include "profile/order.h"
#include "profile/pack.h"
#include "profile/quality.h"

#define DEFAULT_REQUEST (4u << 20)

struct interval {
	struct profile_builder *b;
	struct names names;
	struct out_request request;
	struct pack_times times;
	struct buf out;
	uint32_t *order; /* sample numbers; owned */
	profile_out_fn *fn;
	void *ctx;
	struct ledger_counts handed;
};

static void interval_done(struct interval *v)
{
	out_request_done(&v->request);
	names_done(&v->names);
	buf_done(&v->out);
	free(v->order);
}

static int encode_hand_out(struct interval *v)
{
	struct profile_stats *st = &v->b->stats;
	int r;

	if (!v->request.nr_samples)
		return 0;
	r = pack_request(&v->request, &v->times, &v->out);
	if (r == 0)
		r = v->fn(v->ctx, v->out.data, v->out.len, &v->request.total);
	if (r < 0)
		return r;
	ledger_counts_add(&v->handed, &v->request.total);
	st->requests++;
	st->bytes += v->out.len;
	st->stacks += v->request.dict.stacks.count - 1;
	st->locations += v->request.dict.locations.count - 1;
	return 0;
}

static size_t encode_request_max(const struct profile_builder *b)
{
	return b->cfg->limits.request_bytes ? b->cfg->limits.request_bytes : DEFAULT_REQUEST;
}

static int encode_begin_request(struct interval *v)
{
	out_request_done(&v->request);
	return out_request_init(&v->request, &v->names);
}

/* A sample that does not fit into an empty request is left out, and counted as lost. */
static int encode_add_sample(struct interval *v, uint32_t sample)
{
	size_t max = encode_request_max(v->b);
	int r = out_request_add(&v->request, v->b, sample, max, v->b->scratch);

	if (r != -EMSGSIZE || !v->request.nr_samples)
		return r == -EMSGSIZE ? 0 : r;
	r = encode_hand_out(v);
	if (r == 0)
		r = encode_begin_request(v);
	if (r == 0)
		r = out_request_add(&v->request, v->b, sample, max, v->b->scratch);
	return r == -EMSGSIZE ? 0 : r;
}

static int encode_compare_addresses(const void *x, const void *y, void *ctx)
{
	const struct names *n = ctx;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct named_location *a = &n->locations[i], *b = &n->locations[k];

	if (a->mapping != b->mapping)
		return a->mapping < b->mapping ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* Lists the locations of all stacks; refused samples leave others. Returns their number. */
static uint32_t encode_list_locations(const struct profile_builder *b, bool *seen, uint32_t *list)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->samples.count; i++) {
		uint32_t count;
		const uint32_t *stack = builder_stack(b, builder_sample(b, i)->stack, &count);

		for (uint32_t k = 0; k < count; k++)
			if (!seen[stack[k]]) {
				seen[stack[k]] = true;
				list[n++] = stack[k];
			}
	}
	return n;
}

/* Functions and names are numbered in the same order. */
static int encode_add_locations(struct interval *v)
{
	uint32_t room = MAX(v->names.nr_locations, 1u), count, number;
	_cleanup_(freep) uint32_t *list = calloc(room, sizeof(*list));
	_cleanup_(freep) bool *seen = calloc(room, sizeof(*seen));
	int r = 0;

	if (!list || !seen)
		return -ENOMEM;
	count = encode_list_locations(v->b, seen, list);
	qsort_r(list, count, sizeof(*list), encode_compare_addresses, &v->names);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = dictionary_location(&v->request.dict, list[i], &number);
		if (r == 0 && v->request.dict.bytes > encode_request_max(v->b))
			r = -EMSGSIZE;
	}
	return r;
}

/*
 * Orders locations by address: neighbours in a file share most of the address
 * and much of their names, which makes a compressed request 4 % smaller.
 * -EMSGSIZE: the interval needs more than one request.
 */
static int encode_in_one(struct interval *v)
{
	int r = encode_begin_request(v);

	if (r == 0)
		r = encode_add_locations(v);
	for (uint32_t i = 0; r == 0 && i < v->b->samples.count; i++)
		r = out_request_add(&v->request, v->b, v->order[i], encode_request_max(v->b), v->b->scratch);
	return r == 0 ? encode_hand_out(v) : r;
}

/* Each request has the locations of its samples, in the order of their first use. */
static int encode_in_several(struct interval *v)
{
	int r = encode_begin_request(v);

	for (uint32_t i = 0; r == 0 && i < v->b->samples.count; i++)
		r = encode_add_sample(v, v->order[i]);
	return r == 0 ? encode_hand_out(v) : r;
}

static struct str *encode_leaf_name(const struct interval *v, uint32_t sample)
{
	uint32_t count;
	const uint32_t *stack = builder_stack(v->b, builder_sample(v->b, sample)->stack, &count);

	return count ? v->names.lines[v->names.locations[stack[0]].first].name : NULL;
}

static bool encode_stack_has(const struct interval *v, uint32_t sample, const struct str *name)
{
	uint32_t count;
	const uint32_t *stack = builder_stack(v->b, builder_sample(v->b, sample)->stack, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct named_location *l = &v->names.locations[stack[i]];

		for (uint32_t k = 0; k < l->count; k++)
			if (v->names.lines[l->first + k].name == name)
				return true;
	}
	return false;
}

/* The first slot with samples: the CPU clock's, if it is sampled. */
static uint32_t encode_top_slot(const struct interval *v)
{
	uint32_t slot = 0;

	while (slot < OTP_ORIGINS_MAX - 1 && !v->b->total.of[slot])
		slot++;
	return slot;
}

static void encode_set_top(struct interval *v)
{
	uint32_t slot = encode_top_slot(v);
	struct map self = {0};
	struct str *best = NULL;
	uint64_t most = 0, total = 0;

	for (uint32_t i = 0; i < v->b->samples.count; i++) {
		struct str *name = builder_sample(v->b, i)->slot == slot ? encode_leaf_name(v, i) : NULL;
		uint64_t *known = map_find(&self, (uint64_t)(uintptr_t)name), now;

		now = (known ? *known : 0) + v->b->counts[i].value;
		if (name && map_put(&self, (uint64_t)(uintptr_t)name, now) == 0 && now > most) {
			most = now;
			best = name;
		}
	}
	map_done(&self);
	for (uint32_t i = 0; best && i < v->b->samples.count; i++)
		if (builder_sample(v->b, i)->slot == slot && encode_stack_has(v, i, best))
			total += v->b->counts[i].value;
	v->b->top = (struct profile_top){.samples = most, .total = total};
	snprintf(v->b->top.name, sizeof(v->b->top.name), "%s", str_c(best));
}

int profile_encode(struct profile_builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns, profile_out_fn *out,
		   void *ctx, struct ledger_counts *ret_lost)
{
	_cleanup_(interval_done) struct interval v = {.b = b, .fn = out, .ctx = ctx};
	int r;

	v.times = (struct pack_times){
		.start_unix_ns = start_unix_ns,
		.duration_ns = end_unix_ns > start_unix_ns ? end_unix_ns - start_unix_ns : 0,
		.origins = &b->cfg->origins,
		.scope_version = b->cfg->scope_version,
	};
	r = names_make(b, &v.names);
	if (r == 0)
		r = order_samples(b, &v.order);
	if (r == 0) {
		encode_set_top(&v);
		quality_report(b, &v.names, v.order);
		r = encode_in_one(&v);
		if (r == -EMSGSIZE)
			r = encode_in_several(&v);
	}
	b->stats.intervals++;
	*ret_lost = b->total;
	ledger_counts_subtract(ret_lost, &v.handed);
	builder_reset(b);
	return r;
}
