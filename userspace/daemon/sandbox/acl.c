// SPDX-License-Identifier: Apache-2.0
#include "daemon/sandbox/acl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"

#define VERSION 2
#define NO_ID	UINT32_MAX

enum { OWNER = 0x01, USER = 0x02, GROUP_OWNER = 0x04, GROUP = 0x08, MASK = 0x10, OTHERS = 0x20 };
enum { EXECUTE = 1, WRITE = 2, READ = 4, ALL = READ | WRITE | EXECUTE };

static int add(struct acl *a, uint32_t at, uint16_t tag, uint16_t perm, uint32_t id)
{
	if (a->nr >= ACL_ENTRIES_MAX)
		return -E2BIG;
	memmove(a->entry + at + 1, a->entry + at, (a->nr - at) * sizeof(*a->entry));
	a->entry[at] = (struct acl_entry){tag, perm, id};
	a->nr++;
	return 0;
}

void acl_from_mode(mode_t mode, struct acl *ret)
{
	ret->nr = 3;
	ret->entry[0] = (struct acl_entry){OWNER, mode >> 6 & ALL, NO_ID};
	ret->entry[1] = (struct acl_entry){GROUP_OWNER, mode >> 3 & ALL, NO_ID};
	ret->entry[2] = (struct acl_entry){OTHERS, mode & ALL, NO_ID};
}

static struct acl_entry *find(const struct acl *a, uint16_t tag, uint32_t id)
{
	for (uint32_t i = 0; i < a->nr; i++)
		if (a->entry[i].tag == tag && (id == NO_ID || a->entry[i].id == id))
			return (struct acl_entry *)a->entry + i;
	return NULL;
}

/* Tags in order, and those there that every list has: a mask too, once anybody is named. */
static bool is_whole(const struct acl *a)
{
	for (uint32_t i = 1; i < a->nr; i++)
		if (a->entry[i].tag < a->entry[i - 1].tag)
			return false;
	if (!find(a, OWNER, NO_ID) || !find(a, GROUP_OWNER, NO_ID) || !find(a, OTHERS, NO_ID))
		return false;
	return find(a, MASK, NO_ID) || (!find(a, USER, NO_ID) && !find(a, GROUP, NO_ID));
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t n;

	memcpy(&n, p, sizeof(n));
	return le16toh(n);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return le32toh(n);
}

static void put16(uint8_t *p, uint16_t n)
{
	n = htole16(n);
	memcpy(p, &n, sizeof(n));
}

static void put32(uint8_t *p, uint32_t n)
{
	n = htole32(n);
	memcpy(p, &n, sizeof(n));
}

int acl_read(const void *bytes, size_t len, struct acl *ret)
{
	const uint8_t *p = bytes;
	struct acl a = {0};

	if (len > ACL_BYTES_MAX)
		return -E2BIG;
	if (len < 4 || (len - 4) % 8 || get32(p) != VERSION)
		return -EBADMSG;
	for (p += 4; a.nr < (len - 4) / 8; p += 8)
		a.entry[a.nr++] = (struct acl_entry){get16(p), get16(p + 2) & ALL, get32(p + 4)};
	if (!is_whole(&a))
		return -EBADMSG;
	*ret = a;
	return 0;
}

size_t acl_write(const struct acl *a, uint8_t to[ACL_BYTES_MAX])
{
	put32(to, VERSION);
	for (uint32_t i = 0; i < a->nr; i++) {
		put16(to + 4 + 8 * i, a->entry[i].tag);
		put16(to + 4 + 8 * i + 2, a->entry[i].perm);
		put32(to + 4 + 8 * i + 4, a->entry[i].id);
	}
	return 4 + 8 * (size_t)a->nr;
}

static bool allows(const struct acl_entry *e, uint16_t mask)
{
	return (e->perm & mask & (WRITE | EXECUTE)) == (WRITE | EXECUTE);
}

static bool lets_group_write(const struct acl *a, const struct acl_ids *ids, uint16_t mask, bool *ret_member)
{
	bool writes = false;

	*ret_member = false;
	for (uint32_t i = 0; i < a->nr; i++) {
		const struct acl_entry *e = &a->entry[i];

		if ((e->tag != GROUP_OWNER || ids->group != ids->gid) && (e->tag != GROUP || e->id != ids->gid))
			continue;
		*ret_member = true;
		writes = writes || allows(e, mask);
	}
	return writes;
}

bool acl_lets_write(const struct acl *a, const struct acl_ids *ids)
{
	const struct acl_entry *mask_entry = find(a, MASK, NO_ID), *named = find(a, USER, ids->uid);
	uint16_t mask = mask_entry ? mask_entry->perm : ALL;
	bool member, writes;

	if (ids->owner == ids->uid)
		return allows(find(a, OWNER, NO_ID), ALL);
	if (named)
		return allows(named, mask);
	writes = lets_group_write(a, ids, mask, &member);
	return member ? writes : allows(find(a, OTHERS, NO_ID), ALL);
}

/* Before the mask grows: nobody gains by it. */
static void apply_mask(struct acl *a, uint16_t mask)
{
	for (uint32_t i = 0; i < a->nr; i++)
		if (a->entry[i].tag & (USER | GROUP_OWNER | GROUP))
			a->entry[i].perm &= mask;
}

static int grant_named(struct acl *a, uint32_t uid)
{
	struct acl_entry *named = find(a, USER, uid);
	uint32_t at = 0;

	if (named) {
		named->perm = ALL;
		return 0;
	}
	while (at < a->nr && (a->entry[at].tag < USER || (a->entry[at].tag == USER && a->entry[at].id < uid)))
		at++;
	return add(a, at, USER, ALL, uid);
}

int acl_grant(struct acl *a, uid_t uid)
{
	struct acl_entry *mask = find(a, MASK, NO_ID);
	uint32_t at = 0;
	int err;

	if (a->nr + 2 > ACL_ENTRIES_MAX)
		return -E2BIG;
	if (mask) {
		apply_mask(a, mask->perm);
		mask->perm = ALL;
	} else {
		while (at < a->nr && a->entry[at].tag < MASK)
			at++;
		err = add(a, at, MASK, ALL, NO_ID);
		if (err)
			return err;
	}
	return grant_named(a, uid);
}

static int look(int fd, const struct stat *st, struct acl *ret)
{
	uint8_t bytes[ACL_BYTES_MAX];
	ssize_t n = fgetxattr(fd, ACL_XATTR, bytes, sizeof(bytes));

	if (n >= 0)
		return acl_read(bytes, (size_t)n, ret);
	if (errno != ENODATA && errno != EOPNOTSUPP)
		return errno == ERANGE ? -E2BIG : -errno;
	acl_from_mode(st->st_mode, ret);
	return 0;
}

static int grant_by_list(int fd, struct acl *a, uid_t uid)
{
	uint8_t bytes[ACL_BYTES_MAX];
	int err = acl_grant(a, uid);

	if (err)
		return err;
	return fsetxattr(fd, ACL_XATTR, bytes, acl_write(a, bytes), 0) < 0 ? -errno : 0;
}

/* Only root's own group: nobody but root loses by it. */
static int grant_by_group(int fd, const struct stat *st, gid_t gid)
{
	if (st->st_uid || st->st_gid)
		return -EPERM;
	return fchown(fd, (uid_t)-1, gid) < 0 || fchmod(fd, (st->st_mode & 07777) | 0070) < 0 ? -errno : 0;
}

/* By no symbolic link: who may put one there must not choose what root opens to net. */
static int open_directory(const char *dir, bool *ret_link)
{
	char path[4096];
	size_t n = strlen(dir);
	int fd;

	while (n > 1 && dir[n - 1] == '/')
		n--; /* behind which a link would be followed */
	if (n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dir, n);
	path[n] = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*ret_link = fd < 0 && (errno == ENOTDIR || errno == ELOOP);
	if (*ret_link)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int grant(int fd, const struct stat *st, struct acl *a, uid_t uid, gid_t gid, const char **ret_how)
{
	int err = grant_by_list(fd, a, uid);

	*ret_how = "an access list entry";
	if (err != -EOPNOTSUPP)
		return err;
	*ret_how = "its group";
	return grant_by_group(fd, st, gid);
}

int acl_let_write(const char *dir, uid_t uid, gid_t gid, const char **ret_how)
{
	struct stat st;
	struct acl a;
	bool link;
	_cleanup_(closep) int fd = open_directory(dir, &link);
	int err = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : look(fd, &st, &a);

	if (err)
		return err;
	*ret_how = NULL;
	if (acl_lets_write(&a, &(struct acl_ids){st.st_uid, st.st_gid, uid, gid}))
		return 0;
	return link ? -ELOOP : grant(fd, &st, &a, uid, gid, ret_how);
}
