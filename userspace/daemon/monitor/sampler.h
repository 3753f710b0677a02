/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source that samples here, the side-band beside it, and what the monitor
 * has mapped of them: so that a crash of the engine loses nothing that they
 * hold.
 *
 * Opened by the monitor at its start, silent; closed at its end. In between
 * its files (plans.c, rate.c, targets*.c, hotplug.c, guard_run.c) talk to the
 * source by its ops. One thread.
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
	char why[SAMPLER_WHY];	   /* it was taken, and others were not */
	struct source_layout layout;
	struct sideband *sideband; /* owned; NULL: there is none */
	uint32_t sideband_sent;	   /* buffers that the engine has */
	uint64_t next_pump_ns;	   /* of a source that userspace writes the ring for */
	struct ring ring;
	void *counters; /* mapped read-only */
	size_t counters_bytes;
	struct otp_defaults defaults; /* as configured; the guard may write less of them to the source */
	bool sampling;
};

/* 0, or negative errno after it was logged. memory_limit: of all processes together, 0: none. */
int sampler_open(struct sampler *s, const struct config *c, uint64_t memory_limit);
void sampler_close(struct sampler *s);
/* On time before anything else: what the kernel's buffers cannot hold is lost. */
void sampler_pump(struct sampler *s, uint64_t now);

#endif
