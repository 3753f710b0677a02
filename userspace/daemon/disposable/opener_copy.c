// SPDX-License-Identifier: Apache-2.0
/*
 * In which form a file is passed on: by its descriptor, or, where its file
 * system may never answer, as a copy that is made here, under the deadline.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/disposable/opener.h"
#include "daemon/disposable/owner.h"

#define COPY_FILE_MAX  (64u << 20)
#define COPY_TOTAL_MAX (256u << 20) /* of one opener's life: the engine may keep the copies' memory */
#define COPY_BLOCK     65536

/* Magic numbers: Linux, include/uapi/linux/magic.h, and the file systems' own sources. */
static const uint32_t may_hang[] = {
	0x65735546, /* FUSE, virtiofs */
	0x6969,	    /* NFS */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x517b,	    /* SMB */
	0x01021997, /* 9P */
	0x00c36400, /* Ceph */
	0x5346414f, /* AFS */
	0x6b414653, /* kAFS */
	0x73757245, /* Coda */
	0x0bd00bd0, /* Lustre */
	0x01161970, /* GFS2 */
	0x7461636f, /* OCFS2 */
};

bool opener_may_hang(const struct statfs *fs)
{
	for (size_t i = 0; i < ARRAY_SIZE(may_hang); i++)
		if (may_hang[i] == (uint32_t)fs->f_type)
			return true;
	return false;
}

static bool opener_block_is_zero(const uint8_t *data, size_t len)
{
	return !data[0] && !memcmp(data, data + 1, len - 1);
}

/* Sparse: blocks of zeros stay holes. */
static int opener_copy_blocks(struct opener *o, int from, int to, size_t size)
{
	static uint8_t block[COPY_BLOCK];
	size_t at = 0;

	while (at < size) {
		ssize_t n = pread(from, block, MIN(sizeof(block), size - at), (off_t)at);

		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* the file shrank: the rest reads as zeros */
		if (!opener_block_is_zero(block, (size_t)n)) {
			int err = file_write_at(to, block, (size_t)n, at);

			if (err)
				return err;
			o->copied_bytes += (size_t)n;
		}
		at += (size_t)n;
	}
	return 0;
}

static int opener_copy(struct opener *o, int fd, int *ret_fd)
{
	_cleanup_(closep) int to = -1;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > COPY_FILE_MAX)
		return -EFBIG;
	if (o->copied_bytes + (uint64_t)st.st_size > COPY_TOTAL_MAX)
		return -ENOSPC;
	to = ipc_memfd_new("copy");
	if (to < 0)
		return to;
	if (ftruncate(to, st.st_size) < 0)
		return -errno;
	err = opener_copy_blocks(o, fd, to, (size_t)st.st_size);
	if (!err)
		err = ipc_memfd_seal(to);
	if (!err)
		*ret_fd = steal_fd(&to);
	return err;
}

static int opener_note(int fd, struct ticket_file *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	ticket_file_of(&st, ret);
	return 0;
}

/* An overlay hangs where a layer of it does, and users make overlays over their own FUSE in their own namespaces. */
static bool opener_overlay_may_hang(const struct opener *o, int fd)
{
	const struct ipc_ask *ask = o->ask;

	return o->bans.copy_overlays || (!owner_made_mount(ask->pid, fd) &&
	       !(ask->alternate_pid && owner_made_mount(ask->alternate_pid, fd)) && !owner_made_mount(1, fd));
}

static bool opener_wants_copy(const struct opener *o, const struct statfs *fs, int fd)
{
	return opener_may_hang(fs) || (opener_is_overlay(fs) && opener_overlay_may_hang(o, fd));
}

int opener_pass(struct opener *o, const struct statfs *fs, int *fd, int *ret_fd)
{
	int err = opener_note(*fd, &o->file.file);

	if (!err && opener_wants_copy(o, fs, *fd))
		err = opener_copy(o, *fd, ret_fd);
	else if (!err)
		*ret_fd = steal_fd(fd);
	return err ? err : opener_note(*ret_fd, &o->file.shown);
}
