// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/hub_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/safe_path.h"
#include "daemon/config/config.h"
#include "daemon/ipc.h"

#define BACKLOG 64

static int hub_listen_failed(char why[HUB_LISTEN_WHY], int err, const char *address)
{
	snprintf(why, HUB_LISTEN_WHY, "cannot listen on %.120s: %s", address, strerror(-err));
	return err;
}

/* path: of a UNIX socket, NULL: none; who may connect is settled before anybody can. */
static int hub_listen_on(const struct sockaddr *to, socklen_t len, const char *path, int *ret_fd)
{
	_cleanup_(closep) int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	/* After a restart the connections of before must not have timed out first. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, to, len) < 0 || (path && chmod(path, 0660) < 0) || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* "HOST:PORT" or "[ADDRESS]:PORT", of which the configuration has checked the form. */
static int hub_listen_resolve(const char *address, struct addrinfo **ret)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	const char *colon = strrchr(address, ':');
	char host[256];
	int r;

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - address) : 0, address);
	if (host[0] == '[') {
		memmove(host, host + 1, strlen(host));
		host[strcspn(host, "]")] = '\0';
	}
	if (!strcmp(host, "localhost"))
		strcpy(host, "127.0.0.1");
	r = getaddrinfo(host, colon ? colon + 1 : NULL, &hints, ret);
	return !r ? 0 : r == EAI_SYSTEM ? -errno : r == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
}

static int hub_listen_inet(const char *address, int *ret_fd)
{
	struct addrinfo *list;
	int err = hub_listen_resolve(address, &list);

	if (err)
		return err;
	err = hub_listen_on(list->ai_addr, list->ai_addrlen, NULL, ret_fd);
	freeaddrinfo(list);
	return err;
}

/* The directory is one in which nobody else can make or exchange files; a socket that is left there is removed. */
static int hub_listen_unix(const char *path, int *ret_fd, char why[HUB_LISTEN_WHY])
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	_cleanup_(closep) int dir = -1;
	char parent[sizeof(to.sun_path)], unsafe[SAFE_PATH_WHY];
	struct stat st;
	int err;

	snprintf(parent, sizeof(parent), "%.*s", (int)MAX(strrchr(path, '/') - path, 1), path);
	dir = safe_path_open(parent, SAFE_PATH_OURS, unsafe);
	if (dir < 0) {
		snprintf(why, HUB_LISTEN_WHY, "cannot listen on %.120s: %.150s", path, unsafe);
		return dir;
	}
	if (!lstat(path, &st) && (!S_ISSOCK(st.st_mode) || unlink(path) < 0))
		return hub_listen_failed(why, -EEXIST, path);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	err = hub_listen_on((const struct sockaddr *)&to, sizeof(to), path, ret_fd);
	return err ? hub_listen_failed(why, err, path) : 0;
}

int hub_listen_open(const char *address, int *ret_fd, char why[HUB_LISTEN_WHY])
{
	int err;

	if (config_hub_address(address) == ADDRESS_UNIX)
		return hub_listen_unix(address + strlen(CONFIG_UNIX), ret_fd, why);
	err = hub_listen_inet(address, ret_fd);
	return err ? hub_listen_failed(why, err, address) : 0;
}

void hub_listen_remove(const char *address)
{
	if (config_hub_address(address) == ADDRESS_UNIX)
		unlink(address + strlen(CONFIG_UNIX));
}

void hub_listen_near(const char *address, char *to, size_t size)
{
	static const char *const near[][2] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};

	snprintf(to, size, "%s", address);
	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		if (!strncmp(address, near[i][0], strlen(near[i][0])))
			snprintf(to, size, "%s%s", near[i][1], address + strlen(near[i][0]));
}

int hub_listen_read_pem(const char *path, const char *name, int *ret_fd, char why[HUB_LISTEN_WHY])
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_(buf_done) struct buf text = {.max = HUB_TLS_FILE_MAX};
	int err = fd < 0 ? -errno : file_copy(fd, HUB_TLS_FILE_MAX, &text);

	if (!err && !memmem(text.data, text.len, "-----BEGIN ", 11))
		err = -EBADMSG;
	if (!err) {
		*ret_fd = ipc_memfd(name, text.data, text.len);
		err = MIN(*ret_fd, 0);
	}
	if (text.data)
		explicit_bzero(text.data, text.len);
	if (err)
		snprintf(why, HUB_LISTEN_WHY, "%.200s: %s", path, err == -EBADMSG ? "no PEM file" : strerror(-err));
	return err;
}
