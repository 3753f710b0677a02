/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system of one file that stops answering: mounts itself on DIR,
 * serves CONTENT as DIR/file until SIGUSR1, and from then on reads no request
 * any more, so that whoever opens, stats or reads the file waits for ever.
 * Speaks the kernel's protocol (include/uapi/linux/fuse.h) itself.
 *   fusefile DIR CONTENT
 * Exit code 77: there is no FUSE here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SKIP      77
#define FILE_NODE 2
#define FILE_MAX  (1u << 20)

static volatile sig_atomic_t silent;
static char content[FILE_MAX];
static size_t content_len;

static void on_silence(int sig)
{
	(void)sig;
	silent = 1;
}

static void reply(int fd, const struct fuse_in_header *in, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = err, .unique = in->unique };
	struct iovec parts[] = { { &out, sizeof(out) }, { (void *)(uintptr_t)data, len } };

	if (writev(fd, parts, len ? 2 : 1) < 0 && errno != ENOENT)
		perror("fuse reply");
}

static void attributes(struct fuse_attr *attr, uint64_t node)
{
	attr->ino = node;
	attr->mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755;
	attr->size = node == FILE_NODE ? content_len : 0;
	attr->nlink = 1;
	attr->blksize = 4096;
}

static void on_init(int fd, const struct fuse_in_header *in)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 65536 };

	reply(fd, in, 0, &out, sizeof(out));
}

/* Nothing is cached, so that every look-up comes here. */
static void on_lookup(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .nodeid = FILE_NODE };

	if (strcmp(name, "file") != 0) {
		reply(fd, in, -ENOENT, NULL, 0);
		return;
	}
	attributes(&out.attr, FILE_NODE);
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

static void serve(int fd, const struct fuse_in_header *in, const void *arg)
{
	struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT: on_init(fd, in); break;
	case FUSE_LOOKUP: on_lookup(fd, in, arg); break;
	case FUSE_GETATTR: on_getattr(fd, in); break;
	case FUSE_READ: on_read(fd, in, arg); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: reply(fd, in, 0, &opened, sizeof(opened)); break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR: reply(fd, in, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET: break;
	default: reply(fd, in, -ENOSYS, NULL, 0);
	}
}

static int mount_at(const char *dir)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd);
	if (fd < 0 || mount("fusefile", dir, "fuse", MS_NODEV | MS_NOSUID, options)) {
		perror("FUSE");
		return -1;
	}
	return fd;
}

static int read_content(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return -1;
	content_len = fread(content, 1, sizeof(content), f);
	fclose(f);
	return 0;
}

int main(int argc, char **argv)
{
	static char request[1 << 18] __attribute__((aligned(8)));
	struct sigaction act = { .sa_handler = on_silence };
	ssize_t n;
	int fd;

	if (argc != 3 || read_content(argv[2])) {
		fprintf(stderr, "usage: fusefile DIR CONTENT\n");
		return 2;
	}
	sigaction(SIGUSR1, &act, NULL);
	fd = mount_at(argv[1]);
	if (fd < 0)
		return SKIP;
	puts("mounted");
	fflush(stdout);
	while (!silent) {
		n = read(fd, request, sizeof(request));
		if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
			return errno == ENODEV ? 0 : 1;
		if (n >= (ssize_t)sizeof(struct fuse_in_header) && !silent)
			serve(fd, (void *)request, request + sizeof(struct fuse_in_header));
	}
	for (;;)
		pause(); /* the file system stays mounted, and dumb, until someone kills us */
}
