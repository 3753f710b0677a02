/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speaks the kernel's protocol (include/uapi/linux/fuse.h) itself. A request
 * that was read and not answered is worse than one that was not read: not even
 * SIGKILL ends the wait for it, only an answer or the end of the connection.
 *
 * This process alone holds the descriptor of the connection. When it dies, in
 * whatever way, the kernel aborts the connection: every request that waits,
 * and every one to come, fails with ENOTCONN or ECONNABORTED, and the hung
 * processes go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hang.h"

#define FIRST_FILE  2 /* the root has node 1 */
#define CONTENT_MAX (4u << 20)
#define REQUEST_MAX (1u << 18)

static char content[CONTENT_MAX];
static size_t content_len;

static const struct {
	const char *name;
	uint32_t opcode; /* 0: each of them */
} silences[] = {
	{ "flush", FUSE_FLUSH },     { "read", FUSE_READ },	{ "getattr", FUSE_GETATTR }, { "open", FUSE_OPEN },
	{ "release", FUSE_RELEASE }, { "statfs", FUSE_STATFS }, { "lookup", FUSE_LOOKUP },   { "all", 0 },
};

static uint64_t silent_at = UINT64_MAX; /* of reads, only those of this byte */

/* An index of silences, or -1. "read@N": only those reads that contain byte N. */
static int find_silence(const char *name)
{
	size_t len = strcspn(name, "@");

	if (name[len])
		silent_at = strtoull(name + len + 1, NULL, 10);
	for (size_t i = 0; i < sizeof(silences) / sizeof(*silences); i++)
		if (strlen(silences[i].name) == len && !strncmp(silences[i].name, name, len))
			return (int)i;
	return -1;
}

bool server_knows(const char *silent)
{
	return find_silence(silent) >= 0;
}

static void reply(int fd, const struct fuse_in_header *in, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = err, .unique = in->unique };
	struct iovec parts[] = { { &out, sizeof(out) }, { (void *)(uintptr_t)data, len } };

	/* ENOENT: who asked was interrupted. */
	if (writev(fd, parts, len ? 2 : 1) < 0 && errno != ENOENT)
		perror("fuse reply");
}

static void attributes(struct fuse_attr *attr, uint64_t node)
{
	bool file = node >= FIRST_FILE;

	attr->ino = node;
	attr->mode = file ? S_IFREG | 0755 : S_IFDIR | 0755;
	attr->size = file ? content_len : 0;
	attr->blocks = (attr->size + 511) / 512;
	attr->nlink = 1;
	attr->blksize = 4096;
}

/* Without read-ahead, so that of a program only those pages are cached that it has run. */
static void on_init(int fd, const struct fuse_in_header *in)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 65536 };

	reply(fd, in, 0, &out, sizeof(out));
}

/* Names and attributes are not cached: they are asked for each time. */
static void on_lookup(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { 0 };
	unsigned file;

	if (sscanf(name, "file%u", &file) != 1) {
		reply(fd, in, -ENOENT, NULL, 0);
		return;
	}
	out.nodeid = FIRST_FILE + file;
	attributes(&out.attr, out.nodeid);
	reply(fd, in, 0, &out, sizeof(out));
}

static void on_getattr(int fd, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { 0 };

	attributes(&out.attr, in->nodeid);
	reply(fd, in, 0, &out, sizeof(out));
}

static void on_read(int fd, const struct fuse_in_header *in, const struct fuse_read_in *arg)
{
	size_t at = arg->offset < content_len ? (size_t)arg->offset : content_len;
	size_t len = content_len - at < arg->size ? content_len - at : arg->size;

	reply(fd, in, 0, content + at, len);
}

static void on_statfs(int fd, const struct fuse_in_header *in)
{
	struct fuse_statfs_out out = { .st = { .bsize = 4096, .frsize = 4096, .namelen = 255 } };

	reply(fd, in, 0, &out, sizeof(out));
}

static void serve(int fd, const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT: on_init(fd, in); break;
	case FUSE_LOOKUP: on_lookup(fd, in, arg); break;
	case FUSE_GETATTR: on_getattr(fd, in); break;
	case FUSE_READ: on_read(fd, in, arg); break;
	case FUSE_STATFS: on_statfs(fd, in); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: reply(fd, in, 0, &opened, sizeof(opened)); break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR: reply(fd, in, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break; /* these have no answer */
	default: reply(fd, in, -ENOSYS, NULL, 0);
	}
}

/* silence: an index of silences; -1: everything is answered. */
static bool is_silent(const struct fuse_in_header *in, int silence)
{
	const struct fuse_read_in *read = (const void *)(in + 1);

	if (silence < 0 || (silences[silence].opcode && silences[silence].opcode != in->opcode))
		return false;
	return in->opcode != FUSE_READ || silent_at == UINT64_MAX ||
	       (silent_at >= read->offset && silent_at - read->offset < read->size);
}

/* false: there is no connection any more. */
static bool serve_one(int fd, int silence)
{
	static char request[REQUEST_MAX] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (void *)request;
	ssize_t n = read(fd, request, sizeof(request));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == ENOENT;
	if (n >= (ssize_t)sizeof(*in) && !is_silent(in, silence))
		serve(fd, in, in + 1);
	return true;
}

static void read_content(const char *path)
{
	FILE *f = fopen(path, "rb");

	content_len = f ? fread(content, 1, sizeof(content), f) : 0;
	if (!content_len) {
		perror(path);
		exit(1);
	}
	fclose(f);
}

void server_run(int fuse_fd, int control, const char *path, const char *silent)
{
	struct pollfd polled[] = { { .fd = fuse_fd, .events = POLLIN }, { .fd = control, .events = POLLIN } };
	int silence = -1;
	char byte;

	read_content(path);
	while (poll(polled, 2, -1) >= 0) {
		if (polled[0].revents && !serve_one(fuse_fd, silence))
			return;
		if (!polled[1].revents)
			continue;
		if (read(control, &byte, 1) != 1)
			return;
		silence = find_silence(silent);
		if (write(control, &byte, 1) != 1)
			return;
	}
}
