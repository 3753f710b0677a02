// SPDX-License-Identifier: Apache-2.0
/*
 * The protocol of sd_notify(3): datagrams to the socket that NOTIFY_SOCKET
 * names. The library's own functions wait for a listener whose queue is full;
 * here a message waits instead, and is sent before the next one.
 */
#include "daemon/monitor/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define WAITING_MAX 4
#define TEXT_MAX    384

static char waiting[WAITING_MAX][TEXT_MAX]; /* in order */
static unsigned nr_waiting;

static bool listener(struct sockaddr_un *ret, socklen_t *ret_len)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(ret->sun_path) || (*path != '/' && *path != '@'))
		return false;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, path, len);
	if (*path == '@')
		ret->sun_path[0] = '\0';
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

/* false: the socket is full. Other failures are ignored. */
static bool notify_send(const char *text)
{
	_cleanup_(closep) int fd = -1;
	struct sockaddr_un to;
	socklen_t len;

	if (!listener(&to, &len))
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	return sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to, len) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

static void notify_drop_first(void)
{
	nr_waiting--;
	memmove(waiting[0], waiting[1], nr_waiting * sizeof(waiting[0]));
}

void notify_run(void)
{
	while (nr_waiting && notify_send(waiting[0]))
		notify_drop_first();
}

/* Beyond the bound the oldest message is dropped: the newest is in force. */
static void notify_send_or_queue(const char *text)
{
	notify_run();
	if (!nr_waiting && notify_send(text))
		return;
	if (nr_waiting == WAITING_MAX)
		notify_drop_first();
	snprintf(waiting[nr_waiting++], TEXT_MAX, "%s", text);
}

void notify_ready(const char *status)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", status);
	notify_send_or_queue(text);
}

/* Replaces a waiting status: only the last one matters, and READY must not be dropped for it. */
void notify_status(const char *status)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "STATUS=%s", status);
	if (nr_waiting && strncmp(waiting[nr_waiting - 1], "STATUS=", 7) == 0)
		nr_waiting--;
	notify_send_or_queue(text);
}

/* MONOTONIC_USEC: by this systemd (253) distinguishes this reload from an earlier one, with Type=notify-reload. */
void notify_reloading(void)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading the configuration",
		 (unsigned long long)(clock_read_ns(CLOCK_MONOTONIC) / NSEC_PER_USEC));
	notify_send_or_queue(text);
}

void notify_stopping(void)
{
	notify_send_or_queue("STOPPING=1\nSTATUS=Exporting what is left");
}

/* A watchdog message that does not fit now is dropped: the next one replaces it. */
void notify_alive(void)
{
	notify_run();
	if (!nr_waiting)
		notify_send("WATCHDOG=1");
}

/* Twice in systemd's timeout. */
uint64_t notify_alive_ns(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us * NSEC_PER_USEC / 2 : 0;
}
