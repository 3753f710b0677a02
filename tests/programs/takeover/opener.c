// SPDX-License-Identifier: Apache-2.0
/*
 * An opener that was taken over. It has rights of its own, so what it can read
 * is no question here: it must not end the monitor, or the engine that takes
 * its answers. Each life sends one answer or message that is wrong; two openers
 * live at a time, and chance chooses.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "takeover.h"

#define SOCK ROLE_SOCKET

int __real_sandbox_opener(const struct config *c);
int __wrap_sandbox_opener(const struct config *c);

static struct ipc_message question;

/* What a wrong answer carries. */
static int open_any(uint32_t which)
{
	static const char *const paths[] = {"/", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/kcore", "/etc/passwd"};
	int pair[2];

	if (which % (ARRAY_SIZE(paths) + 2) < ARRAY_SIZE(paths))
		return open(paths[which % (ARRAY_SIZE(paths) + 2)], O_RDONLY | O_CLOEXEC);
	if (which & 1)
		return open("/", O_PATH | O_CLOEXEC);
	return ipc_pair(pair) ? -1 : pair[0];
}

static void answer(uint32_t chance)
{
	static uint8_t data[IPC_DATA_MAX];
	struct ipc_answer head = {.err = chance & 1 ? 0 : (int32_t)(chance >> 8)};
	uint32_t len = chance % 5 ? sizeof(head) + chance % 4096 : IPC_DATA_MAX;
	uint64_t tag = question.head.tag;
	int fds[4], fd = open_any(chance >> 4);

	for (int i = 0; i < 4; i++)
		fds[i] = fd;
	memset(data, (int)(chance >> 3), sizeof(data));
	memcpy(data, &head, sizeof(head));
	if (chance % 11 == 0)
		tag++;
	takeover_send(SOCK, IPC_ANSWER, tag, data, chance % 13 ? len : chance % 8, chance % 13 ? len : chance % 8, fds,
		      fd < 0 ? 0 : chance % 7 == 0 ? 4 : chance % 3 != 0);
	closep(&fd);
}

static void send_any(uint32_t chance)
{
	static uint8_t data[IPC_DATA_MAX];
	int type = (int)(chance % 40), len = (int)(chance >> 6) % 57;
	uint32_t a_type = 0, a_len = 0;

	for (int t = 0; t <= type && takeover_type(&t, &a_type);)
		;
	for (int l = 0; l <= len && takeover_length(&l, &a_len);)
		;
	takeover_send(SOCK, a_type, question.head.tag, data, a_len, a_len, NULL, 0);
}

int __wrap_sandbox_opener(const struct config *c)
{
	int err = __real_sandbox_opener(c), r;
	uint32_t chance;

	if (err)
		return err;
	ipc_send(SOCK, IPC_READY, 0, NULL, 0, NULL, 0);
	while ((r = takeover_receive(SOCK, &question, 60000)) == 1 || r == -ETIMEDOUT) {
		if (r != 1 || question.head.type != IPC_ASK)
			continue;
		if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
			break;
		if (chance % 4 == 0)
			send_any(chance >> 2);
		answer(chance >> 2);
	}
	_exit(0);
}
