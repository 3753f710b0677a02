/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a program, from the executable's path, its arguments and the name
 * that the kernel keeps (comm).
 *
 * The executable's name is the one it was started under: argv[0] of a busybox
 * applet or of a link (redis-server is a link to redis-check-rdb on Debian),
 * as long as comm, which the kernel took from the started path, agrees. A
 * process that rewrote its arguments ("nginx: master process") is named after
 * its file. Where an interpreter runs a script, the script has a name too:
 * "app.py", the module of python -m, the jar or main class of java.
 * Pure; names are cut and may hold any bytes (the caller cleans them).
 */
#ifndef OTP_PROCESS_SERVICE_H
#define OTP_PROCESS_SERVICE_H

#include <stddef.h>

#define SERVICE_NAME_MAX 255

struct service_input {
	const char *exe; /* as readlink returned it; may end in " (deleted)" */
	size_t exe_len;
	const char *cmdline; /* NUL-separated */
	size_t cmdline_len;
	const char *comm; /* "" if unknown */
};

struct service_names {
	char exe[SERVICE_NAME_MAX + 1];
	char script[SERVICE_NAME_MAX + 1]; /* "" if none */
};

void service_names(const struct service_input *in, struct service_names *ret);
/*
 * Arguments hold passwords: reduces cmdline in place to what service_names
 * needs to find the same names. The byte behind cmdline must be writable.
 * Returns the new length.
 */
size_t service_strip(const struct service_input *in, char *cmdline);

#endif
