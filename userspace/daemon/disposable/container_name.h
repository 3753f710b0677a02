/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of containers, looked up by id in the files of container runtimes,
 * below directories that only root may enter: Docker's config.v2.json,
 * the bundle of a CRI runtime's container, Podman's list of containers.
 *
 * Called by the opener: a disposable process parses the JSON, for selection
 * by name and for the attribute of a workload alike. Files that root does
 * not own, or of more than 4 MiB, are not read. A name is cached for the life of
 * the process (containers hardly ever change it), a failed lookup for ten
 * seconds; 4096 ids at most, and as many of Podman's list, which is parsed again
 * only after it has changed. Cost of a lookup that is not cached: two files are
 * looked for, and the list's status is read. One thread.
 */
#ifndef OTP_DAEMON_DISPOSABLE_CONTAINER_NAME_H
#define OTP_DAEMON_DISPOSABLE_CONTAINER_NAME_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"

struct container_names {
	const char *root; /* of the host's files; borrowed */
	uid_t owner;	  /* of the files that are read */
	struct map known; /* by hash of the id; owns its values */
	struct map listed; /* the same, of Podman's list as it was last parsed */
	struct stat list;  /* the status of the list then; zero: it was not parsed yet */
	uint64_t parsed;   /* how often the list was parsed */
};

/* root "" and owner 0, except in tests. */
void container_names_init(struct container_names *n, const char *root, uid_t owner);
void container_names_done(struct container_names *n);

/* id: HOST_CONTAINER_ID hex digits. "" where no runtime has a name. Borrowed until the next call of this file. */
const char *container_names_find(struct container_names *n, const char *id);
/* Appends every container that has a name, in the format of HOST_READ_CONTAINERS. */
void container_names_all(struct container_names *n, struct buf *to);
/* Appends one container, if it has a name. */
void container_names_one(struct container_names *n, const char *id, struct buf *to);

#endif
