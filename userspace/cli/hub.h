/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line's side of the hub: where it is, and its API.
 *
 * Called by the verbs, one thread. The address and the token are in
 * RUNTIME_DIR/hub.token, which otprofd writes for root and the group of its
 * sockets. Requests are bounded in size and time.
 */
#ifndef OTP_CLI_HUB_H
#define OTP_CLI_HUB_H

#include <jansson.h>
#include <stddef.h>

#include "cli/cli.h"

#define HUB_ID 17 /* 16 digits and a NUL */

struct hub {
	char address[160], token[160]; /* "127.0.0.1:4380", "https://..." or "unix:/path"; token "": none is needed */
	char cert[1100];	       /* of https: a file with the certificate to expect */
};

#define HUB_UNIX "unix:"
/* What stands before the address in a URL; static. */
const char *hub_scheme(const struct hub *h);

/* Where it is; else the exit status, after a message. 0: found. */
int hub_find(const char *runtime_dir, struct hub *ret);
/*
 * A request to a path below /api/v1; *ret is the answer, NULL where it has no body, the caller's reference. The exit
 * status, after a message where it is not 0.
 */
int hub_ask(const struct hub *h, const char *method, const char *path, json_t **ret);
/* The id of a workload, given by its id or its name. The exit status, after a message where it is not 0. */
int hub_workload(const struct hub *h, const char *word, char ret_id[HUB_ID], json_t **ret_workload);

#endif
