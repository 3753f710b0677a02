// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/resource.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/notify.h"
#include "daemon/report/metrics.h"
#include "daemon/sandbox/netroot.h"

#define ANSWERS_NS (20 * NSEC_PER_SEC) /* net spends some seconds of this on removed destinations */
#define NAMES_NS   (3 * NSEC_PER_SEC)  /* longer than an opener may take */

/* The differences of two configurations: names of keys, separated by commas. */
struct found {
	char changed[1024], restart[512];
	bool targets, metrics, hub;
};

struct reload_next {
	struct config *config; /* owned */
	struct found found;
	uint64_t deadline_ns;
};

static void reload_on_error(void *ctx, const char *line)
{
	log_error("%s", line);
}

static void reload_add_name(char *list, size_t size, const char *name)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? ", " : "", name);
}

static void reload_on_change(void *ctx, const char *title, bool restart)
{
	struct found *f = ctx;

	if (restart) {
		reload_add_name(f->restart, sizeof(f->restart), title);
		return;
	}
	reload_add_name(f->changed, sizeof(f->changed), title);
	f->targets |= !strncmp(title, "targets.", 8);
	f->metrics |= !strcmp(title, "metrics.listen");
	f->hub |= !strncmp(title, "hub.", 4);
}

static void reload_log_changes(const struct found *f)
{
	if (f->restart[0])
		log_warn("reload: needs a restart: %s", f->restart);
	if (f->changed[0])
		log_info("reload: changed: %s", f->changed);
}

static bool reload_is_reachable(struct monitor *m, const struct export_config *e)
{
	const char *dir = export_directory(e);
	const struct export_config *before = config_exporter_find(m->config, e->name);

	return !dir || (before && !strcmp(before->endpoint, e->endpoint)) || netroot_sees(m->config, dir);
}

/* Keeps the destination's former endpoint, or removes a new destination. */
static int reload_without_directory(struct monitor *m, struct config *c, uint32_t i, struct found *found)
{
	char name[EXPORT_NAME_MAX + 80];
	const struct export_config *before = config_exporter_find(m->config, c->exporters[i].name);
	char *endpoint;

	snprintf(name, sizeof(name), "exporter %s.endpoint (a directory that net cannot reach yet)",
		 c->exporters[i].name);
	reload_add_name(found->restart, sizeof(found->restart), name);
	if (!before) {
		config_exporter_remove(c, i);
		return 0;
	}
	endpoint = strdup(before->endpoint);
	if (!endpoint)
		return -ENOMEM;
	free(c->exporters[i].endpoint);
	c->exporters[i].endpoint = endpoint;
	return 0;
}

/* net's private root is built at the start: the monitor has no right to mount any more. */
static int reload_check_directories(struct monitor *m, struct config *c, struct found *found)
{
	int err = 0;

	for (uint32_t i = c->nr_exporters; i-- && !err;)
		if (!reload_is_reachable(m, &c->exporters[i]))
			err = reload_without_directory(m, c, i, found);
	if (!err && !c->nr_exporters) {
		log_error("reload: no exporter would be left");
		err = -EINVAL;
	}
	return err;
}

static int reload_load(struct monitor *m, struct config **ret, struct found *found)
{
	const struct monitor_options *o = m->options;
	struct config *c;
	int err = o->config_usual ? config_load_usual(o->config_path, reload_on_error, NULL, &c) :
				    config_load(o->config_path, reload_on_error, NULL, &c);

	if (err)
		return err;
	if (resource_add_host_id(c) < 0)
		log_debug("profiles carry no host.id");
	err = reload_check_directories(m, c, found);
	if (!err)
		err = config_changes(selector_base(m), c, reload_on_change, found);
	if (err)
		config_free(c);
	else
		*ret = c;
	return err;
}

/* The monitor's own part. */

/*
 * No process is selected while rules and plans change, so that none that is excluded before or after is sampled by
 * accident.
 */
static void reload_change_targets(struct monitor *m, const struct config *before)
{
	struct otp_defaults now = m->sampler.defaults;

	m->sampler.defaults.select = m->sampler.defaults.kthreads = OTP_SELECT_NO;
	guard_set_defaults(m);
	targets_close(m, before);
	targets_open(m);
	m->sampler.defaults = now;
}

static void reload_change_defaults(struct monitor *m)
{
	struct otp_defaults before = m->sampler.defaults;

	targets_defaults(m->config, &m->sampler.defaults);
	m->sampler.defaults.running = before.running;
	m->sampler.defaults.wake_bytes = before.wake_bytes;
}

static void reload_change_sampler(struct monitor *m, const struct config *before, const struct found *found)
{
	int err;

	reload_change_defaults(m);
	if (found->targets)
		reload_change_targets(m, before);
	guard_run_config(m);
	if (guard_set_defaults(m))
		log_error("reload: the sampler rejects its new settings");
	err = rate_change(m, m->config->frequency_hz);
	if (err == -EOPNOTSUPP)
		log_warn("reload: needs a restart: sampler.frequency_hz (sampler %s)", m->sampler.source->ops->name);
	else if (err)
		log_error("reload: the rate stays: %s", strerror(-err));
}

/* The workers' part. */

static int reload_open_listener(struct monitor *m, int *ret_fd)
{
	const char *address = m->config->metrics_listen;
	int err = metrics_listen(address, ret_fd);

	if (err)
		log_error("reload: cannot listen on %s: %s; there are no metrics", address, strerror(-err));
	return err;
}

/* Whether the address, which could not be bound before, is free now; otherwise net or another process has it. */
static bool reload_is_free_now(const struct monitor *m, int *ret_fd)
{
	return m->config->metrics_listen && metrics_listen(m->config->metrics_listen, ret_fd) == 0;
}

static int reload_send_net(struct monitor *m, bool metrics)
{
	struct ipc_reload r = {.metrics = metrics ? IPC_METRICS_END : IPC_METRICS_STAY};
	_cleanup_(closep) int listener = -1;
	int fds[2] = {m->config_fd, -1};

	if (m->workers.net.sock < 0)
		return -EPIPE;
	if (metrics ? m->config->metrics_listen && reload_open_listener(m, &listener) == 0 :
	    reload_is_free_now(m, &listener)) {
		r.metrics = IPC_METRICS_NEW;
		fds[1] = listener;
	}
	return ipc_send(m->workers.net.sock, IPC_RELOAD, 0, &r, sizeof(r), fds, r.metrics == IPC_METRICS_NEW ? 2 : 1);
}

static int reload_send_engine(struct monitor *m)
{
	const struct ipc_reload r = {0};

	targets_send_watch(m);
	return worker_send(&m->workers.engine, IPC_RELOAD, 0, &r, sizeof(r), m->public_config_fd);
}

static void reload_ask_engine(struct monitor *m)
{
	struct reload *r = &m->reload;

	r->deadline_ns = clock_now_ns() + ANSWERS_NS;
	r->engine_pid = m->workers.engine.pid;
	r->engine = m->workers.engine.pid && !reload_send_engine(m);
	if (m->workers.engine.pid && !r->engine)
		worker_kill(&m->workers.engine);
}

/* A worker that is dead, or cannot receive this, is sent the new configuration at its start. */
static void reload_send_workers(struct monitor *m, bool metrics)
{
	struct reload *r = &m->reload;

	reload_ask_engine(m);
	r->net_pid = m->workers.net.pid;
	r->net = m->workers.net.pid && !reload_send_net(m, metrics);
	if (m->workers.net.pid && !r->net)
		worker_kill(&m->workers.net);
}

/* The whole. */

static void reload_apply(struct monitor *m, struct config *c, const struct found *found)
{
	struct config *before = m->config, *base = selector_base(m);
	struct found all = *found;

	all.targets |= before != base; /* a selection lies over both */
	selector_rebase(m, c);
	log_init("otprofd", c->log_level);
	netroot_reload(c);
	index_jobs_reload(m);
	fetch_jobs_reload(m);
	if (c->mode != SAMPLER_NONE)
		reload_change_sampler(m, before, &all);
	if (monitor_open_config(m))
		log_error("reload: the workers keep the former configuration");
	else
		reload_send_workers(m, found->metrics);
	if (found->hub || c->hub_tls_cert)
		hub_link_reload(m, before);
	if (before != base) {
		config_deselect(before);
		hub_link_tell(m, NULL); /* the selection may have ended */
	}
	config_free(base);
}

static void reload_end(struct monitor *m)
{
	if (m->reload.quiet) {
		m->reload.quiet = false;
		return;
	}
	m->reload.done++;
	log_tagged(&(struct log_tag){.event = LOG_EVENT_RELOAD}, LOG_LEVEL_NOTICE, 
		   "the configuration was read again and is in force");
	monitor_notify_ready(m);
}

static void reload_refuse(struct monitor *m)
{
	m->reload.refused++;
	log_tagged(&(struct log_tag){.event = LOG_EVENT_RELOAD_FAILED}, LOG_LEVEL_ERROR,
		   "reload: the configuration is wrong, nothing has changed");
	monitor_notify_ready(m);
}

/* The names of containers that are selected by name must be resolved before the new selection is in force. */
static void reload_begin(struct monitor *m)
{
	struct reload_next *next = calloc(1, sizeof(*next));

	m->reload.wanted = false;
	notify_reloading();
	if (!next || reload_load(m, &next->config, &next->found)) {
		free(next);
		reload_refuse(m);
		return;
	}
	reload_log_changes(&next->found);
	if (next->found.targets && targets_want_names(next->config))
		target_names_want_all(&m->targets.names);
	next->deadline_ns = clock_now_ns() + NAMES_NS;
	m->reload.next = next;
}

static void reload_apply_next(struct monitor *m, uint64_t now)
{
	struct reload_next *next = m->reload.next;

	if (!target_names_settled(&m->targets.names) && now < next->deadline_ns)
		return;
	m->reload.next = NULL;
	reload_apply(m, next->config, &next->found);
	free(next);
	if (!m->reload.engine && !m->reload.net)
		reload_end(m);
}

bool reload_is_busy(const struct monitor *m)
{
	const struct reload *r = &m->reload;

	return r->wanted || r->next || r->engine || r->net;
}

void reload_select(struct monitor *m, struct config *c)
{
	const struct found found = {.targets = true};
	struct config *before = m->config;

	m->config = c;
	reload_change_sampler(m, before, &found);
	if (monitor_open_config(m))
		log_error("selection: the engine keeps the former configuration");
	else
		reload_ask_engine(m);
	m->reload.quiet = m->reload.engine;
}

void reload_done(struct reload *r)
{
	if (r->next)
		config_free(r->next->config);
	free(r->next);
	r->next = NULL;
}

void reload_ask(struct monitor *m)
{
	m->reload.wanted = true;
}

void reload_answered(struct monitor *m, const struct worker *w)
{
	struct reload *r = &m->reload;
	bool waited = r->engine || r->net;

	if (w == &m->workers.engine)
		r->engine = false;
	else
		r->net = false;
	if (waited && !r->engine && !r->net)
		reload_end(m);
}

/* The successor of a worker that has ended is sent the new configuration at its start. */
static void reload_follow_deaths(struct monitor *m)
{
	if (m->reload.engine && m->workers.engine.pid != m->reload.engine_pid)
		reload_answered(m, &m->workers.engine);
	if (m->reload.net && m->workers.net.pid != m->reload.net_pid)
		reload_answered(m, &m->workers.net);
}

void reload_run(struct monitor *m, uint64_t now)
{
	struct reload *r = &m->reload;

	reload_follow_deaths(m);
	if ((r->engine || r->net) && now >= r->deadline_ns) {
		log_warn("reload: %s has not answered: it is started again", r->engine ? "engine" : "net");
		worker_kill(r->engine ? &m->workers.engine : &m->workers.net);
		r->deadline_ns = now + ANSWERS_NS;
	}
	if (m->phase != PHASE_RUN || !m->sampler.sampling)
		return;
	if (r->wanted && !r->next && !r->engine && !r->net && !selector_is_busy(m))
		reload_begin(m);
	if (r->next)
		reload_apply_next(m, now);
}
