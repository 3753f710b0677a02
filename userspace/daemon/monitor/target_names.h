/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of containers for selection: cached by id, looked up by an opener,
 * which is disposable and so may parse the files of runtimes.
 *
 * Called by the monitor's selection (targets*.c), one thread. A name that is
 * not cached is queued: targets.c asks for all queued ones, one question at a
 * time, and matches again after the answer. Names are cached as long as their
 * containers are looked up, 4096 at most; a container without a name is not asked
 * for again.
 */
#ifndef OTP_DAEMON_MONITOR_TARGET_NAMES_H
#define OTP_DAEMON_MONITOR_TARGET_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"
#include "process/host.h"

struct target_names {
	struct map known;  /* hash of the id to a private struct; owned */
	struct buf wanted; /* ids, concatenated: of the open question, then of the next ones */
	size_t asked;	   /* bytes of wanted in the open question */
	bool all_wanted;   /* the next question is for all containers */
	bool open;	   /* a question is with an opener */
};

void target_names_done(struct target_names *n);

/* "": it has no name; NULL: not resolved yet, queued. Borrowed until the next call of this file. */
const char *target_names_find(struct target_names *n, const char *id);
/* Queues a question for all containers of the host, before any is looked up. */
void target_names_want_all(struct target_names *n);
/* Whether every question was answered. */
bool target_names_settled(const struct target_names *n);

bool target_names_has_question(const struct target_names *n);
/* The path of the next HOST_READ_CONTAINERS; false: there is none, or one is open. */
bool target_names_question(struct target_names *n, char path[HOST_PATH_MAX]);
/* An opener's answer: malformed text is ignored. len 0, also for a failure: the containers have no name. */
void target_names_answer(struct target_names *n, const char *data, size_t len);

#endif
