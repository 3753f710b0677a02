/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the status of an otprofd, JSON, from its socket or from the file that it
 * writes at its end. Called by the verbs, one thread. Bounded in size and time.
 */
#ifndef OTP_CLI_CLIENT_H
#define OTP_CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* The text from RUNTIME_DIR/status.sock. -errno of connect, -ETIMEDOUT, -E2BIG. */
int client_read(const char *runtime_dir, struct buf *ret_text);
/* Parsed; the caller owns the reference. -EBADMSG: not a JSON object. */
int client_status(const char *runtime_dir, json_t **ret);
int client_last_status(const char *runtime_dir, json_t **ret); /* RUNTIME_DIR/last-status.json */

/*
 * Sends one line (with its newline) to RUNTIME_DIR/query.sock and reads one JSON
 * object; the caller owns the reference. Errors as above; -EBADMSG also if the
 * connection ends without an answer.
 */
int client_ask(const char *runtime_dir, const char *line, struct buf *ret_text, json_t **ret);

/* Appends what fd still has to say, until its end. -ETIMEDOUT after 5 s, -E2BIG where b is full. */
int client_read_to_end(int fd, struct buf *b);

/* Prints why RUNTIME_DIR/socket could not be read (err, negative) and what may help. Returns the exit status. */
int client_failed(const char *runtime_dir, const char *socket, int err);

/* Values by path, such as "ledger.taken", borrowed from root: 0, "", false or NULL if missing or of another type. */
const json_t *client_at(const json_t *root, const char *path);
uint64_t client_number(const json_t *root, const char *path);
const char *client_text(const json_t *root, const char *path);
bool client_is_true(const json_t *root, const char *path);
/* The sum of all numbers in an object. */
uint64_t client_sum(const json_t *root, const char *path);
/*
 * Samples lost, of an object with the ledger's equation (the ledger itself, or one of its origins): those lost at the
 * destination that lost most, of which those lost before all destinations are a part.
 */
uint64_t client_lost(const json_t *root, const char *path);

#endif
