// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "process/proc_status.h"

#define DEPTH_MAX 33 /* user namespaces in each other: Linux, kernel/user_namespace.c, create_user_ns */

static int owner_open_namespace(const char *pid, const char *kind)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* 0 where it cannot be known. */
static ino_t owner_namespace_ino(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static ino_t owner_our_namespace(void)
{
	_cleanup_(closep) int fd = owner_open_namespace("self", "user");

	return owner_namespace_ino(fd);
}

static int owner_real_user(uint32_t pid, uint32_t *ret_uid)
{
	struct proc_status status;
	char text[4096];

	if (file_read_proc(pid, "status", text, sizeof(text)) <= 0 || proc_status_parse(text, &status))
		return -ESRCH;
	*ret_uid = status.real_uid;
	return 0;
}

/* Takes fd, a user namespace below ours. */
static int owner_of_outermost(int fd, ino_t ours, uint32_t *ret_uid)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		int parent = ioctl(fd, NS_GET_PARENT);
		uid_t uid = 0;

		if (parent < 0 || owner_namespace_ino(parent) == ours) {
			int r = parent < 0 ? -1 : ioctl(fd, NS_GET_OWNER_UID, &uid);

			closep(&parent);
			close(fd);
			*ret_uid = uid;
			return r < 0 ? -EACCES : 0;
		}
		close(fd);
		fd = parent;
	}
	close(fd);
	return -ELOOP;
}

int owner_of(uint32_t pid, uint32_t *ret_uid)
{
	ino_t ours = owner_our_namespace(), ino;
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", pid);
	fd = owner_open_namespace(name, "user");
	ino = owner_namespace_ino(fd);
	if (ino && ours && ino != ours)
		return owner_of_outermost(fd, ours, ret_uid);
	closep(&fd);
	return owner_real_user(pid, ret_uid);
}

static bool owner_namespace_is_ours(int mount_namespace)
{
	_cleanup_(closep) int user = ioctl(mount_namespace, NS_GET_USERNS);
	ino_t ours = owner_our_namespace();

	return ours && owner_namespace_ino(user) == ours;
}

/* -1 where it cannot be known. */
static int owner_mount_id(int fd)
{
	char path[64], text[512];
	const char *line;
	int id;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (file_read_text(path, text, sizeof(text)) <= 0)
		return -1;
	line = strstr(text, "mnt_id:");
	return line && sscanf(line, "mnt_id: %d", &id) == 1 ? id : -1;
}

static bool owner_has_mount(const char *pid, int id)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0)
		if (atoi(line) == id)
			return true;
	return false;
}

/* The process may change its namespace meanwhile: then the one it has at the end is another. */
bool owner_made_mount(uint32_t pid, int fd)
{
	_cleanup_(closep) int before = -1, after = -1;
	int id = owner_mount_id(fd);
	char name[16];

	snprintf(name, sizeof(name), "%u", pid);
	before = owner_open_namespace(name, "mnt");
	if (id < 0 || before < 0 || !owner_namespace_is_ours(before) || !owner_has_mount(name, id))
		return false;
	after = owner_open_namespace(name, "mnt");
	return owner_namespace_ino(after) == owner_namespace_ino(before);
}
