// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cgmem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define LEVELS_MAX  16
#define UNLIMITED   (1ULL << 60) /* version 1: a number beyond all memory is no limit */
#define PATH_SIZE   4400
#define TEXT_SIZE   4096

struct names {
	int version;
	const char *mount;
	const char *max, *high, *current;
	const char *files[2]; /* of memory.stat: file pages, used lately or not */
};

static const struct names versions[] = {
	{2, "/sys/fs/cgroup", "memory.max", "memory.high", "memory.current", {"\ninactive_file ", "\nactive_file "}},
	{1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL, "memory.usage_in_bytes",
	 {"\ntotal_inactive_file ", "\ntotal_active_file "}},
};

static bool cgmem_read_text(const char *dir, const char *name, char text[TEXT_SIZE])
{
	char path[PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_read_text(path, text, TEXT_SIZE) >= 0;
}

/* 0: none, "max". */
static uint64_t cgmem_read_number(const char *dir, const char *name)
{
	char text[TEXT_SIZE];
	uint64_t n;

	if (!name || !cgmem_read_text(dir, name, text) || sscanf(text, "%" SCNu64, &n) != 1)
		return 0;
	return n < UNLIMITED ? n : 0;
}

/* The file pages, which the kernel reclaims before it kills a process. */
static uint64_t cgmem_read_files(const char *dir, const struct names *v)
{
	uint64_t sum = 0, n;
	char text[TEXT_SIZE];

	if (!cgmem_read_text(dir, "memory.stat", text))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(v->files); i++) {
		const char *line = strstr(text, v->files[i]);

		if (line && sscanf(line + strlen(v->files[i]), "%" SCNu64, &n) == 1)
			sum += n;
	}
	return sum;
}

static void cgmem_look_at(const char *dir, const struct names *v, struct cgmem *ret)
{
	uint64_t max = cgmem_read_number(dir, v->max), high = cgmem_read_number(dir, v->high), used;

	if (high && (!max || high < max))
		max = high;
	if (!max)
		return;
	used = cgmem_read_number(dir, v->current);
	used -= MIN(cgmem_read_files(dir, v), used);
	if (!ret->limit || (unsigned __int128)used * ret->limit > (unsigned __int128)ret->used * max) {
		ret->limit = max;
		ret->used = used;
	}
}

static bool cgmem_controller_is_here(const char *list, size_t len)
{
	char words[256];

	snprintf(words, sizeof(words), ",%.*s,", (int)MIN(len, 250u), list);
	return strstr(words, ",memory,") != NULL;
}

/* Our path in one hierarchy: of version 2 the line begins with "0::", of version 1 it names the controller. */
static bool cgmem_own_path(const char *text, int version, char path[PATH_SIZE])
{
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;

		if (!at || memchr(line, '\n', (size_t)(at - line)))
			continue;
		if (version == 2 ? at != list + 1 : !cgmem_controller_is_here(list + 1, (size_t)(at - list - 1)))
			continue;
		snprintf(path, PATH_SIZE, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
		return true;
	}
	return false;
}

static bool cgmem_look(const char *root, const char *text, const struct names *v, struct cgmem *ret)
{
	char path[PATH_SIZE], dir[2 * PATH_SIZE];
	struct cgmem found = {.version = v->version};
	size_t mount;

	if (!cgmem_own_path(text, v->version, path))
		return false;
	mount = (size_t)snprintf(dir, sizeof(dir), "%s%s", root, v->mount);
	if (mount >= PATH_SIZE)
		return false;
	snprintf(dir + mount, sizeof(dir) - mount, "%s", path);
	/* In a container the mount begins at our own group, also where the path does not. */
	if (access(dir, F_OK) < 0)
		dir[mount] = '\0';
	for (int i = 0; i < LEVELS_MAX; i++) {
		cgmem_look_at(dir, v, &found);
		if (strlen(dir) <= mount)
			break;
		*strrchr(dir, '/') = '\0';
	}
	if (v->version == 2 && !cgmem_read_text(dir, "cgroup.controllers", path))
		return false;
	if (v->version == 2 && !strstr(path, "memory"))
		return false;
	*ret = found;
	return true;
}

bool cgmem_read(const char *root, struct cgmem *ret)
{
	char text[TEXT_SIZE], proc[PATH_SIZE];

	*ret = (struct cgmem){0};
	snprintf(proc, sizeof(proc), "%s/proc/self", root);
	if (!cgmem_read_text(proc, "cgroup", text))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (cgmem_look(root, text, &versions[i], ret))
			return true;
	return false;
}
