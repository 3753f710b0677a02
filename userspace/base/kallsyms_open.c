// SPDX-License-Identifier: Apache-2.0
#include "base/kallsyms_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* "ffffffff81000000 T _stext" */
static bool kallsyms_is_symbol_line(const char *text)
{
	int type_at = 0, name_at = 0;

	sscanf(text, "%*[0-9a-f]%n %*[A-Za-z]%n", &type_at, &name_at);
	return (type_at == 8 || type_at == 16) && name_at == type_at + 2;
}

/* A terminal or a pipe is never read. */
static bool kallsyms_is_input(void)
{
	char text[64] = "";
	struct statfs fs;
	struct stat st;

	return fstatfs(STDIN_FILENO, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC && fstat(STDIN_FILENO, &st) == 0 &&
	       S_ISREG(st.st_mode) && pread(STDIN_FILENO, text, sizeof(text) - 1, 0) > 0 && kallsyms_is_symbol_line(text);
}

int kallsyms_open(void)
{
	int fd = kallsyms_is_input() ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) :
				       open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
