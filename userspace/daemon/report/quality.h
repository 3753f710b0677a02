/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quality as the ledger's page shows it: in total, and of the workloads with
 * the most samples. Called by the pipeline when an interval is encoded; pure, one
 * thread. Bounded by LEDGER_WORKLOADS_MAX: a new workload with more samples than
 * the least of them replaces that one, and begins at zero.
 */
#ifndef OTP_DAEMON_REPORT_QUALITY_H
#define OTP_DAEMON_REPORT_QUALITY_H

#include <stdbool.h>

#include "base/ledger.h"
#include "process/workload.h"

void quality_add(struct ledger_engine *l, const struct workload *w, const struct str *exe, uint64_t samples,
		 const struct ledger_quality *q);
/* At the end of an interval: earlier samples count half as much from then on. */
void quality_age(struct ledger_engine *l);
/* The entry of a workload, borrowed from l; NULL: it has none. */
const struct ledger_workload *quality_find(const struct ledger_engine *l, const struct workload *w,
					   const struct str *exe);
const char *name_source_name(uint32_t source); /* NULL past the end */
bool name_source_is_name(uint32_t source);

#endif
