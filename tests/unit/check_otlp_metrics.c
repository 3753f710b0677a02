// SPDX-License-Identifier: Apache-2.0
/* otprof's own metrics: from the page to a request, and on to receivers. */
#include "tests/unit/receiver.h"

#include <poll.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "export/http_url.h"
#include "export/otlp_metrics.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"

Suite *otlp_metrics_suite(void);

typedef Opentelemetry__Proto__Collector__Metrics__V1__ExportMetricsServiceRequest Request;
typedef Opentelemetry__Proto__Metrics__V1__Metric Metric;
#define REQUEST(name) opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__##name

#define PAGE                                                                                   \
	"# HELP otprof_samples_lost_total Samples lost.\n"                                    \
	"# TYPE otprof_samples_lost_total counter\n"                                          \
	"otprof_samples_lost_total{destination=\"a\",reason=\"ring_full\"} 3\n"               \
	"otprof_samples_lost_total{destination=\"a\",reason=\"encode\"} 0\n"                  \
	"# HELP otprof_memory_bytes Memory of otprof itself.\n"                               \
	"# TYPE otprof_memory_bytes gauge\n"                                                  \
	"otprof_memory_bytes 12345\n"                                                         \
	"# HELP otprof_cpu_seconds_total CPU time.\n"                                         \
	"# TYPE otprof_cpu_seconds_total counter\n"                                           \
	"otprof_cpu_seconds_total{process=\"net\"} 1.500000000\n"                             \
	"# HELP otprof_start_time_seconds When.\n"                                            \
	"# TYPE otprof_start_time_seconds gauge\n"                                            \
	"otprof_start_time_seconds 100.500000000\n"                                           \
	"# HELP otprof_workload_stacks_total Stacks.\n"                                       \
	"# TYPE otprof_workload_stacks_total counter\n"                                       \
	"otprof_workload_stacks_total{service=\"a\\\"b\\\\c\",executable=\"\"} 18446744073709551615\n"

static const struct otlp_metrics_label resource[] = {{"service.name", "otprof"}, {"host.name", "box"}};
static const struct otlp_metrics_from from = {
	.resource = resource, .nr_resource = 2, .version = "9", .time_unix_ns = 200 * NSEC_PER_SEC};

static int encode(const char *text, struct buf *out)
{
	_cleanup_(freep) char *page = strdup(text);

	return otlp_metrics_encode(page, &from, out);
}

static Request *encoded(const char *text)
{
	_cleanup_(buf_done) struct buf b = {0};
	Request *q;

	ck_assert_int_eq(encode(text, &b), 0);
	q = REQUEST(unpack)(NULL, b.len, b.data);
	ck_assert_ptr_nonnull(q);
	return q;
}

static const Metric *metric(const Request *q, size_t i)
{
	ck_assert_uint_gt(q->resource_metrics[0]->scope_metrics[0]->n_metrics, i);
	return q->resource_metrics[0]->scope_metrics[0]->metrics[i];
}

START_TEST(counters_are_cumulative_sums_and_gauges_gauges)
{
	Request *q = encoded(PAGE);
	const Metric *m = metric(q, 0);

	ck_assert_uint_eq(q->resource_metrics[0]->scope_metrics[0]->n_metrics, 5);
	ck_assert_str_eq(m->name, "otprof_samples_lost_total");
	ck_assert_str_eq(m->description, "Samples lost.");
	ck_assert_str_eq(m->unit, "1");
	ck_assert_int_eq(m->data_case, OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_SUM);
	ck_assert(m->sum->is_monotonic);
	ck_assert_int_eq(m->sum->aggregation_temporality, 2);
	ck_assert_uint_eq(m->sum->n_data_points, 2);
	ck_assert_int_eq(m->sum->data_points[0]->as_int, 3);
	ck_assert_uint_eq(m->sum->data_points[0]->n_attributes, 2);
	ck_assert_str_eq(m->sum->data_points[1]->attributes[1]->key, "reason");
	ck_assert_str_eq(m->sum->data_points[1]->attributes[1]->value->string_value, "encode");
	ck_assert_uint_eq(m->sum->data_points[0]->start_time_unix_nano, 100500 * NSEC_PER_MSEC);
	ck_assert_uint_eq(m->sum->data_points[0]->time_unix_nano, 200 * NSEC_PER_SEC);
	m = metric(q, 1);
	ck_assert_int_eq(m->data_case, OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_GAUGE);
	ck_assert_str_eq(m->unit, "By");
	ck_assert_int_eq(m->gauge->data_points[0]->as_int, 12345);
	m = metric(q, 2);
	ck_assert_str_eq(m->unit, "s");
	ck_assert_double_eq(m->sum->data_points[0]->as_double, 1.5);
	ck_assert_str_eq(metric(q, 4)->sum->data_points[0]->attributes[0]->value->string_value, "a\"b\\c");
	REQUEST(free_unpacked)(q, NULL);
}
END_TEST

START_TEST(request_names_its_own_resource_and_scope)
{
	Request *q = encoded(PAGE);

	ck_assert_uint_eq(q->n_resource_metrics, 1);
	ck_assert_uint_eq(q->resource_metrics[0]->resource->n_attributes, 2);
	ck_assert_str_eq(q->resource_metrics[0]->resource->attributes[0]->value->string_value, "otprof");
	ck_assert_str_eq(q->resource_metrics[0]->scope_metrics[0]->scope->name, "otprof");
	ck_assert_str_eq(q->resource_metrics[0]->scope_metrics[0]->scope->version, "9");
	REQUEST(free_unpacked)(q, NULL);
}
END_TEST

static const char *const wrong[] = {
	"otprof_a 1\n", /* of no metric */
	"# HELP otprof_a A.\notprof_a 1\n", /* of no type */
	"# HELP otprof_a A.\n# TYPE otprof_b gauge\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_b 1\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a{b=\"c} 1\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a{b=\"c\"\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a{b} 1\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a one\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a 1x\n",
	"# HELP otprof_a A.\n# TYPE otprof_a gauge\notprof_a \n",
	"# HELP otprof_a\n",
	("# HELP otprof_a A.\n# TYPE otprof_a gauge\n"
	 "otprof_a{a=\"1\",b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\",h=\"1\",i=\"1\"} 1\n"),
};

START_TEST(page_of_another_form_is_refused)
{
	_cleanup_(buf_done) struct buf b = {0};

	ck_assert_int_eq(encode(wrong[_i], &b), -EBADMSG);
}
END_TEST

START_TEST(request_past_its_bound_is_refused)
{
	_cleanup_(buf_done) struct buf b;

	buf_init(&b, 64);
	ck_assert_int_eq(encode(PAGE, &b), -E2BIG);
}
END_TEST

static const struct {
	enum export_protocol protocol;
	const char *endpoint, *metrics_endpoint;
	bool full;
	const char *url; /* NULL: refused */
} urls[] = {
	{EXPORT_PROTOCOL_HTTP, "http://h:4318", NULL, false, "http://h:4318/v1/metrics"},
	{EXPORT_PROTOCOL_HTTP, "http://h:4318/", NULL, false, "http://h:4318/v1/metrics"},
	{EXPORT_PROTOCOL_HTTP, "https://h/otlp", NULL, false, "https://h/otlp/v1/metrics"},
	{EXPORT_PROTOCOL_HTTP, "https://h/otlp/v1development/profiles", NULL, true, "https://h/otlp/v1/metrics"},
	{EXPORT_PROTOCOL_HTTP, "https://h/push", NULL, true, NULL},
	{EXPORT_PROTOCOL_HTTP, "https://h/push", "http://m:1/x", true, "http://m:1/x"},
	{EXPORT_PROTOCOL_HTTP, "file:///d", NULL, false, NULL},
	{EXPORT_PROTOCOL_HTTP, "file:///d", "http://m:1/x", false, "http://m:1/x"},
	{EXPORT_PROTOCOL_GRPC, "http://h:4317", NULL, false,
	 "http://h:4317/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"},
	{EXPORT_PROTOCOL_GRPC, "http://h:4317", "https://m:1", false,
	 "https://m:1/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"},
	{EXPORT_PROTOCOL_GRPC, "http://h:4317", "http://m:1/path", false, NULL},
};

START_TEST(metrics_have_a_path_of_their_own)
{
	const struct export_config c = {.protocol = urls[_i].protocol, .endpoint = (char *)(uintptr_t)urls[_i].endpoint,
					.metrics_endpoint = (char *)(uintptr_t)urls[_i].metrics_endpoint,
					.endpoint_is_full = urls[_i].full, .metrics = true};
	_cleanup_(freep) char *url = NULL;

	ck_assert_int_eq(metrics_url(&c, &url), urls[_i].url ? 0 : -EINVAL);
	if (urls[_i].url)
		ck_assert_str_eq(url, urls[_i].url);
}
END_TEST

static struct receiver server;
static struct ledger_net ledger;
static int failing, back;

static void on_changed(void *ctx)
{
}

static void on_event(void *ctx, const char *name, enum export_event event, const char *text, uint64_t samples)
{
	failing += event == EXPORT_METRICS_FAILING;
	back += event == EXPORT_METRICS_BACK;
}

static void send_and_run(struct exporter *e, const struct buf *request, size_t expected)
{
	uint64_t end = clock_now_ns() + 10 * NSEC_PER_SEC;

	exporter_send_metrics(e, request->data, request->len);
	for (int after = 0; after < 10 && clock_now_ns() < end; after += receiver_count(&server) >= expected) {
		struct pollfd fds[4];
		int n = exporter_pollfds(e, fds, 4);

		poll(fds, (nfds_t)n, 10);
		exporter_run(e);
	}
	ck_assert_uint_eq(receiver_count(&server), expected);
}

START_TEST(metrics_arrive_beside_profiles_and_a_failure_is_reported_once)
{
	static const struct step steps[] = {
		ANSWER_OK, {.kind = STEP_ANSWER, .text = OTLP_HEAD("503 no"), .body = ""},
		{.kind = STEP_ANSWER, .text = OTLP_HEAD("503 no"), .body = ""}, ANSWER_OK};
	char url[64];
	const struct export_config c = {.name = "a", .endpoint = url, .compression = EXPORT_CODING_GZIP, .metrics = true,
					.timeout_ns = 2 * NSEC_PER_SEC, .queue_bytes = 1 << 20};
	_cleanup_(buf_done) struct buf b = {0};
	struct exporter *e;

	receiver_start(&server, steps, ARRAY_SIZE(steps));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", server.port);
	ck_assert_int_eq(encode(PAGE, &b), 0);
	ck_assert_int_eq(exporter_new(&c, 1, &ledger, on_changed, NULL, &e), 0);
	exporter_on_event(e, on_event, NULL);
	ck_assert(exporter_wants_metrics(e));
	for (size_t i = 1; i <= 4; i++)
		send_and_run(e, &b, i);
	ck_assert_int_eq(failing, 1);
	ck_assert_int_eq(back, 1);
	ck_assert_ptr_nonnull(strstr(server.got[0].head, "POST /v1/metrics HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strcasestr(server.got[0].head, "content-encoding: gzip"));
	ck_assert_uint_eq(ledger.received.of[0], 0);
	exporter_free(e);
	receiver_stop(&server);
}
END_TEST

Suite *otlp_metrics_suite(void)
{
	Suite *s = suite_create("otlp_metrics");
	TCase *t = tcase_create("encode");

	tcase_add_test(t, counters_are_cumulative_sums_and_gauges_gauges);
	tcase_add_test(t, request_names_its_own_resource_and_scope);
	tcase_add_loop_test(t, page_of_another_form_is_refused, 0, ARRAY_SIZE(wrong));
	tcase_add_test(t, request_past_its_bound_is_refused);
	tcase_add_loop_test(t, metrics_have_a_path_of_their_own, 0, ARRAY_SIZE(urls));
	suite_add_tcase(s, t);
	t = tcase_create("send");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, metrics_arrive_beside_profiles_and_a_failure_is_reported_once);
	suite_add_tcase(s, t);
	return s;
}
