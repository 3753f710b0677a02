/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two files of the monitor's fetching share: fetch_wishes.c, which
 * notes what the indexer looks for in vain, and fetch_jobs.c, which has it
 * fetched. Private to them.
 */
#ifndef OTP_DAEMON_MONITOR_FETCH_JOBS_INTERNAL_H
#define OTP_DAEMON_MONITOR_FETCH_JOBS_INTERNAL_H

#include "daemon/cache/fetch_cache.h"
#include "daemon/cache/index_cache.h"
#include "daemon/monitor/fetch_jobs.h"
#include "daemon/monitor/monitor.h"

#define FETCH_USERS_MAX 8
#define FETCH_NOTES_MAX 4 /* files that one index looks for: its debug file, and what dwz took out of it */

/* An index that would be better with the file. */
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

/* What the index that is being made has asked for. */
struct fetch_note {
	char id[FETCH_ID_MAX];
	enum fetch_state state; /* FETCHED: it was given */
};

struct fetch_jobs {
	int dir; /* -1: off, or it cannot be had */
	char *urls; /* in force; owned, NULL: off */
	struct fetch_task *first, **last; /* the first one is with the fetcher, if there is one */
	uint32_t count;
	struct fetch_note notes[FETCH_NOTES_MAX];
	uint32_t nr_notes;
	uint64_t tokens_milli, tokens_ns; /* requests that may be made now, in thousandths */
	uint64_t pause_ns, pause_until_ns;
	int fd; /* of the fetcher's; -1 */
	uint64_t deadline_ns;
	struct ipc_fetched result;
	bool has_result, late;
	struct status_debuginfod figures;
	char last_error[200];
};

static inline bool fetch_is_on(const struct monitor *m)
{
	return m->fetch && m->fetch->dir >= 0;
}

void fetch_count_failure(struct fetch_jobs *j, const char *id, enum fetch_state state, const char *text);
/* What becomes of the files of this content. */
void fetch_tell_engine(struct monitor *m, const uint64_t content[2], enum fetch_state state);

#endif
