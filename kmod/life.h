/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Process life into the ring, for hosts that refuse perf's side-band: fork,
 * exec with what it maps, renaming and exit, by the kernel's tracepoints, as
 * OTP_REC_LIFE. kmod/uapi/otprof_dev.h says what is not reported.
 *
 * start and stop: under the session's mutex, may sleep. When stop returns, no
 * event of the session is or will be under way.
 * An event that finds no room or memory is counted in life_lost.
 */
#ifndef OTPROF_LIFE_H
#define OTPROF_LIFE_H

#include <linux/types.h>

struct otprof_session;

/* Looks for the tracepoints, once. */
void otprof_life_init(void);
bool otprof_life_possible(void);

int otprof_life_start(struct otprof_session *s);
void otprof_life_stop(struct otprof_session *s);

#endif
