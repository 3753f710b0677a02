/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access lists (POSIX ACL) of directories and files, by libacl: whom they let
 * write, and one user more. Nothing that others may do changes by it.
 *
 * Called by the monitor: for directories of file destinations while it still
 * has its rights, for copies of keys at any time, as their owner. Lists are
 * libacl's, owned by whoever made them and freed by acl_free. Errors are
 * negative errno; -ENOMEM among them.
 */
#ifndef OTP_DAEMON_SANDBOX_ACCESS_H
#define OTP_DAEMON_SANDBOX_ACCESS_H

#include <stdbool.h>
#include <sys/acl.h>
#include <sys/types.h>

enum access { ACCESS_EXECUTE = 1, ACCESS_WRITE = 2, ACCESS_READ = 4, ACCESS_ALL = 7 };

/* Who owns the directory, and who wants to write into it. */
struct access_ids {
	uid_t owner;
	gid_t group;
	uid_t uid;
	gid_t gid;
};

/* May uid, with gid as its only group, make files there? By the kernel's rule: the first class that fits decides. */
bool access_lets_write(acl_t list, const struct access_ids *ids);
/* access (bits of enum access) for one user more; what the mask hid from others stays hidden. */
int access_grant(acl_t *list, uid_t uid, unsigned int access);

/*
 * Lets net's user make files in an existing directory: by an access list, or,
 * where the file system has none and both owner and group are root, by giving
 * it the user's group. 0 and what was done in ret_how, NULL if nothing had to
 * be. -EPERM where neither is possible, -ELOOP for a symbolic link, which is
 * never followed to grant something.
 */
int access_let_write(const char *dir, uid_t uid, gid_t gid, const char **ret_how);
/* Lets one user, beside its owner, read a file. */
int access_let_read(int fd, uid_t uid);

#endif
