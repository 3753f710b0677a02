/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address indexes of files, cached on disk, made by an indexer, one at a time.
 *
 * Called by the monitor where the engine asks for an index, an indexer starts
 * or ends, and every turn of its loop; one thread. The engine never waits: its
 * answer is sent when the index is made. The state is m->index, owned; NULL
 * where no indexes are kept. Bounds: 64 files in the queue, a part of them for
 * each owner; ten minutes for one, one minute if another owner's file waits
 * (index_turns.h); the configured bytes of all.
 */
#ifndef OTP_DAEMON_MONITOR_INDEX_JOBS_H
#define OTP_DAEMON_MONITOR_INDEX_JOBS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_message;
struct monitor;

int index_jobs_open(struct monitor *m); /* 0 also where the cache cannot be opened, which is logged; -ENOMEM */
void index_jobs_close(struct monitor *m);
void index_jobs_reload(struct monitor *m); /* the configuration may have changed */

void index_jobs_ask(struct monitor *m, struct ipc_message *msg); /* an ASK of the engine */
void index_jobs_engine_died(struct monitor *m);

/* The indexer. */
bool index_jobs_wait(const struct monitor *m); /* an indexer is needed */
int index_jobs_hand_over(struct monitor *m);
/* Adds the process and the program to an indexer's question for a debug file: the indexer may not choose them. */
void index_jobs_set_root(const struct monitor *m, struct ipc_message *msg);
void index_jobs_indexed(struct monitor *m, const struct ipc_message *msg); /* INDEXED */
void index_jobs_indexer_ended(struct monitor *m);
void index_jobs_run(struct monitor *m, uint64_t now);
uint64_t index_jobs_next_ns(const struct monitor *m);

/* Drops indexes that can be made better now: one, or all that lack debug information. */
void index_jobs_forget(struct monitor *m, const char *key);
void index_jobs_forget_poor(struct monitor *m);
const char *index_jobs_path(const struct monitor *m); /* NULL: there is no cache */

#endif
