/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the perf source: perf.c holds the ops table, open and close,
 * perf_open.c opens events and buffers, perf_attach.c those of single processes,
 * perf_pump.c moves the buffers' records into the ring. Pure parts have headers
 * of their own: perf_sample.h, perf_choice.h, perf_tasks.h.
 *
 * The way of a sample: the kernel copies registers, kernel stack and a fixed
 * number of stack bytes into one perf buffer per CPU and slot. Records of
 * process life go into another, smaller buffer, so that large samples never
 * displace them, and a loss in the first is one of samples of one origin. The
 * monitor's loop calls the pump every 50 to 250 ms; it merges all buffers by
 * time and writes the contract's records. It is a call in a loop and not a
 * thread so that plans, rules and counters need no locks; a monitor that is late
 * loses samples, and they are counted, as with a late engine.
 *
 * The pump reads the time T before any buffer, and handles only records that
 * are older. The records that a sample depends on (fork, exec) were written
 * before the sample was taken, so they are handled with it or earlier.
 *
 * Bounds: the kernel copies dump_bytes for every sample, selected or not.
 * dump_bytes therefore follows the deepest plan only as far as buffers hold a
 * tenth of a second at that size, and never beyond OTP_HEAD_STACK, as there are
 * no chunks.
 */
#ifndef OTP_SOURCE_PERF_INTERNAL_H
#define OTP_SOURCE_PERF_INTERNAL_H

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "ring/writer.h"
#include "source/slots.h"
#include "source/softirq_code.h"
#include "source/perf_choice.h"
#include "source/sideband_buffer.h"
#include "source/source.h"

/* Bytes of a sample in perf's buffer besides the stack: kernel stack, registers and the rest. */
#define PERF_SAMPLE_REST 1200

/* Samples that were lost, until a record reports them. */
struct perf_loss {
	uint64_t samples, first_seq;
};

struct perf_cpu {
	/*
	 * Each owned by a silent event, so that the events that write into it may be
	 * replaced. One for each slot: an origin that overflows costs the others
	 * nothing, and the loss is counted as its own. page NULL: CPU never online.
	 */
	struct sideband_buffer samples[OTP_ORIGINS_MAX], life;
	int life_fd; /* whole host: its event; -1 */
	struct perf_budget {
		uint64_t time_ns;
		uint64_t left; /* stack bytes above the floor that could be copied then */
	} ticks, events; /* apart: an event that fires often must not cut the stacks of ticks */
	struct perf_loss loss[OTP_ORIGINS_MAX];
};

struct source_perf {
	struct source source;
	struct ring_writer ring;
	struct perf_choice choice;
	struct perf_tasks tasks;
	struct slots slots;	 /* whole host: its events; single processes: what is sampled */
	struct buf attached;	 /* single processes: descriptors of their events */
	struct perf_cpu *cpus;	 /* owned */
	uint32_t nr;		 /* possible CPUs */
	struct cpus wanted;	 /* those to sample */
	struct otp_cpu_counters *counters; /* mapped; by slot, then CPU */
	size_t counters_bytes;
	int counters_fd; /* owned, read-only */
	int wake_fd;	 /* owned */
	struct perf_format format;
	struct softirq_code softirqs;
	bool single;	  /* processes, not the whole host */
	bool user_only;	  /* sampling the kernel is not permitted */
	bool no_build_id; /* before Linux 5.12 */
	bool started;
	bool woken;
	bool deepest_changed;
	uint32_t dump_bytes; /* stack bytes in every sample */
	uint32_t dump_start, dump_max;
	size_t samples_bytes, life_bytes; /* of the buffers of each CPU */
	uint64_t next_pump_ns, next_resize_ns;
	struct buf items; /* of a pump */
	uint8_t scratch[SIDEBAND_RECORD_MAX] __attribute__((aligned(8)));
};

static inline struct otp_cpu_counters *perf_counters(const struct source_perf *p, uint32_t slot, uint32_t cpu)
{
	return &p->counters[(size_t)slot * p->nr + cpu];
}

static inline struct source_perf *perf_self(const struct source *s)
{
	return container_of(s, struct source_perf, source);
}

/* perf_open.c */
int perf_buffers_open(struct source_perf *p, uint32_t cpu); /* does nothing if they are open */
void perf_buffers_close(struct source_perf *p);
/* A slot's event by its current attributes; pid as for event_open_task, PERF_EVERYBODY: every task of the CPU. */
int perf_event_open_slot(struct source_perf *p, uint32_t slot, uint32_t pid, uint32_t cpu);
int perf_life_open(struct source_perf *p, uint32_t pid, uint32_t cpu);
#define PERF_EVERYBODY UINT32_MAX
/* Finds format and user_only by opening an event of each slot. *ret_slot: the slot that was refused. */
int perf_probe_attr(struct source_perf *p, uint32_t pid, uint32_t *ret_slot);

/* perf_attach.c */
int perf_attach(struct source_perf *p, const uint32_t *pids, uint32_t nr, uint32_t *ret_slot);
void perf_attach_enable(struct source_perf *p, bool on);
uint64_t perf_attach_running_ns(const struct source_perf *p);
void perf_attach_close(struct source_perf *p);

/* perf_pump.c: moves all records older than until_ns into the ring. */
void perf_pump_until(struct source_perf *p, uint64_t until_ns);

#endif
