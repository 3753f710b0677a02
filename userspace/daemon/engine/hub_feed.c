// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/hub_feed.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "daemon/ipc.h"

#define SOCKET_BYTES 4608 /* the kernel's least */

void hub_feed_init(struct hub_feed *f)
{
	*f = (struct hub_feed){.sock = -1};
}

void hub_feed_done(struct hub_feed *f)
{
	closep(&f->sock);
	f->sock = -1;
}

void hub_feed_peer(struct hub_feed *f, int sock)
{
	const int bytes = SOCKET_BYTES;

	hub_feed_done(f);
	f->sock = sock;
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void hub_feed_send(struct hub_feed *f, int memfd, size_t len)
{
	uint64_t n = len;
	int r;

	if (f->sock < 0 || memfd < 0)
		return;
	r = ipc_send(f->sock, IPC_PROFILES, 0, &n, sizeof(n), &memfd, 1);
	if (r < 0 && r != -EAGAIN) /* a hub that is slow misses this one */
		hub_feed_done(f); /* the hub is gone: a new one arrives with HUB */
}
