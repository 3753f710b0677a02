// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/hub_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/ipc.h"
#include "daemon/monitor/monitor.h"
#include "daemon/sandbox/sandbox.h"

#define RETRY_MIN_NS (2 * NSEC_PER_SEC)
#define RETRY_MAX_NS (60 * NSEC_PER_SEC)
#define ASK_PAUSE_NS NSEC_PER_SEC /* between two selections of the hub */
#define PEM_END	     "-----END CERTIFICATE-----"

void hub_link_init(struct hub_link *l)
{
	*l = (struct hub_link){.listener = -1, .cert = -1, .key = -1};
}

/* --- files for clients on this host --- */

static void hub_link_path(const struct monitor *m, const char *name, char to[1100])
{
	snprintf(to, 1100, "%s/%s", m->config->runtime_dir, name);
}

static int hub_link_make_token(char to[HUB_TOKEN + 1])
{
	uint8_t bytes[HUB_TOKEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* "ADDRESS TOKEN" in a line: what a client needs to find the hub. */
static int hub_link_write(const struct monitor *m)
{
	char path[1100], near[160], text[320];
	int n;

	hub_listen_near(m->config->hub_listen, near, sizeof(near));
	n = snprintf(text, sizeof(text), "%s%s %s\n", m->config->hub_tls_cert ? "https://" : "", near, m->hub.token);
	hub_link_path(m, HUB_TOKEN_FILE, path);
	return file_replace(AT_FDCWD, path, 0640, text, (size_t)n, NULL, NULL);
}

/* The first certificate alone: an authority's, which follows it, has signed others' as well. */
static int hub_link_write_cert(const struct monitor *m)
{
	_cleanup_(buf_done) struct buf text = {.max = HUB_TLS_FILE_MAX};
	char path[1100], *end;
	int err;

	hub_link_path(m, HUB_CERT_FILE, path);
	if (m->hub.cert < 0) {
		unlink(path);
		return 0;
	}
	err = file_copy(m->hub.cert, HUB_TLS_FILE_MAX, &text);
	end = err ? NULL : memmem(text.data, text.len, PEM_END, strlen(PEM_END));
	if (!end)
		return err ? err : -EBADMSG;
	end += strlen(PEM_END);
	return file_replace(AT_FDCWD, path, 0640, text.data, (size_t)(end - (char *)text.data), NULL, NULL);
}

static int hub_link_publish(struct monitor *m)
{
	int err = 0;

	if (config_hub_has_token(m->config) && !m->hub.token[0])
		err = hub_link_make_token(m->hub.token);
	else if (!config_hub_has_token(m->config))
		m->hub.token[0] = '\0';
	if (!err)
		err = hub_link_write(m);
	if (!err)
		err = hub_link_write_cert(m);
	if (err)
		log_error("the hub's token cannot be written below %s: %s", m->config->runtime_dir, strerror(-err));
	return err;
}

/* --- listening --- */

static void hub_link_drop(int *fd)
{
	closep(fd);
	*fd = -1;
}

/* The hub is what may be missing: an address in use costs nothing but the hub. */
static void hub_link_listen(struct monitor *m, uint64_t now)
{
	struct hub_link *l = &m->hub;
	bool before = l->why[0];

	if (!hub_listen_open(m->config->hub_listen, &l->listener, l->why)) {
		if (before)
			log_notice("the hub can listen on %s now", m->config->hub_listen);
		l->why[0] = '\0';
		l->pause_ns = 0;
		return;
	}
	l->pause_ns = MIN(MAX(2 * l->pause_ns, RETRY_MIN_NS), RETRY_MAX_NS);
	l->retry_ns = now + l->pause_ns;
	if (!before && m->config->mode == SAMPLER_NONE && !m->sampler.sampling)
		log_error("%s", l->why);
	else if (!before)
		log_error("%s; there is no hub until that succeeds: it is tried again every minute", l->why);
}

static int hub_link_read_tls(struct monitor *m, int *ret_cert, int *ret_key)
{
	char why[HUB_LISTEN_WHY];
	int err;

	if (!m->config->hub_tls_cert)
		return 0;
	err = hub_listen_read_pem(m->config->hub_tls_cert, "hub-certificate", ret_cert, why);
	if (!err)
		err = hub_listen_read_pem(m->config->hub_tls_key, "hub-key", ret_key, why);
	if (err)
		log_error("the hub's TLS: %s", why);
	return err;
}

int hub_link_open(struct monitor *m)
{
	int err;

	if (!m->config->hub_listen)
		return 0;
	err = hub_link_read_tls(m, &m->hub.cert, &m->hub.key);
	if (!err)
		err = hub_link_publish(m);
	if (!err)
		hub_link_listen(m, clock_now_ns());
	/* Without a sampler the hub is all that there is. */
	return !err && m->hub.listener < 0 && m->config->mode == SAMPLER_NONE ? -EADDRINUSE : err;
}

static void hub_link_end_listening(struct monitor *m, const struct config *c)
{
	char path[1100];

	if (!c->hub_listen || m->lock_fd < 0)
		return;
	if (m->hub.listener >= 0)
		hub_listen_remove(c->hub_listen);
	hub_link_drop(&m->hub.listener);
	m->hub.why[0] = '\0';
	hub_link_path(m, HUB_TOKEN_FILE, path);
	unlink(path);
	hub_link_path(m, HUB_CERT_FILE, path);
	unlink(path);
}

void hub_link_close(struct monitor *m)
{
	hub_link_end_listening(m, m->config);
	hub_link_drop(&m->hub.cert);
	hub_link_drop(&m->hub.key);
}

void hub_link_run(struct monitor *m, uint64_t now)
{
	if (m->config->hub_listen && m->hub.listener < 0 && m->phase == PHASE_RUN && now >= m->hub.retry_ns)
		hub_link_listen(m, now);
}

bool hub_link_may_start(const struct monitor *m)
{
	return m->phase == PHASE_RUN && m->config->hub_listen && m->hub.listener >= 0;
}

/* --- the process --- */

static int hub_link_send_listener(struct monitor *m)
{
	const struct ipc_listen listen = {.tls = m->hub.cert >= 0};
	const int fds[3] = {m->hub.listener, m->hub.cert, m->hub.key};

	return ipc_send(m->workers.hub.sock, IPC_LISTEN, 0, &listen, sizeof(listen), fds, listen.tls ? 3 : 1);
}

static int hub_link_send_all(struct monitor *m)
{
	int err = worker_send_patiently(&m->workers.hub, IPC_TOKEN, m->hub.token, strlen(m->hub.token), -1);

	return err ? err : hub_link_send_listener(m);
}

int hub_link_hand_over(struct monitor *m)
{
	int err = worker_send_patiently(&m->workers.hub, IPC_CONFIG, NULL, 0, m->public_config_fd);

	if (!err)
		err = hub_link_send_all(m);
	if (err)
		return err;
	m->hub.data_bytes = sandbox_hub_memory(m->config);
	hub_link_make(m);
	hub_link_tell(m, NULL);
	return 0;
}

void hub_link_make(struct monitor *m)
{
	struct worker *hub = &m->workers.hub, *engine = &m->workers.engine;
	int pair[2], err;

	if (hub->sock < 0 || engine->sock < 0)
		return;
	err = ipc_pair(pair);
	if (!err) {
		err = worker_send(hub, IPC_PEER, 0, NULL, 0, pair[0]);
		if (!err)
			err = worker_send(engine, IPC_HUB, 0, NULL, 0, pair[1]);
		close(pair[0]);
		close(pair[1]);
	}
	/* The hub is what may be missing. */
	if (err) {
		log_warn("the hub cannot be connected to the engine: %s", strerror(-err));
		worker_kill(hub);
	}
}

/* --- reload --- */

static bool hub_link_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Certificates are read again on each reload: they are renewed under the same name. */
static void hub_link_renew_tls(struct monitor *m)
{
	int cert = -1, key = -1;

	if (hub_link_read_tls(m, &cert, &key)) {
		closep(&cert);
		closep(&key);
		log_error("reload: the hub keeps its certificate");
		return;
	}
	hub_link_drop(&m->hub.cert);
	hub_link_drop(&m->hub.key);
	m->hub.cert = cert;
	m->hub.key = key;
}

static void hub_link_tell_reload(struct monitor *m)
{
	const struct ipc_reload r = {0};
	struct worker *hub = &m->workers.hub;

	if (!hub->pid)
		return;
	/* What its process may allocate was bounded at its start. */
	if (sandbox_hub_memory(m->config) > m->hub.data_bytes)
		log_notice("reload: the hub is started again, because it may take more memory now");
	else if (!hub_link_send_all(m) && !worker_send(hub, IPC_RELOAD, 0, &r, sizeof(r), m->public_config_fd))
		return;
	worker_kill(hub);
}

void hub_link_reload(struct monitor *m, const struct config *before)
{
	const struct config *c = m->config;
	bool same = hub_link_same(before->hub_listen, c->hub_listen);

	if (!same)
		hub_link_end_listening(m, before);
	if (!c->hub_listen) {
		worker_kill(&m->workers.hub);
		return;
	}
	hub_link_renew_tls(m);
	hub_link_publish(m);
	if (!same)
		hub_link_listen(m, clock_now_ns());
	if (m->hub.listener < 0)
		worker_kill(&m->workers.hub);
	else
		hub_link_tell_reload(m);
	hub_link_tell(m, NULL);
}

/* --- messages --- */

void hub_link_tell(struct monitor *m, const char *why)
{
	struct ipc_selected s = {.shown = *selector_shown(m),
				 .may = m->config->hub_selection && m->config->mode != SAMPLER_NONE};

	if (m->workers.hub.sock < 0)
		return;
	snprintf(s.why, sizeof(s.why), "%s", why ? why : "");
	worker_send(&m->workers.hub, IPC_SELECTED, 0, &s, sizeof(s), -1);
}

/* A hub that was taken over asks as its clients do: no more than they may, and not more often. */
static void hub_link_select(struct monitor *m, const struct ipc_message *msg)
{
	char why[SELECTION_WHY] = "";
	struct selection s;
	uint64_t now = clock_now_ns();
	bool early = m->hub.asked_ns && now - m->hub.asked_ns < ASK_PAUSE_NS;

	if (!early)
		m->hub.asked_ns = now;
	if (!m->config->hub_selection)
		snprintf(why, sizeof(why), "[hub] selection is off");
	else if (early)
		snprintf(why, sizeof(why), "selections follow each other too fast: try again in a second");
	else if (!msg->head.len)
		selector_end(m, "the hub");
	else if (!selection_parse((const char *)msg->data, msg->head.len, &s, why))
		selector_set(m, &s, "the hub", why);
	hub_link_tell(m, why);
}

void hub_link_from(struct monitor *m, const struct ipc_message *msg)
{
	if (msg->head.type == IPC_READY && m->config->mode == SAMPLER_NONE && !m->sampler.sampling)
		monitor_begin_showing(m);
	if (msg->head.type == IPC_READY)
		log_info("the hub is at %s%s%s (pid %d)", m->hub.cert >= 0 ? "https://" : "http://", m->config->hub_listen,
			 m->hub.token[0] ? ", with the token that 'otprof ui' has" : "", m->workers.hub.pid);
	else if (msg->head.type == IPC_SELECT)
		hub_link_select(m, msg);
}
