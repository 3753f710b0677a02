// SPDX-License-Identifier: Apache-2.0
#include "export/http_loop.h"

#include <curl/curl.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LOOP_EVENTS 16

/*
 * libcurl 7.88 waits for a socket to become writable also while HTTP/2's flow
 * control lets it send nothing: the loop would spin until the receiver has
 * read on. So a socket of HTTP/2 that was writable is not asked again for this
 * time; in each turn libcurl sends up to 64 KiB.
 */
#define LOOP_HOLD_NS  NSEC_PER_MSEC
#define LOOP_HELD_MAX 16

enum { LOOP_HTTP1, LOOP_HTTP2, LOOP_SIDES };

struct loop_side {
	struct transport_host *loop;
	CURLM *multi;
	uint64_t due_ns;
	curl_socket_t held[LOOP_HELD_MAX]; /* waited for as readable alone */
	uint32_t nr_held;
	uint64_t release_ns; /* UINT64_MAX: none is held */
};

struct transport_host {
	struct loop_side sides[LOOP_SIDES];
	int epoll;
};

/* What epoll returns of a socket: its descriptor, and whose it is. */
static uint64_t loop_key(const struct loop_side *side, curl_socket_t fd)
{
	return (uint64_t)(side - side->loop->sides) << 32 | (uint32_t)fd;
}

static int loop_watch(struct loop_side *side, curl_socket_t fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = loop_key(side, fd)};

	if (epoll_ctl(side->loop->epoll, EPOLL_CTL_MOD, fd, &ev) < 0 && errno == ENOENT)
		return epoll_ctl(side->loop->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -1 : 0;
	return 0;
}

static void loop_forget(struct loop_side *side, curl_socket_t fd)
{
	for (uint32_t i = 0; i < side->nr_held; i++)
		if (side->held[i] == fd)
			side->held[i--] = side->held[--side->nr_held];
}

static void loop_hold(struct loop_side *side, curl_socket_t fd)
{
	loop_forget(side, fd);
	if (side->nr_held == LOOP_HELD_MAX)
		return;
	side->held[side->nr_held++] = fd;
	side->release_ns = MIN(side->release_ns, clock_now_ns() + LOOP_HOLD_NS);
	loop_watch(side, fd, EPOLLIN);
}

static void loop_release(struct loop_side *side)
{
	if (clock_now_ns() < side->release_ns)
		return;
	while (side->nr_held)
		loop_watch(side, side->held[--side->nr_held], EPOLLIN | EPOLLOUT);
	side->release_ns = UINT64_MAX;
}

/* libcurl names the socket and what it waits for; a socket it closed itself has left the epoll set. */
static int loop_on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct loop_side *side = ctx;
	uint32_t events = 0;

	loop_forget(side, fd);
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(side->loop->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	return loop_watch(side, fd, events);
}

static int loop_on_timer(CURLM *multi, long ms, void *ctx)
{
	struct loop_side *side = ctx;

	side->due_ns = ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)ms * NSEC_PER_MSEC;
	return 0;
}

static int loop_init_side(struct transport_host *l, struct loop_side *side)
{
	*side = (struct loop_side){.loop = l, .multi = curl_multi_init(), .due_ns = UINT64_MAX,
				    .release_ns = UINT64_MAX};
	if (!side->multi)
		return -ENOMEM;
	curl_multi_setopt(side->multi, CURLMOPT_SOCKETFUNCTION, loop_on_socket);
	curl_multi_setopt(side->multi, CURLMOPT_SOCKETDATA, side);
	curl_multi_setopt(side->multi, CURLMOPT_TIMERFUNCTION, loop_on_timer);
	curl_multi_setopt(side->multi, CURLMOPT_TIMERDATA, side);
	return 0;
}

int http_loop_new(struct transport_host **ret)
{
	struct transport_host *l = calloc(1, sizeof(*l));
	int rc = 0;

	if (!l)
		return -ENOMEM;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		rc = -errno;
	for (int i = 0; i < LOOP_SIDES && !rc; i++)
		rc = loop_init_side(l, &l->sides[i]);
	if (rc < 0) {
		http_loop_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

struct transport_host *http_loop_free(struct transport_host *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < LOOP_SIDES; i++)
		curl_multi_cleanup(l->sides[i].multi);
	closep(&l->epoll);
	free(l);
	return NULL;
}

CURLM *http_loop_multi(const struct transport_host *l, bool http2)
{
	return l->sides[http2 ? LOOP_HTTP2 : LOOP_HTTP1].multi;
}

int http_loop_fd(const struct transport_host *l)
{
	return l->epoll;
}

uint64_t http_loop_due_ns(const struct transport_host *l)
{
	return MIN(MIN(l->sides[LOOP_HTTP1].due_ns, l->sides[LOOP_HTTP2].due_ns), l->sides[LOOP_HTTP2].release_ns);
}

static void loop_run_socket(struct transport_host *l, const struct epoll_event *ev)
{
	struct loop_side *side = &l->sides[ev->data.u64 >> 32];
	curl_socket_t fd = (curl_socket_t)(uint32_t)ev->data.u64;
	int running, bits = 0;

	if (ev->events & (EPOLLIN | EPOLLHUP))
		bits |= CURL_CSELECT_IN;
	if (ev->events & EPOLLOUT)
		bits |= CURL_CSELECT_OUT;
	if (ev->events & EPOLLERR)
		bits |= CURL_CSELECT_ERR;
	/* Before: libcurl may want something else of the socket after it, or close it. */
	if (side == &l->sides[LOOP_HTTP2] && bits == CURL_CSELECT_OUT)
		loop_hold(side, fd);
	curl_multi_socket_action(side->multi, fd, bits, &running);
}

static void loop_run_timer(struct loop_side *side)
{
	int running;

	if (clock_now_ns() < side->due_ns)
		return;
	side->due_ns = UINT64_MAX;
	curl_multi_socket_action(side->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static void loop_run_finished(const struct loop_side *side)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(side->multi, &left))) {
		CURL *easy = msg->easy_handle;
		CURLcode result = msg->data.result;

		/* msg is gone once the handle is removed. */
		if (msg->msg == CURLMSG_DONE)
			http_finished(easy, result);
	}
}

void http_loop_run(struct transport_host *l)
{
	struct epoll_event ev[LOOP_EVENTS];
	int n;

	loop_release(&l->sides[LOOP_HTTP2]);
	n = epoll_wait(l->epoll, ev, LOOP_EVENTS, 0);
	for (int i = 0; i < n; i++)
		loop_run_socket(l, &ev[i]);
	for (int i = 0; i < LOOP_SIDES; i++) {
		loop_run_timer(&l->sides[i]);
		loop_run_finished(&l->sides[i]);
	}
}
