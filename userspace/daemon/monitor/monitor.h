/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's state: the fields that its parts share, and the parts, each with
 * a header of its own.
 *
 * Owned by monitor.c (loop and end), filled by monitor_start.c (the start, up to
 * sampling). One thread; nothing in it may block: an opener does all that can
 * hang. A part that needs few others is passed these; one that needs many
 * (selection, indexes, the rate) is passed the whole.
 */
#ifndef OTP_DAEMON_MONITOR_MONITOR_H
#define OTP_DAEMON_MONITOR_MONITOR_H

#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/ipc.h"
#include "daemon/monitor/asks.h"
#include "daemon/monitor/books.h"
#include "daemon/monitor/cost.h"
#include "daemon/monitor/decoder_jobs.h"
#include "daemon/monitor/fetch_jobs.h"
#include "daemon/monitor/guard_run.h"
#include "daemon/monitor/hotplug.h"
#include "daemon/monitor/hub_link.h"
#include "daemon/monitor/index_jobs.h"
#include "daemon/monitor/peers.h"
#include "daemon/monitor/plans.h"
#include "daemon/monitor/query.h"
#include "daemon/monitor/rate.h"
#include "daemon/monitor/reload.h"
#include "daemon/monitor/sampler.h"
#include "daemon/monitor/selector.h"
#include "daemon/monitor/status_server.h"
#include "daemon/monitor/targets.h"
#include "daemon/monitor/workers.h"
#include "daemon/roles.h"
#include "daemon/ticket.h"

#define MONITOR_TICK_NS NSEC_PER_SEC

enum monitor_phase { PHASE_RUN, PHASE_STOP_ENGINE, PHASE_STOP_NET, PHASE_OVER };

struct monitor {
	struct config *config;			/* in force; owned, but see selector.base */
	const struct monitor_options *options;	/* borrowed */
	uint64_t started_ns;
	enum monitor_phase phase;
	uint64_t phase_deadline_ns, stop_ns;
	int exit_status;
	uint64_t next_tick_ns, next_slow_ns, next_watchdog_ns;
	uint64_t names_deadline_ns; /* sampling waits until then for the names of containers */

	int lock_fd, signal_fd;
	int config_fd, public_config_fd, capture_fd; /* for the workers */

	struct sampler sampler;
	struct rate rate;
	struct guard_run guard;
	struct targets targets;
	struct plans plans;
	struct hotplug hotplug;

	uint8_t ticket_key[TICKET_KEY];
	struct hub_link hub;
	struct workers workers;
	struct books books;
	struct peers peers;
	struct asks asks;
	struct decoder_jobs decoders;
	struct index_jobs *index; /* owned; NULL: no indexes are made */
	struct fetch_jobs *fetch; /* owned; NULL: no debug files are fetched */

	struct reload reload;
	struct selector selector;
	struct cost cost;
	struct status_server status;
	struct queries *queries; /* of query.sock; owned; NULL: not open */

	struct ipc_message message; /* the one being handled */
	struct ipc_message aside;   /* one of a decoder, while one of the engine is handled */
};

/* 0, or negative errno, already logged. */
int monitor_start(struct monitor *m);
void monitor_close(struct monitor *m); /* frees it */
int monitor_begin_sampling(struct monitor *m); /* when the engine is ready */
void monitor_begin_showing(struct monitor *m); /* with mode = none, when the hub is ready */
/* Makes the configuration texts for workers: with secrets for net, without for the others. */
int monitor_open_config(struct monitor *m);
/* Takes what this worker has sent. */
void monitor_hear(struct monitor *m, struct worker *w);
/* To systemd. */
void monitor_notify_ready(const struct monitor *m);
void monitor_notify_status(const struct monitor *m); /* after a change of mode or rate */

#endif
