/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process may open perf events, and for which processes; if not, a
 * text of the reason. Called by the perf source, and by otprof record before it
 * starts anything.
 */
#ifndef OTP_SOURCE_PERF_PROBE_H
#define OTP_SOURCE_PERF_PROBE_H

#include "source/slots.h"
#include "source/source.h"

/* ret_single: not the whole host, only the caller's own processes (cfg->pids). */
int perf_probe(const struct source_config *cfg, bool *ret_single, char why[SOURCE_WHY]);
/* Why the events of a slot could not be opened; returns err. */
int perf_explain(const struct slots *s, uint32_t slot, int err, const struct source_config *cfg, char why[SOURCE_WHY]);
/* The event fires in the kernel only: sampling user code alone finds none. */
bool perf_is_of_kernel(uint8_t origin);
/* kernel.perf_event_paranoid; 2 where it cannot be read. */
int perf_paranoid(void);

#endif
