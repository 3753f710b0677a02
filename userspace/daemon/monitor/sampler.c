// SPDX-License-Identifier: Apache-2.0
/*
 * The choice of the source: the configured one, or the first of bpf, kmod and
 * perf that works on this host; the sources that do not are logged once, with
 * the one that was chosen. The side-band is opened before the source, so that
 * no mapping between the scan of /proc and the first sample is missed.
 */
#include "daemon/monitor/sampler.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/monitor/targets.h"
#include "source/cpus.h"
#include "source/size.h"

/* Where memory is limited, the ring is no larger than its share. */
static uint32_t sampler_ring_bytes(const struct config *c, uint64_t memory_limit)
{
	uint32_t cpus;

	if (c->ring_bytes || cpus_possible(&cpus) < 0)
		return c->ring_bytes;
	return size_ring_within(cpus, event_list_rate(&c->events, c->frequency_hz), memory_limit);
}

/* Whether only processes are selected: a source may be allowed to sample these where it may not sample the host. */
static uint32_t sampler_pids_only(const struct config *c, uint32_t pids[CONFIG_TARGETS_ALL])
{
	for (uint32_t i = 0; i < c->nr_targets; i++) {
		if (c->targets[i].kind != TARGET_PID || c->targets[i].exclude)
			return 0;
		pids[i] = c->targets[i].pid;
	}
	return c->nr_targets;
}

static void sampler_source_config(const struct config *c, uint32_t pids[CONFIG_TARGETS_ALL], uint64_t memory_limit,
				  struct source_config *ret)
{
	*ret = (struct source_config){.frequency_hz = c->frequency_hz,
				      .ring_bytes = sampler_ring_bytes(c, memory_limit),
				      .sideband_bytes = c->sideband_bytes,
				      .hardware = c->hardware,
				      .events = c->events,
				      .cpus = c->cpus,
				      .pids = pids,
				      .nr_pids = sampler_pids_only(c, pids)};
}

static bool sampler_is_wanted(const struct config *c, const struct source_ops *ops)
{
	static const char *const names[] = {[SAMPLER_BPF] = "bpf", [SAMPLER_KMOD] = "kmod", [SAMPLER_PERF] = "perf"};

	return c->mode == SAMPLER_AUTO || !strcmp(ops->name, names[c->mode]);
}

static bool sampler_sideband_may_be_missing(int err)
{
	return err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP;
}

/* Without the side-band, a source that can reports process life itself; else /proc is scanned, at a bounded rate. */
static int sampler_open_sideband(struct sampler *s, struct source_config *cfg, char why[SOURCE_WHY])
{
	int err = sideband_open(cfg, &s->sideband, why);

	cfg->life = err && sampler_sideband_may_be_missing(err);
	if (!err || cfg->life)
		return 0;
	log_error("the side-band cannot be opened: %s (%s)", why, strerror(-err));
	return err;
}

static int sampler_try(struct sampler *s, const struct source_ops *ops, const struct source_config *cfg,
		      char why[SOURCE_WHY])
{
	int err = ops->probe(cfg, why);

	return err ? err : source_open(ops, cfg, &s->source, why);
}

/* The reason is kept until another source works, and then logged once, with that source. */
static void sampler_add_reason(char to[SAMPLER_WHY], const char *name, const char *why)
{
	size_t at = strlen(to);

	snprintf(to + at, SAMPLER_WHY - at, "%snot %s: %s", at ? "; " : "", name, why);
}

static int sampler_choose(struct sampler *s, const struct config *c, const struct source_config *cfg)
{
	char why[SOURCE_WHY], reasons[SAMPLER_WHY] = "";

	for (const struct source_ops *const *ops = source_list; *ops; ops++) {
		if (!sampler_is_wanted(c, *ops))
			continue;
		why[0] = '\0';
		if (!sampler_try(s, *ops, cfg, why)) {
			snprintf(s->why, sizeof(s->why), "%s",
				 c->mode != SAMPLER_AUTO ? "configured" :
				 reasons[0]		 ? reasons :
							   "the first that works on this kernel");
			return 0;
		}
		sampler_add_reason(reasons, (*ops)->name, why);
	}
	log_tagged(&(struct log_tag){.event = LOG_EVENT_NO_SAMPLER}, LOG_LEVEL_ERROR, "no sampler can be used here: %s", reasons);
	return -ENOTSUP;
}

static void sampler_warn_without_sideband(const struct sampler *s, const char *why)
{
	if (s->sideband || s->layout.life)
		return;
	log_warn("%s; new processes are found by scanning /proc: those that live shorter than a scan stay unknown",
		 why);
}

static int sampler_map_ring(struct sampler *s)
{
	const struct source_layout *l = &s->layout;

	return l->consumer_fd >= 0 ? ring_map_file(&s->ring, l->consumer_fd, l->ring_fd, l->ring_bytes) :
				     ring_map(&s->ring, l->ring_fd, l->ring_bytes);
}

static int sampler_map_counters(struct sampler *s)
{
	void *map;

	s->counters_bytes = ALIGN_UP((size_t)s->layout.cpus * s->layout.origins.count * s->layout.counters_stride,
				     (size_t)sysconf(_SC_PAGESIZE));
	map = mmap(NULL, s->counters_bytes, PROT_READ, MAP_SHARED, s->layout.counters_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	s->counters = map;
	return 0;
}

static int sampler_map(struct sampler *s)
{
	int err;

	s->source->ops->layout(s->source, &s->layout);
	err = sampler_map_ring(s);
	if (!err)
		err = sampler_map_counters(s);
	if (err)
		log_error("ring and counters cannot be mapped: %s", strerror(-err));
	s->defaults.wake_bytes = (uint32_t)(s->layout.ring_bytes / 4);
	return err;
}

static int sampler_open_none(struct sampler *s, const struct source_config *cfg)
{
	char why[SOURCE_WHY] = "";
	int err = source_open(&source_none, cfg, &s->source, why);

	snprintf(s->why, sizeof(s->why), "configured: profiles of other hosts are shown");
	if (err)
		log_error("cannot begin without a sampler: %s (%s)", why, strerror(-err));
	return err ? err : sampler_map(s);
}

int sampler_open(struct sampler *s, const struct config *c, uint64_t memory_limit)
{
	uint32_t pids[CONFIG_TARGETS_ALL];
	char why[SOURCE_WHY] = "";
	struct source_config cfg;
	int err;

	targets_defaults(c, &s->defaults);
	sampler_source_config(c, pids, memory_limit, &cfg);
	cfg.defaults = s->defaults;
	if (c->mode == SAMPLER_NONE)
		return sampler_open_none(s, &cfg);
	err = sampler_open_sideband(s, &cfg, why);
	if (!err)
		err = sampler_choose(s, c, &cfg);
	if (!err)
		err = sampler_map(s);
	if (!err)
		sampler_warn_without_sideband(s, why);
	return err;
}

void sampler_close(struct sampler *s)
{
	if (s->counters)
		munmap(s->counters, s->counters_bytes);
	if (s->ring.data)
		ring_unmap(&s->ring);
	source_close(s->source);
	sideband_close(s->sideband);
}

void sampler_pump(struct sampler *s, uint64_t now)
{
	s->next_pump_ns = s->source->ops->pump ? s->source->ops->pump(s->source, now) : UINT64_MAX;
}

void sampler_vary(struct sampler *s, uint64_t now)
{
	if (s->sampling && now >= s->next_vary_ns)
		s->next_vary_ns = s->source->ops->vary ? s->source->ops->vary(s->source, now) : UINT64_MAX;
}
