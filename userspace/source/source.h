/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of samples: one ops table for eBPF, the module and perf events.
 * Their records are alike: no reader depends on the source.
 *
 * Called by the monitor only, which holds the privileges; the engine gets the
 * descriptors. Nothing here reads a record.
 * Lifetime: open, start, any number of the rest, close. Closing ends sampling
 * and frees every program, event and map.
 * Errors: negative errno, and one sentence in why that an operator can act on.
 */
#ifndef OTP_SOURCE_SOURCE_H
#define OTP_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/origin.h"
#include "source/event_list.h"
#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"

#define SOURCE_WHY 512
#define SOURCE_HZ_MIN 1
/* No divisor of the rates that timers have. */
#define SOURCE_HZ_DEFAULT 19
#define SOURCE_HZ_MAX 10000

struct source_config {
	uint32_t frequency_hz;  /* 1 to 10000 */
	uint32_t ring_bytes;    /* power of two; 0: by CPUs and rate */
	uint32_t sideband_bytes; /* per CPU, power of two; 0: 256 KiB, less above 32 CPUs */
	uint32_t plans_max;     /* 0: default 8192 */
	uint32_t walks_max;     /* 0: default 1024 */
	bool hardware;          /* the CPU clock by cycles: untested */
	struct event_list events; /* sampled besides the CPU clock, or instead; zero: the CPU clock alone */
	const char *cpus;       /* "0-3,8", NULL: all; borrowed for open */
	/* The side-band is not available: a source that can do so reports process life in the ring (OTP_REC_LIFE). */
	bool life;
	/* Only these processes and their children are sampled; borrowed for open. nr 0: the whole host. */
	const uint32_t *pids;
	uint32_t nr_pids;
	struct otp_defaults defaults;
};

struct source_layout { /* what a reader needs; descriptors borrowed from the source */
	int ring_fd;
	size_t ring_bytes;
	int counters_fd; /* mmapable array of struct otp_cpu_counters: of each possible CPU, for each slot of origins */
	uint32_t cpus; /* possible CPUs */
	size_t counters_stride;
	struct origins origins; /* what is sampled, with the periods in force */
	/* Of a ring that userspace writes (ring_map_file): its consumer page, an eventfd that wakes the reader; else -1. */
	int consumer_fd, wake_fd;
	bool life; /* process life is reported in the ring */
	bool fixed_rate; /* set_rate fails */
};

struct source;

struct source_ops {
	const char *name; /* "bpf", "kmod", "perf", "none" */
	/* 0 or why it cannot be used here (missing kernel feature, privilege). Changes nothing. */
	int (*probe)(const struct source_config *cfg, char why[SOURCE_WHY]);
	size_t size; /* of the implementation's struct, which begins with struct source */
	/* s is zeroed but for ops, the configuration is checked. If it fails half-way, the caller calls close. */
	int (*open)(struct source *s, const struct source_config *cfg, char why[SOURCE_WHY]);
	void (*close)(struct source *s);
	void (*layout)(const struct source *s, struct source_layout *ret);
	/* Begins on all CPUs, each at a random period of its own, so that they tick apart. */
	int (*start)(struct source *s);
	int (*stop)(struct source *s);
	/*
	 * Changes the rate from the next tick on, running or not. configured_hz is
	 * the configuration's: a lower frequency_hz limits it, and lowers the rates of
	 * events in proportion. The caller ends the profile first: samples before and
	 * after have different periods.
	 */
	int (*set_rate)(struct source *s, uint32_t frequency_hz, uint32_t configured_hz);
	/*
	 * Gives the CPU clock of every CPU a new random period, so that ticks are in
	 * step with nothing; their mean rate stays. Returns the time at which to call
	 * it again, UINT64_MAX: never. NULL where the sampler itself varies each tick.
	 * It interrupts each CPU once.
	 */
	uint64_t (*vary)(struct source *s, uint64_t now_ns);
	/* d->running is the source's own: start and stop set it. */
	int (*set_defaults)(struct source *s, const struct otp_defaults *d);
	/* These four: -E2BIG when the table is full, and no entry of a dead process can be dropped. */
	int (*set_plan)(struct source *s, uint32_t pid, const struct otp_plan *p); /* NULL p removes */
	/*
	 * How to copy the frames of the interpreters in a process; otp_walk_sound holds for w. Applied where the process'
	 * plan has OTP_PLAN_WALK. NULL w removes. NULL where this source does not walk: such frames are not copied.
	 */
	int (*set_walk)(struct source *s, uint32_t pid, const struct otp_walks *w);
	/* How to copy processes of this name that have no plan; NULL h removes. */
	int (*set_hint)(struct source *s, const char comm[OTP_COMM_LEN], const struct otp_hint *h);
	int (*set_cgroup)(struct source *s, uint64_t cgroup_id, const struct otp_cgroup_rule *r); /* NULL removes */
	/*
	 * Opens the events of CPUs that came online, or went offline and back, since
	 * the last call; call it every few seconds. It interrupts each CPU up to twice for each origin.
	 * ret_changed: CPUs opened or closed.
	 */
	int (*follow_cpus)(struct source *s, int *ret_changed);
	/* Ticks due by now, by the time that events were enabled; 0: unknown (hardware). */
	uint64_t (*expected_ticks)(struct source *s);
	/*
	 * Of these, the ticks due while their CPU was idle, by the kernel's own
	 * account: they are missing where an idle CPU is not woken for a tick.
	 */
	uint64_t (*idle_ticks)(struct source *s);
	/*
	 * Moves the kernel's new samples into the ring; NULL where the kernel writes
	 * the ring itself. Returns the time at which to call it again. Never blocks;
	 * stop does it once more.
	 */
	uint64_t (*pump)(struct source *s, uint64_t now_ns);
	/* Program run time and count where the kernel measures them (kernel.bpf_stats_enabled), else 0. */
	void (*run_time)(struct source *s, uint64_t *ret_ns, uint64_t *ret_runs);
};

struct source {
	const struct source_ops *ops;
};

int source_open(const struct source_ops *ops, const struct source_config *cfg, struct source **ret, char why[SOURCE_WHY]);
struct source *source_close(struct source *s); /* NULL */

extern const struct source_ops source_bpf, source_kmod, source_perf;
extern const struct source_ops source_none; /* takes no samples; never tried, only configured */
/* NULL-terminated, in the order that mode = auto tries. */
extern const struct source_ops *const source_list[];

/*
 * A consistent copy of one CPU's counters, while its sampler runs: the equations
 * hold for it. false: no attempt was consistent; then the copy is the last one.
 */
bool counters_read(const volatile struct otp_cpu_counters *from, struct otp_cpu_counters *ret);
bool counters_balanced(const struct otp_cpu_counters *c);

/* What sampling has cost inside the kernel, by the samplers' own clocks. */
struct counters_time {
	uint64_t ns, runs;   /* of all samples, estimated from the share that was measured; runs 0: none was */
	uint64_t longest_ns; /* of one */
};
void counters_add_time(const struct otp_cpu_counters *c, struct counters_time *to);

/*
 * Side-band: one dummy event per online CPU with a mapped buffer each, opened
 * and kept mapped by the monitor (so that an engine that dies loses nothing),
 * read by the engine. NULL is a side-band without buffers.
 */
struct sideband;
int sideband_open(const struct source_config *cfg, struct sideband **ret, char why[SOURCE_WHY]);
void sideband_close(struct sideband *s);
int sideband_follow_cpus(struct sideband *s, int *ret_changed);
/* Per buffer: descriptor and bytes of its data area; borrowed. */
uint32_t sideband_buffers(const struct sideband *s);
int sideband_fd(const struct sideband *s, uint32_t i, size_t *ret_data_bytes);

/*
 * Engine side: drains mapped buffers. Their first pages are writable, and a hostile
 * engine may forge a tail: it loses records of its own by that. The kernel reads
 * nothing else of the buffer, wraps every write by its own head and size (Linux,
 * kernel/events/ring_buffer.c, __perf_output_begin), and never reads a record back.
 */
struct sideband_reader;
int sideband_reader_new(struct sideband_reader **ret);
void sideband_reader_free(struct sideband_reader *r);
int sideband_reader_add(struct sideband_reader *r, int fd, size_t data_bytes); /* takes fd over */
/*
 * Passes every record written so far to fn, buffer by buffer; records are
 * borrowed for the call. Advances the tails.
 */
typedef void sideband_fn(void *ctx, const void *record, size_t len);
int sideband_reader_drain(struct sideband_reader *r, sideband_fn *fn, void *ctx);

#endif
