// SPDX-License-Identifier: Apache-2.0
#include "cli/target_check.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
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

#define PATH_BYTES 4096
#define COMM_CUT   15 /* longer names are cut by the kernel */
#define PATTERN_BYTES 4096
#define ID_LEAST   4  /* digits of a container's id */

struct target {
	const char *kind, *value;
	char pattern[PATTERN_BYTES]; /* the value for fnmatch, to which [ and \ mean more than to [targets] */
	char unit[PATTERN_BYTES];    /* the pattern, with .service where it has no type */
	int64_t uid;	   /* of a user; -1: not one */
	bool containers;   /* a process in a container was seen: its name may be known to its runtime only */
};

static bool target_fits(const char *pattern, const char *text)
{
	return fnmatch(pattern, text, FNM_PATHNAME) == 0;
}

static const char *target_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The first bytes of /proc/PID/name, as text. */
static bool target_read(const char *pid, const char *name, char *to, size_t size)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	f = fopen(path, "re");
	to[f ? fread(to, 1, size - 1, f) : 0] = '\0';
	return to[0];
}

/* Processes. */

static bool target_is_comm(const struct target *t, const char *pid)
{
	char comm[64];

	if (!target_read(pid, "comm", comm, sizeof(comm)))
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return target_fits(t->pattern, comm) || (strlen(comm) == COMM_CUT && !strncmp(t->value, comm, COMM_CUT));
}

static bool target_is_exe(const struct target *t, const char *pid)
{
	static const char deleted[] = " (deleted)";
	char path[300], exe[PATH_BYTES];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[MAX(n, 0)] = '\0';
	if (n > (ssize_t)strlen(deleted) && !strcmp(exe + n - strlen(deleted), deleted))
		exe[n - (ssize_t)strlen(deleted)] = '\0';
	if (t->value[0] == '/')
		return target_fits(t->pattern, exe);
	return target_fits(t->pattern, target_last(exe)) || target_is_comm(t, pid);
}

/* The effective user counts, as for [targets]. */
static bool target_is_user(const struct target *t, const char *pid)
{
	char text[2048];
	const char *line;
	unsigned int uid;

	if (!target_read(pid, "status", text, sizeof(text)))
		return false;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %*u %u", &uid) == 1 && uid == t->uid;
}

static bool target_is_unit(const struct target *t, char *cgroups)
{
	char *word, *rest = cgroups;

	while ((word = strsep(&rest, "/\n")))
		if (target_fits(t->unit, word))
			return true;
	return false;
}

static bool target_is_container(struct target *t, const char *cgroups)
{
	struct cgroup_facts facts;
	size_t n = strlen(t->value);

	cgroup_parse(cgroups, strlen(cgroups), &facts);
	t->containers |= facts.container_id[0] || facts.container_name[0];
	if (facts.container_name[0] && target_fits(t->pattern, facts.container_name))
		return true;
	return n >= ID_LEAST && !strncmp(facts.container_id, t->value, n);
}

static bool target_is_process(struct target *t, const char *pid)
{
	char cgroups[2 * PATH_BYTES];

	if (!strcmp(t->kind, "exe"))
		return target_is_exe(t, pid);
	if (!strcmp(t->kind, "user"))
		return target_is_user(t, pid);
	if (!target_read(pid, "cgroup", cgroups, sizeof(cgroups)))
		return false;
	return strcmp(t->kind, "unit") ? target_is_container(t, cgroups) : target_is_unit(t, cgroups);
}

/* Our own process does not count: it would match --exe=otprof, and ends with the recording. */
static bool target_runs(struct target *t)
{
	_cleanup_(closedirp) DIR *dir = opendir("/proc");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
		    target_is_process(t, entry->d_name))
			return true;
	return false;
}

/* What may run later. */

static bool target_is_in(const char *directory, const char *pattern)
{
	_cleanup_(closedirp) DIR *dir = opendir(directory);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && target_fits(pattern, entry->d_name))
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

static bool target_has_program(const struct target *t)
{
	_cleanup_(freep) char *path = NULL;
	const char *variable = getenv("PATH");
	char *folder, *rest;
	glob_t found = {0};
	bool any;

	if (t->value[0] == '/') {
		any = glob(t->pattern, GLOB_NOSORT, NULL, &found) == 0;
		globfree(&found);
		return any;
	}
	rest = path = strdup(variable ? variable : "/usr/sbin:/usr/bin:/sbin:/bin");
	while (path && (folder = strsep(&rest, ":")))
		if (*folder && target_is_in(folder, t->pattern))
			return true;
	return false;
}

static bool target_may_run(const struct target *t)
{
	if (!strcmp(t->kind, "exe"))
		return target_has_program(t);
	if (!strcmp(t->kind, "unit"))
		return target_has_unit_file(t);
	if (!strcmp(t->kind, "user"))
		return t->uid >= 0 && getpwuid((uid_t)t->uid);
	/* The names that runtimes give are known to otprofd, which reads their files. */
	return t->containers;
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

/* systemctl's rule, as in [targets]: a name without a type is a service. */
static void target_name_unit(struct target *t)
{
	static const char *const types[] = {".service", ".scope", ".slice", ".socket", ".mount", ".swap"};
	const char *dot = strrchr(t->pattern, '.');
	bool typed = false;

	for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
		typed |= !strcmp(dot, types[i]);
	snprintf(t->unit, sizeof(t->unit), "%.*s%s", PATTERN_BYTES - 16, t->pattern, typed ? "" : ".service");
}

enum target_state target_check(const char *kind, const char *value)
{
	struct target t = {.kind = kind, .value = value, .uid = -1};

	if (!strcmp(kind, "cgroup"))
		return TARGET_RUNS;
	if (!strcmp(kind, "user"))
		t.uid = target_uid(value);
	target_escape(value, t.pattern);
	target_name_unit(&t);
	if (target_runs(&t))
		return TARGET_RUNS;
	return target_may_run(&t) ? TARGET_IDLE : TARGET_ABSENT;
}
