/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of an otprofd: JSON text from its socket, or from the file that
 * it leaves behind. Called by the verbs, one thread. Bounded in size and time.
 */
#ifndef OTP_CLI_CLIENT_H
#define OTP_CLI_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"

/* Text that RUNTIME_DIR/status.sock gives. -errno of connect, -ETIMEDOUT, -E2BIG. */
int client_read(const char *runtime_dir, struct buf *ret_text);
/* Parsed; the reference is the caller's. -EBADMSG where it is no JSON object. */
int client_status(const char *runtime_dir, json_t **ret);
int client_last_status(const char *runtime_dir, json_t **ret); /* RUNTIME_DIR/last-status.json */

/*
 * RUNTIME_DIR/query.sock, asked one line (its newline included): one JSON
 * object. Errors as above; -EBADMSG also for the end without an answer.
 */
int client_ask(const char *runtime_dir, const char *line, struct buf *ret_text, json_t **ret);

/* Says on stderr why RUNTIME_DIR/socket gave nothing (err, negative) and what may help. The verb's exit status. */
int client_failed(const char *runtime_dir, const char *socket, int err);

/* Values by path, such as "ledger.taken": 0, "" or NULL where there is none or it is of another type. */
const json_t *client_at(const json_t *root, const char *path);
uint64_t client_number(const json_t *root, const char *path);
const char *client_text(const json_t *root, const char *path);
/* The sum of all numbers in an object. */
uint64_t client_sum(const json_t *root, const char *path);

#endif
