// SPDX-License-Identifier: Apache-2.0
/*
 * The file that a process has mapped executable, through /proc/PID/map_files:
 * that is the mapped file itself, also when its name was removed or replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"
#include "process/maps_text.h"

#define MAPS_READ (64u << 20)

static bool opener_mapping_is_code(const char *text, size_t len, uint64_t start, uint64_t end, struct maps_line *ret)
{
	struct maps_text line;

	maps_text_init(&line, text, len);
	return maps_text_next(&line, ret) && ret->exec && ret->ino && ret->start < end && ret->end > start;
}

/*
 * The first mapping of code in the range: one part of it where the permissions of the others have changed since the
 * question's mapping was made. -ENOENT.
 */
static int opener_mapping_find(FILE *maps, uint64_t start, uint64_t end, struct maps_line *ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0, seen = 0;
	ssize_t n;

	while (seen < MAPS_READ && (n = getline(&text, &size, maps)) > 0) {
		seen += (size_t)n;
		if (opener_mapping_is_code(text, (size_t)n, start, end, ret))
			return 0;
	}
	return -ENOENT;
}

/* The mappings may have changed in between: it is the same file still. */
static bool opener_mapping_is(int path_fd, uint64_t ino)
{
	struct statfs fs;
	struct stat st;

	return fstat(path_fd, &st) == 0 && fstatfs(path_fd, &fs) == 0 && opener_is_inode(&st, &fs, ino);
}

int opener_mapping_open(struct opener *o, const struct opener_process *p, uint64_t start, uint64_t end,
			struct decode_mapping *ret_at)
{
	int maps_fd = start < end ? opener_process_file(p, "maps", O_RDONLY) : -ENOENT;
	_cleanup_(fclosep) FILE *maps = maps_fd < 0 ? NULL : fdopen(maps_fd, "r");
	_cleanup_(closep) int fd = -1;
	struct maps_line line;
	char path[64];
	int err;

	if (!maps) {
		closep(&maps_fd);
		return maps_fd < 0 ? maps_fd : -ENOMEM;
	}
	if (opener_mapping_find(maps, start, end, &line))
		return -ENOENT;
	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, line.start, line.end);
	fd = openat(p->dir, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = opener_touch_file(o, p->stat.pid, fd);
	if (err)
		return err;
	if (!opener_mapping_is(fd, line.ino))
		return -ENOENT;
	*ret_at = (struct decode_mapping){.start = line.start, .offset = line.offset};
	return steal_fd(&fd);
}
