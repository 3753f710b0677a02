/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otprof's own figures as an OTLP request of metrics, made from the page that
 * Prometheus gets: names, labels, units and values are those of the page, so
 * that there is one list of them.
 *
 * Called by net, one thread. A counter of the page is a monotonic cumulative
 * sum, a gauge a gauge; a name that ends in _seconds, _bytes, _ratio or _hertz,
 * before _total, has that unit (UCUM: s, By, 1, Hz).
 * The page is the monitor's, but some of its labels are of foreign programs:
 * what is not well-formed ends the reading, and texts are bounded by the page.
 * Errors: -EBADMSG, a line that is none of the format's; -ENOMEM; -E2BIG, the
 * bound of out.
 */
#ifndef OTP_EXPORT_OTLP_METRICS_H
#define OTP_EXPORT_OTLP_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct otlp_metrics_label {
	const char *key, *value; /* borrowed */
};

struct otlp_metrics_from {
	const struct otlp_metrics_label *resource; /* of otprof itself; borrowed */
	size_t nr_resource;
	const char *version;	/* of the scope */
	uint64_t time_unix_ns;	/* of the figures; their start is on the page: otprof_start_time_seconds */
};

/* page: NUL-terminated, and changed. Appends an ExportMetricsServiceRequest to out. */
int otlp_metrics_encode(char *page, const struct otlp_metrics_from *from, struct buf *out);

#endif
