// SPDX-License-Identifier: Apache-2.0
#include "cli/packages.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

#define INFO_DIR   "/var/lib/dpkg/info"
#define LISTS_MAX  20000
#define LIST_BYTES (64u << 20)

/* The root may be a container's, and anything may lie there: a file without an end, a pipe that nobody writes. */
static FILE *open_text(int dir, const char *path)
{
	_cleanup_(closep) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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
	_cleanup_(fclosep) FILE *f = open_text(dir, name);
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

int packages_find(const char *root, struct package_file *files, size_t n)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct dirent *e;
	size_t bytes = 0;
	char path[512];

	for (size_t i = 0; i < n; i++)
		files[i].package[0] = '\0';
	snprintf(path, sizeof(path), "%s" INFO_DIR, root);
	d = opendir(path);
	if (!d)
		return -errno;
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

void distribution_read(const char *root, struct distribution *ret)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[512], line[512];

	*ret = (struct distribution){0};
	snprintf(path, sizeof(path), "%s/etc/os-release", root);
	f = open_text(AT_FDCWD, path);
	for (int i = 0; f && i < 100 && fgets(line, sizeof(line), f); i++) {
		take_value(line, "ID", ret->id, sizeof(ret->id));
		take_value(line, "VERSION_CODENAME", ret->codename, sizeof(ret->codename));
	}
	set_source(ret);
}
