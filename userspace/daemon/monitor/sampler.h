/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of samples on this host, the side-band beside it, and the monitor's
 * mappings of both: with these, a crash of the engine loses no sample on the
 * ring.
 *
 * Opened by the monitor at its start, without sampling yet; closed at its end.
 * The monitor's files (plans.c, rate.c, targets*.c, hotplug.c, guard_run.c) call
 * the source by its ops. One thread.
 */
#ifndef OTP_DAEMON_MONITOR_SAMPLER_H
#define OTP_DAEMON_MONITOR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "ring/ring.h"
#include "source/source.h"

#define SAMPLER_WHY (3 * SOURCE_WHY)

struct sampler {
	struct source *source;	   /* owned */
	char why[SAMPLER_WHY];	   /* this source was chosen, and others were not */
	struct source_layout layout;
	struct sideband *sideband; /* owned; NULL: there is none */
	uint32_t sideband_sent;	   /* buffers sent to the engine */
	uint64_t next_pump_ns;	   /* of a source whose ring userspace writes */
	uint64_t next_vary_ns;	   /* of the ticks' period */
	struct ring ring;
	void *counters; /* mapped read-only */
	size_t counters_bytes;
	struct otp_defaults defaults; /* as configured; the guard may write less of them to the source */
	bool sampling;
};

/* 0, or negative errno, already logged. memory_limit: of all processes together, 0: none. */
int sampler_open(struct sampler *s, const struct config *c, uint64_t memory_limit);
void sampler_close(struct sampler *s);
/* Fills such a ring when it is due; first in each turn of the loop, since the kernel's buffers overflow. */
void sampler_pump(struct sampler *s, uint64_t now);
/* Gives ticks another random period when it is due. */
void sampler_vary(struct sampler *s, uint64_t now);

#endif
