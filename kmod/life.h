/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes process life into the ring, for hosts that refuse perf's side-band:
 * fork, exec with its mappings, renaming and exit, from the kernel's
 * tracepoints, as OTP_REC_LIFE. kmod/uapi/otprof_dev.h lists what is not reported.
 *
 * start and stop: under the session's mutex, may sleep. When stop returns, no
 * event of the session is or will be under way.
 * An event for which there is no room or memory is counted in life_lost.
 */
#ifndef OTPROF_LIFE_H
#define OTPROF_LIFE_H

#include <linux/types.h>

struct otprof_session;

/* Looks up the tracepoints, when the module is loaded. */
void otprof_life_init(void);
/* Whether all of them were found. */
bool otprof_life_possible(void);

int otprof_life_start(struct otprof_session *s);
void otprof_life_stop(struct otprof_session *s);

#endif
