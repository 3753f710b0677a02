/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications to systemd: ready, status, watchdog. Without effect where
 * systemd did not start us.
 * Called by the monitor, one thread. Never blocks: messages that the socket does
 * not take wait for the next call, a few at most.
 */
#ifndef OTP_DAEMON_MONITOR_NOTIFY_H
#define OTP_DAEMON_MONITOR_NOTIFY_H

#include <stdint.h>

void notify_ready(const char *status);
void notify_reloading(void); /* until notify_ready */
void notify_status(const char *status);
void notify_stopping(void);
void notify_alive(void);
void notify_run(void); /* sends waiting messages; once a second */
/* The interval at which systemd requires notify_alive; 0: never. */
uint64_t notify_alive_ns(void);

#endif
