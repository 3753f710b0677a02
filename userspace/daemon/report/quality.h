/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quality as the ledger's page shows it: in total, and of the workloads that
 * take most. Called by the pipeline when an interval is encoded. Bounded by
 * LEDGER_WORKLOADS_MAX: who comes later and takes more than the least of them
 * takes its place, and begins at zero.
 */
#ifndef OTP_DAEMON_REPORT_QUALITY_H
#define OTP_DAEMON_REPORT_QUALITY_H

#include <stdbool.h>

#include "base/ledger.h"
#include "process/workload.h"

void quality_add(struct ledger_engine *l, const struct workload *w, const struct str *exe, uint64_t samples,
		 const struct ledger_quality *q);
/* An interval is over: what was long ago counts less. */
void quality_age(struct ledger_engine *l);
/* That of a workload; NULL: it is not among those. Borrowed. */
const struct ledger_workload *quality_find(const struct ledger_engine *l, const struct workload *w,
					   const struct str *exe);
const char *name_source_name(uint32_t source); /* NULL past the end */
bool name_source_is_name(uint32_t source);

#endif
