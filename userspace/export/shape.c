// SPDX-License-Identifier: Apache-2.0
#include "export/shape.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "export/preset.h"
#include "export/request.h"
#include "render/render.h"

/* The parts of an interval arrive within this time of each other. */
#define SHAPE_GRACE_NS NSEC_PER_SEC
#define SHAPE_DEPTH 8192 /* PROFILE_FRAMES_MAX, and more */
/* Decoded messages of a request, by its bytes: measured 8 times; the reader's own bound is 64. */
#define SHAPE_DECODED 32

static uint64_t shape_interval(const struct export_config *cfg)
{
	return MAX(cfg->interval_ns, cfg->engine_interval_ns);
}

bool shape_wanted(const struct export_config *cfg)
{
	return cfg->preset != EXPORT_PRESET_OTLP || shape_interval(cfg) > cfg->engine_interval_ns;
}

bool shape_fits(const struct shape *s, const struct export_config *cfg)
{
	return s->preset == cfg->preset && s->interval_ns == shape_interval(cfg) &&
	       s->engine_ns == cfg->engine_interval_ns;
}

void shape_init(struct shape *s, const struct export_config *cfg)
{
	*s = (struct shape){.preset = cfg->preset,
			    .interval_ns = shape_interval(cfg),
			    .engine_ns = cfg->engine_interval_ns,
			    .due_ns = UINT64_MAX};
}

static void shape_empty(struct shape *s)
{
	s->merged = recording_free(s->merged);
	s->samples = (struct ledger_counts){0};
	s->bytes = 0;
	s->due_ns = UINT64_MAX;
}

void shape_done(struct shape *s)
{
	shape_empty(s);
}

bool shape_has_room(const struct shape *s, const struct export_request *r)
{
	const struct export_form *plain = &r->form[EXPORT_CODING_NONE];

	return !s->merged || (s->bytes <= SHAPE_BYTES && plain->len <= SHAPE_BYTES - s->bytes);
}

/* The engine bounds its requests; what is merged has no more entries and bytes than they have together. */
static int shape_begin(struct shape *s, uint64_t now_ns)
{
	const struct recording_limits limits = {
		.request = {.request_bytes = EXPORT_REQUEST_MAX, .depth = SHAPE_DEPTH}, /* memory: by the request */
		.entries = 1u << 24,
		.bytes = (size_t)EXPORT_REQUEST_MAX * 4,
		.total = INT64_MAX,
		.frames = UINT32_MAX,
	};
	uint64_t wait = s->interval_ns - s->engine_ns;
	int rc;

	/* The first of several intervals has ended already. */
	s->due_ns = now_ns + wait + (wait ? MIN(s->engine_ns / 2, SHAPE_GRACE_NS) : 0);
	rc = recording_new(&limits, &s->merged);
	if (!rc)
		s->merged->drops_addresses = preset_drops_addresses(s->preset);
	return rc;
}

int shape_add(struct shape *s, const struct export_request *r, uint64_t now_ns)
{
	const struct export_form *plain = &r->form[EXPORT_CODING_NONE];
	bool first = !s->merged;
	int rc = first ? shape_begin(s, now_ns) : 0;

	if (!rc) {
		s->merged->limits.request.memory_bytes = MAX(plain->len, (size_t)1 << 20) * SHAPE_DECODED;
		rc = recording_read(s->merged, plain->data, plain->len);
	}
	if (rc < 0) {
		if (first)
			shape_empty(s);
		return rc;
	}
	ledger_counts_add(&s->samples, &r->samples);
	s->bytes += plain->len;
	s->last_id = r->id;
	return 0;
}

/* All profiles of a request cover its interval, also those with samples in a part of it alone: a rate is by interval. */
static void shape_set_times(struct recording *r)
{
	struct rec_times all = {0};

	for (uint32_t i = 0; i < r->series.count; i++)
		rec_times_add(&all, r->times[i].start_ns, r->times[i].end_ns);
	for (uint32_t i = 0; i < r->series.count; i++)
		r->times[i] = all;
}

static int shape_render(struct shape *s, struct export_request **ret)
{
	_cleanup_(buf_done) struct buf out;
	int rc = preset_apply(s->preset, s->merged);

	buf_init(&out, EXPORT_REQUEST_MAX);
	shape_set_times(s->merged);
	if (!rc)
		rc = render_otlp(s->merged, MAX(s->bytes, (size_t)1 << 20) * SHAPE_DECODED, &out);
	return rc ? rc : request_new_copy(out.data, out.len, s->last_id, &s->samples, ret);
}

int shape_finish(struct shape *s, struct export_request **ret)
{
	int rc = s->merged ? shape_render(s, ret) : -ENOENT;

	shape_empty(s);
	return rc;
}
