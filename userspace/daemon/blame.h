/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is to blame if an opener never answers. No signal ends a process that
 * waits for a file server which does not answer, so each such wait costs an
 * opener. Before an opener touches what may hang, it says whose it is; where it
 * hangs, the monitor bans that from then on.
 *
 * An opener sends struct blame; the monitor sends all openers the list of bans.
 * Pure, but for the clock that is passed; one thread. Bounds: BLAME_MAX bans.
 */
#ifndef OTP_DAEMON_BLAME_H
#define OTP_DAEMON_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#define BLAME_MAX 32

/* What is about to be touched; as a ban, 0 in pid and dev is all of the user's. */
struct blame {
	uint32_t uid; /* on whose behalf the process runs (daemon/disposable/owner.h) */
	uint32_t pid; /* whose memory; 0: a file */
	uint64_t dev; /* the file system of the file; 0: memory */
};

struct bans {
	uint32_t count;
	struct blame ban[BLAME_MAX];
	uint64_t until_ns[BLAME_MAX];
};

/* A user who is to blame for several is banned altogether, root never is. */
void bans_add(struct bans *b, const struct blame *who, uint64_t until_ns);
/* The bans of what was to blame last at least so long. */
void bans_extend(struct bans *b, const struct blame *who, uint64_t until_ns);
/* Whether a ban has ended: the list has changed. */
bool bans_expire(struct bans *b, uint64_t now_ns);
/* When the next ban ends; UINT64_MAX: none is in force. */
uint64_t bans_next_ns(const struct bans *b);
bool blame_is_banned(const struct blame *ban, uint32_t count, const struct blame *who);

#endif
