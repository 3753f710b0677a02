// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"
#include "source/copy_speed.h"

#define MEMORY_EVERY_NS (10 * NSEC_PER_SEC)
#define MEMORY_TIGHT_NS (2 * NSEC_PER_SEC) /* near a limit */

static uint64_t number_after(FILE *f, const char *name)
{
	char line[256];
	uint64_t n;

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && sscanf(line + strlen(name), " %" SCNu64, &n) == 1)
			return n;
	return 0;
}

static uint64_t process_figure(pid_t pid, const char *file, const char *name)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	return f ? number_after(f, name) * 1024 : 0;
}

/*
 * Proportional shares: the ring and the buffers that several processes map count once. A monitor without a sampler may
 * not read them, and shares neither with its hub.
 */
static uint64_t process_bytes(pid_t pid)
{
	uint64_t share = pid ? process_figure(pid, "smaps_rollup", "Pss:") : 0;

	return share || !pid ? share : process_figure(pid, "status", "VmRSS:");
}

/* The kernel's memory for a descriptor of ours, which it reports for BPF maps and programs. */
static uint64_t descriptor_bytes(const char *name)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[300];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", name);
	f = fopen(path, "re");
	return f ? number_after(f, "memlock:") : 0;
}

/* The ring is mapped, so the shares of the processes count it already. */
static uint64_t cost_descriptors_bytes(const struct sampler *s)
{
	_cleanup_(closedirp) DIR *dir = opendir("/proc/self/fdinfo");
	const struct dirent *entry;
	uint64_t sum = 0;

	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) != s->layout.ring_fd)
			sum += descriptor_bytes(entry->d_name);
	return sum;
}

/* Newer kernels map these without counting them for any process. */
static uint64_t cost_sideband_bytes(const struct sampler *s)
{
	uint64_t sum = 0;
	size_t bytes;

	for (uint32_t i = 0; i < sideband_buffers(s->sideband); i++)
		if (sideband_fd(s->sideband, i, &bytes) >= 0)
			sum += bytes + (uint64_t)sysconf(_SC_PAGESIZE);
	return sum;
}

static uint64_t cost_all_memory(const struct workers *w, const struct sampler *s)
{
	uint64_t sum = process_bytes(getpid()) + process_bytes(w->engine.pid) + process_bytes(w->net.pid) +
		       process_bytes(w->hub.pid) + process_bytes(w->indexer.pid) + process_bytes(w->fetcher.pid);

	for (int i = 0; i < OPENERS; i++)
		sum += process_bytes(w->opener[i].pid);
	for (int i = 0; i < DECODERS; i++)
		sum += process_bytes(w->decoder[i].pid);
	return sum + cost_descriptors_bytes(s) + cost_sideband_bytes(s);
}

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;

	return pid && clock_getcpuclockid(pid, &clock) == 0 ? clock_read_ns(clock) : 0;
}

/* Of one CPU, for one origin. */
static const struct otp_cpu_counters *cost_counters(const struct sampler *s, uint32_t i)
{
	return (const void *)((const char *)s->counters + (size_t)i * s->layout.counters_stride);
}

static uint32_t cost_nr_counters(const struct sampler *s)
{
	return s->layout.cpus * s->layout.origins.count;
}

/* The estimate may fall a little as its share of samples changes: the reported figure never falls. */
static void cost_kernel_time(const struct sampler *s, struct status_cost *c)
{
	struct counters_time t = {0};

	for (uint32_t i = 0; i < cost_nr_counters(s); i++)
		counters_add_time(cost_counters(s, i), &t);
	c->kernel_ns = MAX(c->kernel_ns, t.ns);
	c->kernel_runs = t.runs;
	c->kernel_longest_ns = t.longest_ns;
	c->kernel_limit_ns = copy_speed_limit_ns();
	c->kernel_limit_bytes = s->defaults.tick_bytes;
	if (s->source->ops->run_time)
		s->source->ops->run_time(s->source, &c->stats_ns, &c->stats_runs);
}

static void cost_worker_time(const struct worker *w, uint64_t *total)
{
	*total = MAX(*total, w->past_cpu_ns + cpu_ns(w->pid));
}

void cost_cpu(struct cost *cost, const struct workers *w, const struct sampler *s)
{
	uint64_t openers = cpu_ns(w->indexer.pid) + cpu_ns(w->fetcher.pid);
	struct status_cost *c = &cost->figures;

	cost_kernel_time(s, c);
	c->monitor_cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	cost_worker_time(&w->engine, &c->engine_cpu_ns);
	cost_worker_time(&w->net, &c->net_cpu_ns);
	cost_worker_time(&w->hub, &c->hub_cpu_ns);
	for (int i = 0; i < OPENERS; i++)
		openers += cpu_ns(w->opener[i].pid);
	for (int i = 0; i < DECODERS; i++)
		openers += cpu_ns(w->decoder[i].pid);
	c->opener_cpu_ns = MAX(c->opener_cpu_ns, openers + w->disposable_past_ns);
	c->files_cpu_ns = c->opener_cpu_ns + cost->turns_for_files_ns;
}

uint64_t cost_cpu_ns(const struct cost *cost)
{
	const struct status_cost *c = &cost->figures;

	return c->kernel_ns + c->monitor_cpu_ns + c->engine_cpu_ns + c->net_cpu_ns + c->hub_cpu_ns + c->opener_cpu_ns;
}

uint64_t cost_files_ns(const struct cost *cost)
{
	return cost->figures.files_cpu_ns;
}

uint64_t cost_samples(const struct sampler *s)
{
	uint64_t taken = 0;

	for (uint32_t i = 0; i < cost_nr_counters(s); i++)
		taken += cost_counters(s, i)->taken;
	return taken;
}

void cost_turn_for_files(struct cost *c)
{
	c->turn_for_files = true;
}

void cost_end_turn(struct cost *c)
{
	uint64_t now = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (c->turn_for_files)
		c->turns_for_files_ns += now - c->turn_cpu_ns;
	c->turn_cpu_ns = now;
	c->turn_for_files = false;
}

void cost_memory(struct cost *c, const struct workers *w, const struct sampler *s, bool tight)
{
	uint64_t now = clock_now_ns();

	if (c->memory_ns && now - c->memory_ns < (tight ? MEMORY_TIGHT_NS : MEMORY_EVERY_NS))
		return;
	c->memory_ns = now;
	c->figures.memory_bytes = cost_all_memory(w, s);
}

void cost_collect(struct cost *c, const struct workers *w, const struct sampler *s)
{
	cost_cpu(c, w, s);
	cost_memory(c, w, s, false);
}
