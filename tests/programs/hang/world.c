/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the file system is mounted. An ordinary user mounts FUSE and an
 * overlay in a user and a mount namespace of its own; both go with its last
 * process. The kernel accepts a descriptor of /dev/fuse there only if it was
 * opened in that user namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hang.h"

_Noreturn static void cannot(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(SKIP);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		cannot(path);
	close(fd);
}

/* We are root inside of it. */
static void enter_namespaces(void)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", (unsigned)geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", (unsigned)getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		cannot("a user and a mount namespace");
	write_text("/proc/self/setgroups", "deny");
	write_text("/proc/self/uid_map", uids);
	write_text("/proc/self/gid_map", gids);
}

static const char *below(const struct world *w, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	return path;
}

int world_mount_fuse(const struct world *w)
{
	char options[128];
	int fd;

	if (!w->host) {
		enter_namespaces();
		if (mount("tmpfs", w->dir, "tmpfs", 0, "mode=755"))
			cannot("tmpfs");
	}
	mkdir(below(w, "fuse"), 0755);
	mkdir(below(w, "empty"), 0755);
	mkdir(below(w, "merged"), 0755);
	fd = open(w->device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		cannot(w->device);
	/* With allow_other, a user's is closed to all outside of the user's namespace (Linux, fs/fuse/dir.c). */
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0%s", fd, w->host ? ",allow_other" : "");
	if (mount("hang", below(w, "fuse"), "fuse", MS_NODEV | MS_NOSUID, options))
		cannot("FUSE");
	return fd;
}

/* Of two lower layers, so that it needs no upper one: it is read-only. */
void world_mount_overlay(const struct world *w)
{
	char options[1200];

	if (!w->overlay)
		return;
	snprintf(options, sizeof(options), "lowerdir=%s/fuse:%s/empty", w->dir, w->dir);
	if (mount("hang", below(w, "merged"), "overlay", MS_RDONLY | MS_NODEV | MS_NOSUID, options))
		cannot("overlay");
}

void world_path(const struct world *w, unsigned file, char *path, size_t size)
{
	snprintf(path, size, "%s/%s/file%u", w->dir, w->overlay ? "merged" : "fuse", file);
}

/* Namespaces of our own need no unmounting. Nothing is asked of the server for it. */
void world_unmount(const struct world *w)
{
	if (!w->host)
		return;
	if (w->overlay)
		umount2(below(w, "merged"), MNT_DETACH);
	umount2(below(w, "fuse"), MNT_DETACH);
}
