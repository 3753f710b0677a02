// SPDX-License-Identifier: Apache-2.0
/*
 * What is touched: before an opener touches a file or memory, it reports to the
 * monitor whose that is, and leaves it alone where it is banned.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/disposable/opener.h"
#include "daemon/disposable/owner.h"

/* Flags of statx: the open file itself, as the kernel has it cached, so that no file server is asked. */
#define NOT_ASKED (AT_EMPTY_PATH | AT_STATX_DONT_SYNC)

int opener_touch(struct opener *o, uint32_t pid, uint64_t dev)
{
	struct blame who = {.pid = dev ? 0 : pid, .dev = dev};
	int err = owner_of(pid, &who.uid);

	/* One that is gone has no user; its files are found for a neighbour, or not. */
	if (err && !dev)
		return err;
	if (memcmp(&who, &o->touched, sizeof(who)) != 0)
		ipc_send(o->monitor, IPC_BLAME, 0, &who, sizeof(who), NULL, 0);
	o->touched = who;
	return blame_is_banned(o->bans.ban, o->bans.count, &who) ? -EHOSTDOWN : 0;
}

int opener_touch_file(struct opener *o, uint32_t pid, int path_fd)
{
	struct statx st;

	if (statx(path_fd, "", NOT_ASKED, STATX_INO, &st) < 0)
		return errno == ENOSYS ? opener_touch(o, pid, 0) : -errno; /* before Linux 4.11 */
	return opener_touch(o, pid, makedev(st.stx_dev_major, st.stx_dev_minor));
}
