// SPDX-License-Identifier: Apache-2.0
#include "source/pids.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

bool pids_are_the_hosts(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == PIDS_HOST_NAMESPACE;
}

bool pid_is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}
