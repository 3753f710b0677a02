// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "process/cgroup.h"
#include "process/host.h"
#include "process/proc_stat.h"
#include "process/service.h"

#define CMDLINE_MAX	4096
#define CGROUP_MAX	8192
#define STATUS_MAX	4096
#define ENVIRON_MAX	8192	    /* of the wanted variables */
#define ENVIRON_READ	(1u << 20)  /* searched for them */
#define MAPS_READ	(64u << 20) /* of a maps file, code or not */

/* The only variables of another process' environment that may leave this process. */
static const char *const environ_wanted[] = {"OTEL_SERVICE_NAME=", "OTEL_RESOURCE_ATTRIBUTES="};

int opener_proc_file(uint32_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* "start-end perms ...": code has the permission x. */
static bool opener_maps_line_is_code(const char *line)
{
	const char *perms = strchr(line, ' ');

	return perms && strlen(perms) > 4 && perms[3] == 'x';
}

int opener_maps(uint32_t pid, struct buf *to)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0, seen = 0, first = to->len;
	int fd = opener_proc_file(pid, "maps", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	while (seen < MAPS_READ && (n = getline(&line, &size, f)) > 0) {
		seen += (size_t)n;
		if (!opener_maps_line_is_code(line))
			continue;
		if (to->len - first + (size_t)n > HOST_MAPS_MAX)
			break;
		buf_add(to, line, (size_t)n);
	}
	/* The maps file of an exited process cannot be read any more. */
	return ferror(f) && to->len == first ? -ESRCH : 0;
}

static void opener_add_exe(uint32_t pid, struct buf *to)
{
	char path[64], *at = buf_reserve(to, HOST_PATH_MAX);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = at ? readlink(path, at, HOST_PATH_MAX) : -1;
	if (n > 0)
		buf_commit(to, (size_t)n);
}

static void opener_add_file(uint32_t pid, const char *name, size_t max, struct buf *to)
{
	_cleanup_(closep) int fd = opener_proc_file(pid, name, O_RDONLY);

	/* Kernel threads and exiting processes have no command line: then the text is empty. */
	if (fd >= 0)
		file_read(fd, max, to);
}

static bool opener_environ_is_wanted(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(environ_wanted); i++)
		if (!strncmp(variable, environ_wanted[i], strlen(environ_wanted[i])))
			return true;
	return false;
}

static void opener_add_environ(uint32_t pid, struct buf *to)
{
	_cleanup_(buf_done) struct buf all;
	size_t first = to->len;
	const char *at, *end;

	buf_init(&all, ENVIRON_READ + 16385);
	opener_add_file(pid, "environ", ENVIRON_READ, &all);
	at = buf_cstr(&all);
	end = at + all.len;
	while (at < end) {
		size_t len = strlen(at) + 1;

		if (opener_environ_is_wanted(at) && to->len - first + len <= ENVIRON_MAX)
			buf_add(to, at, len);
		at += len;
	}
	/* The other variables may be secrets. */
	if (all.data)
		explicit_bzero(all.data, all.len);
}

/* Only the arguments that name the program leave this process. */
static void opener_add_cmdline(uint32_t pid, const char *exe, size_t exe_len, struct buf *to)
{
	_cleanup_(buf_done) struct buf all, comm;
	struct service_input in = {.exe = exe, .exe_len = exe_len};
	char *text;

	buf_init(&all, CMDLINE_MAX + 1);
	buf_init(&comm, 64);
	opener_add_file(pid, "cmdline", CMDLINE_MAX, &all);
	opener_add_file(pid, "comm", 32, &comm);
	if (!all.len)
		return;
	if (comm.len && comm.data[comm.len - 1] == '\n')
		comm.len--;
	in.comm = buf_cstr(&comm);
	in.cmdline_len = all.len;
	text = (char *)(uintptr_t)buf_cstr(&all);
	buf_add(to, text, service_strip(&in, text));
	explicit_bzero(text, all.len);
}

/* The id of the innermost container, where the process is in one. */
static void opener_add_container(struct opener *o, const char *cgroup, size_t len, struct buf *to)
{
	struct cgroup_facts facts;

	cgroup_parse(cgroup, len, &facts);
	if (facts.container_id[0])
		buf_add_str(to, container_names_find(&o->names, facts.container_id));
}

/* A text that was added before; head begins at first. */
static const char *opener_make_identity(const struct buf *b, size_t first, const struct host_identity_text *head,
					enum host_text kind)
{
	size_t at = first + sizeof(*head);

	for (int i = 0; i < (int)kind; i++)
		at += head->len[i];
	return (const char *)b->data + at;
}

static void opener_add_text(struct opener *o, uint32_t pid, enum host_text kind, size_t first,
			    const struct host_identity_text *head, struct buf *to)
{
	switch (kind) {
	case HOST_TEXT_EXE:
		opener_add_exe(pid, to);
		break;
	case HOST_TEXT_CMDLINE:
		opener_add_cmdline(pid, opener_make_identity(to, first, head, HOST_TEXT_EXE), head->len[HOST_TEXT_EXE],
				   to);
		break;
	case HOST_TEXT_CGROUP:
		opener_add_file(pid, "cgroup", CGROUP_MAX, to);
		break;
	case HOST_TEXT_ENVIRON:
		opener_add_environ(pid, to);
		break;
	case HOST_TEXT_STATUS:
		opener_add_file(pid, "status", STATUS_MAX, to);
		break;
	default:
		opener_add_container(o, opener_make_identity(to, first, head, HOST_TEXT_CGROUP),
				     head->len[HOST_TEXT_CGROUP], to);
		break;
	}
}

int opener_identity(struct opener *o, uint32_t pid, struct buf *to)
{
	struct host_identity_text head = {0};
	size_t first = to->len, at;
	struct proc_stat stat;
	int err = proc_stat_read(pid, &stat);

	if (err)
		return err;
	buf_add(to, &head, sizeof(head));
	for (int text = 0; text < HOST_TEXT_NR && !to->failed; text++) {
		at = to->len;
		opener_add_text(o, pid, text, first, &head, to);
		head.len[text] = (uint32_t)(to->len - at);
	}
	if (to->failed)
		return -ENOMEM;
	head.start_ns = proc_stat_start_ns(&stat);
	head.ppid = stat.ppid;
	memcpy(to->data + first, &head, sizeof(head));
	return 0;
}

/* ids: concatenated, each HOST_CONTAINER_ID long. */
int opener_containers(struct opener *o, const char *ids, struct buf *to)
{
	char id[HOST_CONTAINER_ID + 1];

	if (strlen(ids) % HOST_CONTAINER_ID)
		return -EINVAL;
	if (!*ids)
		container_names_all(&o->names, to);
	for (; *ids; ids += HOST_CONTAINER_ID) {
		snprintf(id, sizeof(id), "%.*s", (int)HOST_CONTAINER_ID, ids);
		container_names_one(&o->names, id, to);
	}
	return 0;
}
