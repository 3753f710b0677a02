// SPDX-License-Identifier: Apache-2.0
#include "export/http_loop.h"

#include <curl/curl.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LOOP_EVENTS 16

struct transport_host {
	CURLM *multi;
	int epoll;
	uint64_t due_ns;
};

/* libcurl names the socket and what it waits for; a socket it closed itself has left the epoll set. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct transport_host *l = ctx;
	struct epoll_event ev = {.data.fd = fd};

	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		ev.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &ev) < 0 && errno == ENOENT)
		return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -1 : 0;
	return 0;
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
	struct transport_host *l = ctx;

	l->due_ns = ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)ms * NSEC_PER_MSEC;
	return 0;
}

int http_loop_new(struct transport_host **ret)
{
	struct transport_host *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->due_ns = UINT64_MAX;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->multi = curl_multi_init();
	if (l->epoll < 0 || !l->multi) {
		http_loop_free(l);
		return -ENOMEM;
	}
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
	*ret = l;
	return 0;
}

struct transport_host *http_loop_free(struct transport_host *l)
{
	if (!l)
		return NULL;
	curl_multi_cleanup(l->multi);
	closep(&l->epoll);
	free(l);
	return NULL;
}

CURLM *http_loop_multi(const struct transport_host *l)
{
	return l->multi;
}

int http_loop_fd(const struct transport_host *l)
{
	return l->epoll;
}

uint64_t http_loop_due_ns(const struct transport_host *l)
{
	return l->due_ns;
}

static void run_sockets(struct transport_host *l)
{
	struct epoll_event ev[LOOP_EVENTS];
	int running, n = epoll_wait(l->epoll, ev, LOOP_EVENTS, 0);

	for (int i = 0; i < n; i++) {
		int bits = 0;

		if (ev[i].events & (EPOLLIN | EPOLLHUP))
			bits |= CURL_CSELECT_IN;
		if (ev[i].events & EPOLLOUT)
			bits |= CURL_CSELECT_OUT;
		if (ev[i].events & EPOLLERR)
			bits |= CURL_CSELECT_ERR;
		curl_multi_socket_action(l->multi, ev[i].data.fd, bits, &running);
	}
}

static void run_timer(struct transport_host *l)
{
	int running;

	if (clock_now_ns() < l->due_ns)
		return;
	l->due_ns = UINT64_MAX;
	curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

void http_loop_run(struct transport_host *l)
{
	CURLMsg *msg;
	int left;

	run_sockets(l);
	run_timer(l);
	while ((msg = curl_multi_info_read(l->multi, &left))) {
		CURL *easy = msg->easy_handle;
		CURLcode result = msg->data.result;

		/* msg is gone once the handle is removed. */
		if (msg->msg == CURLMSG_DONE)
			http_finished(easy, result);
	}
}
