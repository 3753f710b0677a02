/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus endpoint: GET /metrics on a loopback address. The text comes
 * from the monitor: a request waits for it, for at most two seconds.
 *
 * Called by net, one thread; no threads of its own. Bounded: a few
 * connections, of which the idlest makes room for a new one; small requests,
 * each within a time.
 */
#ifndef OTP_DAEMON_REPORT_METRICS_H
#define OTP_DAEMON_REPORT_METRICS_H

#include <stddef.h>

#define METRICS_TEXT_MAX (4u << 20)

struct metrics;

/* address: "127.0.0.1:PORT", "localhost:PORT" or "[::1]:PORT", else -EINVAL. Before the sandbox; ret_fd is owned. */
int metrics_listen(const char *address, int *ret_fd);
/* Takes ownership of fd. wanted() requests the text; the caller then passes it to metrics_answer. */
int metrics_new(int fd, void (*wanted)(void *ctx), void *ctx, struct metrics **ret);
struct metrics *metrics_free(struct metrics *m); /* NULL */

int metrics_fd(const struct metrics *m); /* borrowed; readable when there is work */
int metrics_timeout_ms(const struct metrics *m); /* -1: none */
void metrics_run(struct metrics *m);
void metrics_answer(struct metrics *m, const char *text, size_t len); /* text is copied */

#endif
