// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the page of metrics: what is taken makes a request that can be decoded. */
#include "export/otlp_metrics.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define REQUEST(name) opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__##name

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct otlp_metrics_label resource = {"service.name", "otprof"};
	const struct otlp_metrics_from from = {.resource = &resource, .nr_resource = 1, .version = "1", .time_unix_ns = 1};
	_cleanup_(freep) char *page = strndup((const char *)data, len);
	_cleanup_(buf_done) struct buf out;
	Opentelemetry__Proto__Collector__Metrics__V1__ExportMetricsServiceRequest *q;
	int r;

	buf_init(&out, 1 << 20);
	r = page ? otlp_metrics_encode(page, &from, &out) : -ENOMEM;
	if (r != 0 && r != -EBADMSG && r != -ENOMEM && r != -E2BIG)
		abort();
	if (r)
		return 0;
	q = REQUEST(unpack)(NULL, out.len, out.data);
	if (!q || q->n_resource_metrics != 1)
		abort();
	REQUEST(free_unpacked)(q, NULL);
	return 0;
}
