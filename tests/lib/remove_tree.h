/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that a test made, with all that is in it; at, name: as of unlinkat. */
#ifndef OTP_TESTS_LIB_REMOVE_TREE_H
#define OTP_TESTS_LIB_REMOVE_TREE_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static inline void remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlinkat(fd, entry->d_name, 0) < 0)
			remove_tree(fd, entry->d_name);
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

#endif
