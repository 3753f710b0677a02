/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otprof's own metrics, sent by the exporters that are to: the page of the
 * monitor, with a resource of otprof's own, in OpenTelemetry's terms.
 *
 * Called by net, one thread, each time that the monitor has sent the page. What
 * cannot be encoded is logged, rarely, and not sent.
 */
#ifndef OTP_DAEMON_NET_NET_METRICS_H
#define OTP_DAEMON_NET_NET_METRICS_H

#include "daemon/config/config.h"

/* page: Prometheus' text, NUL-terminated; it is changed. */
void net_metrics_send(struct exporter *e, const struct config *c, char *page);

#endif
