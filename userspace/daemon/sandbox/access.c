// SPDX-License-Identifier: Apache-2.0
#include "daemon/sandbox/access.h"

#include <acl/libacl.h>
#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define GROUPS_MAX 1024 /* of the monitor itself */

static const struct {
	acl_perm_t perm;
	unsigned int access;
} perms[] = {{ACL_READ, ACCESS_READ}, {ACL_WRITE, ACCESS_WRITE}, {ACL_EXECUTE, ACCESS_EXECUTE}};

static void access_listp(acl_t *list)
{
	if (*list)
		acl_free(*list);
}

/* --- entries --- */

#define for_each_entry(list, e)                                              \
	for (int _more = acl_get_entry(list, ACL_FIRST_ENTRY, &(e)); _more == 1; \
	     _more = acl_get_entry(list, ACL_NEXT_ENTRY, &(e)))

static acl_tag_t access_entry_tag(acl_entry_t e)
{
	acl_tag_t tag = ACL_UNDEFINED_TAG;

	acl_get_tag_type(e, &tag);
	return tag;
}

/* Of ACL_USER or ACL_GROUP. */
static bool access_entry_is_of(acl_entry_t e, id_t id)
{
	id_t *own = acl_get_qualifier(e);
	bool is = own && *own == id;

	acl_free(own);
	return is;
}

static unsigned int access_entry_bits(acl_entry_t e)
{
	unsigned int access = 0;
	acl_permset_t set;

	if (acl_get_permset(e, &set) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(perms); i++)
		access |= acl_get_perm(set, perms[i].perm) > 0 ? perms[i].access : 0;
	return access;
}

static int access_entry_set_bits(acl_entry_t e, unsigned int access)
{
	acl_permset_t set;

	if (acl_get_permset(e, &set) < 0 || acl_clear_perms(set) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(perms); i++)
		if (access & perms[i].access && acl_add_perm(set, perms[i].perm) < 0)
			return -errno;
	return acl_set_permset(e, set) < 0 ? -errno : 0;
}

/* id: of ACL_USER only. */
static bool access_find_entry(acl_t list, acl_tag_t tag, id_t id, acl_entry_t *ret)
{
	acl_entry_t e;

	for_each_entry(list, e) {
		if (access_entry_tag(e) != tag || (tag == ACL_USER && !access_entry_is_of(e, id)))
			continue;
		*ret = e;
		return true;
	}
	return false;
}

static int access_add_entry(acl_t *list, acl_tag_t tag, id_t id, unsigned int access)
{
	acl_entry_t e;

	if (acl_create_entry(list, &e) < 0 || acl_set_tag_type(e, tag) < 0 ||
	    (tag == ACL_USER && acl_set_qualifier(e, &id) < 0))
		return -errno;
	return access_entry_set_bits(e, access);
}

/* --- who may write --- */

static bool access_is_write(unsigned int access)
{
	return (access & (ACCESS_WRITE | ACCESS_EXECUTE)) == (ACCESS_WRITE | ACCESS_EXECUTE);
}

static bool access_lets_group_write(acl_t list, const struct access_ids *ids, unsigned int mask, bool *ret_member)
{
	bool writes = false;
	acl_entry_t e;

	*ret_member = false;
	for_each_entry(list, e) {
		acl_tag_t tag = access_entry_tag(e);

		if ((tag != ACL_GROUP_OBJ || ids->group != ids->gid) &&
		    (tag != ACL_GROUP || !access_entry_is_of(e, ids->gid)))
			continue;
		*ret_member = true;
		writes = writes || access_is_write(access_entry_bits(e) & mask);
	}
	return writes;
}

bool access_lets_write(acl_t list, const struct access_ids *ids)
{
	unsigned int mask = ACCESS_ALL;
	bool member, writes;
	acl_entry_t e;

	if (access_find_entry(list, ACL_MASK, 0, &e))
		mask = access_entry_bits(e);
	if (ids->owner == ids->uid)
		return access_find_entry(list, ACL_USER_OBJ, 0, &e) && access_is_write(access_entry_bits(e));
	if (access_find_entry(list, ACL_USER, ids->uid, &e))
		return access_is_write(access_entry_bits(e) & mask);
	writes = access_lets_group_write(list, ids, mask, &member);
	if (member)
		return writes;
	return access_find_entry(list, ACL_OTHER, 0, &e) && access_is_write(access_entry_bits(e));
}

/* --- one user more --- */

/* Applied before the mask is widened, so that nobody gains rights. */
static int access_apply_mask(acl_t list, unsigned int mask)
{
	acl_entry_t e;
	int err = 0;

	for_each_entry(list, e) {
		acl_tag_t tag = access_entry_tag(e);

		if (tag == ACL_USER || tag == ACL_GROUP_OBJ || tag == ACL_GROUP)
			err = err ? err : access_entry_set_bits(e, access_entry_bits(e) & mask);
	}
	return err;
}

/* The mask bounds all entries but those of the owner and of others. */
static int access_widen_mask(acl_t *list, unsigned int access)
{
	acl_entry_t mask, group;
	int err;

	if (!access_find_entry(*list, ACL_MASK, 0, &mask))
		return access_find_entry(*list, ACL_GROUP_OBJ, 0, &group) ?
			       access_add_entry(list, ACL_MASK, 0, access_entry_bits(group) | access) : -EBADMSG;
	err = access_apply_mask(*list, access_entry_bits(mask));
	return err ? err : access_entry_set_bits(mask, access_entry_bits(mask) | access);
}

int access_grant(acl_t *list, uid_t uid, unsigned int access)
{
	int err = access_widen_mask(list, access);
	acl_entry_t named;

	if (!err && access_find_entry(*list, ACL_USER, uid, &named))
		err = access_entry_set_bits(named, access_entry_bits(named) | access);
	else if (!err)
		err = access_add_entry(list, ACL_USER, uid, access);
	return err ? err : acl_valid(*list) < 0 ? -errno : 0;
}

/* --- directories and files --- */

static int access_grant_by_list(int fd, acl_t *list, uid_t uid, unsigned int access)
{
	int err = access_grant(list, uid, access);

	return err ? err : acl_set_fd(fd, *list) < 0 ? -errno : 0;
}

/* An owner may give a file to a group that it is in: CAP_SETGID, which the monitor keeps, is enough for that. */
static int access_change_group(int fd, gid_t gid)
{
	gid_t own[GROUPS_MAX];
	int n = getgroups(GROUPS_MAX, own), err;

	if (n < 0 || setgroups(1, &gid) < 0)
		return -errno;
	err = fchown(fd, (uid_t)-1, gid) < 0 ? -errno : 0;
	return setgroups((size_t)n, own) < 0 ? -errno : err;
}

/* Only where the group is root's: nobody but root loses access. */
static int access_grant_by_group(int fd, const struct stat *st, gid_t gid, mode_t mode)
{
	int err = st->st_uid || st->st_gid ? -EPERM : access_change_group(fd, gid);

	return err ? err : fchmod(fd, (st->st_mode & 07777) | mode) < 0 ? -errno : 0;
}

static int access_grant_write(int fd, const struct stat *st, acl_t *list, uid_t uid, gid_t gid, const char **ret_how)
{
	int err = access_grant_by_list(fd, list, uid, ACCESS_ALL);

	*ret_how = "an access list entry";
	if (err != -EOPNOTSUPP)
		return err;
	*ret_how = "its group";
	return access_grant_by_group(fd, st, gid, S_IRWXG);
}

/* Where there is no list, libacl makes one from the mode; but not where the file system has none. */
static acl_t access_list_of(int fd, const struct stat *st)
{
	acl_t list = acl_get_fd(fd);

	return list || errno != EOPNOTSUPP ? list : acl_from_mode(st->st_mode);
}

int access_let_write(int fd, uid_t uid, gid_t gid, const char **ret_how)
{
	_cleanup_(access_listp) acl_t list = NULL;
	struct stat st;

	list = fstat(fd, &st) < 0 ? NULL : access_list_of(fd, &st);
	if (!list)
		return -errno;
	*ret_how = NULL;
	if (access_lets_write(list, &(struct access_ids){st.st_uid, st.st_gid, uid, gid}))
		return 0;
	return access_grant_write(fd, &st, &list, uid, gid, ret_how);
}

int access_let_read(int fd, uid_t uid, gid_t gid)
{
	_cleanup_(access_listp) acl_t list = NULL;
	struct stat st;
	int err;

	list = fstat(fd, &st) < 0 ? NULL : access_list_of(fd, &st);
	if (!list)
		return -errno;
	err = access_grant_by_list(fd, &list, uid, ACCESS_READ);
	return err == -EOPNOTSUPP ? access_grant_by_group(fd, &st, gid, S_IRGRP) : err;
}
