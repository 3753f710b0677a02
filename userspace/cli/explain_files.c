// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/packages.h"

#define DEBUG_DIR "/usr/lib/debug/.build-id"

static bool is_text(const json_t *j, const char *path, const char *text)
{
	return strcmp(client_text(j, path), text) == 0;
}

static bool is_open_elf(const json_t *f)
{
	return is_text(f, "state", "open") && client_is_true(f, "elf");
}

/* As the process' root has it, where we may look there. */
static void find_debug_file(json_t *f, const char *root)
{
	const char *id = client_text(f, "build_id");
	char path[512], below[1024];

	if (strlen(id) < 4 || strspn(id, "0123456789abcdef") != strlen(id))
		return;
	snprintf(path, sizeof(path), DEBUG_DIR "/%.2s/%s.debug", id, id + 2);
	snprintf(below, sizeof(below), "%s%s", root, path);
	if (access(below, F_OK) == 0 || access(path, F_OK) == 0)
		json_object_set_new(f, "debug_file", json_string(path));
}

/* What the index says where there is one; else what it will be made of. */
static bool has_lines(const json_t *f)
{
	if (is_text(f, "names.index", "ready"))
		return client_is_true(f, "names.dwarf");
	return client_is_true(f, "names.own_dwarf") || *client_text(f, "debug_file");
}

static bool has_all_names(const json_t *f)
{
	return client_is_true(f, "names.symtab") || client_is_true(f, "names.debug_symbols") ||
	       client_is_true(f, "names.gnu_debugdata");
}

static const char *missing(const json_t *f)
{
	if (is_text(f, "kind", "vdso") || !is_open_elf(f))
		return "";
	if (has_lines(f))
		return client_is_true(f, "names.incomplete") ? "parts of its debug information" : "";
	if (has_all_names(f))
		return "inlined calls and lines";
	return client_is_true(f, "names.dynsym") ? "names of functions that it does not export, inlined calls and lines" :
					    "names, inlined calls and lines";
}

/* What would not help: the daemon uses no debug information, or has not got to it yet. */
static bool can_be_got(const json_t *f)
{
	return *client_text(f, "missing") && !*client_text(f, "debug_file") && !client_is_true(f, "names.own_dwarf") &&
	       !is_text(f, "names.index", "off");
}

static void add_package(json_t *f, const char *package, json_t *all)
{
	char name[PACKAGE_NAME_MAX];
	json_t *known;
	size_t i;

	if (!*package)
		return;
	package_debug_name(package, name);
	json_object_set_new(f, "package", json_string(package));
	json_object_set_new(f, "debug_package", json_string(name));
	json_array_foreach(all, i, known)
		if (strcmp(json_string_value(known), name) == 0)
			return;
	json_array_append_new(all, json_string(name));
}

static void find_packages(const json_t *files, const char *root, json_t *ret_names)
{
	size_t n = json_array_size(files), i;
	_cleanup_(freep) struct package_file *wanted = calloc(n + 1, sizeof(*wanted));
	json_t *f;

	if (!wanted)
		return;
	json_array_foreach((json_t *)files, i, f)
		wanted[i].path = can_be_got(f) ? client_text(f, "path") : "";
	if (packages_find(root, wanted, n) < 0)
		return;
	json_array_foreach((json_t *)files, i, f)
		if (*wanted[i].path)
			add_package(f, wanted[i].package, ret_names);
}

static bool is_own_root(const char *root)
{
	struct stat theirs, ours;

	return stat(root, &theirs) < 0 || (stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

void explain_files(json_t *process, unsigned pid)
{
	json_t *files = json_object_get(process, "files"), *names = json_array(), *f;
	struct distribution d;
	char root[64];
	size_t i;

	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	if (is_own_root(root))
		root[0] = '\0';
	json_array_foreach(files, i, f) {
		if (is_open_elf(f))
			find_debug_file(f, root);
		json_object_set_new(f, "missing", json_string(missing(f)));
	}
	find_packages(files, root, names);
	distribution_read(root, &d);
	json_object_set_new(process, "advice",
			    json_pack("{s:s, s:s, s:b, s:o}", "distribution", d.id, "source", d.source, "own_root", !*root,
				      "packages", names));
}
