// SPDX-License-Identifier: Apache-2.0
#include "daemon/ipc.h"

#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3, include/uapi/linux/memfd.h */
#endif

/* Room for one descriptor more than allowed, so that a message with too many is detected, not truncated. */
#define IPC_CONTROL_FDS (IPC_FDS_MAX + 1)

union ipc_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * IPC_CONTROL_FDS)];
};

int ipc_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ? -errno : 0;
}

static void ipc_control_put(struct msghdr *msg, union ipc_control *control, const int *fds, int nr_fds)
{
	struct cmsghdr *c = &control->align;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * nr_fds);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * nr_fds);
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(sizeof(int) * nr_fds);
}

static int ipc_send_error(int err)
{
	switch (err) {
	case ECONNRESET:
	case ENOTCONN:
		return -EPIPE;
	case ENOBUFS:
	case ETOOMANYREFS: /* too many descriptors in flight; there is room once the peer has read */
		return -EAGAIN;
	default:
		return -err;
	}
}

int ipc_send(int sock, uint32_t type, uint64_t tag, const void *data, size_t len, const int *fds, int nr_fds)
{
	struct ipc_head head = {.type = type, .len = (uint32_t)len, .tag = tag};
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)data, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = len ? 2 : 1};
	union ipc_control control = {0};
	ssize_t n;

	if (len > IPC_DATA_MAX || nr_fds < 0 || nr_fds > IPC_FDS_MAX)
		return -EINVAL;
	if (nr_fds)
		ipc_control_put(&msg, &control, fds, nr_fds);
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? ipc_send_error(errno) : 0;
}

int ipc_send_bytes(int sock, uint32_t type, uint64_t tag, const void *data, size_t len)
{
	struct {
		struct ipc_head head;
		uint8_t data[IPC_DATA_MAX];
	} m;
	ssize_t n;

	if (len > sizeof(m.data))
		return -EINVAL;
	m.head = (struct ipc_head){.type = type, .len = (uint32_t)len, .tag = tag};
	if (len)
		memcpy(m.data, data, len);
	do
		n = send(sock, &m, sizeof(m.head) + len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? ipc_send_error(errno) : 0;
}

void ipc_close_fds(struct ipc_message *m)
{
	for (int i = 0; i < IPC_FDS_MAX; i++) {
		closep(&m->fds[i]);
		m->fds[i] = -1;
	}
}

int ipc_take_fd(struct ipc_message *m, int i)
{
	return steal_fd(&m->fds[i]);
}

int ipc_nr_fds(const struct ipc_message *m)
{
	int n = 0;

	while (n < IPC_FDS_MAX && m->fds[n] >= 0)
		n++;
	return n;
}

bool ipc_fits(const struct ipc_message *m, size_t len, int nr_fds)
{
	return m->head.len == len && ipc_nr_fds(m) == nr_fds;
}

/* Takes the passed descriptors; if there are too many, all are closed and the message is refused. */
static int ipc_control_take(struct msghdr *msg, struct ipc_message *m)
{
	int n = 0, err = 0, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(0))
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < IPC_FDS_MAX) {
				m->fds[n++] = fd;
			} else {
				close(fd);
				err = -EBADMSG;
			}
		}
	}
	return err;
}

static bool ipc_type_is_known(uint32_t type)
{
	switch (type) {
#define X(number, NAME, text) case IPC_##NAME:
		IPC_MESSAGES(X)
#undef X
		return true;
	}
	return false;
}

static bool ipc_head_is_sound(const struct ipc_message *m, const struct msghdr *msg, size_t n)
{
	return !(msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && n >= sizeof(m->head) &&
	       m->head.len == n - sizeof(m->head) && ipc_type_is_known(m->head.type);
}

static int ipc_receive_with(int sock, struct ipc_message *m, union ipc_control *control)
{
	struct iovec iov[2] = {{&m->head, sizeof(m->head)}, {m->data, sizeof(m->data)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = control,
			     .msg_controllen = control ? sizeof(*control) : 0};
	ssize_t n;
	int err;

	for (int i = 0; i < IPC_FDS_MAX; i++)
		m->fds[i] = -1;
	/*
	 * A peer that closes without having read all our messages leaves ECONNRESET before the messages that it had
	 * sent (unix_release_sock); the first read clears it.
	 */
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	err = ipc_control_take(&msg, m);
	/* We never send an empty packet; it counts as the end of the peer. */
	if (n == 0 && !err) {
		ipc_close_fds(m);
		return 0;
	}
	if (err || !ipc_head_is_sound(m, &msg, (size_t)n)) {
		ipc_close_fds(m);
		return -EBADMSG;
	}
	return 1;
}

int ipc_receive(int sock, struct ipc_message *m)
{
	union ipc_control control = {0};

	return ipc_receive_with(sock, m, &control);
}

/* Without room for them, the kernel drops the descriptors and marks the message (net/core/scm.c). */
int ipc_receive_plain(int sock, struct ipc_message *m)
{
	return ipc_receive_with(sock, m, NULL);
}

int ipc_wait(int sock, struct ipc_message *m)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return ipc_receive(sock, m);
}

static int memfd_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

int ipc_memfd_new(const char *name)
{
	return memfd_new(name);
}

int ipc_memfd_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ? -errno : 0;
}

int ipc_memfd(const char *name, const void *data, size_t len)
{
	_cleanup_(closep) int fd = memfd_new(name);
	int err;

	if (fd < 0)
		return fd;
	err = file_write(fd, data, len);
	if (!err)
		err = ipc_memfd_seal(fd);
	return err ? err : steal_fd(&fd);
}

static bool ipc_memfd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_WRITE) && (seals & F_SEAL_SHRINK);
}

int ipc_memfd_read(int fd, size_t max, char **ret, size_t *ret_len)
{
	struct buf text = {0};
	int err = ipc_memfd_is_sealed(fd) ? file_copy(fd, max, &text) : -EBADMSG;

	if (err) {
		buf_done(&text);
		return err;
	}
	/* file_copy leaves room for one byte more. */
	text.data[text.len] = '\0';
	*ret_len = text.len;
	*ret = (char *)text.data;
	return 0;
}
