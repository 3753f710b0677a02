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
#include "process/service.h"

#define CMDLINE_MAX	4096
#define CGROUP_MAX	8192
#define STATUS_MAX	4096
#define ENVIRON_MAX	8192	    /* of the wanted variables */
#define ENVIRON_READ	(1u << 20)  /* searched for them */
#define MAPS_READ	(64u << 20) /* of a maps file, code or not */

/* The only variables of another process' environment that may leave this process. */
static const char *const environ_wanted[] = {"OTEL_SERVICE_NAME=", "OTEL_RESOURCE_ATTRIBUTES="};

/* "start-end perms ...": code has the permission x. */
static bool opener_maps_line_is_code(const char *line)
{
	const char *perms = strchr(line, ' ');

	return perms && strlen(perms) > 4 && perms[3] == 'x';
}

int opener_process_maps(const struct opener_process *p, struct buf *to)
{
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0, seen = 0, first = to->len;
	int fd = opener_process_file(p, "maps", O_RDONLY);
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

static void opener_add_exe(const struct opener_process *p, struct buf *to)
{
	char *at = buf_reserve(to, HOST_PATH_MAX);
	ssize_t n = at ? readlinkat(p->dir, "exe", at, HOST_PATH_MAX) : -1;

	if (n > 0)
		buf_commit(to, (size_t)n);
}

static void opener_add_file(const struct opener_process *p, const char *name, size_t max, struct buf *to)
{
	_cleanup_(closep) int fd = opener_process_file(p, name, O_RDONLY);

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

static void opener_add_environ(const struct opener_process *p, struct buf *to)
{
	_cleanup_(buf_done) struct buf all;
	size_t first = to->len;
	const char *at, *end;

	buf_init(&all, ENVIRON_READ + 16385);
	opener_add_file(p, "environ", ENVIRON_READ, &all);
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
static void opener_add_cmdline(const struct opener_process *p, const char *exe, size_t exe_len, struct buf *to)
{
	_cleanup_(buf_done) struct buf all, comm;
	struct service_input in = {.exe = exe, .exe_len = exe_len};
	char *text;

	buf_init(&all, CMDLINE_MAX + 1);
	buf_init(&comm, 64);
	opener_add_file(p, "cmdline", CMDLINE_MAX, &all);
	opener_add_file(p, "comm", 32, &comm);
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

static void opener_add_text(struct opener *o, const struct opener_process *p, enum host_text kind, size_t first,
			    const struct host_identity_text *head, struct buf *to)
{
	switch (kind) {
	case HOST_TEXT_EXE:
		opener_add_exe(p, to);
		break;
	case HOST_TEXT_CMDLINE:
		if (!opener_touch(o, p->stat.pid, 0))
			opener_add_cmdline(p, opener_make_identity(to, first, head, HOST_TEXT_EXE), head->len[HOST_TEXT_EXE],
				   to);
		break;
	case HOST_TEXT_CGROUP:
		opener_add_file(p, "cgroup", CGROUP_MAX, to);
		break;
	case HOST_TEXT_ENVIRON:
		if (!opener_touch(o, p->stat.pid, 0))
			opener_add_environ(p, to);
		break;
	case HOST_TEXT_STATUS:
		opener_add_file(p, "status", STATUS_MAX, to);
		break;
	default:
		opener_add_container(o, opener_make_identity(to, first, head, HOST_TEXT_CGROUP),
				     head->len[HOST_TEXT_CGROUP], to);
		break;
	}
}

int opener_process_identity(struct opener *o, const struct opener_process *p, struct buf *to)
{
	struct host_identity_text head = {.start_ns = proc_stat_start_ns(&p->stat), .ppid = p->stat.ppid};
	size_t first = to->len, at;

	buf_add(to, &head, sizeof(head));
	for (int text = 0; text < HOST_TEXT_NR && !to->failed; text++) {
		at = to->len;
		opener_add_text(o, p, text, first, &head, to);
		head.len[text] = (uint32_t)(to->len - at);
	}
	if (to->failed)
		return -ENOMEM;
	memcpy(to->data + first, &head, sizeof(head));
	return 0;
}

int opener_maps(const struct ipc_ask *ask, struct buf *to)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->pid, ask->pid_start_ns, &p);

	return err ? err : opener_process_maps(&p, to);
}

int opener_identity(struct opener *o, const struct ipc_ask *ask, struct buf *to)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->pid, ask->pid_start_ns, &p);

	return err ? err : opener_process_identity(o, &p, to);
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
