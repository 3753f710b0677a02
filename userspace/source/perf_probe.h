/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether perf events may be had here, of what, and in words why not.
 * Called by the perf source, and by otprof record before it starts anything.
 */
#ifndef OTP_SOURCE_PERF_PROBE_H
#define OTP_SOURCE_PERF_PROBE_H

#include "source/slots.h"
#include "source/source.h"

/* ret_single: not the whole host, but processes of one's own (cfg->pids). */
int perf_probe(const struct source_config *cfg, bool *ret_single, char why[SOURCE_WHY]);
/* What went wrong while the events of a slot were opened; returns err. */
int perf_explain(const struct slots *s, uint32_t slot, int err, const struct source_config *cfg, char why[SOURCE_WHY]);
/* It happens in the kernel: of user code alone there is none. */
bool perf_is_of_kernel(uint8_t origin);
/* kernel.perf_event_paranoid; 2 where it cannot be read. */
int perf_paranoid(void);

#endif
