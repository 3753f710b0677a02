/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systemd is told: ready, what we do, that we live. Nothing happens
 * where systemd did not start us.
 * Called by the monitor. Never blocks: what a listener has no room for waits
 * for the next call, a few messages at most.
 */
#ifndef OTP_DAEMON_MONITOR_NOTIFY_H
#define OTP_DAEMON_MONITOR_NOTIFY_H

#include <stdint.h>

void notify_ready(const char *status);
void notify_reloading(void); /* until notify_ready */
void notify_status(const char *status);
void notify_stopping(void);
void notify_alive(void);
void notify_run(void); /* says what had to wait; once a second */
/* How often notify_alive is wanted; 0: never. */
uint64_t notify_alive_ns(void);

#endif
