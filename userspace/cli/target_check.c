// SPDX-License-Identifier: Apache-2.0
#include "cli/target_check.h"

#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/cli.h"
#include "process/cgroup.h"
#include "process/proc_status.h"
#include "process/target.h"

#define PATTERN_BYTES 4096

struct target {
	const char *kind, *value;
	char unit[PATTERN_BYTES]; /* the value, with .service where it has no type */
	int64_t uid;		  /* of a user; -1: not one */
	bool containers;	  /* a process in a container was seen: its name may be known to its runtime only */
};

/* Processes. */

static bool target_is_exe(const struct target *t, uint32_t pid)
{
	char path[64], exe[TARGET_PATH_MAX], comm[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[MAX(n, 0)] = '\0';
	file_read_proc(pid, "comm", comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = '\0';
	return target_is_program(t->value, exe, comm);
}

/* The effective user counts, as for [targets]. */
static bool target_is_user(const struct target *t, uint32_t pid)
{
	struct proc_status status;
	char text[2048];

	return file_read_proc(pid, "status", text, sizeof(text)) > 0 && !proc_status_parse(text, &status) &&
	       status.uid == t->uid;
}

static bool target_is_unit(const struct target *t, char *cgroups)
{
	char *word, *rest = cgroups;

	while ((word = strsep(&rest, "/\n")))
		if (target_glob(t->unit, word))
			return true;
	return false;
}

static bool target_is_in_container(struct target *t, const char *cgroups)
{
	struct cgroup_facts facts;

	cgroup_parse(cgroups, strlen(cgroups), &facts);
	t->containers |= facts.container_id[0] || facts.container_name[0];
	return target_is_container(t->value, &facts);
}

static bool target_is_process(struct target *t, uint32_t pid)
{
	char cgroups[2 * TARGET_PATH_MAX];

	if (!strcmp(t->kind, "exe"))
		return target_is_exe(t, pid);
	if (!strcmp(t->kind, "user"))
		return target_is_user(t, pid);
	if (file_read_proc(pid, "cgroup", cgroups, sizeof(cgroups)) <= 0)
		return false;
	return strcmp(t->kind, "unit") ? target_is_in_container(t, cgroups) : target_is_unit(t, cgroups);
}

/* Our own process does not count: it would match --exe=otprof, and ends with the recording. */
static bool target_runs(struct target *t)
{
	_cleanup_(closedirp) DIR *dir = opendir("/proc");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid > 0 && pid != getpid() && target_is_process(t, (uint32_t)pid))
			return true;
	}
	return false;
}

/* What may run later. */

static bool target_is_in(const char *directory, const char *pattern)
{
	_cleanup_(closedirp) DIR *dir = opendir(directory);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && target_glob(pattern, entry->d_name))
			return true;
	return false;
}

/* getty@tty1.service is made from the file getty@.service. */
static void target_template(const char *unit, char to[PATTERN_BYTES])
{
	const char *at = strchr(unit, '@'), *type = at ? strchr(at, '.') : NULL;

	snprintf(to, PATTERN_BYTES, "%.*s%s", at && type ? (int)(at + 1 - unit) : 0, unit, at && type ? type : "");
}

static bool target_has_unit_file(const struct target *t)
{
	static const char *const folders[] = {
		"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient",
		"/run/systemd/generator.early", "/etc/systemd/system", "/etc/systemd/system.attached",
		"/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
		"/run/systemd/generator.late"}; /* systemd.unit(5) */
	char made_from[PATTERN_BYTES];

	target_template(t->unit, made_from);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (target_is_in(folders[i], t->unit) || (made_from[0] && target_is_in(folders[i], made_from)))
			return true;
	return false;
}

/* For glob(3), to which [ and \ mean more than to [targets]. */
static void target_escape(const char *value, char to[PATTERN_BYTES])
{
	size_t n = 0;

	for (; *value && n < PATTERN_BYTES - 2; value++) {
		if (*value == '[' || *value == '\\')
			to[n++] = '\\';
		to[n++] = *value;
	}
	to[n] = '\0';
}

static bool target_has_file(const char *value)
{
	char pattern[PATTERN_BYTES];
	glob_t found = {0};
	bool any;

	target_escape(value, pattern);
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
	globfree(&found);
	return any;
}

static bool target_has_program(const struct target *t)
{
	_cleanup_(freep) char *path = NULL;
	const char *variable = getenv("PATH");
	char *folder, *rest;

	if (t->value[0] == '/')
		return target_has_file(t->value);
	rest = path = strdup(variable ? variable : "/usr/sbin:/usr/bin:/sbin:/bin");
	while (path && (folder = strsep(&rest, ":")))
		if (*folder && target_is_in(folder, t->value))
			return true;
	return false;
}

static enum target_state target_may_run(const struct target *t)
{
	bool known;

	/* The names that runtimes give are known to otprofd, which reads their files. */
	if (!strcmp(t->kind, "container"))
		return t->containers ? TARGET_UNKNOWN : TARGET_ABSENT;
	if (!strcmp(t->kind, "exe"))
		known = target_has_program(t);
	else if (!strcmp(t->kind, "unit"))
		known = target_has_unit_file(t);
	else
		known = t->uid >= 0 && getpwuid((uid_t)t->uid);
	return known ? TARGET_IDLE : TARGET_ABSENT;
}

static int64_t target_uid(const char *value)
{
	const struct passwd *user;
	uint64_t uid;

	if (!cli_parse_number(value, 0, UINT32_MAX - 1, &uid))
		return (int64_t)uid;
	user = getpwnam(value);
	return user ? (int64_t)user->pw_uid : -1;
}

enum target_state target_check(const char *kind, const char *value)
{
	struct target t = {.kind = kind, .value = value, .uid = -1};

	if (!strcmp(kind, "cgroup"))
		return TARGET_RUNS;
	if (!strcmp(kind, "user"))
		t.uid = target_uid(value);
	snprintf(t.unit, sizeof(t.unit), "%s%s", value, target_unit_suffix(value));
	return target_runs(&t) ? TARGET_RUNS : target_may_run(&t);
}
