// SPDX-License-Identifier: Apache-2.0
/*
 * hub: its start by the monitor's messages, its sandbox, and the loop that takes
 * requests of profiles from the engine and serves browsers. On a reload the server
 * is made anew, the store stays.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/handover.h"
#include "daemon/ipc.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "hub/server.h"

#define BEAT_NS	      (2 * NSEC_PER_SEC)
#define TURN_REQUESTS 8 /* read before browsers are served again */
#define DECODED	      16 /* times its bytes that a request may take in memory */
#define HUB_NAMES     32
#define HUB_NAME      256
#define PEM_MAX	      (256u << 10)

enum { POLL_MONITOR, POLL_ENGINE, POLL_SERVER, POLL_NR };

struct hub {
	int monitor, engine; /* sockets; engine -1: none now */
	int listener;	     /* until the server takes it */
	char *cert, *key;    /* PEM; owned; NULL: plain HTTP */
	struct config *config;
	char token[GUARD_TOKEN_MAX + 1]; /* "": none */
	char names[HUB_NAMES][HUB_NAME];
	const char *hosts[HUB_NAMES];
	struct ipc_selected selected; /* as the monitor said last */
	uint64_t started_ns; /* Unix */
	struct store *store;
	struct server *server;
	struct otlp_limits limits;
	struct ipc_message from_monitor, from_engine;
	uint64_t beats, next_beat_ns, next_sweep_ns;
	bool started, stopping;
};

/* --- profiles --- */

static void hub_take_profiles(struct hub *h, const struct ipc_message *m)
{
	_cleanup_(freep) char *request = NULL;
	size_t len;
	int r;

	if (!ipc_fits(m, sizeof(uint64_t), 1) || m->head.type != IPC_PROFILES)
		return;
	r = ipc_memfd_read(m->fds[0], h->limits.request_bytes, &request, &len);
	if (!r)
		r = store_take_near(h->store, request, len, &h->limits, clock_read_ns(CLOCK_REALTIME));
	if (r < 0)
		log_debug("a request of the engine cannot be shown: %s", strerror(-r));
}

/* The engine's profiles are shown, not delivered: one that ends loses nothing here. */
static void hub_read_engine(struct hub *h)
{
	int r = 1;

	for (int i = 0; i < TURN_REQUESTS; i++) {
		r = ipc_receive(h->engine, &h->from_engine);
		if (r != 1)
			break;
		hub_take_profiles(h, &h->from_engine);
		ipc_close_fds(&h->from_engine);
	}
	/* Requests are decoded in blocks of their own size: without this, the largest one would stay in the heap. */
	malloc_trim(0);
	server_taken(h->server);
	if (r == 1 || r == -EAGAIN)
		return;
	closep(&h->engine);
	h->engine = -1;
}

/* --- the monitor --- */

static int hub_take_token(struct hub *h, const struct ipc_message *m)
{
	if (m->head.len > GUARD_TOKEN_MAX)
		return -EBADMSG;
	memcpy(h->token, m->data, m->head.len);
	h->token[m->head.len] = '\0';
	return 0;
}

static int hub_take_peer(struct hub *h, struct ipc_message *m)
{
	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	closep(&h->engine);
	h->engine = ipc_take_fd(m, 0);
	return 0;
}

static void hub_forget_tls(struct hub *h)
{
	if (h->key)
		explicit_bzero(h->key, strlen(h->key));
	free(h->cert);
	free(h->key);
	h->cert = h->key = NULL;
}

static int hub_take_listener(struct hub *h, struct ipc_message *m)
{
	const struct ipc_listen *l = (const void *)m->data;
	size_t len;
	int r = 0;

	if (m->head.len != sizeof(*l) || !ipc_fits(m, sizeof(*l), l->tls ? 3 : 1))
		return -EBADMSG;
	hub_forget_tls(h);
	if (l->tls)
		r = ipc_memfd_read(m->fds[1], PEM_MAX, &h->cert, &len);
	if (!r && l->tls)
		r = ipc_memfd_read(m->fds[2], PEM_MAX, &h->key, &len);
	closep(&h->listener);
	h->listener = ipc_take_fd(m, 0);
	return r;
}

static int hub_take_selected(struct hub *h, const struct ipc_message *m)
{
	if (!ipc_fits(m, sizeof(h->selected), 0))
		return -EBADMSG;
	memcpy(&h->selected, m->data, sizeof(h->selected));
	if (h->store)
		h->store->seq++; /* who shows it asks again */
	return 0;
}

static int hub_reload(struct hub *h, struct ipc_message *m);

static int hub_handle_message(struct hub *h, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_CONFIG:
		return h->started ? -EBADMSG : handover_begin(m, "hub", &h->config);
	case IPC_TOKEN:
		return hub_take_token(h, m);
	case IPC_LISTEN:
		return hub_take_listener(h, m);
	case IPC_SELECTED:
		return hub_take_selected(h, m);
	case IPC_PEER:
		return hub_take_peer(h, m);
	case IPC_RELOAD:
		return h->server ? hub_reload(h, m) : -EBADMSG;
	case IPC_START:
		h->started = true;
		return 0;
	case IPC_STOP:
		h->stopping = true;
		return 0;
	default:
		return 0; /* of a newer monitor */
	}
}

static int hub_read_monitor(struct hub *h)
{
	int r;

	while ((r = ipc_receive(h->monitor, &h->from_monitor)) == 1) {
		r = hub_handle_message(h, &h->from_monitor);
		ipc_close_fds(&h->from_monitor);
		if (r < 0)
			return r;
	}
	return r == -EAGAIN ? 0 : r == 0 ? -EPIPE : r;
}

/* --- start --- */

static int hub_receive_start(struct hub *h)
{
	struct pollfd p = {.fd = h->monitor, .events = POLLIN};
	int r = 0;

	while (!r && !h->started) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		r = hub_read_monitor(h);
	}
	return r < 0 ? r : h->config && h->config->hub_listen && h->listener >= 0 ? 0 : -EBADMSG;
}

/* The names by which requests may address this hub, besides those of loopback. */
static size_t hub_split_names(struct hub *h)
{
	const char *at = h->config->hub_names ? h->config->hub_names : "";
	size_t n = 0, len;

	for (; n < HUB_NAMES && *(at += strspn(at, " ")); at += len) {
		len = strcspn(at, " ");
		if (len >= HUB_NAME)
			continue;
		snprintf(h->names[n], HUB_NAME, "%.*s", (int)len, at);
		h->hosts[n] = h->names[n];
		n++;
	}
	return n;
}

/* Checked here in form, so that the answer can say what is wrong; the monitor decides. */
static int hub_select(void *ctx, const struct selection *s, char why[SELECTION_WHY])
{
	_cleanup_(buf_done) struct buf line = {0};
	struct hub *h = ctx;
	struct config *tried;
	int r = 0;

	if (s) {
		r = config_select(h->config, s, why, &tried);
		if (!r)
			config_deselect(tried);
		selection_print(s, &line);
	}
	if (!r)
		r = ipc_send(h->monitor, IPC_SELECT, 0, line.data ? line.data : (const void *)"", line.len, NULL, 0);
	return r;
}

static int hub_serve(struct hub *h)
{
	const struct config *c = h->config;
	bool near = config_hub_address(c->hub_listen) != ADDRESS_NETWORK;
	struct server_config config = {
		.guard = {.token = h->token[0] ? h->token : NULL, .hosts = h->hosts, .nr_hosts = hub_split_names(h),
			  .addresses = !near},
		.api = {.store = h->store, .version = OTPROF_VERSION, .started_ns = h->started_ns,
			.interval_ns = c->interval_ns, .token = h->token[0], .sampler = c->mode != SAMPLER_NONE,
			.receiver = c->hub_receive, .shown = &h->selected.shown, .refused = h->selected.why,
			.may_select = &h->selected.may, .select = hub_select, .select_ctx = h},
		.receive = c->hub_receive,
		.cert = h->cert, .key = h->key,
		.limits = {.request_bytes = c->hub_receive_bytes, .memory_bytes = DECODED * c->hub_receive_bytes,
			   .depth = h->limits.depth},
	};

	return server_new(steal_fd(&h->listener), &config, &h->server);
}

static void hub_limit_requests(struct hub *h)
{
	size_t bytes = MAX(h->config->request_max_bytes, h->config->hub_receive_bytes);

	h->limits = (struct otlp_limits){.request_bytes = bytes, .memory_bytes = DECODED * bytes, .depth = 8192};
}

/* Connections end, and browsers connect again; slots stay. LISTEN and TOKEN have arrived before. */
static int hub_reload(struct hub *h, struct ipc_message *m)
{
	struct server *before = h->server;
	struct config *c;
	int r = handover_config(m, &c);

	if (r < 0)
		return r;
	config_free(h->config);
	h->config = c;
	if (!c->hub_listen || h->listener < 0)
		return -EBADMSG;
	hub_limit_requests(h);
	store_set_limits(h->store, &c->hub, clock_read_ns(CLOCK_REALTIME));
	r = hub_serve(h);
	if (r < 0) {
		log_error("reload: %s: the hub stays as it was",
			  h->cert ? "certificate and key cannot be used" : strerror(-r));
		h->server = before;
	} else {
		server_free(before);
	}
	return 0;
}

static int hub_begin(struct hub *h)
{
	int r = sandbox_hub(h->config);

	if (r < 0)
		return r;
	h->started_ns = clock_read_ns(CLOCK_REALTIME);
	hub_limit_requests(h);
	r = store_new(&h->config->hub, &h->store);
	if (!r)
		r = hub_serve(h);
	if (r == -EIO && h->cert)
		log_error("certificate and key cannot be used: the key is another's, or a file is malformed");
	return r < 0 ? r : ipc_send(h->monitor, IPC_READY, 0, NULL, 0, NULL, 0);
}

/* --- the loop --- */

static void hub_run_clock(struct hub *h)
{
	uint64_t now = clock_now_ns();

	if (now >= h->next_beat_ns) {
		h->next_beat_ns = now + BEAT_NS;
		h->beats++;
		ipc_send(h->monitor, IPC_BEAT, 0, &h->beats, sizeof(h->beats), NULL, 0);
	}
	if (now >= h->next_sweep_ns) {
		h->next_sweep_ns = now + h->store->limits.cleanup_interval_seconds * NSEC_PER_SEC;
		store_sweep(h->store, clock_read_ns(CLOCK_REALTIME));
	}
}

static int hub_timeout_ms(const struct hub *h)
{
	uint64_t now = clock_now_ns(), next = MIN(h->next_beat_ns, h->next_sweep_ns);
	int ms = next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC + 1), server = server_timeout_ms(h->server);

	return server >= 0 && server < ms ? server : ms;
}

static int hub_loop(struct hub *h)
{
	struct pollfd p[POLL_NR] = {[POLL_MONITOR] = {.fd = h->monitor, .events = POLLIN}};
	int r = 0;

	while (!r && !h->stopping) {
		p[POLL_SERVER] = (struct pollfd){.fd = server_fd(h->server), .events = POLLIN};
		p[POLL_ENGINE] = (struct pollfd){.fd = h->engine, .events = POLLIN};
		if (poll(p, POLL_NR, hub_timeout_ms(h)) < 0 && errno != EINTR)
			return -errno;
		if (h->engine >= 0 && p[POLL_ENGINE].revents)
			hub_read_engine(h);
		server_run(h->server);
		if (p[POLL_MONITOR].revents)
			r = hub_read_monitor(h);
		hub_run_clock(h);
	}
	return r;
}

static void hub_done(struct hub *h)
{
	server_free(h->server);
	store_free(h->store);
	closep(&h->listener);
	closep(&h->engine);
	hub_forget_tls(h);
	config_free(h->config);
}

int hub_main(int sock)
{
	_cleanup_(hub_done) struct hub h = {.monitor = sock, .engine = -1, .listener = -1};
	int r = sandbox_begin();

	log_init("hub", LOG_LEVEL_INFO);
	if (!r)
		r = hub_receive_start(&h);
	if (!r)
		r = hub_begin(&h);
	if (!r)
		r = hub_loop(&h);
	if (r < 0 && r != -EPIPE)
		log_error("stopped: %s", strerror(-r));
	return r < 0;
}
