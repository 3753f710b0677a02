// SPDX-License-Identifier: Apache-2.0
/*
 * The file that a process has mapped, through /proc/PID/map_files:
 * that is the mapped file itself, also when its name was removed or replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"
#include "process/maps_text.h"

#define MAPS_READ (64u << 20)

/* A range of addresses, and whether only code counts there. */
struct opener_wanted { uint64_t start, end; bool code; };

/* The mapping that was found; text holds its name. */
struct opener_found { struct maps_text text; struct maps_line line; };

static bool opener_mapping_fits(const char *text, size_t len, const struct opener_wanted *w, struct opener_found *ret)
{
	const struct maps_line *line = &ret->line;

	maps_text_init(&ret->text, text, len);
	return maps_text_next(&ret->text, &ret->line) && (line->exec || !w->code) && line->ino &&
	       line->start < w->end && line->end > w->start;
}

/*
 * The first mapping of a file in the range: one part of it where the permissions of the others have changed since the
 * question's mapping was made. -ENOENT.
 */
static int opener_mapping_find(FILE *maps, const struct opener_wanted *w, struct opener_found *ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0, seen = 0;
	ssize_t n;

	while (seen < MAPS_READ && (n = getline(&text, &size, maps)) > 0) {
		seen += (size_t)n;
		if (opener_mapping_fits(text, (size_t)n, w, ret))
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

static int opener_mapping_read(const struct opener_process *p, const struct opener_wanted *w, struct opener_found *ret)
{
	int maps_fd = w->start < w->end ? opener_process_file(p, "maps", O_RDONLY) : -ENOENT;
	_cleanup_(fclosep) FILE *maps = maps_fd < 0 ? NULL : fdopen(maps_fd, "r");

	if (!maps) {
		closep(&maps_fd);
		return maps_fd < 0 ? maps_fd : -ENOMEM;
	}
	return opener_mapping_find(maps, w, ret);
}

/* Touches the file. */
static int opener_mapping_take(struct opener *o, const struct opener_process *p, const struct opener_wanted *w,
			       struct opener_found *ret)
{
	_cleanup_(closep) int fd = -1;
	char path[64];
	int err = opener_mapping_read(p, w, ret);

	if (err)
		return err;
	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, ret->line.start, ret->line.end);
	fd = openat(p->dir, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = opener_touch_file(o, p->stat.pid, fd);
	if (err)
		return err;
	return opener_mapping_is(fd, ret->line.ino) ? steal_fd(&fd) : -ENOENT;
}

int opener_mapping_open(struct opener *o, const struct opener_process *p, uint64_t start, uint64_t end,
			struct decode_mapping *ret_at)
{
	const struct opener_wanted wanted = {.start = start, .end = end, .code = true};
	struct opener_found found;
	int fd = opener_mapping_take(o, p, &wanted, &found);

	if (fd >= 0)
		*ret_at = (struct decode_mapping){.start = found.line.start, .offset = found.line.offset};
	return fd;
}

int opener_mapping_open_at(struct opener *o, const struct opener_process *p, uint64_t address,
			   char path[HOST_PATH_MAX])
{
	const struct opener_wanted wanted = {.start = address, .end = address + 1};
	struct opener_found found;
	int fd = opener_mapping_take(o, p, &wanted, &found);

	if (fd < 0)
		return fd;
	if (found.line.name_len >= HOST_PATH_MAX) {
		close(fd);
		return -ENOENT;
	}
	memcpy(path, found.line.name, found.line.name_len + 1);
	return fd;
}
