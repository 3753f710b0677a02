// SPDX-License-Identifier: Apache-2.0
#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"

#define STATUS_MAX     (4u << 20)
#define STATUS_WAIT_NS (5 * NSEC_PER_SEC)

static int status_connect(const char *runtime_dir, const char *name)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", runtime_dir, name);

	if (n >= (int)sizeof(to.sun_path))
		return -ENAMETOOLONG;
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* 1: something was read, 0: the end. */
static int read_some(int fd, struct buf *b)
{
	char *to = buf_reserve(b, 16384);
	ssize_t n;

	if (!to)
		return -E2BIG;
	n = read(fd, to, 16384);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	buf_commit(b, (size_t)n);
	return n > 0;
}

int client_read_to_end(int fd, struct buf *b)
{
	uint64_t deadline = clock_now_ns() + STATUS_WAIT_NS, now;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r = 1;

	while (r > 0) {
		now = clock_now_ns();
		if (now >= deadline || poll(&p, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1) == 0)
			return -ETIMEDOUT;
		r = read_some(fd, b);
	}
	return r;
}

int client_read(const char *runtime_dir, struct buf *ret_text)
{
	_cleanup_(closep) int fd = status_connect(runtime_dir, "status.sock");

	if (fd < 0)
		return fd;
	ret_text->max = STATUS_MAX;
	return client_read_to_end(fd, ret_text);
}

static int parse(const struct buf *text, json_t **ret)
{
	json_t *j = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(j)) {
		json_decref(j);
		return -EBADMSG;
	}
	*ret = j;
	return 0;
}

int client_status(const char *runtime_dir, json_t **ret)
{
	_cleanup_(buf_done) struct buf text = {0};
	int r = client_read(runtime_dir, &text);

	return r < 0 ? r : parse(&text, ret);
}

int client_ask(const char *runtime_dir, const char *line, struct buf *ret_text, json_t **ret)
{
	_cleanup_(closep) int fd = status_connect(runtime_dir, "query.sock");
	size_t len = strlen(line);
	ssize_t n;
	int r;

	if (fd < 0)
		return fd;
	n = send(fd, line, len, MSG_NOSIGNAL);
	if (n != (ssize_t)len)
		return n < 0 ? -errno : -EIO;
	ret_text->max = STATUS_MAX;
	r = client_read_to_end(fd, ret_text);
	return r < 0 ? r : parse(ret_text, ret);
}

int client_last_status(const char *runtime_dir, json_t **ret)
{
	_cleanup_(buf_done) struct buf text = {.max = STATUS_MAX};
	_cleanup_(closep) int fd = -1;
	_cleanup_(freep) char *path = NULL;
	int r;

	if (asprintf(&path, "%s/last-status.json", runtime_dir) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = client_read_to_end(fd, &text);
	return r < 0 ? r : parse(&text, ret);
}

const json_t *client_at(const json_t *root, const char *path)
{
	const char *dot;

	for (; root && *path; path = *dot ? dot + 1 : dot) {
		dot = strchrnul(path, '.');
		root = json_object_getn(root, path, (size_t)(dot - path));
	}
	return root;
}

int client_failed(const char *runtime_dir, const char *socket, int err)
{
	bool absent = err == -ENOENT || err == -ECONNREFUSED;

	cli_error("%s/%s: %s", runtime_dir, socket,
		  err == -EBADMSG ? "no answer that is understood" : strerror(-err));
	if (absent)
		fprintf(stderr, "Is otprofd running? Try 'systemctl status otprofd', or start it.\n");
	else if (err == -EACCES || err == -EPERM)
		fprintf(stderr, "Only root may ask: try sudo.\n");
	return absent ? CLI_NOT_RUNNING : CLI_FAILED;
}

uint64_t client_number(const json_t *root, const char *path)
{
	const json_t *j = client_at(root, path);
	json_int_t n = json_is_integer(j) ? json_integer_value(j) : (json_int_t)json_number_value(j);

	return n > 0 ? (uint64_t)n : 0;
}

const char *client_text(const json_t *root, const char *path)
{
	const char *s = json_string_value(client_at(root, path));

	return s ? s : "";
}

bool client_is_true(const json_t *root, const char *path)
{
	return json_is_true(client_at(root, path));
}

uint64_t client_sum(const json_t *root, const char *path)
{
	json_t *object = (json_t *)client_at(root, path), *value;
	const char *key;
	uint64_t sum = 0;

	json_object_foreach(object, key, value)
		sum += client_number(value, "");
	return sum;
}

uint64_t client_lost(const json_t *root, const char *path)
{
	const json_t *equation = client_at(root, path);
	json_t *destinations = (json_t *)client_at(equation, "destinations"), *d;
	uint64_t most = client_sum(equation, "lost"), n;
	const char *name;

	json_object_foreach(destinations, name, d) {
		n = client_sum(d, "lost");
		most = MAX(most, n);
	}
	return most;
}
