/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that each process drops before it touches anything that others
 * control.
 *
 * Called once by each role: by a worker between CONFIG and READY, by the
 * monitor when all that needs more rights is done. Rights cannot be regained.
 * On failure (negative errno, already logged) the caller
 * exits: no role runs outside its sandbox.
 *
 * After sandbox_engine the process can open no file and no socket, by any
 * call; threads exist only if made before. After sandbox_net it has sockets
 * and the files below the private root, which the monitor has built.
 */
#ifndef OTP_DAEMON_SANDBOX_SANDBOX_H
#define OTP_DAEMON_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config/config.h"

struct sandbox_user {
	uid_t uid;
	gid_t gid;
};

int sandbox_engine(const struct config *c, bool captures); /* captures: it has a file to write without a bound */
int sandbox_net(const struct config *c);
uint64_t sandbox_hub_memory(const struct config *c); /* the bound of what the hub allocates, in bytes */
int sandbox_hub(const struct config *c); /* it keeps the sockets that it has, and accepts connections */
int sandbox_opener(const struct config *c);
int sandbox_indexer(const struct config *c);
int sandbox_fetcher(const struct config *c);
/* user: as sandbox_user_decoder has found it; of an ordinary user, nothing. */
int sandbox_decoder(const struct config *c, const struct sandbox_user *user);
int sandbox_monitor(const struct config *c);
int sandbox_try(const struct config *c); /* of otprofd --try: net's user and filter, in the host's root */

/* The first call of every role: no core dump, no tracer, no new privileges, and death with the parent. */
int sandbox_begin(void);

/* Monitor, before it drops rights: the empty directory that is the engine's root. */
int sandbox_prepare(const struct config *c);
/* The first capability that the start needs and this process lacks, static; NULL: none. */
const char *sandbox_missing_capability(void);
/*
 * Whether an ordinary user runs us, to record processes of their own: workers
 * then cannot change user or root. System call filter, limits and hidden
 * memory remain.
 */
bool sandbox_ordinary(void);

/* The users of the workers. A missing user is replaced by an unused id; warn: with a log line. */
int sandbox_user_engine(const struct config *c, bool warn, struct sandbox_user *ret);
int sandbox_user_net(const struct config *c, bool warn, struct sandbox_user *ret);
int sandbox_user_hub(const struct config *c, bool warn, struct sandbox_user *ret);
int sandbox_user_opener(const struct config *c, struct sandbox_user *ret); /* an unused id, another for each below */
int sandbox_user_indexer(const struct config *c, struct sandbox_user *ret);
int sandbox_user_fetcher(const struct config *c, struct sandbox_user *ret);
int sandbox_user_decoder(const struct config *c, struct sandbox_user *ret);

#endif
