/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program is called, from the executable's path, its arguments and the
 * name the kernel keeps (comm).
 *
 * The executable's name is the one it was started under: argv[0] of a busybox
 * applet or of a link (redis-server is a link to redis-check-rdb on Debian),
 * as long as comm, which the kernel took from the started path, agrees. A
 * process that rewrote its arguments ("nginx: master process") is called by
 * its file. Where an interpreter runs a script, the script has its own name:
 * "app.py", the module of python -m, the jar or main class of java.
 * Pure; answers are cut and may hold any bytes (the caller cleans them).
 */
#ifndef OTP_PROCESS_SERVICE_H
#define OTP_PROCESS_SERVICE_H

#include <stddef.h>

#define SERVICE_NAME_MAX 255

struct service_input {
	const char *exe; /* as readlink gave it; may end in " (deleted)" */
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
 * Arguments hold passwords: rewrites cmdline in place so that service_names
 * says the same, and nothing else can be read from it. One byte behind it is
 * ours too. Returns its new length.
 */
size_t service_strip(const struct service_input *in, char *cmdline);

#endif
