// SPDX-License-Identifier: Apache-2.0
/*
 * A net that was taken over: it asks the monitor what only others may ask, and
 * sends every message to the monitor and to the engine. Nothing but the text of
 * its own metrics may arrive.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "takeover.h"

#define SOCK	  ROLE_SOCKET
#define ENGINE_MS 2000
#define STATUS_MAX (1u << 20)

int __real_sandbox_net(const struct config *c);
int __wrap_sandbox_net(const struct config *c);

static struct ipc_message message;
static uint32_t sent, answers, bad;

/* What may arrive: the end, a new socket to the engine, settings, and the text of metrics, which is sealed. */
static void check_message(void)
{
	int n = ipc_nr_fds(&message), seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

	switch (message.head.type) {
	case IPC_STOP:
		_exit(0);
	case IPC_PEER:
		break;
	case IPC_STATUS:
		bad += n != 1 || (fcntl(message.fds[0], F_GET_SEALS) & seals) != seals || takeover_holds_secret(message.fds[0]);
		break;
	case IPC_ANSWER:
		answers++;
		break;
	default:
		bad += n > 0;
	}
	ipc_close_fds(&message);
}

static void read_all(int ms)
{
	while (takeover_receive(SOCK, &message, ms) == 1)
		check_message();
}

static void ask_as_others(void)
{
	static const uint32_t kinds[] = {0, HOST_OPEN_MAPPED, HOST_READ_MAPS, HOST_READ_IDENTITY, 4, HOST_SCAN, HOST_OPEN_INDEX,
					 HOST_OPEN_PERF_MAP, HOST_OPEN_DEBUG, HOST_READ_CONTAINERS, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct ipc_ask q = {.kind = kinds[i], .pid = 1};

		sent += !takeover_send(SOCK, IPC_ASK, i, &q, sizeof(q), sizeof(q), NULL, 0);
	}
	read_all(300);
	takeover_ok(!answers, "net asks %u questions, and none is answered (%u)", sent, answers);
}

static void read_pending(void)
{
	read_all(0);
}

/* Returns how many messages were sent. */
static uint32_t flood(int sock)
{
	const struct takeover_flood f = {.after_each = read_pending};
	uint32_t n;

	takeover_flood(sock, &f, &n);
	return n;
}

static int await_engine(void)
{
	uint64_t deadline = clock_now_ns() + (uint64_t)ENGINE_MS * NSEC_PER_MSEC;

	while (takeover_peer() < 0 && clock_now_ns() < deadline)
		if (takeover_receive(SOCK, &message, 100) == 1) {
			if (message.head.type == IPC_PEER)
				return ipc_take_fd(&message, 0);
			check_message();
		}
	return takeover_peer();
}

int __wrap_sandbox_net(const struct config *c)
{
	int err = __real_sandbox_net(c), engine;

	if (err)
		return err;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	ipc_send(SOCK, IPC_DRAINED, 0, NULL, 0, NULL, 0);
	engine = await_engine();
	ask_as_others();
	sent = flood(SOCK);
	read_all(300);
	takeover_ok(sent > 1000 && !bad, "net sends the monitor %u messages, and nothing arrives that may not (%u)", sent, bad);
	takeover_ok(engine >= 0, "net has a socket to the engine");
	if (engine >= 0)
		takeover_ok(flood(engine) > 0, "net sends the engine all messages");
	takeover_done();
	takeover_stay(SOCK);
}
