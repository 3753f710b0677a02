// SPDX-License-Identifier: Apache-2.0
/* Reads requests from a file, or from all files of a directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/recording.h"

int recording_read_file(struct recording *rec, int dirfd, const char *path)
{
	/* A link is followed if the user named it; in a directory another writer may have placed it. */
	int follow = dirfd == AT_FDCWD ? 0 : O_NOFOLLOW;
	_cleanup_(closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow);
	_cleanup_(buf_done) struct buf data = {0};
	struct stat st;
	int e;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EBADMSG;
	e = file_copy(fd, rec->limits.request.request_bytes, &data);
	if (e < 0)
		return e == -EFBIG ? -E2BIG : e;
	return recording_read(rec, data.data, data.len);
}

static int file_is_otlp(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return len > 5 && d->d_name[0] != '.' && strcmp(d->d_name + len - 5, ".otlp") == 0;
}

int recording_read_directory(struct recording *rec, const char *path, char *ret_name, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int n = fd < 0 ? -1 : scandir(path, &names, file_is_otlp, alphasort), i, e = 0;

	*ret_name = '\0';
	if (n < 0)
		return -errno;
	for (i = 0; i < n; i++) {
		if (!e)
			e = recording_read_file(rec, fd, names[i]->d_name);
		if (e < 0 && !*ret_name)
			snprintf(ret_name, size, "%s", names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return e < 0 ? e : n;
}
