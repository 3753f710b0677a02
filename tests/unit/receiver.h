/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver of HTTP requests on a loopback port, in a thread, that answers
 * by script: one step a request, the last step for all that follow. It can do
 * what a library's server would not: hang, hang up, answer nonsense.
 * For the tests of the exporter and of net; everything is static.
 */
#ifndef OTP_TESTS_RECEIVER_H
#define OTP_TESTS_RECEIVER_H

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/loopback.h"

enum step_kind {
	STEP_ANSWER,    /* text as it is, or text and body */
	STEP_DROP,      /* reads all, hangs up */
	STEP_HANG,      /* reads all, says nothing */
	STEP_DROP_HEAD, /* hangs up after the headers, body unread */
	STEP_HUGE,      /* 200 and eight megabytes */
};

struct step {
	enum step_kind kind;
	const char *text;
	const void *body; /* NULL: none, and no headers are added */
	size_t body_len;
	bool close; /* after the answer */
	unsigned int late_ms; /* between the request and the answer */
};

#define RECEIVED_MAX 64

struct received {
	char head[2048];
	char *body;
	size_t len;
};

struct receiver {
	int listener, quit;
	uint16_t port;
	const struct step *steps;
	size_t nr_steps;
	pthread_t thread;
	struct received got[RECEIVED_MAX];
	size_t n; /* atomic: requests read to the end */
};

static bool receiver_wait(struct receiver *r, int fd)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = r->quit, .events = POLLIN}};

	poll(p, 2, -1);
	return !p[1].revents;
}

static bool receiver_read(struct receiver *r, int fd, char *to, size_t max, size_t *ret_n)
{
	ssize_t n;

	if (!receiver_wait(r, fd))
		return false;
	n = recv(fd, to, max, 0);
	if (n <= 0)
		return false;
	*ret_n = (size_t)n;
	return true;
}

static size_t receiver_length(const char *head)
{
	const char *line = strcasestr(head, "\r\nContent-Length:");

	return line ? strtoul(line + 17, NULL, 10) : 0;
}

/* The whole request, or its head alone. */
static bool receiver_request(struct receiver *r, int fd, struct received *to, bool head_only)
{
	size_t have = 0, n, rest;
	char *end = NULL;

	while (!end) {
		if (have >= sizeof(to->head) - 1 || !receiver_read(r, fd, to->head + have, 1, &n))
			return false;
		have += n;
		to->head[have] = '\0';
		end = strstr(to->head, "\r\n\r\n");
	}
	to->len = receiver_length(to->head);
	if (head_only)
		return true;
	to->body = malloc(to->len + 1);
	for (rest = to->len; rest; rest -= n)
		if (!receiver_read(r, fd, to->body + to->len - rest, rest, &n))
			return false;
	return true;
}

static bool receiver_send(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool receiver_huge(int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
				   "Content-Length: 8388608\r\n\r\n";
	static const char block[65536];
	bool ok = receiver_send(fd, head, sizeof(head) - 1);

	for (int i = 0; ok && i < 128; i++)
		ok = receiver_send(fd, block, sizeof(block));
	return ok;
}

static bool receiver_answer(int fd, const struct step *s)
{
	char head[512];
	int n;

	if (!s->body)
		return receiver_send(fd, s->text, strlen(s->text)) && !s->close;
	n = snprintf(head, sizeof(head), "%sContent-Length: %zu\r\n\r\n", s->text, s->body_len);
	return receiver_send(fd, head, (size_t)n) && receiver_send(fd, s->body, s->body_len) && !s->close;
}

/* False: the connection ends. */
static bool receiver_step(struct receiver *r, int fd)
{
	size_t i = __atomic_load_n(&r->n, __ATOMIC_RELAXED);
	const struct step *s = &r->steps[i < r->nr_steps ? i : r->nr_steps - 1];
	struct received spare = {0}, *to = i < RECEIVED_MAX ? &r->got[i] : &spare;
	bool ok = receiver_request(r, fd, to, s->kind == STEP_DROP_HEAD);

	if (!ok) {
		free(to->body);
		*to = (struct received){0};
		return false;
	}
	if (to == &spare)
		free(spare.body);
	__atomic_store_n(&r->n, i + 1, __ATOMIC_RELEASE);
	usleep(s->late_ms * 1000);
	switch (s->kind) {
	case STEP_ANSWER:
		return receiver_answer(fd, s);
	case STEP_HUGE:
		return receiver_huge(fd);
	case STEP_HANG:
		receiver_wait(r, fd); /* until the other side gives up */
		return false;
	case STEP_DROP:
	case STEP_DROP_HEAD:
		return false;
	}
	return false;
}

static void *receiver_main(void *ctx)
{
	struct receiver *r = ctx;

	while (receiver_wait(r, r->listener)) {
		int fd = accept(r->listener, NULL, NULL);

		while (fd >= 0 && receiver_step(r, fd))
			;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void receiver_start(struct receiver *r, const struct step *steps, size_t n)
{
	*r = (struct receiver){.steps = steps, .nr_steps = n};
	r->quit = eventfd(0, EFD_CLOEXEC);
	r->listener = loopback_listen(&r->port);
	ck_assert_int_eq(pthread_create(&r->thread, NULL, receiver_main, r), 0);
}

static void receiver_stop(struct receiver *r)
{
	ck_assert_int_eq(eventfd_write(r->quit, 1), 0);
	pthread_join(r->thread, NULL);
	close(r->listener);
	close(r->quit);
	for (size_t i = 0; i < RECEIVED_MAX; i++)
		free(r->got[i].body);
}

static inline size_t receiver_count(struct receiver *r)
{
	return __atomic_load_n(&r->n, __ATOMIC_ACQUIRE);
}

#define OTLP_HEAD(status) "HTTP/1.1 " status "\r\nContent-Type: application/x-protobuf\r\n"
#define ANSWER(status, bytes)                                                    \
	{                                                                        \
		.kind = STEP_ANSWER, .text = OTLP_HEAD(status), .body = (bytes), \
		.body_len = sizeof(bytes) - 1                                    \
	}
#define ANSWER_OK ANSWER("200 OK", "")

#endif
