/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process life as events: fork, comm, exec, exit and executable mappings,
 * decoded from perf side-band records (Linux, include/uapi/linux/perf_event.h)
 * or made from another sampler's reports.
 * Called by the engine and the perf source, one thread each. Strings are
 * borrowed from the record.
 */
#ifndef OTP_PROCESS_EVENTS_H
#define OTP_PROCESS_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum proc_event_type { PROC_FORK = 1, PROC_COMM, PROC_EXEC, PROC_EXIT, PROC_MMAP, PROC_LOST };

struct proc_event {
	uint8_t type; /* enum proc_event_type */
	uint8_t build_id_len;
	uint8_t build_id[20];
	uint32_t pid, tid;
	uint32_t ppid, ptid; /* FORK, EXIT */
	uint64_t time_ns;
	uint64_t start, end, offset; /* MMAP */
	uint64_t dev, ino;           /* MMAP without build-id; dev as makedev() */
	uint64_t ino_generation;     /* likewise; differs for a reused inode where the file system counts */
	uint64_t lost;               /* LOST: records */
	const char *name;            /* COMM, EXEC: comm; MMAP: path as the target sees it */
	size_t name_len;
};

/* Fixed by the sample_type of the dummy event: what follows each record. */
#define SIDEBAND_SAMPLE_TYPE_TAIL 16 /* pid, tid (u32 each), time (u64) */

/*
 * Decodes one perf record of len bytes (header included). 0; -ENOENT for a
 * type that is not of process life; -EBADMSG for a malformed record.
 */
int proc_event_decode(const void *record, size_t len, struct proc_event *ret);

#endif
