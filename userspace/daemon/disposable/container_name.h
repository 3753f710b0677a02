/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that people gave containers, found by id where container runtimes
 * keep them, below directories that only root may enter: Docker's config.v2.json,
 * the bundle of a CRI runtime's container, Podman's list of containers.
 *
 * Called by the opener: a disposable process parses the JSON, for selection
 * by name and for the attribute of a workload alike. Files that root does
 * not own, or of more than 4 MiB, are not read. Names are cached: one that was
 * found for good (containers hardly ever change their name), one that was not
 * for ten seconds; 4096 at most. Cost of a lookup that is not cached: three
 * files at most.
 */
#ifndef OTP_DAEMON_DISPOSABLE_CONTAINER_NAME_H
#define OTP_DAEMON_DISPOSABLE_CONTAINER_NAME_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"

struct container_names {
	const char *root; /* of the host's files; borrowed */
	uid_t owner;	  /* of the files that are read */
	struct map known;
};

/* root "" and owner 0, but in tests. */
void container_names_init(struct container_names *n, const char *root, uid_t owner);
void container_names_done(struct container_names *n);

/* id: HOST_CONTAINER_ID hex digits. "" where no runtime has a name. Borrowed until the next call. */
const char *container_names_find(struct container_names *n, const char *id);
/* Appends every container that a runtime has a name for, as HOST_READ_CONTAINERS answers. */
void container_names_all(struct container_names *n, struct buf *to);
/* The same of one container, or nothing. */
void container_names_one(struct container_names *n, const char *id, struct buf *to);

#endif
