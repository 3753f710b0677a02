/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories and files that a privileged process opens by path, where another
 * user must not decide which ones: the path is walked one component at a time,
 * by descriptors, and every directory in which a name is looked up has to be
 * ours. Ours are the directories of root, of this process' user, and of the
 * owner of "/", who can replace them all; others may write there only under
 * the sticky bit. Symbolic links are followed where the same users made them.
 *
 * Called by the monitor at its start and by the command line, any thread; no
 * state. Blocks as the file system does. Descriptors that are returned belong
 * to the caller. Errors are negative errno, -EPERM for a directory that is not
 * ours; why then says which and what is wrong, for a log line.
 */
#ifndef OTP_BASE_SAFE_PATH_H
#define OTP_BASE_SAFE_PATH_H

#include <sys/types.h>

#define SAFE_PATH_WHY 256

enum safe_path_last { /* what the last directory of a path may be */
	SAFE_PATH_OURS,	   /* in which nobody else may make files */
	SAFE_PATH_ANYONES, /* any user's: only the way to it has to be ours */
};

/* A descriptor of an existing directory, to read. */
int safe_path_open(const char *path, enum safe_path_last last, char why[SAFE_PATH_WHY]);
/* The same; missing directories are made, the last one with mode, those above it with 0755. */
int safe_path_make(const char *path, enum safe_path_last last, mode_t mode, char why[SAFE_PATH_WHY]);
/*
 * A new, empty file to write, with this mode; its directory may be anyone's.
 * An earlier regular file of ours at path is removed, so that who has opened
 * that one does not see the new one. -EEXIST: anything else is there.
 */
int safe_path_create(const char *path, mode_t mode, char why[SAFE_PATH_WHY]);

#endif
