/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's state, shared by its files: monitor.c (loop, life and end),
 * monitor_start.c (what must be there before sampling), workers.c (processes),
 * asks.c (the engine's questions), plans.c, targets*.c, hotplug.c, books.c
 * (what a dead worker held), status_server.c.
 *
 * One thread; nothing in it may block: what can hang is done by an opener.
 */
#ifndef OTP_DAEMON_MONITOR_MONITOR_H
#define OTP_DAEMON_MONITOR_MONITOR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/ipc.h"
#include "daemon/monitor/asks.h"
#include "daemon/monitor/guard_run.h"
#include "daemon/monitor/peers.h"
#include "daemon/monitor/query.h"
#include "daemon/monitor/rate.h"
#include "daemon/monitor/reload.h"
#include "daemon/monitor/sampler.h"
#include "daemon/monitor/targets.h"
#include "daemon/monitor/workers.h"
#include "daemon/report/ledger_sum.h"
#include "daemon/report/status.h"
#include "daemon/roles.h"

#define MONITOR_TICK_NS NSEC_PER_SEC

enum monitor_phase { PHASE_RUN, PHASE_STOP_ENGINE, PHASE_STOP_NET, PHASE_OVER };

struct monitor {
	struct config *config;
	const struct monitor_options *options;
	uint64_t started_ns;
	enum monitor_phase phase;
	uint64_t phase_deadline_ns, stop_ns;
	int exit_status;

	int lock_fd, signal_fd, config_fd, public_config_fd, uevent_fd, status_fd, capture_fd;

	struct sampler sampler;
	uint64_t names_deadline_ns; /* an engine that is ready waits so long for the names of containers */
	struct rate rate;
	struct reload reload;
	struct guard_run guard;

	struct books books;
	struct workers workers;
	struct queries *queries; /* of query.sock; NULL: not open */
	struct index_jobs *index; /* NULL: no indexes are made */
	struct fetch_jobs *fetch; /* NULL: nor is there a place for debug files */
	struct peers peers;

	struct asks asks;
	struct targets targets;
	uint64_t plan_tokens_ns;
	uint64_t plans_set, plans_refused;

	char online[256]; /* CPUs, as the kernel lists them */
	uint64_t next_tick_ns, next_hotplug_ns, next_slow_ns, next_watchdog_ns;
	struct status_cost cost;
	uint64_t missed; /* ticks; as it was last said */
	uint64_t memory_ns; /* when memory was looked at */
	char *metrics_text; /* last answer to STATUS_WANTED */
	size_t metrics_len;
	uint64_t metrics_ns;

	struct ipc_message message; /* the one being handled */
};

/* monitor_start.c: 0, or negative after it was logged. */
int monitor_start(struct monitor *m);
void monitor_close(struct monitor *m);
int monitor_begin_sampling(struct monitor *m); /* the engine reads now */
int monitor_open_config(struct monitor *m); /* what workers are given: with secrets for net, without for the others */
void monitor_notify_ready(const struct monitor *m);
void monitor_notify_status(const struct monitor *m); /* what we do has changed */

/* index_jobs.c: address indexes of files, cached on disk, made by an indexer, one at a time. */
int index_jobs_open(struct monitor *m); /* 0 also where the cache cannot be had, after it was logged; -ENOMEM */
void index_jobs_close(struct monitor *m);
void index_jobs_ask(struct monitor *m, struct ipc_message *msg); /* of the engine; takes its descriptor */
void index_jobs_indexed(struct monitor *m, const struct ipc_message *msg);
void index_jobs_set_root(const struct monitor *m, struct ipc_message *msg); /* of the indexer's question */
bool index_jobs_wait(const struct monitor *m); /* an indexer is needed */
int index_jobs_hand_over(struct monitor *m);
void index_jobs_indexer_ended(struct monitor *m);
void index_jobs_engine_died(struct monitor *m);
void index_jobs_run(struct monitor *m, uint64_t now);
uint64_t index_jobs_next_ns(const struct monitor *m);

void index_jobs_forget(struct monitor *m, const char *key); /* it can be made better now */
void index_jobs_forget_poor(struct monitor *m);
const char *index_jobs_path(const struct monitor *m); /* NULL: there is no cache */

/* fetch_jobs.c, fetch_wishes.c: debug files from debuginfod servers, one at a time. */
int fetch_jobs_open(struct monitor *m);
void fetch_jobs_close(struct monitor *m);
void fetch_jobs_reload(struct monitor *m); /* the configuration may have changed */
void fetch_jobs_status(const struct monitor *m, struct status_debuginfod *ret);
/* While an index is made: its beginning, what it asks for, whether a file of ours did harm, what it could use. */
void fetch_jobs_index_begins(struct monitor *m);
bool fetch_jobs_asked(struct monitor *m, const struct ipc_message *msg); /* false: no question for us */
bool fetch_jobs_blame(struct monitor *m);
bool fetch_jobs_index_made(struct monitor *m, const char *key, const uint64_t content[2]); /* something may come */
/* The fetcher. */
bool fetch_jobs_wait(const struct monitor *m);
int fetch_jobs_hand_over(struct monitor *m);
void fetch_jobs_fetched(struct monitor *m, const struct ipc_message *msg);
void fetch_jobs_fetcher_ended(struct monitor *m);
void fetch_jobs_run(struct monitor *m, uint64_t now);

/* plans.c */
void plans_set(struct monitor *m, const struct ipc_message *msg);
void hints_set(struct monitor *m, const struct ipc_message *msg);

/* hotplug.c */
int hotplug_open(struct monitor *m);
void hotplug_read(struct monitor *m);
void hotplug_run(struct monitor *m, uint64_t now);

/* status_server.c */
int status_listen(struct monitor *m);
int status_socket(const struct monitor *m, const char *name); /* a listener in the runtime directory, of our user and group */
void status_accept(struct monitor *m);
void status_metrics(struct monitor *m);
void status_save(struct monitor *m);
void status_collect(struct monitor *m, struct status *ret);

#endif
