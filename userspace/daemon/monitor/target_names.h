/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of containers for selection: cached by id, looked up by an opener,
 * which is disposable and so may parse the files of runtimes.
 *
 * Called by the monitor's selection (targets*.c), one thread. An id that is
 * not cached is queued: targets.c asks for all queued ones, one question at a
 * time, and matches again after the answer.
 *
 * Whoever may make cgroups makes ids, thousands of them, and none of these has a
 * name: therefore containers with a name and those without one have bounds of
 * their own (4096 each), and neither displaces the other. An id is dropped only
 * after two rounds without a lookup, never within a round. An id beyond the
 * bound is not cached, and stays unresolved until others are dropped; if it has
 * a name, the question for all containers finds the name.
 *
 * A question that fails leaves its containers unresolved; a few seconds later
 * their next lookup queues them again. Its successors ask for fewer containers,
 * so that one that makes a question fail does not hold up the others. A name
 * holds for the life of its container; that a container has none holds for ten
 * seconds.
 */
#ifndef OTP_DAEMON_MONITOR_TARGET_NAMES_H
#define OTP_DAEMON_MONITOR_TARGET_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/hash.h"
#include "process/host.h"

struct target_name;

struct target_names {
	struct map known;		    /* hash of the id to struct target_name; owned */
	size_t named;			    /* of known: those with a name */
	struct target_name *first, **last; /* the queued ones, linked; borrowed from known */
	uint32_t round;
	char asked[HOST_PATH_MAX]; /* the ids of the open question, concatenated */
	uint32_t most;		   /* ids in the next question, after a failure; 0: as many as fit */
	uint64_t all_ns;	   /* from then on a full table may ask for all containers again */
	bool all_wanted;	   /* the next question is for all containers */
	bool open;		   /* a question is with an opener */
};

void target_names_done(struct target_names *n);

/* "": it has no name; NULL: not resolved yet. Borrowed until the next call of this file. */
const char *target_names_find(struct target_names *n, const char *id, uint64_t now_ns);
/* Every container that is there was looked up since the call before: drops those that are gone. */
void target_names_end_round(struct target_names *n);
/* Queues a question for all containers of the host, before any is looked up. */
void target_names_want_all(struct target_names *n);
/* Whether every question was answered. */
bool target_names_settled(const struct target_names *n);

bool target_names_has_question(const struct target_names *n);
/* The path of the next HOST_READ_CONTAINERS; false: there is none, or one is open. */
bool target_names_question(struct target_names *n, char path[HOST_PATH_MAX]);
/* An opener's answer, or its failure: err is a negative errno. A container that the answer leaves out has no name. */
void target_names_answer(struct target_names *n, int err, const char *data, size_t len, uint64_t now_ns);

#endif
