/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Syncs files that were written to, in a thread of its own: a disk may take
 * seconds for a sync, and the caller's loop must not wait for it.
 *
 * Called by the spools of one exporter, one thread. A file that was handed over
 * is synced within about a second, as far as the disk permits. Errors of a sync
 * are not reported: the next write reports them, or a checksum when it is read.
 */
#ifndef OTP_EXPORT_SPOOL_SYNC_H
#define OTP_EXPORT_SPOOL_SYNC_H

struct spool_sync;

int spool_sync_new(struct spool_sync **ret); /* -ENOMEM, -EAGAIN */
struct spool_sync *spool_sync_free(struct spool_sync *s); /* NULL; waits for a sync that is under way */
/*
 * fd, of a file or a directory, is duplicated. A file that waits already, under
 * the same key, is not added again; key 0 always is. Where too many wait, it is
 * left to the kernel's own writeback.
 */
void spool_sync_want(struct spool_sync *s, int fd, unsigned long key);

#endif
