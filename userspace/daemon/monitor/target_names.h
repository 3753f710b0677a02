/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of containers as selection needs them: known here by id, found by
 * an opener, which is disposable and may parse what runtimes write.
 *
 * Called by the monitor's selection (targets*.c), one thread. A name that is
 * not known yet is wanted from then on: targets.c asks for all that are wanted,
 * one question at a time, and matches anew after the answer. Names are kept
 * for as long as their containers are looked up, 4096 at most; a container
 * without a name is not asked for again.
 */
#ifndef OTP_DAEMON_MONITOR_TARGET_NAMES_H
#define OTP_DAEMON_MONITOR_TARGET_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"
#include "process/host.h"

struct target_names {
	struct map known;  /* hash of the id to a struct of this file's; owned */
	struct buf wanted; /* ids, one after the other: of the question that is open, then of the next ones */
	size_t asked;	   /* bytes of wanted that the open question is about */
	bool all_wanted;   /* the next question is about all containers */
	bool open;	   /* a question is with an opener */
};

void target_names_done(struct target_names *n);

/* "": no runtime has one; NULL: not known yet. Borrowed until the next call of this file. */
const char *target_names_find(struct target_names *n, const char *id);
/* Those of all containers of the host, before any is looked up. */
void target_names_want_all(struct target_names *n);
/* Nothing is wanted that was not answered. */
bool target_names_settled(const struct target_names *n);

bool target_names_has_question(const struct target_names *n);
/* The path of the next HOST_READ_CONTAINERS; false: there is none, or one is open. */
bool target_names_question(struct target_names *n, char path[HOST_PATH_MAX]);
/* Its answer, of an opener: malformed text is ignored. len 0 also where it failed: then what was asked has no name. */
void target_names_answer(struct target_names *n, const char *data, size_t len);

#endif
