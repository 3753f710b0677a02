// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/target_match.h"

#include <stdio.h>
#include <string.h>

unsigned int target_lists(const struct config *c)
{
	unsigned int lists = 0;

	for (uint32_t i = 0; i < c->nr_targets; i++)
		lists |= target_list_of(&c->targets[i]);
	return lists;
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
	if (target_is_container(wanted, &facts))
		return true;
	given = facts.container_id[0] && name ? name(ctx, facts.container_id) : NULL;
	return given && target_glob(wanted, given);
}

bool target_fits_cgroup(const struct config_target *t, const char *pattern, const char *path, target_name_fn *name,
			void *ctx)
{
	switch (t->kind) {
	case TARGET_CGROUP:
		return target_glob(pattern, path);
	case TARGET_UNIT:
		return target_glob(t->text, target_last(path));
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

bool target_fits_exe(const struct config_target *t, const char *exe, const char *comm)
{
	return t->kind == TARGET_EXE && target_is_program(t->text, exe, comm);
}
