// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/worker_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/roles.h"

/* A worker's socket becomes descriptor ROLE_SOCKET: it would replace the program there. */
static int worker_program_above_sockets(int fd)
{
	_cleanup_(closep) int low = fd <= ROLE_SOCKET ? fd : -1;
	int above = low < 0 ? fd : fcntl(low, F_DUPFD_CLOEXEC, ROLE_SOCKET + 1);

	return above < 0 ? -errno : above;
}

int worker_program_open(void)
{
	static const char *const places[] = {"/otprof-worker", "/../libexec/otprof/otprof-worker"};
	char self[PATH_MAX], path[PATH_MAX + 64] = "";
	int err = file_own_directory(self, sizeof(self)), fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !err && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			err = -errno;
	}
	if (fd >= 0)
		return worker_program_above_sockets(fd);
	err = err ? err : -ENOENT;
	log_error("otprof-worker, the program of most of otprofd's processes, is neither beside otprofd nor at %s: %s",
		  path, strerror(-err));
	return err;
}
