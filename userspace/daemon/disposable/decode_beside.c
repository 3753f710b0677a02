// SPDX-License-Identifier: Apache-2.0
/*
 * Files beside those that the process has mapped: the decoder asks the monitor,
 * an opener answers. The function that needs the file waits for it, as samples
 * wait for their functions anyway; the wait is bounded, and where it was in vain
 * once, this decoder asks for no file any more.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/disposable/decode_serve.h"
#include "process/beside.h"

#define REPORTED_MAX (2 << 20)

static int beside_ask(const struct decode_serve *s, uint64_t tag, uint64_t addr, const char *name, size_t len)
{
	struct {
		struct ipc_beside head;
		char name[BESIDE_NAME_MAX];
	} ask = {.head.address = addr};

	memcpy(ask.name, name, len);
	return ipc_send_bytes(s->monitor, IPC_BESIDE, tag, &ask, sizeof(ask.head) + len);
}

/* 1: it is the answer; 0: another message. */
static int beside_take(struct ipc_message *m, uint64_t tag, int *ret_fd)
{
	const struct ipc_answer *a = (const void *)m->data;

	if (m->head.type != IPC_ANSWER || m->head.tag != tag || m->head.len < sizeof(*a))
		return 0;
	if (a->err)
		return ipc_answer_error(a);
	*ret_fd = ipc_take_fd(m, 0);
	return *ret_fd >= 0 ? 1 : -EBADMSG;
}

static int beside_wait(const struct decode_serve *s, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = s->monitor, .events = POLLIN};
	uint64_t now = clock_now_ns();

	return now < deadline_ns && poll(&p, 1, (int)((deadline_ns - now) / NSEC_PER_MSEC) + 1) >= 0 ? 0 : -ETIMEDOUT;
}

static int beside_await(const struct decode_serve *s, uint64_t tag, int *ret_fd)
{
	static struct ipc_message m; /* the one that has the question is in use */
	const uint64_t deadline_ns = clock_now_ns() + DECODE_FILE_PATIENCE * NSEC_PER_MSEC;
	int r = 0;

	while (!r) {
		r = ipc_receive(s->monitor, &m);
		if (r == 1) {
			r = beside_take(&m, tag, ret_fd);
			ipc_close_fds(&m);
		} else {
			r = r == -EAGAIN ? beside_wait(s, deadline_ns) : -EPIPE;
		}
	}
	return r == 1 ? 0 : r;
}

/* For a capture, which a larger one would make too large: its replay has names without lines. */
static void beside_report(struct decode_serve *s, int fd)
{
	static uint8_t part[DECODE_BYTES];
	struct stat st;
	ssize_t n = 1;

	if (!s->reports || fstat(fd, &st) < 0 || st.st_size > REPORTED_MAX)
		return;
	for (off_t at = 0; at < st.st_size && n > 0; at += n) {
		n = pread(fd, part, (size_t)MIN((off_t)sizeof(part), st.st_size - at), at);
		if (n > 0)
			decode_serve_report(s, DECODE_BESIDE, (uint64_t)at, part, (size_t)n);
	}
}

int decode_beside(struct memory *m, uint64_t addr, const char *name, int *ret_fd)
{
	struct decode_serve *s = container_of(m, struct decode_serve, memory);
	size_t len = strnlen(name, BESIDE_NAME_MAX);
	int err;

	if (s->monitor < 0)
		return -ENOSYS;
	if (s->files == BESIDE_FILES_MAX)
		return -E2BIG;
	if (!beside_name_is_sound(name, len) || addr > INT64_MAX)
		return -EPERM;
	if (s->files_late)
		return -ETIMEDOUT;
	err = beside_ask(s, ++s->files, addr, name, len);
	if (!err)
		err = beside_await(s, s->files, ret_fd);
	if (!err)
		beside_report(s, *ret_fd);
	s->files_late |= err == -ETIMEDOUT || err == -EPIPE || err == -EAGAIN;
	return err;
}
