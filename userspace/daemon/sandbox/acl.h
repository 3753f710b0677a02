/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory's access list (POSIX ACL): whom it lets write, and one user
 * more. Nothing that others may do changes by it.
 *
 * Called by the monitor while it still has its rights, for directories of
 * file destinations. Plain values; nothing to free.
 * Format: Linux, include/uapi/linux/posix_acl_xattr.h, version 2: a version,
 * then tag, permissions and id of each entry, little-endian, in the order
 * owner, users, group, groups, mask, others.
 */
#ifndef OTP_DAEMON_SANDBOX_ACL_H
#define OTP_DAEMON_SANDBOX_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ACL_ENTRIES_MAX 128
#define ACL_BYTES_MAX	(4 + 8 * ACL_ENTRIES_MAX)
#define ACL_XATTR	"system.posix_acl_access"

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t nr;
	struct acl_entry entry[ACL_ENTRIES_MAX];
};

/* Who owns the directory, and who wants to write into it. */
struct acl_ids {
	uid_t owner;
	gid_t group;
	uid_t uid;
	gid_t gid;
};

/* What the mode bits alone say. */
void acl_from_mode(mode_t mode, struct acl *ret);
/* -EBADMSG where it is no list, or not a whole one; -E2BIG. */
int acl_read(const void *bytes, size_t len, struct acl *ret);
size_t acl_write(const struct acl *a, uint8_t to[ACL_BYTES_MAX]); /* bytes written */
/* May uid, with gid as its only group, make files there? By the kernel's rule: the first class that fits decides. */
bool acl_lets_write(const struct acl *a, const struct acl_ids *ids);
/* Everything for one user more; what the mask hid from others stays hidden. -E2BIG. */
int acl_grant(struct acl *a, uid_t uid);

/*
 * Lets net's user make files in an existing directory: by an access list, or,
 * where the file system has none and both owner and group are root, by giving
 * it the user's group. 0 and what was done in ret_how, NULL if nothing had to
 * be. -EPERM where neither is possible, -ELOOP for a symbolic link, which is
 * never followed to grant something, or another negative errno.
 */
int acl_let_write(const char *dir, uid_t uid, gid_t gid, const char **ret_how);

#endif
