/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers, the monitor's part: a file that the
 * indexer does not find is noted (fetch_wishes.c), queued, fetched by a process
 * for one file at a time, cached, and the indexes that lacked it are made anew
 * (fetch_jobs.c).
 *
 * Called by the monitor where an index is made, a fetcher starts or ends, and
 * every turn of its loop; one thread. Nothing waits. The state is
 * m->fetch, owned; NULL where no indexes are kept. Bounds: 256 files in the
 * queue, eight indexes that wait for one, 256 that a file is not used for, the
 * configured requests a minute and bytes.
 */
#ifndef OTP_DAEMON_MONITOR_FETCH_JOBS_H
#define OTP_DAEMON_MONITOR_FETCH_JOBS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_message;
struct monitor;
struct status_debuginfod;

int fetch_jobs_open(struct monitor *m); /* after index_jobs_open; -ENOMEM */
void fetch_jobs_close(struct monitor *m);
void fetch_jobs_reload(struct monitor *m); /* the configuration may have changed */
void fetch_jobs_status(const struct monitor *m, struct status_debuginfod *ret);

/*
 * While an index is made: its start, a file that it needs, whether a cached file may have done harm, its end. Blamed,
 * a file is not used for this index again, and is for all others: which of the two is the bad one cannot be known, and
 * a program that claims another's build-id must not take the debug file from it.
 */
void fetch_jobs_index_begins(struct monitor *m, const char *key);
bool fetch_jobs_asked(struct monitor *m, const struct ipc_message *msg); /* false: not a question for a debug file */
bool fetch_jobs_blame(struct monitor *m);
bool fetch_jobs_index_made(struct monitor *m, const char *key, const uint64_t content[2]); /* true: a file may arrive */

/* The fetcher. */
bool fetch_jobs_wait(const struct monitor *m); /* a fetcher is needed */
int fetch_jobs_hand_over(struct monitor *m);
void fetch_jobs_fetched(struct monitor *m, const struct ipc_message *msg); /* FETCHED */
void fetch_jobs_fetcher_ended(struct monitor *m);
void fetch_jobs_run(struct monitor *m, uint64_t now);

#endif
