/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which package would bring the debug information of a file, by what the
 * host's package manager keeps in text (dpkg), and by os-release.
 *
 * Called by explain, once for all files. Reads files below root, runs nothing.
 * Bounds: lists of so many bytes are read; what lies behind is not found.
 */
#ifndef OTP_CLI_PACKAGES_H
#define OTP_CLI_PACKAGES_H

#include <stddef.h>

#define PACKAGE_NAME_MAX 128

struct package_file {
	const char *path;		/* as the process sees it; borrowed */
	char package[PACKAGE_NAME_MAX]; /* "" : none has it */
};

/* Fills package of each. -ENOENT: there is no dpkg here. */
int packages_find(const char *root, struct package_file *files, size_t n);
/* The package with its debug information: libc6 has libc6-dbg, all others NAME-dbgsym. */
void package_debug_name(const char *package, char to[PACKAGE_NAME_MAX]);

struct distribution {
	char id[32], codename[32];
	char source[256]; /* a line for apt's sources that has debug packages; "": not known */
};
void distribution_read(const char *root, struct distribution *ret);

#endif
