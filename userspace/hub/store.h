/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workloads that were seen lately, and the slots of those that somebody looks
 * at. It is fed with OTLP requests, from the engine next door or by the network.
 *
 * A slot is opened by a request, and closed when nobody asked for it for
 * slot_ttl_seconds; a stream of events counts as asking all the time. At
 * max_slots, opening one closes the one that was requested least recently.
 * Samples of workloads without a slot are only counted.
 *
 * Called by the hub's server, one thread per store. Time is passed in: now_ns is
 * Unix time for what is shown, boot_ns of base/clock.h for deadlines.
 * Ownership: the store owns workloads and slots; a workload's pointer is borrowed
 * until the next store_take or store_sweep.
 * Bounds: STORE_WORKLOADS, STORE_TYPES, the limits, and those of a recording for
 * one request; values of more workloads than fit count as unwatched.
 * Ledger: store_counts: taken = kept + folded + evicted + refused, at any time.
 */
#ifndef OTP_HUB_STORE_H
#define OTP_HUB_STORE_H

#include "base/hash.h"
#include "hub/identify.h"
#include "hub/limits.h"
#include "hub/slot.h"

#define STORE_WORKLOADS 4096
#define STORE_TYPES	32
#define STORE_GONE	64 /* closed slots that stay listed */
#define STORE_TEXT	256
#define SPARK_STEPS	60
#define SPARK_STEP_NS	5000000000ULL
#define STORE_WINDOW_NS (SPARK_STEPS * SPARK_STEP_NS * 2) /* a workload without samples for that long is forgotten */
#define STORE_PAST_NS	(3600ULL * 1000000000) /* samples of longer ago are shown as of now */

enum gone_reason { GONE_EXPIRED, GONE_EVICTED, GONE_CLOSED };

const char *gone_reason_text(enum gone_reason reason); /* static */

struct gone {
	uint64_t workload, at_ns; /* Unix */
	enum gone_reason reason;
	char name[STORE_TEXT];
};

struct spark {
	uint64_t values[SPARK_STEPS]; /* by step modulo SPARK_STEPS */
	uint64_t step;		      /* the newest, Unix time / SPARK_STEP_NS */
	uint32_t type;		      /* of the store */
};

struct workload {
	uint64_t id;
	uint32_t index; /* in the store's list */
	enum workload_kind kind;
	char name[STORE_TEXT];
	char *namespace, *host, *service, *executable; /* owned, never NULL */
	uint64_t first_ns, last_ns;		       /* Unix: of the samples */
	uint32_t types;				       /* a bit for each type of the store */
	uint64_t kinds[KIND_NR];		       /* values of stacks with such a frame */
	struct spark spark;
	struct slot *slot; /* owned; NULL: none */
	uint64_t opened_ns, requested_ns; /* Unix */
	uint64_t requested_boot_ns;
	uint32_t streams; /* that keep the slot open */
	bool near;	  /* the sampler next door has sampled it */
	bool was_gone;	  /* the slot was closed before: */
	struct gone gone;
};

enum store_change { STORE_OPENED, STORE_CLOSED, STORE_CLEARED, STORE_PRUNED, STORE_GREW };

struct store_counts {
	uint64_t requests, rejected, unwatched;
	struct slot_counts slots;
};

struct store {
	struct hub_limits limits;
	struct workload **list; /* owned */
	uint32_t count, cap;
	struct map by_id;
	struct hub_type types[STORE_TYPES];
	uint32_t nr_types;
	uint32_t nr_slots;
	struct gone gone[STORE_GONE]; /* a ring */
	uint64_t nr_gone;
	bool near; /* the request that is being taken is of the sampler next door */
	uint64_t seq; /* grows with each request that was taken and each change */
	uint32_t generations;
	struct store_counts past; /* requests, and what closed slots took */
	/* NULL, or called when a slot changed, after the change; w is borrowed for the call. */
	void (*changed)(void *ctx, struct workload *w, enum store_change change);
	void *ctx;
};

int store_new(const struct hub_limits *limits, struct store **ret);
struct store *store_free(struct store *s); /* NULL */
static inline void store_freep(struct store **slot)
{
	store_free(*slot);
}

/* One ExportProfilesServiceRequest. On error (that of recording_read) nothing of it was taken. */
int store_take(struct store *s, const void *data, size_t len, const struct otlp_limits *limits, uint64_t now_ns);

/* The same, of a request of the sampler next door: a selection can name its workloads. */
int store_take_near(struct store *s, const void *data, size_t len, const struct otlp_limits *limits, uint64_t now_ns);

struct workload *store_find(const struct store *s, uint64_t id); /* NULL: unknown */

/*
 * Opens the slot of w, or keeps it open. 1: new, 0: it was open, -ENOMEM. ret_evicted: the one that was closed for it,
 * borrowed until the next change; NULL: none.
 */
int store_open(struct store *s, struct workload *w, uint64_t now_ns, const struct gone **ret_evicted);
void store_touch(struct workload *w, uint64_t now_ns);
void store_close(struct store *s, struct workload *w, enum gone_reason reason, uint64_t now_ns);
void store_clear(struct store *s, struct workload *w);
/* Closes slots whose time is over, forgets workloads. Called once in cleanup_interval_seconds. */
void store_sweep(struct store *s, uint64_t now_ns);
/* Other limits, good ones: slots that are too many or too large give way at once. */
void store_set_limits(struct store *s, const struct hub_limits *l, uint64_t now_ns);

void store_counts(const struct store *s, struct store_counts *ret);
size_t store_slot_bytes(const struct store *s);

/* Of a workload's first type, over the last minute or since it was seen first: values, and CPUs; -1: no CPU time. */
void workload_rate(const struct store *s, const struct workload *w, uint64_t now_ns, double *ret_rate,
		   double *ret_cpus);
/* Oldest first; the last step is the one before the present one. */
void workload_spark(const struct workload *w, uint64_t now_ns, uint64_t ret[SPARK_STEPS]);

#endif
