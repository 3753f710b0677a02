/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: to the journal, with fields, if systemd started us and stderr is
 * the journal's; else to stderr, "<priority>role: text" under a service manager
 * that reads priorities, "role: text" on a terminal.
 *
 * Called by userspace/daemon and userspace/cli only: libraries below return
 * errors and stay silent, or call log_debug.
 * log_init opens the journal's socket, so a sandbox entered later needs to allow
 * no more than write. One line a call, cut at 1 KiB. Never on a hot path.
 * Async-signal unsafe.
 *
 * At most LOG_KIND_LINES lines of one kind (one format) are written in ten
 * seconds; the next line of the kind reports how many were dropped.
 */
#ifndef OTP_BASE_LOG_H
#define OTP_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

#define LOG_KIND_LINES 20

/*
 * Events that an operator may watch for, as MESSAGE_ID in the journal. The id
 * of a removed event is never reused.
 *   X(NAME, "128 bits", "what has happened")
 */
#define LOG_EVENTS(X)                                                                       \
	X(START, "f91f788b744e451ab27de675141aa9ec", "sampling begins, by this sampler")    \
	X(STOP, "8da23e860a01468eb2f315336cd0f0e5", "otprofd was asked to stop")            \
	X(RELOAD, "32868b0b42f4446091126bd3af40bfa9", "the configuration was read again")   \
	X(RELOAD_FAILED, "53f42cfaeaae4cc0a7a77d70a1bd8915", "the old one stays in force")  \
	X(DESTINATION_DOWN, "c110b56cc660466f9aac739e24b2687f", "a destination takes nothing") \
	X(DESTINATION_UP, "6613262073b84f7786fbcda174cbcc00", "it takes profiles again")    \
	X(WORKER_ENDED, "8539477aac2d4aa195b3b97e79f2a434", "a worker ended and is started again") \
	X(WORKER_BACK, "fbdb5ecb76c14a6eb4c6dcec6fa9b4b8", "it works again")                \
	X(GUARD_LOWERED, "2be9324399514d6789f427ef7691c6e4", "overload: quality was given up") \
	X(GUARD_RAISED, "69fe7c258db3484bb37c728e04a49281", "some of it is back")           \
	X(RATE, "2f4bb0f9f7234712be0a7eff6cdaca20", "the rate of sampling has changed")     \
	X(NO_SAMPLER, "626149df45324d5492f311d2414504b9", "no sampler can be used here")

enum log_event {
	LOG_EVENT_NONE,
#define X(NAME, id, text) LOG_EVENT_##NAME,
	LOG_EVENTS(X)
#undef X
};

struct log_tag { /* fields of one line; all may be empty */
	enum log_event event;
	const char *destination; /* OTPROF_DESTINATION= */
	const char *worker;	 /* OTPROF_WORKER=, where the line is about another process than the one that logs */
};

/* role: borrowed for the life of the process; "otprofd" is the monitor. */
void log_init(const char *role, enum log_level level);
bool log_is_journal(void);    /* stderr is the journal's: a line there without a priority is not from log_line */
void log_set_fd(int fd);      /* stderr until then */
void log_set_journal(int fd); /* a datagram socket, owned by the log from now on; -1: no journal */

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_tagged(const struct log_tag *tag, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(...)  log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)   log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)   log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)  log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * At most one line per struct and interval; a line reports how many were
 * dropped before it. With grows set, the interval of a condition that persists
 * doubles, up to ten minutes; after a pause of two intervals it is short again.
 */
struct log_rate {
	uint64_t last_ns, pause_ns;
	uint32_t suppressed;
	bool grows;
};
bool log_rate_takes(struct log_rate *rate, uint64_t now_ns);
void log_rated(struct log_rate *rate, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void log_rated_tagged(struct log_rate *rate, const struct log_tag *tag, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
