// SPDX-License-Identifier: Apache-2.0
/*
 * A pipeline's parts: creation, reconfiguration, bounds, end.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/pipeline_state.h"
#include "daemon/report/quality.h"
#include "process/binary.h"

/* Functions of interpreted code: lines and names, a part of what the caches may hold. */
#define RUNTIMES_BYTES (8u << 20)

static void pipeline_on_file_settled(void *ctx, struct mapped_file *f)
{
	((struct pipeline *)ctx)->settled = true;
}

static void pipeline_on_process_settled(void *ctx, struct process *proc)
{
	((struct pipeline *)ctx)->settled = true;
}

static void pipeline_on_index_settled(void *ctx)
{
	((struct pipeline *)ctx)->settled = true;
}

/* A wait lasts an interval, and the rest of the one in which it begins: two at most. */
static int pipeline_make_symbols(struct pipeline *p, struct host *host)
{
	const struct config *c = p->config;
	struct symbol_limits limits = {
		.function_start = unwind_function_start,
		.host = c->symbols_cache_bytes ? host : NULL,
		.inlines = c->symbols_inline,
		.lines = c->symbols_lines,
		.show_clones = c->symbols_show_clones,
		.wait_ns = c->interval_ns,
		.index_settled = pipeline_on_index_settled,
		.ctx = p,
	};

	return symbolizer_new(&limits, &p->symbols);
}

static void pipeline_on_quality(void *ctx, const struct workload *w, const struct str *exe, uint64_t samples,
				const struct ledger_quality *q)
{
	quality_add(((struct pipeline *)ctx)->ledger, w, exe, samples, q);
}

/* The configuration of profiles. */
static void pipeline_set_shape(struct pipeline *p)
{
	p->counting.attributes = p->config->sample_attributes;
	p->counting.limits.request_bytes = p->config->request_max_bytes;
}

static int pipeline_make_profile(struct pipeline *p)
{
	int r;

	p->counting.scope_version = OTPROF_VERSION;
	p->counting.symbols = p->symbols;
	p->counting.quality = pipeline_on_quality;
	p->counting.ctx = p;
	pipeline_set_shape(p);
	r = profile_new(&p->counting, &p->profile);
	return r < 0 ? r : profile_new(&p->counting, &p->late);
}

static int pipeline_make_table(struct pipeline *p, const struct pipeline_config *from)
{
	struct process_table_config cfg = {
		.limits.processes = p->config->processes_max,
		.host = from->host,
		.vdso = from->vdso,
		.resource = p->resource.attributes,
		.nr_resource = p->resource.count,
		.file_settled = pipeline_on_file_settled,
		.process_settled = pipeline_on_process_settled,
		.ctx = p,
	};

	return table_new(&cfg, &p->table);
}

/*
 * The bounds on copies, and the sizes of a program without plan or hint: the same as the monitor sets in the sampler.
 */
static void pipeline_set_copies(struct pipeline *p)
{
	const struct config *c = p->config;

	p->adapt.max_bytes = MIN(c->stack_max_bytes, p->stack_limit);
	p->adapt.base_max = config_base(p->adapt.max_bytes);
	p->hints.start = (struct otp_hint){.stack_bytes = c->stack_bytes, .base_bytes = config_base(c->stack_bytes)};
}

static void pipeline_on_runtime_unknown(void *ctx, uint32_t pid, const char *runtime, const char *why)
{
	struct pipeline *p = ctx;

	if (p->ops->unknown_runtime)
		p->ops->unknown_runtime(p->ctx, pid, runtime, why);
}

static void pipeline_on_walks(void *ctx, uint32_t pid)
{
	pipeline_send_walks(ctx, pid);
}

static int pipeline_make_runtimes(struct pipeline *p, const struct pipeline_config *from)
{
	struct runtimes_config cfg = {
		.decoders = p->config->runtimes_walk ? from->decoders : NULL,
		.ledger = p->ledger,
		.bytes_max = RUNTIMES_BYTES,
		.unknown = pipeline_on_runtime_unknown,
		.walks = pipeline_on_walks,
		.settled = pipeline_on_index_settled,
		.ctx = p,
	};

	return runtimes_new(&cfg, &p->runtimes);
}

int pipeline_new(const struct pipeline_config *cfg, struct pipeline **ret)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = cfg->config;
	p->ops = cfg->ops;
	p->ctx = cfg->ctx;
	p->ledger = cfg->ledger;
	p->counting.origins = cfg->origins;
	p->capture = cfg->capture;
	p->stack_limit = UINT32_MAX;
	p->hints.send = cfg->ops->hint;
	p->hints.ctx = cfg->ctx;
	pipeline_set_copies(p);
	park_init(&p->park);
	p->jit = (struct jit){.host = cfg->host, .settled = pipeline_on_index_settled, .ctx = p};
	r = resource_set_new(&p->resource, p->config);
	if (r == 0)
		r = pipeline_make_symbols(p, cfg->host);
	if (r == 0)
		r = unwinder_new(&(struct unwind_limits){0}, &p->unwinder);
	if (r == 0)
		r = pipeline_make_runtimes(p, cfg);
	if (r == 0)
		r = pipeline_make_profile(p);
	if (r == 0)
		r = pipeline_make_table(p, cfg);
	if (r < 0)
		pipeline_free(p);
	else
		*ret = p;
	return r;
}

static int pipeline_renew_resource(struct pipeline *p)
{
	struct resource_set before = p->resource, now;
	int r = resource_set_new(&now, p->config);

	if (r < 0)
		return r;
	p->resource = now;
	r = table_set_resource(p->table, p->resource.attributes, p->resource.count);
	resource_set_done(&before);
	return r;
}

/* Names whose hint was not sent have the default sizes. */
static void pipeline_lower_hints(struct pipeline *p)
{
	for (size_t i = 0; i < HINTS_MAX; i++) {
		struct hint *h = &p->hints.all[i];
		struct otp_hint now = {.stack_bytes = MIN(h->now.stack_bytes, p->adapt.max_bytes),
				       .base_bytes = MIN(h->now.base_bytes, p->adapt.base_max)};

		if (!h->sent || memcmp(&now, &h->now, sizeof(now)) == 0)
			continue;
		h->now = now;
		p->hints.send(p->hints.ctx, h->comm, &h->now);
	}
}

int pipeline_reload(struct pipeline *p, const struct config *config)
{
	p->config = config;
	pipeline_set_copies(p);
	pipeline_lower_hints(p);
	pipeline_set_shape(p);
	return pipeline_renew_resource(p);
}

/* File pages, symbol tables and names, in the proportion that they have by default: 1 to 3 to 3. */
void pipeline_limit(struct pipeline *p, size_t cache_bytes, uint32_t stack_max_bytes)
{
	binary_cache_limit(cache_bytes / 7);
	symbolizer_limit(p->symbols, cache_bytes / 7 * 3, cache_bytes / 7 * 3);
	runtimes_limit(p->runtimes, MIN(cache_bytes / 3, (size_t)RUNTIMES_BYTES));
	p->stack_limit = stack_max_bytes;
	pipeline_set_copies(p);
	malloc_trim(0);
}

struct pipeline *pipeline_free(struct pipeline *p)
{
	if (!p)
		return NULL;
	park_done(&p->park);
	jit_done(&p->jit);
	runtimes_free(p->runtimes);
	hints_done(&p->hints);
	profile_free(p->profile);
	profile_free(p->late);
	unwinder_free(p->unwinder);
	table_free(p->table);
	symbolizer_free(p->symbols);
	kernel_symbols_free(p->kernel);
	resource_set_done(&p->resource);
	free(p);
	return NULL;
}
