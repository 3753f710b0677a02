/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state shared by fetch_wishes.c, which notes the debug files that the
 * indexer does not find, and fetch_jobs.c, which has them fetched. Private to
 * them; one thread.
 */
#ifndef OTP_DAEMON_MONITOR_FETCH_JOBS_INTERNAL_H
#define OTP_DAEMON_MONITOR_FETCH_JOBS_INTERNAL_H

#include "daemon/cache/fetch_cache.h"
#include "daemon/cache/index_cache.h"
#include "daemon/monitor/fetch_jobs.h"
#include "daemon/monitor/monitor.h"

#define FETCH_USERS_MAX 8
#define FETCH_NOTES_MAX 4 /* files that one index needs: its debug file, and the files that dwz split from it */
#define FETCH_PAIRS_MAX 256

/* An index that lacks the file. */
struct fetch_user {
	char key[INDEX_KEY_MAX];
	uint64_t content[2];
};

struct fetch_task {
	struct fetch_task *next;
	char id[FETCH_ID_MAX];
	uint32_t tries, nr_users;
	struct fetch_user users[FETCH_USERS_MAX];
};

/* A file that the current index has requested. */
struct fetch_note {
	char id[FETCH_ID_MAX];
	enum fetch_state state; /* FETCHED: from the cache */
};

/* An index that could not be made with this file. */
struct fetch_pair {
	char key[INDEX_KEY_MAX];
	char id[FETCH_ID_MAX];
};

struct fetch_jobs {
	struct disk_cache cache; /* closed: off, or it cannot be opened */
	char *urls; /* in force; owned, NULL: off */
	struct fetch_task *first, **last; /* owned; the fetcher, if it runs, has the first */
	uint32_t count;
	struct fetch_note notes[FETCH_NOTES_MAX];
	uint32_t nr_notes;
	char key[INDEX_KEY_MAX]; /* of the index that is being made */
	struct fetch_pair pairs[FETCH_PAIRS_MAX]; /* a ring: the oldest is overwritten */
	uint32_t next_pair;
	uint64_t tokens_milli, tokens_ns; /* requests that are allowed now, in thousandths */
	uint64_t pause_ns, pause_until_ns;
	int fd; /* of the file that the fetcher writes; -1 */
	uint64_t deadline_ns;
	struct ipc_fetched result;
	bool has_result, late;
	struct status_debuginfod figures;
	char last_error[200];
};

static inline bool fetch_is_on(const struct monitor *m)
{
	return m->fetch && m->fetch->cache.dir >= 0;
}

void fetch_count_failure(struct fetch_jobs *j, const char *id, enum fetch_state state, const char *text);
/* Sends the engine the state of the debug files of this content. */
void fetch_send_state(struct monitor *m, const uint64_t content[2], enum fetch_state state);

#endif
