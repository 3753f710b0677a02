/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which package has the debug information of a file, from dpkg's lists and
 * os-release.
 *
 * Called by explain, once for all files, in a process of its own: the root may
 * be a container's, whose file systems may never answer. root is a borrowed
 * descriptor of it; no link leads out of it. Reads files, runs nothing. Bounds:
 * lists are read up to a number of bytes; entries after them are not found.
 */
#ifndef OTP_CLI_PACKAGES_H
#define OTP_CLI_PACKAGES_H

#include <stdbool.h>
#include <stddef.h>

#define PACKAGE_NAME_MAX 128

struct package_file {
	const char *path;		/* as the process sees it; borrowed */
	char package[PACKAGE_NAME_MAX]; /* "": none has it */
};

bool packages_is_our_root(int root); /* false also where it cannot be seen */
/*
 * Opens what path is for a process with this root, absolute links included. -ENOSYS: a kernel before 5.6, and the
 * root is not our own.
 */
int packages_open(int root, const char *path, int flags);
/* Fills package of each. -ENOENT: root has no dpkg. */
int packages_find(int root, struct package_file *files, size_t n);
/* The package with its debug information: libc6 has libc6-dbg, all others NAME-dbgsym. */
void package_debug_name(const char *package, char to[PACKAGE_NAME_MAX]);

struct distribution {
	char id[32], codename[32];
	char source[256]; /* a line for apt's sources with the debug packages; "": unknown */
};
void distribution_read(int root, struct distribution *ret);

#endif
