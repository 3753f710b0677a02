/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the whole as text: JSON for `otprof status` and for tests,
 * Prometheus' text format for the metrics listener.
 *
 * Called by the monitor with a state that it has collected. Both writers are
 * pure, so they are tested without processes. Strings that workers wrote are
 * escaped.
 */
#ifndef OTP_DAEMON_REPORT_STATUS_H
#define OTP_DAEMON_REPORT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "daemon/config/config.h"
#include "daemon/fetch.h"
#include "daemon/limits/guard.h"
#include "daemon/report/json.h"
#include "daemon/report/ledger_sum.h"

struct status_cost {
	uint64_t kernel_ns, kernel_runs; /* of all samples, by the sampler's own clock; 0: not measured */
	uint64_t kernel_longest_ns;	 /* of one sample */
	uint64_t kernel_limit_ns;	 /* the bound of one tick's copy of an unknown program's stack */
	uint64_t kernel_limit_bytes;	 /* otp_defaults.tick_bytes; 0: no bound */
	uint64_t stats_ns, stats_runs;	 /* measured by the kernel, where that is enabled */
	uint64_t monitor_cpu_ns, engine_cpu_ns, net_cpu_ns, hub_cpu_ns, opener_cpu_ns;
	uint64_t files_cpu_ns; /* the part of these that reads files */
	uint64_t memory_bytes; /* PSS of all processes, ring, maps, side-band buffers */
};

struct status_guard {
	const struct guard *state; /* borrowed; NULL: none */
	struct guard_orders orders;
	uint64_t memory_bytes, memory_limit; /* the guard's figures; limit 0: none */
};

struct status_debuginfod {
	bool on;
	bool paused; /* no server can be reached now */
	uint64_t waiting, fetched, bytes, requests, dropped, cached_bytes;
	uint64_t failed[FETCH_STATE_NR];
	const char *last_error; /* borrowed */
};

struct status_hub {
	bool on, ready;
	const char *listen, *why; /* borrowed; why: it cannot listen; "": it can */
};

struct status_worker {
	const char *name; /* static */
	int pid;          /* 0: not running */
	uint32_t restarts;
};

struct status {
	const struct config *config; /* borrowed */
	int pid;
	uint64_t uptime_ns;
	uint64_t start_unix_ns; /* the same at each reading */
	const char *mode, *why; /* borrowed */
	bool sampling;
	uint32_t cpus_sampled; /* by any origin */
	uint64_t ring_bytes, ring_used;
	uint64_t expected_ticks, idle_ticks; /* due in all, and due while their CPU was idle */
	uint64_t missed_before; /* as reported the last time: the figure never falls */
	struct ledger_sum ledger;
	struct status_cost cost;
	struct status_worker workers[3]; /* without the hub where it is off: its name is NULL */
	uint64_t asks, asks_refused, asks_timed_out, plans_set, plans_refused;
	const struct ledger_view *view; /* borrowed: counters by CPU */
	uint32_t rate_hz; /* in force */
	struct status_guard guard;
	struct status_debuginfod debuginfod;
	struct status_hub hub;
	const struct selection_shown *selection; /* borrowed; NULL: as if none were in force */
};

/* The name of destination i, borrowed. */
const char *status_destination(const struct status *s, uint32_t i);
/* Indexes into the page's workloads, the busiest first. Returns how many. */
uint32_t status_workloads(const struct ledger_engine *e, uint8_t order[LEDGER_WORKLOADS_MAX]);
/* Writes one workload, as an object of a list. */
void status_quality(struct json *j, const struct ledger_workload *w);
/* Writes the selection that is in force, as a member. */
void status_selection(struct json *j, const struct selection_shown *s);
void status_json(const struct status *s, struct buf *to);
void status_prometheus(const struct status *s, struct buf *to);

/*
 * Ticks of busy CPUs that did not happen: a hypervisor had taken the CPU, or
 * timers fired late. Ticks due while a CPU was idle do not count, since some
 * kernels leave an idle CPU asleep. The idle time is the kernel's account, of
 * which our ticks are samples: the figure is exact where no idle tick is left
 * out, else to within some per mille of the ticks due.
 */
uint64_t status_missed(const struct status *s);

#endif
