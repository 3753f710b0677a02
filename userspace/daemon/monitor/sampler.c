// SPDX-License-Identifier: Apache-2.0
/*
 * Which source samples here. The configured one, or the first of bpf, kmod and
 * perf that this host lets run; what was not possible is said once, with what
 * was taken. The side-band comes before the source: what maps after the scan
 * of /proc, and before the first sample, must not be missed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "source/cpus.h"
#include "source/size.h"

/* Where memory is limited, the ring is no larger than its share. */
static uint32_t ring_bytes(const struct monitor *m)
{
	uint32_t cpus;

	if (m->config->ring_bytes || cpus_possible(&cpus) < 0)
		return m->config->ring_bytes;
	return size_ring_within(cpus, m->config->frequency_hz, guard_memory_limit(m));
}

/* Selected processes, where nothing else is: what a source may have that may not have the host. */
static uint32_t pids_only(const struct config *c, uint32_t pids[CONFIG_TARGETS_MAX])
{
	for (uint32_t i = 0; i < c->nr_targets; i++) {
		if (c->targets[i].kind != TARGET_PID || c->targets[i].exclude)
			return 0;
		pids[i] = c->targets[i].pid;
	}
	return c->nr_targets;
}

static void source_config(const struct monitor *m, uint32_t pids[CONFIG_TARGETS_MAX], struct source_config *ret)
{
	const struct config *c = m->config;

	*ret = (struct source_config){.frequency_hz = c->frequency_hz,
				      .ring_bytes = ring_bytes(m),
				      .sideband_bytes = c->sideband_bytes,
				      .hardware = c->hardware,
				      .events = c->events,
				      .cpus = c->cpus,
				      .pids = pids,
				      .nr_pids = pids_only(c, pids),
				      .defaults = m->defaults};
}

static bool wanted(const struct config *c, const struct source_ops *ops)
{
	static const char *const names[] = {[SAMPLER_BPF] = "bpf", [SAMPLER_KMOD] = "kmod", [SAMPLER_PERF] = "perf"};

	return c->mode == SAMPLER_AUTO || !strcmp(ops->name, names[c->mode]);
}

static bool may_be_missing(int err)
{
	return err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP;
}

/* Without it, a source that can reports process life itself; else /proc is looked through, at a bounded rate. */
static int open_sideband(struct monitor *m, struct source_config *cfg, char why[SOURCE_WHY])
{
	int err = sideband_open(cfg, &m->sideband, why);

	cfg->life = err && may_be_missing(err);
	if (!err || cfg->life)
		return 0;
	log_error("the side-band cannot be opened: %s (%s)", why, strerror(-err));
	return err;
}

static int try_source(struct monitor *m, const struct source_ops *ops, const struct source_config *cfg,
		      char why[SOURCE_WHY])
{
	int err = ops->probe(cfg, why);

	return err ? err : source_open(ops, cfg, &m->source, why);
}

/* Kept until it is known whether another one works: then it is said once, with it. */
static void add_reason(char to[sizeof(((struct monitor *)0)->source_why)], const char *name, const char *why)
{
	size_t at = strlen(to);

	snprintf(to + at, sizeof(((struct monitor *)0)->source_why) - at, "%snot %s: %s", at ? "; " : "", name, why);
}

static int choose(struct monitor *m, const struct source_config *cfg)
{
	char why[SOURCE_WHY], reasons[sizeof(m->source_why)] = "";

	for (const struct source_ops *const *s = source_list; *s; s++) {
		if (!wanted(m->config, *s))
			continue;
		why[0] = '\0';
		if (!try_source(m, *s, cfg, why)) {
			snprintf(m->source_why, sizeof(m->source_why), "%s",
				 m->config->mode != SAMPLER_AUTO ? "configured" :
				 reasons[0]			 ? reasons :
								   "the first that works on this kernel");
			return 0;
		}
		add_reason(reasons, (*s)->name, why);
	}
	log_tagged(&(struct log_tag){.event = LOG_EVENT_NO_SAMPLER}, LOG_LEVEL_ERROR, "no sampler can be used here: %s", reasons);
	return -ENOTSUP;
}

static void say_without_sideband(const struct monitor *m, const char *why)
{
	if (m->sideband || m->layout.life)
		return;
	log_warn("%s; new processes are found by looking through /proc: those that live shorter than that takes stay unknown",
		 why);
}

static int map_ring(struct monitor *m)
{
	const struct source_layout *l = &m->layout;

	return l->consumer_fd >= 0 ? ring_map_files(&m->ring, l->consumer_fd, l->ring_fd, l->ring_bytes) :
				     ring_map(&m->ring, l->ring_fd, l->ring_bytes);
}

static int map_counters(struct monitor *m)
{
	void *map;

	m->counters_bytes = ALIGN_UP((size_t)m->layout.cpus * m->layout.origins.count * m->layout.counters_stride,
				     (size_t)sysconf(_SC_PAGESIZE));
	map = mmap(NULL, m->counters_bytes, PROT_READ, MAP_SHARED, m->layout.counters_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	m->counters = map;
	return 0;
}

static int map_source(struct monitor *m)
{
	int err;

	m->source->ops->layout(m->source, &m->layout);
	m->rate.hz = m->rate.wanted_hz = m->config->frequency_hz;
	guard_run_config(m);
	err = map_ring(m);
	if (!err)
		err = map_counters(m);
	if (err)
		log_error("ring and counters cannot be mapped: %s", strerror(-err));
	m->defaults.wake_bytes = (uint32_t)(m->layout.ring_bytes / 4);
	return err;
}

int sampler_open(struct monitor *m)
{
	uint32_t pids[CONFIG_TARGETS_MAX];
	char why[SOURCE_WHY] = "";
	struct source_config cfg;
	int err;

	targets_defaults(m->config, &m->defaults);
	source_config(m, pids, &cfg);
	err = open_sideband(m, &cfg, why);
	if (!err)
		err = choose(m, &cfg);
	if (!err)
		err = map_source(m);
	if (!err)
		say_without_sideband(m, why);
	return err;
}
