// SPDX-License-Identifier: Apache-2.0
#include "takeover.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/roles.h"

#define READ_MAX (4u << 20)

static void takeover_say(const char *begin, const char *format, va_list args)
{
	char line[600];
	int n = snprintf(line, sizeof(line), "%s", begin);

	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	n = (int)strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) != n)
		_exit(1);
}

void takeover_ok(bool holds, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	takeover_say(holds ? "ok - " : "not ok - ", format, args);
	va_end(args);
}

void takeover_done(void)
{
	static const char line[] = "takeover: done\n";

	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(1);
}

bool takeover_holds_secret(int fd)
{
	_cleanup_(freep) char *data = malloc(READ_MAX);
	ssize_t n = data ? pread(fd, data, READ_MAX, 0) : -1;

	return n > 0 && memmem(data, (size_t)n, HELD_SECRET, strlen(HELD_SECRET));
}

bool takeover_length(int *i, uint32_t *ret)
{
	static const uint32_t around[] = {0, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 128, 176, 256, 4096,
					  HELD_BYTES, IPC_DATA_MAX};
	int at = *i / 3, less = *i % 3;

	if (at >= (int)ARRAY_SIZE(around))
		return false;
	++*i;
	/* One less, exact, one more; within what a message may hold. */
	*ret = (uint32_t)MIN(MAX((int64_t)around[at] + less - 1, 0), (int64_t)IPC_DATA_MAX);
	return true;
}

bool takeover_type(int *i, uint32_t *ret)
{
	static const uint32_t types[] = {
#define X(number, NAME, text) IPC_##NAME,
		IPC_MESSAGES(X)
#undef X
	};

	if (*i >= (int)ARRAY_SIZE(types))
		return false;
	*ret = types[(*i)++];
	return true;
}

int takeover_send(int sock, uint32_t type, uint64_t tag, const void *data, uint32_t len, uint32_t claimed,
		  const int *fds, int nr_fds)
{
	struct ipc_head head = {.type = type, .len = claimed, .tag = tag};
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)data, len}};
	char control[CMSG_SPACE(sizeof(int) * 16)] __attribute__((aligned(8))) = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = len ? 2 : 1};
	struct pollfd p = {.fd = sock, .events = POLLOUT};
	int tries = 0;

	if (nr_fds) {
		struct cmsghdr *c = (void *)control;

		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nr_fds)};
		memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)nr_fds);
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nr_fds);
	}
	while (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if ((errno != EAGAIN && errno != ETOOMANYREFS) || tries++ == 100)
			return -errno;
		poll(&p, 1, 50);
	}
	return 0;
}

static int takeover_send_any(int sock, int t, uint32_t type, int l, uint32_t len)
{
	static const uint8_t patterns[3] = {0, 0xff, 0x41};
	static uint8_t data[IPC_DATA_MAX];
	const int fds[4] = {sock, STDERR_FILENO, sock, sock};
	const int nr_fds[3] = {0, 1, 4};

	memset(data, patterns[l % 3], sizeof(data));
	return takeover_send(sock, type, (uint64_t)l, data, len, len, fds, sock == ROLE_SOCKET ? 0 : nr_fds[(l + t) % 3]);
}

int takeover_flood(int sock, const struct takeover_flood *f, uint32_t *ret_sent)
{
	uint32_t type, len, sent = 0;
	int err = 0;

	for (int t = 0; takeover_type(&t, &type);)
		for (int l = 0; takeover_length(&l, &len) && !err;) {
			if (f->leaves_out && f->leaves_out(type))
				continue;
			err = takeover_send_any(sock, t, type, l, len);
			sent += !err;
			if (f->after_each)
				f->after_each();
		}
	*ret_sent = sent;
	return err;
}

int takeover_peer(void)
{
	struct stat st;

	for (int fd = ROLE_SOCKET + 1; fd < 4096; fd++)
		if (!fstat(fd, &st) && S_ISSOCK(st.st_mode))
			return fd;
	return -1;
}

int takeover_receive(int sock, struct ipc_message *m, int ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	if (poll(&p, 1, ms) <= 0)
		return -ETIMEDOUT;
	return ipc_receive(sock, m);
}

void takeover_expect_death(int sock, const char *why)
{
	static struct ipc_message m;
	uint64_t deadline = clock_now_ns() + 5 * NSEC_PER_SEC;

	while (clock_now_ns() < deadline)
		if (takeover_receive(sock, &m, 100) == 1)
			ipc_close_fds(&m);
	takeover_ok(false, "%s: the sender was killed", why);
	_exit(1);
}

void takeover_stay(int sock)
{
	static struct ipc_message m;

	while (true) {
		int r = takeover_receive(sock, &m, 1000);

		if (r == 1 && m.head.type == IPC_STOP)
			_exit(0);
		if (r == 1)
			ipc_close_fds(&m);
		if (r == 0 || (r == -ETIMEDOUT && ipc_send(sock, IPC_BEAT, 0, &(uint64_t){1}, 8, NULL, 0) == -EPIPE))
			_exit(0);
	}
}
