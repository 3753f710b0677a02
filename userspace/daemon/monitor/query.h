/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions and orders: a client of RUNTIME_DIR/query.sock writes one line, reads
 * one JSON object and the end. "explain PID" asks about one process; "select" with
 * the words of process/selection.h begins a selection, "select" alone ends it. A
 * line without an answer returns {"error": why}.
 *
 * query.c: the line; pure. query_server.c: the monitor's side. A few clients at
 * a time, each with a deadline; others wait in the socket's queue. The engine
 * writes its answer into the monitor's memfd, which is passed on unread. One
 * thread.
 */
#ifndef OTP_DAEMON_MONITOR_QUERY_H
#define OTP_DAEMON_MONITOR_QUERY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/selection.h"

#define QUERY_LINE_MAX (SELECTION_LINE_MAX + 16)
#define QUERY_CLIENTS  4
#define QUERY_POLLS    (1 + QUERY_CLIENTS)

enum query_verb { QUERY_EXPLAIN, QUERY_SELECT, QUERY_DESELECT };

struct query {
	enum query_verb verb;
	uint32_t pid;		    /* of EXPLAIN */
	struct selection selection; /* of SELECT */
};

/*
 * Parses the first len bytes of a line. -EAGAIN: more are needed; -EMSGSIZE: too
 * long; -EINVAL: no question; -ERANGE: no pid; -EDOM: no selection, with why.
 */
int query_parse(const char *text, size_t len, struct query *ret, char why[SELECTION_WHY]);

struct monitor;
struct ipc_message;
struct queries;
int queries_open(struct monitor *m);
void queries_close(struct monitor *m);
void queries_poll(const struct monitor *m, struct pollfd p[QUERY_POLLS]);
void queries_handle(struct monitor *m, const struct pollfd p[QUERY_POLLS]);
void queries_answered(struct monitor *m, struct ipc_message *msg); /* EXPLAINED */
void queries_engine_died(struct monitor *m);
void queries_run(struct monitor *m, uint64_t now); /* ends those past their deadline */
uint64_t queries_next_ns(const struct monitor *m);

#endif
