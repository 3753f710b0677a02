/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, read and written whole: the loops around read and write, the small
 * texts of /proc and /sys, and the replacement of a file in one step.
 *
 * Called by all of userspace, any thread; no state. Every call may block for
 * as long as the file system takes. Descriptors and paths are borrowed; what
 * is opened here is closed here. Interrupted system calls are repeated.
 * Errors are negative errno. Reads are bounded by the caller: by the size of
 * an array, or by max bytes.
 *
 * A mode is the new file's or directory's mode, whatever the umask is: it is
 * chosen where it is needed, not by who starts the program.
 *
 * Not for: pages of a binary, where a short read is the end of the file
 * (process/binary.c), files that grow while they are read (symbol/jit.c), and
 * /proc files of any length that are looked through line by line.
 */
#ifndef OTP_BASE_FILE_H
#define OTP_BASE_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * The text of a small file, cut at size - 1 bytes and NUL-terminated. Returns
 * its length; on failure to is "". The descriptor is read from its position.
 */
ssize_t file_read_text(const char *path, char *to, size_t size);
ssize_t file_read_text_fd(int fd, char *to, size_t size);
ssize_t file_read_proc(uint32_t pid, const char *name, char *to, size_t size); /* /proc/PID/NAME */

/* Appends what fd holds from its position on; a file of more than max bytes is cut. -ENOMEM also where to is full. */
int file_read(int fd, size_t max, struct buf *to);
/*
 * Appends a regular file as a whole. -EISDIR, -ENODEV: no regular file;
 * -EFBIG: more than max bytes. ret_st: of the file that was read.
 */
int file_load(const char *path, size_t max, struct buf *to, struct stat *ret_st);
/*
 * Appends a regular file or memfd from its beginning, wherever the position of
 * the descriptor is, which others may share. -EFBIG: more than max bytes.
 */
int file_copy(int fd, size_t max, struct buf *to);
/* Exactly len bytes at offset; -EIO where the file ends before. */
int file_read_at(int fd, void *to, size_t len, uint64_t offset);

/* The directory of the running program, without a slash at its end. -ENAMETOOLONG: size is too small. */
int file_own_directory(char *to, size_t size);

/* All of it, or an error: then a part may have been written. */
int file_write(int fd, const void *data, size_t len);
int file_write_at(int fd, const void *data, size_t len, uint64_t offset);

/* What a new file needs besides its bytes, owner or times, before it takes its name; may be NULL. */
typedef int file_prepare_fn(void *ctx, int fd);
/*
 * The file name (below the directory dir, or AT_FDCWD) holds data from now on:
 * it is written as ".NAME.tmp" beside it and renamed, so that readers see the
 * old file or the new one. Not synced to disk. On failure the old one stays
 * and nothing is left behind. -ENAMETOOLONG.
 */
int file_replace(int dir, const char *name, mode_t mode, const void *data, size_t len, file_prepare_fn *prepare,
		 void *ctx);

/* Every directory of an absolute path that is missing; the last one gets mode, those above it parents. */
int file_make_dirs(const char *path, mode_t parents, mode_t mode);

static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

#endif
