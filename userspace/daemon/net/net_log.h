/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines for the exporter's events: one for a destination that fails and
 * one when it works again, rate-limited, each with cause and consequence.
 * Called by net, one thread.
 */
#ifndef OTP_DAEMON_NET_NET_LOG_H
#define OTP_DAEMON_NET_NET_LOG_H

#include "base/log.h"
#include "daemon/config/config.h"
#include "export/export.h"

struct net_log {
	const struct config *config; /* borrowed */
	struct log_rate rates[LEDGER_DESTINATIONS_MAX][EXPORT_EVENTS];
};

void net_log_init(struct net_log *l, const struct config *config);
export_event_fn net_log_event; /* ctx: struct net_log */

#endif
