/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access lists (POSIX ACL) of directories and files, by libacl: whether a user
 * may write, and the grant of access to one more user. The access of all others
 * stays as it is.
 *
 * Called by the monitor, one thread: for directories of file destinations while
 * it still has its rights, for copies of keys at any time, as their owner.
 * CAP_CHOWN is not needed. Lists are libacl's, owned by their creator and freed
 * by acl_free. Errors are negative errno; -ENOMEM among them.
 */
#ifndef OTP_DAEMON_SANDBOX_ACCESS_H
#define OTP_DAEMON_SANDBOX_ACCESS_H

#include <stdbool.h>
#include <sys/acl.h>
#include <sys/types.h>

enum access { ACCESS_EXECUTE = 1, ACCESS_WRITE = 2, ACCESS_READ = 4, ACCESS_ALL = 7 };

/* The owner and group of the directory, and the user and group of the writer. */
struct access_ids {
	uid_t owner;
	gid_t group;
	uid_t uid;
	gid_t gid;
};

/* Whether uid, with gid as its only group, may create files. As in the kernel, the first class that fits decides. */
bool access_lets_write(acl_t list, const struct access_ids *ids);
/* Adds access (bits of enum access) for uid; rights that the mask hid from others stay hidden. */
int access_grant(acl_t *list, uid_t uid, unsigned int access);

/*
 * Lets net's user make files in an existing directory: by an access list, or,
 * where the file system has none and both owner and group are root, by giving
 * it the user's group. On 0, ret_how is a static text of what was done, NULL if
 * nothing was needed. -EPERM where neither is possible. fd, of the directory,
 * is borrowed: by a path, others might choose the directory.
 */
int access_let_write(int fd, uid_t uid, gid_t gid, const char **ret_how);
/* Lets uid, beside the owner, read a file; where there are no lists, its group gid. fd is borrowed. */
int access_let_read(int fd, uid_t uid, gid_t gid);

#endif
