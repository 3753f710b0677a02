// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/client.h"
#include "cli/packages.h"

#define DEBUG_DIR  "/usr/lib/debug/.build-id"
#define ANSWER_MAX (8u << 20)

static bool is_text(const json_t *j, const char *path, const char *text)
{
	return strcmp(client_text(j, path), text) == 0;
}

static bool is_open_elf(const json_t *f)
{
	return is_text(f, "state", "open") && client_is_true(f, "elf");
}

/* As the process' root has it, where we may look there (root is its descriptor, or -1). */
static void find_debug_file(json_t *f, int root)
{
	const char *id = client_text(f, "build_id");
	_cleanup_(closep) int fd = -1;
	char path[512];

	if (strlen(id) < 4 || strspn(id, "0123456789abcdef") != strlen(id))
		return;
	snprintf(path, sizeof(path), DEBUG_DIR "/%.2s/%s.debug", id, id + 2);
	fd = packages_open(root, path, O_PATH);
	if (fd >= 0 || access(path, F_OK) == 0)
		json_object_set_new(f, "debug_file", json_string(path));
}

/* What the index says where there is one; else what it will be made of. */
static bool has_lines(const json_t *f)
{
	if (is_text(f, "names.index", "ready"))
		return client_is_true(f, "names.dwarf") || client_is_true(f, "names.gopclntab");
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

static void find_packages(const json_t *files, int root, json_t *ret_names)
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

/* Also where its root cannot be seen. */
static bool is_own_root(int root)
{
	struct stat st;

	return fstat(root, &st) < 0 || packages_is_our_root(root);
}

static void set_missing(json_t *files)
{
	json_t *f;
	size_t i;

	json_array_foreach(files, i, f)
		json_object_set_new(f, "missing", json_string(missing(f)));
}

static void set_advice(json_t *process, const struct distribution *d, bool own_root, json_t *names)
{
	json_object_set_new(process, "advice",
			    json_pack("{s:s, s:s, s:b, s:o}", "distribution", d->id, "source", d->source, "own_root",
				      own_root, "packages", names));
}

static void look_into_root(json_t *process, int root)
{
	json_t *files = json_object_get(process, "files"), *names = json_array(), *f;
	struct distribution d;
	size_t i;

	json_array_foreach(files, i, f)
		if (is_open_elf(f))
			find_debug_file(f, root);
	set_missing(files);
	find_packages(files, root, names);
	distribution_read(root, &d);
	set_advice(process, &d, is_own_root(root), names);
}

/* --- a process of its own --- */

/* It may outlive us, so it holds nothing of ours but the pipe. */
static void hold_only(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO; i++)
		if (i != fd)
			dup2(null, i);
}

__attribute__((noreturn)) static void look_apart(json_t *process, unsigned pid, int to)
{
	_cleanup_(freep) char *text = NULL;
	char path[64];

	hold_only(to);
	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	look_into_root(process, open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
	text = json_dumps(process, JSON_COMPACT);
	_exit(text && file_write(to, text, strlen(text)) == 0 ? 0 : 1);
}

static int read_answer(int from, json_t **ret)
{
	_cleanup_(buf_done) struct buf text = {.max = ANSWER_MAX};
	int r = client_read_to_end(from, &text);

	if (r < 0)
		return r;
	*ret = json_loadb((const char *)text.data, text.len, 0, NULL);
	return *ret ? 0 : -EIO;
}

static int ask_apart(json_t *process, unsigned pid, json_t **ret)
{
	int ends[2], r;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child == 0)
		look_apart(process, pid, ends[1]);
	r = child < 0 ? -errno : 0;
	close(ends[1]);
	if (!r)
		r = read_answer(ends[0], ret);
	close(ends[0]);
	/* Not waited for: inside a file system that never answers, not even SIGKILL ends it. */
	if (r < 0 && child > 0)
		kill(child, SIGKILL);
	return r;
}

int explain_files(json_t *process, unsigned pid)
{
	static const struct distribution unknown;
	json_t *answer = NULL;
	int r = ask_apart(process, pid, &answer);

	if (!r) {
		json_object_update(process, answer);
		json_decref(answer);
		return 0;
	}
	set_missing(json_object_get(process, "files"));
	set_advice(process, &unknown, false, json_array());
	return r;
}
