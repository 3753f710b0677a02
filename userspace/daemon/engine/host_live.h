/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's struct host: sends its questions to the monitor by socket.
 * Called by the engine, one thread. At most HOST_LIVE_WINDOW questions are sent
 * and unanswered, HOST_LIVE_QUEUE more wait here; beyond that host_ask is -EBUSY.
 * Groups take turns: the one with the fewest questions sent is next; one group has
 * at most HOST_LIVE_GROUP of those that are sent, and half of those that wait.
 * Questions for indexes, which may take minutes, and for decoders are sent
 * besides and at once: their number is bounded by the callers (DEBUG_ASKED_MAX,
 * DECODERS_LIVE).
 * Cost: a question takes the same time however many others wait.
 */
#ifndef OTP_DAEMON_ENGINE_HOST_LIVE_H
#define OTP_DAEMON_ENGINE_HOST_LIVE_H

#include "daemon/ipc.h"
#include "process/host.h"

#define HOST_LIVE_WINDOW 32
#define HOST_LIVE_QUEUE  4096
#define HOST_LIVE_GROUP  8

/* Sees every answer before the caller that asked does (a capture). fd and data are borrowed. */
typedef void host_tap_fn(void *ctx, const struct host_request *req, int err, int fd, const void *data, size_t len);

struct host_live;
int host_live_new(int sock, host_tap_fn *tap, void *tap_ctx, struct host_live **ret); /* sock borrowed */
struct host_live *host_live_free(struct host_live *h); /* answers open questions with -ECANCELED; NULL */
struct host *host_live_host(struct host_live *h); /* borrowed from h */
/* An ANSWER message: takes its descriptor. */
void host_live_answer(struct host_live *h, struct ipc_message *m);
void host_live_send_file(struct host_live *h, struct ipc_message *m); /* FILE_WANTED: to the indexer */
/* Sends waiting questions; call when the socket may have room again. */
void host_live_pump(struct host_live *h);
size_t host_live_open(const struct host_live *h); /* questions without an answer */

#endif
