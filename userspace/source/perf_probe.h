/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether perf events may be had here, of what, and in words why not.
 * Called by the perf source, and by otprof record before it starts anything.
 */
#ifndef OTP_SOURCE_PERF_PROBE_H
#define OTP_SOURCE_PERF_PROBE_H

#include "source/source.h"

/* ret_single: not the whole host, but processes of one's own (cfg->pids). */
int perf_probe(const struct source_config *cfg, bool *ret_single, char why[SOURCE_WHY]);
/* What went wrong while they were opened; returns err. */
int perf_explain(int err, const struct source_config *cfg, char why[SOURCE_WHY]);
/* kernel.perf_event_paranoid; 2 where it cannot be read. */
int perf_paranoid(void);

#endif
