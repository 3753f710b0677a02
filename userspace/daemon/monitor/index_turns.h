/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose file is indexed next, and how long: one indexer serves all users, and
 * one user's files, however many and slow, leave it to the others in time.
 *
 * Called by index_jobs.c, one thread. Pure: the caller has the clock and the
 * queue, of which these functions see the owners. The host's own files, which
 * most programs run, are one owner; they get half of the time, and the other
 * owners share the rest: the one who has used the least lately is next. What was
 * used counts half after ten minutes.
 * Bounds: an owner has at most a quarter of the queue, the host three, and all
 * others together three. Times of INDEX_OWNERS owners are known; where there are
 * more, the one who has used the least is forgotten.
 * An owner is a user id: one who has many of these has as many turns.
 */
#ifndef OTP_DAEMON_MONITOR_INDEX_TURNS_H
#define OTP_DAEMON_MONITOR_INDEX_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_QUEUE	   64
#define INDEX_OWNERS	   64
#define INDEX_OWNER_HOST   0
#define INDEX_HOST_DEVICES 2

struct index_used {
	uint64_t owner;
	uint64_t ns, at_ns; /* as of at_ns; 0: free */
};

struct index_turns {
	struct index_used host, others, each[INDEX_OWNERS];
};

/*
 * Root's files on the host's own file systems are the host's. Elsewhere, as in a container, root is another owner on
 * each file system: there, a user may have become root, or made the file system.
 */
uint64_t index_turns_owner(uint32_t uid, uint64_t dev, const uint64_t host_devices[INDEX_HOST_DEVICES]);
/* Whether a file of this owner may join the queue. */
bool index_turns_admit(const uint64_t *queue, size_t n, uint64_t owner);
/* The place of the next file; n is not 0. Of an owner's files, the first is first. */
size_t index_turns_next(const struct index_turns *t, const uint64_t *queue, size_t n, uint64_t now);
/* How long the first of the queue may take: less while other owners wait, unless it is the host's. */
uint64_t index_turns_limit_ns(const uint64_t *queue, size_t n);
void index_turns_charge(struct index_turns *t, uint64_t owner, uint64_t ns, uint64_t now);

#endif
