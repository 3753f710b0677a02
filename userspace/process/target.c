// SPDX-License-Identifier: Apache-2.0
#include "process/target.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define COMM_CUT  15 /* longer names are cut by the kernel */
#define ID_LEAST  4
#define ID_LENGTH 64

/* Only the last star is remembered: between two slashes it matches all that an earlier one could. */
bool target_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			from = text;
		} else if (*pattern == *text || (*pattern == '?' && *text != '/')) {
			if (*text == '/')
				star = NULL;
			pattern++;
			text++;
		} else if (star && *from != '/') {
			pattern = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

const char *target_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The running executable may have been removed from its directory. */
static void target_cut_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path);

	if (n > strlen(mark) && !strcmp(path + n - strlen(mark), mark))
		path[n - strlen(mark)] = '\0';
}

/* Also matches the name under which a link or script was started, which the kernel keeps as comm. */
static bool target_is_comm(const char *wanted, const char *comm)
{
	if (target_glob(wanted, comm))
		return true;
	return strlen(comm) == COMM_CUT && strlen(wanted) > COMM_CUT && !strpbrk(wanted, "*?") &&
	       !strncmp(wanted, comm, COMM_CUT);
}

bool target_is_program(const char *wanted, const char *exe, const char *comm)
{
	char path[TARGET_PATH_MAX];

	snprintf(path, sizeof(path), "%s", exe);
	target_cut_deleted(path);
	if (wanted[0] == '/')
		return target_glob(wanted, path);
	return (path[0] && target_glob(wanted, target_last(path))) || target_is_comm(wanted, comm);
}

/* Long enough to be an id, not a name. */
static bool target_is_id_part(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= ID_LEAST && n <= ID_LENGTH && !s[n];
}

bool target_is_container(const char *wanted, const struct cgroup_facts *facts)
{
	if (facts->container_name[0] && target_glob(wanted, facts->container_name))
		return true;
	return target_is_id_part(wanted) && !strncmp(facts->container_id, wanted, strlen(wanted));
}

const char *target_unit_suffix(const char *name)
{
	static const char *const types[] = {".service", ".scope", ".slice", ".socket", ".mount", ".swap"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(name) > strlen(types[i]) && !strcmp(name + strlen(name) - strlen(types[i]), types[i]))
			return "";
	return ".service";
}
