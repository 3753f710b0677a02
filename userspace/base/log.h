/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on stderr, in the form that journald takes: "<priority>role: text"
 * under systemd, "otprofd[role]: text" on a terminal.
 * Called by userspace/daemon and userspace/cli only: libraries below return
 * errors and stay silent, or call log_debug.
 * One line a call, cut at 1 KiB. Never on a hot path. Async-signal unsafe.
 */
#ifndef OTP_BASE_LOG_H
#define OTP_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* role: borrowed for the life of the process. */
void log_init(const char *role, enum log_level level);
void log_set_fd(int fd); /* stderr until then */

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)  log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)   log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)   log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)  log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* At most one line per slot and interval; says how many were left out. */
struct log_rate {
	uint64_t last_ns;
	uint32_t suppressed;
};
void log_rated(struct log_rate *rate, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
