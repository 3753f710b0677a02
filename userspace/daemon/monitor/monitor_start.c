// SPDX-License-Identifier: Apache-2.0
/*
 * The start, up to the first sample, in the order that is required: refusals
 * first, then the side-band, then the sampler (not sampling yet), then the
 * workers' needs, then the drop of rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/safe_path.h"
#include "daemon/config/resource.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/notify.h"
#include "daemon/monitor/worker_program.h"
#include "daemon/sandbox/netroot.h"
#include "daemon/sandbox/sandbox.h"

static int monitor_start_failed(const char *what, int err)
{
	log_error("%s: %s", what, strerror(-err));
	return err;
}

/* An ordinary user profiles their own processes, and cannot run workers as other users. */
static bool monitor_names_processes(const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind != TARGET_PID || c->targets[i].exclude)
			return false;
	return c->nr_targets;
}

static int monitor_check_rights(const struct monitor *m)
{
	const char *missing = sandbox_missing_capability();

	if (!missing || (sandbox_ordinary() && (m->config->mode == SAMPLER_NONE || monitor_names_processes(m->config))))
		return 0;
	log_error("%s is missing: start otprofd as root, or with the capabilities that its documentation lists", missing);
	return -EPERM;
}

/* Per CPU an event for each origin, in perf's sampler a buffer for each too, and the side-band's; the rest is small. */
static void monitor_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * What lies in this directory is later opened, made and mounted by path, so nobody else may make a file there or
 * exchange a directory on the way. Each directory is traversable, since workers pass through before they change user.
 */
static int monitor_make_runtime_dir(const struct monitor *m)
{
	char why[SAFE_PATH_WHY];
	_cleanup_(closep) int fd = safe_path_make(m->config->runtime_dir, SAFE_PATH_OURS, 0755, why);

	if (fd < 0)
		log_error("runtime_dir %s cannot be used: %s", m->config->runtime_dir, why);
	return MIN(fd, 0);
}

static int monitor_lock_is_held(const char *path, int fd)
{
	char pid[16];

	file_read_text_fd(fd, pid, sizeof(pid));
	log_error("another otprofd (pid %.*s) runs here: %s is locked", (int)strspn(pid, "0123456789"), pid, path);
	return -EBUSY;
}

static int monitor_take_lock(struct monitor *m)
{
	char path[1100], pid[16];
	int n;

	snprintf(path, sizeof(path), "%s/lock", m->config->runtime_dir);
	m->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* Closed to others also where an earlier version made it: who can open it can lock it. */
	if (m->lock_fd < 0 || fchmod(m->lock_fd, 0600) < 0)
		return monitor_start_failed(path, -errno);
	if (flock(m->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return monitor_lock_is_held(path, m->lock_fd);
	n = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(m->lock_fd, 0) < 0 || pwrite(m->lock_fd, pid, (size_t)n, 0) != n)
		return monitor_start_failed(path, -errno);
	return 0;
}

static int monitor_open_signals(struct monitor *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return monitor_start_failed("signals", -errno);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signal_fd < 0 ? monitor_start_failed("signals", -errno) : 0;
}

/* Descriptors for the workers. */

static int monitor_open_config_text(struct monitor *m, const char *name, int (*print)(const struct config *c, FILE *to),
				    int *ret_fd)
{
	_cleanup_(freep) char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int fd, err;

	if (!f)
		return -ENOMEM;
	err = print(m->config, f);
	fclose(f);
	if (err)
		return monitor_start_failed("configuration", err);
	fd = ipc_memfd(name, text, len);
	explicit_bzero(text, len);
	if (fd < 0)
		return monitor_start_failed("configuration", fd);
	closep(ret_fd);
	*ret_fd = fd;
	return 0;
}

int monitor_open_config(struct monitor *m)
{
	int err = monitor_open_config_text(m, "config", config_print, &m->config_fd);

	return err ? err : monitor_open_config_text(m, "public-config", config_print_shown, &m->public_config_fd);
}

static int monitor_open_capture(struct monitor *m)
{
	const char *path = m->options->capture_path;
	char why[SAFE_PATH_WHY];

	if (!path)
		return 0;
	m->capture_fd = safe_path_create(path, 0600, why);
	if (m->capture_fd < 0)
		log_error("%s: %s", path, why);
	return MIN(m->capture_fd, 0);
}

static int monitor_prepare_roots(struct monitor *m)
{
	struct sandbox_user user;
	int err = sandbox_user_engine(m->config, true, &user);

	if (!err)
		err = sandbox_user_net(m->config, true, &user);
	if (!err && m->config->hub_listen)
		err = sandbox_user_hub(m->config, true, &user);
	if (!err)
		err = sandbox_user_decoder(m->config, &m->decoders.user);
	if (err)
		return monitor_start_failed("no user for a worker", err);
	err = sandbox_prepare(m->config);
	if (!err)
		err = netroot_build(m->config);
	return err ? monitor_start_failed("the workers' roots cannot be made", err) : 0;
}

static int monitor_prepare_workers(struct monitor *m)
{
	int err = sandbox_ordinary() ? 0 : monitor_prepare_roots(m);

	m->workers.program = worker_program_open();
	if (!err)
		err = MIN(m->workers.program, 0);
	if (!err)
		err = books_open(&m->books);
	if (!err && resource_add_host_id(m->config) < 0)
		log_notice("profiles carry no host.id: there is no machine-id, or [resource] is full");
	if (!err)
		err = monitor_open_config(m);
	if (!err)
		err = hub_link_open(m);
	if (!err)
		err = index_jobs_open(m);
	if (!err)
		err = fetch_jobs_open(m);
	return err ? err : monitor_open_capture(m);
}

static void monitor_announce_viewer(const struct monitor *m)
{
	log_tagged(&(struct log_tag){.event = LOG_EVENT_START}, LOG_LEVEL_NOTICE,
		   "otprofd " OTPROF_VERSION ": no sampler (mode = none), a hub at %s%s", m->config->hub_listen,
		   m->config->hub_receive ? "" : "; it takes no profiles of others: [hub] receive is off");
}

static void monitor_announce(const struct monitor *m)
{
	if (m->config->mode == SAMPLER_NONE) {
		monitor_announce_viewer(m);
		return;
	}
	log_tagged(&(struct log_tag){.event = LOG_EVENT_START}, LOG_LEVEL_NOTICE,
		   "otprofd " OTPROF_VERSION ": sampler %s (%s), %u Hz, ring %zu KiB, interval %llu ms", m->sampler.source->ops->name, m->sampler.why, m->config->frequency_hz, m->sampler.layout.ring_bytes / 1024,
		   (unsigned long long)(m->config->interval_ns / NSEC_PER_MSEC));
	for (uint32_t i = 0; i < m->config->nr_exporters; i++)
		log_tagged(&(struct log_tag){.destination = m->config->exporters[i].name}, LOG_LEVEL_INFO,
			   "exporting to %s: %.*s", m->config->exporters[i].name,
			   config_endpoint_shown(m->config->exporters[i].endpoint), m->config->exporters[i].endpoint);
	if (m->config->exporter_is_default)
		log_warn("no exporter is configured: trying OpenTelemetry's default endpoint, %s",
			 m->config->exporters[0].endpoint);
}

int monitor_start(struct monitor *m)
{
	int err = monitor_check_rights(m);

	if (!err)
		err = monitor_open_signals(m);
	if (err)
		return err;
	monitor_raise_file_limit();
	err = monitor_make_runtime_dir(m);
	if (!err)
		err = monitor_take_lock(m);
	if (!err)
		err = sampler_open(&m->sampler, m->config, guard_memory_limit(m->config));
	if (!err)
		err = monitor_prepare_workers(m);
	if (err)
		return err;
	m->rate.hz = m->rate.wanted_hz = m->config->frequency_hz;
	guard_run_config(m);
	hotplug_open(&m->hotplug);
	if (m->config->mode != SAMPLER_NONE)
		targets_open(m);
	err = status_server_open(m);
	if (!err)
		err = queries_open(m);
	if (err)
		return monitor_start_failed("status socket", err);
	monitor_announce(m);
	return sandbox_monitor(m->config);
}

/* The text that systemctl status shows: the mode of operation, and what the configuration requests but is not done. */
static void monitor_status_text(const struct monitor *m, char to[256])
{
	const struct guard_orders *o = &m->guard.orders;
	int n;

	if (m->config->mode == SAMPLER_NONE) {
		snprintf(to, 256, "Showing profiles of other hosts at %s", m->config->hub_listen);
		return;
	}
	n = snprintf(to, 256, "Sampling at %u Hz by %s, %u destination%s", m->rate.hz, m->sampler.source->ops->name,
			 m->config->nr_exporters, m->config->nr_exporters == 1 ? "" : "s");

	if (m->selector.base)
		n += snprintf(to + n, 256 - (size_t)n, "; a selection narrows what is sampled (otprof select)");
	if (o->stack_shift || o->cache_shift || m->rate.hz != m->config->frequency_hz)
		snprintf(to + n, 256 - (size_t)n, "; less than configured (%u Hz), to stay within [limits]",
			 m->config->frequency_hz);
}

void monitor_notify_ready(const struct monitor *m)
{
	char status[256];

	monitor_status_text(m, status);
	notify_ready(status);
}

void monitor_notify_status(const struct monitor *m)
{
	char status[256];

	monitor_status_text(m, status);
	notify_status(status);
}

int monitor_begin_sampling(struct monitor *m)
{
	int err;

	m->sampler.defaults.running = 1;
	err = guard_set_defaults(m);
	if (!err)
		err = m->sampler.source->ops->start(m->sampler.source);
	if (err)
		return monitor_start_failed("sampling cannot begin", err);
	m->sampler.sampling = true;
	monitor_notify_ready(m);
	log_info("sampling (engine pid %d, net pid %d)", m->workers.engine.pid, m->workers.net.pid);
	return 0;
}

void monitor_begin_showing(struct monitor *m)
{
	m->sampler.sampling = true; /* as far as reloads and the end are concerned */
	monitor_notify_ready(m);
}

void monitor_close(struct monitor *m)
{
	int *const fds[] = {&m->signal_fd, &m->config_fd, &m->public_config_fd, &m->capture_fd,
			    &m->workers.program};

	hub_link_close(m);
	status_server_close(m);
	queries_close(m);
	asks_done(&m->asks);
	fetch_jobs_close(m);
	index_jobs_close(m);
	decoder_jobs_close(m);
	hotplug_close(&m->hotplug);
	targets_close(m, m->config);
	target_names_done(&m->targets.names);
	selector_done(m);
	reload_done(&m->reload);
	peers_close(&m->peers);
	books_close(&m->books);
	sampler_close(&m->sampler);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		closep(fds[i]);
	/* Last: an unlocked file means that no monitor runs. */
	closep(&m->lock_fd);
	config_free(m->config);
	free(m);
}
