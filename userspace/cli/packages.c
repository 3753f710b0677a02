// SPDX-License-Identifier: Apache-2.0
#include "cli/packages.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define INFO_DIR   "/var/lib/dpkg/info"
#define TEXT_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)
#define LISTS_MAX  20000
#define LIST_BYTES (64u << 20)

#ifndef SYS_openat2
#define SYS_openat2 437 /* Linux 5.6, the same number everywhere */
#endif

bool packages_is_our_root(int root)
{
	struct stat theirs, ours;

	return fstat(root, &theirs) == 0 && stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

int packages_open(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0 && errno == ENOSYS && packages_is_our_root(root))
		fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The root may be a container's, and anything may lie there: a file without an end, a pipe that nobody writes. */
static FILE *open_text(int opened)
{
	_cleanup_(closep) int fd = opened;
	struct stat st;
	FILE *f;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	f = fdopen(fd, "r");
	if (f)
		steal_fd(&fd);
	return f;
}

/* A merged /usr has /lib as /usr/lib, and lists may say either. */
static bool is_path(const char *line, const char *path)
{
	if (strcmp(line, path) == 0)
		return true;
	return (strncmp(path, "/usr/", 5) == 0 && strcmp(line, path + 4) == 0) ||
	       (strncmp(line, "/usr/", 5) == 0 && strcmp(line + 4, path) == 0);
}

/* "libc6:amd64.list" is of libc6. */
static void set_package(struct package_file *f, const char *list)
{
	size_t len = strspn(list, "abcdefghijklmnopqrstuvwxyz0123456789+-.");

	if (!list[len])
		len = strlen(list) - strlen(".list");
	else if (list[len] != ':')
		return;
	if (!f->package[0] && len < sizeof(f->package))
		snprintf(f->package, sizeof(f->package), "%.*s", (int)len, list);
}

/* Returns the bytes that were read. */
static size_t read_list(int dir, const char *name, struct package_file *files, size_t n)
{
	/* dpkg makes no links here. */
	_cleanup_(fclosep) FILE *f = open_text(openat(dir, name, TEXT_FLAGS | O_CLOEXEC | O_NOFOLLOW));
	size_t bytes = 0;
	char line[4096];

	while (f && bytes < LIST_BYTES && fgets(line, sizeof(line), f)) {
		bytes += strlen(line);
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < n; i++)
			if (is_path(line, files[i].path))
				set_package(&files[i], name);
	}
	return bytes;
}

static bool is_list(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".list") == 0;
}

int packages_find(int root, struct package_file *files, size_t n)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct dirent *e;
	size_t bytes = 0;
	int fd;

	for (size_t i = 0; i < n; i++)
		files[i].package[0] = '\0';
	fd = packages_open(root, INFO_DIR, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	for (int i = 0; i < LISTS_MAX && bytes < LIST_BYTES && (e = readdir(d)); i++)
		if (is_list(e->d_name))
			bytes += read_list(dirfd(d), e->d_name, files, n);
	return 0;
}

void package_debug_name(const char *package, char to[PACKAGE_NAME_MAX])
{
	bool libc = strcmp(package, "libc6") == 0 || strcmp(package, "libc6.1") == 0;

	snprintf(to, PACKAGE_NAME_MAX, "%.*s%s", PACKAGE_NAME_MAX - 8, package, libc ? "-dbg" : "-dbgsym");
}

/* KEY=value or KEY="value" (os-release(5)); plain characters only, as both go into a line that people paste. */
static void take_value(const char *line, const char *key, char *to, size_t size)
{
	size_t len = strlen(key), n = 0;

	if (strncmp(line, key, len) != 0 || line[len] != '=')
		return;
	for (line += len + 1; *line && n + 1 < size; line++)
		if (isalnum((unsigned char)*line) || strchr("-._", *line))
			to[n++] = *line;
	to[n] = '\0';
}

static void set_source(struct distribution *d)
{
	if (strcmp(d->id, "debian") == 0)
		snprintf(d->source, sizeof(d->source), "deb http://deb.debian.org/debian-debug %s-debug main",
			 d->codename[0] ? d->codename : "sid");
	else if (strcmp(d->id, "ubuntu") == 0 && d->codename[0])
		snprintf(d->source, sizeof(d->source), "deb http://ddebs.ubuntu.com %s main restricted universe multiverse",
			 d->codename);
}

void distribution_read(int root, struct distribution *ret)
{
	_cleanup_(fclosep) FILE *f = open_text(packages_open(root, "/etc/os-release", TEXT_FLAGS));
	char line[512];

	*ret = (struct distribution){0};
	for (int i = 0; f && i < 100 && fgets(line, sizeof(line), f); i++) {
		take_value(line, "ID", ret->id, sizeof(ret->id));
		take_value(line, "VERSION_CODENAME", ret->codename, sizeof(ret->codename));
	}
	set_source(ret);
}
