// SPDX-License-Identifier: Apache-2.0
#include "base/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 40 /* as in the kernel */

struct safe_walk {
	int dir; /* O_PATH, -1 after a failure */
	uid_t root_owner;
	unsigned int links;
	mode_t mode; /* of the last directory where missing ones are made; 0: none is made */
	char *why;
	char rest[PATH_MAX]; /* of the path */
};

static int safe_walk_failed(const struct safe_walk *w, int err)
{
	snprintf(w->why, SAFE_PATH_WHY, "%s", strerror(-err));
	return err;
}

static bool safe_walk_is_ours(const struct safe_walk *w, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == w->root_owner;
}

/* The group's bits are also the mask of an access list, so they show what such a list grants. */
static bool safe_walk_others_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != 0 && st->st_gid != getegid());
}

/* fd: what is not ours; named as the kernel names it, since links may have been followed. */
static int safe_walk_refuse(const struct safe_walk *w, int fd, const char *what, uid_t uid)
{
	char self[64], path[160];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	path[MAX(n, 0)] = '\0';
	n = snprintf(w->why, SAFE_PATH_WHY, "%s %s", n < 0 ? "a directory" : path, what);
	if (uid)
		snprintf(w->why + n, SAFE_PATH_WHY - (size_t)n, " %u", (unsigned int)uid);
	return -EPERM;
}

static int safe_walk_check(const struct safe_walk *w, bool sticky_will_do)
{
	struct stat st;

	if (fstat(w->dir, &st) < 0)
		return safe_walk_failed(w, -errno);
	if (!safe_walk_is_ours(w, st.st_uid))
		return safe_walk_refuse(w, w->dir, "belongs to user", st.st_uid);
	if (safe_walk_others_write(&st) && !(sticky_will_do && st.st_mode & S_ISVTX))
		return safe_walk_refuse(w, w->dir, "can be written by other users", 0);
	return 0;
}

static void safe_walk_enter(struct safe_walk *w, int fd)
{
	closep(&w->dir);
	w->dir = fd;
}

static int safe_walk_begin(struct safe_walk *w, const char *path)
{
	struct stat st;
	int fd;

	if (strlen(path) >= sizeof(w->rest))
		return safe_walk_failed(w, -ENAMETOOLONG);
	strcpy(w->rest, path);
	fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || stat("/", &st) < 0) {
		closep(&fd);
		return safe_walk_failed(w, -errno);
	}
	safe_walk_enter(w, fd);
	w->root_owner = st.st_uid;
	return 0;
}

/* false: there is none. */
static bool safe_walk_next(struct safe_walk *w, char name[PATH_MAX])
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	snprintf(name, PATH_MAX, "%.*s", (int)len, from);
	memmove(w->rest, from + len, strlen(from + len) + 1);
	return len;
}

static bool safe_walk_is_last(const struct safe_walk *w)
{
	return !w->rest[strspn(w->rest, "/")];
}

/* The link's target takes its place in the rest of the path. */
static int safe_walk_follow(struct safe_walk *w, int link, const struct stat *st)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (!safe_walk_is_ours(w, st->st_uid))
		return safe_walk_refuse(w, link, "is a symbolic link of user", st->st_uid);
	n = readlinkat(link, "", target, sizeof(target) - 1);
	if (n < 0)
		return safe_walk_failed(w, -errno);
	if (++w->links > LINKS_MAX)
		return safe_walk_failed(w, -ELOOP);
	target[n] = '\0';
	strcpy(rest, w->rest);
	if ((size_t)n + strlen(rest) + 2 > sizeof(w->rest))
		return safe_walk_failed(w, -ENAMETOOLONG);
	memcpy(w->rest, target, (size_t)n);
	w->rest[n] = '/';
	strcpy(w->rest + n + 1, rest);
	if (*target == '/')
		safe_walk_enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return w->dir < 0 ? safe_walk_failed(w, -errno) : 0;
}

/* O_PATH: neither a pipe nor a device is opened by it. */
static int safe_walk_look_up(const struct safe_walk *w, const char *name)
{
	int fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	mode_t mode;

	if (fd >= 0 || errno != ENOENT || !w->mode)
		return fd < 0 ? -errno : fd;
	mode = safe_walk_is_last(w) ? w->mode : 0755;
	if (mkdirat(w->dir, name, mode) < 0) {
		if (errno != EEXIST)
			return -errno;
	} else if (fchmodat(w->dir, name, mode, 0) < 0) { /* whatever the umask is */
		return -errno;
	}
	fd = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int safe_walk_step(struct safe_walk *w, const char *name)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int err = safe_walk_check(w, true);

	if (err)
		return err;
	fd = safe_walk_look_up(w, name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return safe_walk_failed(w, fd < 0 ? fd : -errno);
	if (S_ISLNK(st.st_mode))
		return safe_walk_follow(w, fd, &st);
	if (!S_ISDIR(st.st_mode))
		return safe_walk_failed(w, -ENOTDIR);
	safe_walk_enter(w, steal_fd(&fd));
	return 0;
}

/* Leaves the directory in w->dir. */
static int safe_walk(struct safe_walk *w, const char *path, enum safe_path_last last)
{
	char name[PATH_MAX];
	int err = safe_walk_begin(w, path);

	while (!err && safe_walk_next(w, name))
		err = safe_walk_step(w, name);
	return err || last == SAFE_PATH_ANYONES ? err : safe_walk_check(w, false);
}

static int safe_path_walk(const char *path, enum safe_path_last last, mode_t mode, char *why)
{
	struct safe_walk w = {.dir = -1, .mode = mode, .why = why};
	int fd, err = safe_walk(&w, path, last);

	fd = err ? -1 : openat(w.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && fd < 0)
		err = safe_walk_failed(&w, -errno);
	closep(&w.dir);
	return err ? err : fd;
}

int safe_path_open(const char *path, enum safe_path_last last, char why[SAFE_PATH_WHY])
{
	return safe_path_walk(path, last, 0, why);
}

int safe_path_make(const char *path, enum safe_path_last last, mode_t mode, char why[SAFE_PATH_WHY])
{
	return safe_path_walk(path, last, mode, why);
}

/* --- a new file --- */

/* Without opening it: a pipe without a reader would stop the caller. */
static int safe_path_remove_own(int dir, const char *name, char *why)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return unlinkat(dir, name, 0) < 0 ? -errno : 0;
	snprintf(why, SAFE_PATH_WHY, S_ISREG(st.st_mode) ? "it exists and belongs to user %u" :
							   "it exists and is no regular file", (unsigned int)st.st_uid);
	return -EEXIST;
}

static int safe_path_create_at(int dir, const char *name, mode_t mode, char *why)
{
	int fd, err = safe_path_remove_own(dir, name, why);

	if (err == -EEXIST)
		return err;
	fd = err ? -1 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd >= 0)
		return fd;
	err = err ? err : -errno;
	snprintf(why, SAFE_PATH_WHY, "%s", strerror(-err));
	return err;
}

int safe_path_create(const char *path, mode_t mode, char why[SAFE_PATH_WHY])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char parent[PATH_MAX];
	int dir, fd;

	if (strlen(path) >= sizeof(parent)) {
		snprintf(why, SAFE_PATH_WHY, "%s", strerror(ENAMETOOLONG));
		return -ENAMETOOLONG;
	}
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
	dir = safe_path_open(parent, SAFE_PATH_ANYONES, why);
	if (dir < 0)
		return dir;
	fd = safe_path_create_at(dir, name, mode, why);
	close(dir);
	return fd;
}
