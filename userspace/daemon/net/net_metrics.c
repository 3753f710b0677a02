// SPDX-License-Identifier: Apache-2.0
#include "daemon/net/net_metrics.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/resource.h"
#include "export/otlp_metrics.h"

#define METRICS_REQUEST_MAX (8u << 20)

/* Semantic conventions call the machines so (host.arch). */
static const char *net_metrics_arch(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	return strcmp(machine, "aarch64") ? machine : "arm64";
}

static void net_metrics_add(struct otlp_metrics_label *list, size_t *n, const char *key, const char *value)
{
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(list[i].key, key))
			return; /* the configuration's was first and wins */
	list[(*n)++] = (struct otlp_metrics_label){key, value};
}

/* The host's attributes and those of [resource], as of every workload; and otprof's own name and version. */
static size_t net_metrics_resource(const struct resource_set *of_host, const struct utsname *u,
				   struct otlp_metrics_label list[WORKLOAD_ATTRIBUTES_MAX + 3])
{
	size_t n = 0;

	for (size_t i = 0; i < of_host->count; i++)
		net_metrics_add(list, &n, str_c(of_host->attributes[i].key), str_c(of_host->attributes[i].value));
	net_metrics_add(list, &n, "service.name", "otprof");
	net_metrics_add(list, &n, "service.version", OTPROF_VERSION);
	net_metrics_add(list, &n, "host.arch", net_metrics_arch(u->machine));
	return n;
}

void net_metrics_send(struct exporter *e, const struct config *c, char *page)
{
	static struct log_rate rate;
	struct otlp_metrics_label resource[WORKLOAD_ATTRIBUTES_MAX + 3];
	struct otlp_metrics_from from = {.resource = resource, .version = OTPROF_VERSION};
	_cleanup_(resource_set_done) struct resource_set of_host = {0};
	_cleanup_(buf_done) struct buf request;
	struct utsname u = {0};
	int rc;

	buf_init(&request, METRICS_REQUEST_MAX);
	uname(&u);
	rc = resource_set_new(&of_host, c);
	if (rc == 0) {
		from.nr_resource = net_metrics_resource(&of_host, &u, resource);
		from.time_unix_ns = clock_now_ns() + clock_unix_offset_ns();
		rc = otlp_metrics_encode(page, &from, &request);
	}
	if (rc < 0)
		log_rated(&rate, LOG_LEVEL_WARN, "metrics cannot be encoded: %s", strerror(-rc));
	else
		exporter_send_metrics(e, request.data, request.len);
}
