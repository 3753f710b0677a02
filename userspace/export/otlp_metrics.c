// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "otlp/wire.h"

#define METRICS(name)	   Opentelemetry__Proto__Metrics__V1__##name
#define METRICS_INIT(NAME) OPENTELEMETRY__PROTO__METRICS__V1__##NAME##__INIT
#define COMMON(name)	   Opentelemetry__Proto__Common__V1__##name
#define COMMON_INIT(NAME)  OPENTELEMETRY__PROTO__COMMON__V1__##NAME##__INIT

#define CUMULATIVE \
	OPENTELEMETRY__PROTO__METRICS__V1__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE
#define START_NAME   "otprof_start_time_seconds"
#define START_MAX  1e10 /* seconds: what 64 bits of nanoseconds hold */
#define LABELS_MAX   8
#define FAMILY_BYTES (16u << 20) /* of the messages of one metric */

/* A metric of the page, whose lines are adjacent. */
struct family {
	struct arena arena;
	bool failed; /* without memory */
	const char *name, *help, *type;
	METRICS(NumberDataPoint) **points; /* the arena's */
	size_t n, cap;
};

struct page {
	const struct otlp_metrics_from *from;
	uint64_t start_unix_ns;
	struct family now;
	struct buf metrics; /* of the scope, encoded */
};

static void page_done(struct page *p)
{
	arena_done(&p->now.arena);
	buf_done(&p->metrics);
}

static void metrics_append(struct buf *out, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *to = buf_reserve(out, len);

	if (!to)
		return;
	protobuf_c_message_pack(m, to);
	buf_commit(out, len);
}

/* Appends content as a field of that number. */
static void metrics_append_block(struct buf *out, uint32_t field, const struct buf *content)
{
	wire_append_block(out, field, content->data, content->len);
	out->failed |= content->failed;
}

static bool name_ends(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(name + len - n, end, n);
}

/* UCUM, as OpenTelemetry writes units. */
static const char *metrics_unit(const char *name)
{
	static const char *const units[][2] = {{"_seconds", "s"}, {"_bytes", "By"}, {"_ratio", "1"}, {"_hertz", "Hz"}};
	size_t len = strlen(name);

	if (name_ends(name, len, "_total"))
		len -= strlen("_total");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (name_ends(name, len, units[i][0]))
			return units[i][1];
	return "1";
}

/* Ends the metric: its message leaves for the scope. */
static void page_end_family(struct page *p)
{
	struct family *f = &p->now;
	METRICS(ScopeMetrics) part = METRICS_INIT(SCOPE_METRICS);
	METRICS(Metric) m = METRICS_INIT(METRIC), *list = &m;
	METRICS(Sum) sum = METRICS_INIT(SUM);
	METRICS(Gauge) gauge = METRICS_INIT(GAUGE);

	p->metrics.failed |= f->failed;
	if (f->n && !f->failed) {
		m.name = (char *)(uintptr_t)f->name;
		m.description = (char *)(uintptr_t)f->help;
		m.unit = (char *)(uintptr_t)metrics_unit(f->name);
		sum.n_data_points = gauge.n_data_points = f->n;
		sum.data_points = gauge.data_points = f->points;
		sum.is_monotonic = true;
		sum.aggregation_temporality = CUMULATIVE;
		if (!strcmp(f->type, "counter")) {
			m.data_case = OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_SUM;
			m.sum = &sum;
		} else {
			m.data_case = OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_GAUGE;
			m.gauge = &gauge;
		}
		part.n_metrics = 1;
		part.metrics = &list;
		metrics_append(&p->metrics, &part.base);
	}
	arena_done(&f->arena);
	*f = (struct family){.arena.max = FAMILY_BYTES};
}

/* A quoted value, its escapes resolved in place; returns what follows, or NULL. */
static char *metrics_unquote(char *at, char **ret_value)
{
	char *to = at + 1;

	if (*at++ != '"')
		return NULL;
	*ret_value = to;
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && *++at == 'n')
			*at = '\n';
		if (!*at)
			return NULL;
		*to++ = *at;
	}
	if (*at != '"')
		return NULL;
	*to = '\0';
	return at + 1;
}

static void metrics_add_label(struct family *f, METRICS(NumberDataPoint) *point, char *key, char *value)
{
	COMMON(KeyValue) *kv = ARENA_MAKE(&f->arena, &f->failed, COMMON(KeyValue), COMMON_INIT(KEY_VALUE));
	COMMON(AnyValue) *v = ARENA_MAKE(&f->arena, &f->failed, COMMON(AnyValue), COMMON_INIT(ANY_VALUE));

	if (!kv || !v)
		return;
	v->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
	v->string_value = value;
	kv->key = key;
	kv->value = v;
	point->attributes[point->n_attributes++] = kv;
}

/* key="value",...}; returns what follows, or NULL. */
static char *metrics_labels(struct family *f, METRICS(NumberDataPoint) *point, char *at)
{
	point->attributes = arena_make(&f->arena, &f->failed, LABELS_MAX, sizeof(*point->attributes));
	while (point->attributes && *at != '}') {
		char *key = at, *end = strchr(at, '='), *value;

		if (!end || point->n_attributes == LABELS_MAX)
			return NULL;
		*end = '\0';
		at = metrics_unquote(end + 1, &value);
		if (!at)
			return NULL;
		metrics_add_label(f, point, key, value);
		if (*at == ',')
			at++;
		else if (*at != '}')
			return NULL;
	}
	return point->attributes ? at + 1 : NULL;
}

static int metrics_value(METRICS(NumberDataPoint) *point, const char *at)
{
	char *end;

	errno = 0;
	if (strchr(at, '.')) {
		point->value_case = OPENTELEMETRY__PROTO__METRICS__V1__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		point->as_double = strtod(at, &end);
	} else {
		point->value_case = OPENTELEMETRY__PROTO__METRICS__V1__NUMBER_DATA_POINT__VALUE_AS_INT;
		point->as_int = (int64_t)strtoull(at, &end, 10);
	}
	return errno || end == at || *end ? -EBADMSG : 0;
}

static int family_reserve(struct family *f)
{
	size_t more = f->cap ? 2 * f->cap : 8;
	METRICS(NumberDataPoint) **list;

	if (f->n < f->cap)
		return 0;
	list = arena_make(&f->arena, &f->failed, more, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (f->n)
		memcpy(list, f->points, f->n * sizeof(*list));
	f->points = list;
	f->cap = more;
	return 0;
}

/* name{labels} value */
static int page_point(struct page *p, char *line)
{
	struct family *f = &p->now;
	size_t len = f->name ? strlen(f->name) : 0;
	METRICS(NumberDataPoint) *point;
	char *at = line + len;

	if (!len || !f->type || strncmp(line, f->name, len))
		return -EBADMSG;
	point = ARENA_MAKE(&f->arena, &f->failed, METRICS(NumberDataPoint), METRICS_INIT(NUMBER_DATA_POINT));
	if (!point || family_reserve(f) < 0)
		return -ENOMEM;
	if (*at == '{')
		at = metrics_labels(f, point, at + 1);
	if (f->failed)
		return -ENOMEM;
	if (!at || *at++ != ' ' || metrics_value(point, at) < 0)
		return -EBADMSG;
	point->time_unix_nano = p->from->time_unix_ns;
	point->start_time_unix_nano = strcmp(f->type, "counter") ? 0 : p->start_unix_ns;
	f->points[f->n++] = point;
	return 0;
}

/* "# HELP name text" begins a metric, "# TYPE name type" follows it. */
static int page_comment(struct page *p, char *line)
{
	struct family *f = &p->now;
	char *name = line + strlen("# HELP "), *text;

	if (strncmp(line, "# HELP ", 7) && strncmp(line, "# TYPE ", 7))
		return 0;
	text = strchr(name, ' ');
	if (!text)
		return -EBADMSG;
	*text++ = '\0';
	if (line[2] == 'H') {
		page_end_family(p);
		f->name = name;
		f->help = text;
		return 0;
	}
	if (!f->name || strcmp(f->name, name))
		return -EBADMSG;
	f->type = text;
	return 0;
}

/* It stands anywhere on the page, and counters before it need it. */
static uint64_t page_start(const char *page)
{
	const char *at = strstr(page, "\n" START_NAME " ");
	double seconds = at ? strtod(at + strlen("\n" START_NAME " "), NULL) : 0;

	return seconds > 0 && seconds < START_MAX ? (uint64_t)(seconds * (double)NSEC_PER_SEC) : 0;
}

static int page_read(struct page *p, char *page)
{
	char *save = NULL;
	int rc = 0;

	for (char *line = strtok_r(page, "\n", &save); line && !rc; line = strtok_r(NULL, "\n", &save))
		rc = *line == '#' ? page_comment(p, line) : page_point(p, line);
	page_end_family(p);
	return rc;
}

static void metrics_append_resource(const struct otlp_metrics_from *from, struct buf *out)
{
	Opentelemetry__Proto__Resource__V1__Resource part = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
	COMMON(KeyValue) kv = COMMON_INIT(KEY_VALUE), *list = &kv;
	COMMON(AnyValue) value = COMMON_INIT(ANY_VALUE);

	part.n_attributes = 1;
	part.attributes = &list;
	kv.value = &value;
	value.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
	for (size_t i = 0; i < from->nr_resource; i++) {
		kv.key = (char *)(uintptr_t)from->resource[i].key;
		value.string_value = (char *)(uintptr_t)from->resource[i].value;
		metrics_append(out, &part.base);
	}
}

static void metrics_append_scope(const struct otlp_metrics_from *from, struct buf *out)
{
	METRICS(ScopeMetrics) part = METRICS_INIT(SCOPE_METRICS);
	COMMON(InstrumentationScope) scope = COMMON_INIT(INSTRUMENTATION_SCOPE);
	char name[] = "otprof";

	scope.name = name;
	scope.version = (char *)(uintptr_t)from->version;
	part.scope = &scope;
	metrics_append(out, &part.base);
}

int otlp_metrics_encode(char *page, const struct otlp_metrics_from *from, struct buf *out)
{
	_cleanup_(page_done) struct page p = {
		.from = from, .now.arena.max = FAMILY_BYTES, .start_unix_ns = page_start(page)};
	_cleanup_(buf_done) struct buf resource = {0}, parts = {0};
	int rc;

	metrics_append_scope(from, &p.metrics);
	rc = page_read(&p, page);
	if (rc < 0)
		return rc;
	metrics_append_resource(from, &resource);
	metrics_append_block(&parts, 1, &resource);
	metrics_append_block(&parts, 2, &p.metrics);
	if (parts.failed)
		return -ENOMEM;
	metrics_append_block(out, 1, &parts);
	return out->failed ? -E2BIG : 0;
}
