// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/target_match.h"

#include <string.h>

#include "process/cgroup.h"

#define COMM_CUT   15 /* longer names are cut by the kernel */
#define ID_LEAST   4
#define ID_LENGTH  64

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

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Long enough to be an id, not a name. */
static bool is_id_part(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= ID_LEAST && n <= ID_LENGTH && !s[n];
}

static bool fits_container(const char *wanted, const char *path, target_name_fn *name, void *ctx)
{
	struct cgroup_facts facts;
	const char *given;
	char line[TARGET_PATH_MAX + 8];
	int n = snprintf(line, sizeof(line), "0::%s", path);

	if (n < 0 || n >= (int)sizeof(line))
		return false;
	cgroup_parse(line, (size_t)n, &facts);
	if (facts.container_name[0] && target_glob(wanted, facts.container_name))
		return true;
	if (!facts.container_id[0])
		return false;
	if (is_id_part(wanted) && !strncmp(facts.container_id, wanted, strlen(wanted)))
		return true;
	given = name ? name(ctx, facts.container_id) : NULL;
	return given && target_glob(wanted, given);
}

bool target_fits_cgroup(const struct config_target *t, const char *pattern, const char *path, target_name_fn *name,
			void *ctx)
{
	switch (t->kind) {
	case TARGET_CGROUP:
		return target_glob(pattern, path);
	case TARGET_UNIT:
		return target_glob(t->text, last_component(path));
	case TARGET_CONTAINER:
		return fits_container(t->text, path, name, ctx);
	default:
		return false;
	}
}

bool target_fits_below(const struct config_target *t, const char *pattern, const char *path, target_name_fn *name,
		       void *ctx)
{
	char at[TARGET_PATH_MAX];
	size_t n = strlen(path);
	char *slash;

	if (n >= sizeof(at))
		return false;
	memcpy(at, path, n + 1);
	while (at[0] && strcmp(at, "/") != 0) {
		if (target_fits_cgroup(t, pattern, at, name, ctx))
			return true;
		slash = strrchr(at, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return t->kind == TARGET_CGROUP && target_glob(pattern, "/");
}

/* The running executable may have been removed from its directory. */
static void without_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path);

	if (n > strlen(mark) && !strcmp(path + n - strlen(mark), mark))
		path[n - strlen(mark)] = '\0';
}

/* Also matches the name under which a link or script was started, which the kernel keeps as comm. */
static bool fits_comm(const char *wanted, const char *comm)
{
	if (target_glob(wanted, comm))
		return true;
	return strlen(comm) == COMM_CUT && strlen(wanted) > COMM_CUT && !strpbrk(wanted, "*?") &&
	       !strncmp(wanted, comm, COMM_CUT);
}

bool target_fits_exe(const struct config_target *t, const char *exe, const char *comm)
{
	char path[TARGET_PATH_MAX];

	if (t->kind != TARGET_EXE)
		return false;
	snprintf(path, sizeof(path), "%s", exe);
	without_deleted(path);
	if (t->text[0] == '/')
		return target_glob(t->text, path);
	return (path[0] && target_glob(t->text, last_component(path))) || fits_comm(t->text, comm);
}
