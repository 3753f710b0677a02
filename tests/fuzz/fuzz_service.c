// SPDX-License-Identifier: Apache-2.0
/*
 * A program's names from hostile arguments, before and after all else was
 * stripped from them: they must be the same.
 * Input: executable, NUL, comm, NUL, arguments.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *exe_end = memchr(text, '\0', size), *comm_end;
	struct service_names before, after;
	struct service_input in = {0};
	char *cmdline;
	size_t len;

	if (!exe_end)
		return 0;
	comm_end = memchr(exe_end + 1, '\0', size - (size_t)(exe_end + 1 - text));
	if (!comm_end)
		return 0;
	in.exe = text;
	in.exe_len = (size_t)(exe_end - text);
	in.comm = exe_end + 1;
	in.cmdline_len = size - (size_t)(comm_end + 1 - text);
	cmdline = malloc(in.cmdline_len + 1);
	if (!cmdline)
		return 0;
	memcpy(cmdline, comm_end + 1, in.cmdline_len);
	in.cmdline = cmdline;
	service_names(&in, &before);
	len = service_strip(&in, cmdline);
	if (len > in.cmdline_len + 1)
		abort();
	in.cmdline_len = len;
	service_names(&in, &after);
	if (strcmp(before.exe, after.exe) || strcmp(before.script, after.script))
		abort();
	free(cmdline);
	return 0;
}
