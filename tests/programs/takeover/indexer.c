// SPDX-License-Identifier: Apache-2.0
/*
 * An indexer that was taken over: it asks for files as debug files, and lies
 * about its index. One life for each file that lacks an index; each does one of
 * the attacks.
 */
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "symbol/index_build.h"
#include "takeover.h"

#define SOCK ROLE_SOCKET

int __real_sandbox_indexer(const struct config *c);
int __wrap_sandbox_indexer(const struct config *c);

/* The monitor chooses the process; the indexer may only choose the host's root instead. */
static uint32_t try_name(const char *path)
{
	const uint32_t pids[] = {0, 1, (uint32_t)getppid(), UINT32_MAX};
	uint32_t got = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		const struct ipc_ask own = {.kind = HOST_OPEN_DEBUG, .pid = pids[i], .alternate_pid = pids[i], .start = 1,
					    .end = UINT64_MAX, .ino = i};
		const struct ipc_ask host = {.kind = HOST_OPEN_DEBUG, .len = 1};

		got += takeover_try(&own, path);
		got += takeover_try(&host, path);
	}
	return got;
}

static void lie(uint32_t chance)
{
	struct ipc_indexed result;

	memset(&result, (int)chance, sizeof(result));
	if (chance & 256)
		result.err = 0;
	ipc_send(SOCK, IPC_INDEXED, 0, &result, chance & 512 ? sizeof(result) : chance % 64, NULL, 0);
	_exit((int)(chance >> 10) & 1);
}

/* Kinds that are the engine's or the monitor's; each of them ends this process. */
static void ask_as_others(uint32_t chance)
{
	static const uint32_t kinds[] = {0, HOST_OPEN_MAPPED, HOST_READ_MAPS, HOST_READ_IDENTITY, HOST_SCAN,
					 HOST_OPEN_INDEX, HOST_OPEN_PERF_MAP, HOST_READ_CONTAINERS};
	const struct ipc_ask q = {.kind = kinds[chance % ARRAY_SIZE(kinds)], .pid = 1};

	takeover_send(SOCK, IPC_ASK, 1, &q, sizeof(q), sizeof(q), NULL, 0);
	takeover_expect_death(SOCK, "a question that is not the indexer's");
}

int __wrap_sandbox_indexer(const struct config *c)
{
	char directory[HOST_PATH_MAX];
	uint32_t chance;
	int err;

	snprintf(directory, sizeof(directory), "%s", c->symbols_debug_dirs);
	err = __real_sandbox_indexer(c);
	if (err || getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		return err ? err : -1;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	if (chance % 3 == 0)
		ask_as_others(chance / 3);
	if (chance % 3 == 1)
		lie(chance / 3);
	takeover_try_names(directory, try_name);
	takeover_done();
	_exit(0);
}
