/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a capture through the engine ROUNDS times, the first cold, and prints
 * as JSON what a sample cost: unwinding, naming, counting and encoding.
 *   bench_replay CONFIG CAPTURE ROUNDS
 * or, at a pace in real time, whether it keeps up, and in how much memory:
 *   bench_replay CONFIG CAPTURE 0 CPUS HZ SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "daemon/engine/replay.h"
#include "source/size.h"

struct paced {
	int fd;
	uint32_t cpus, hz;
	uint64_t ns, peak_bytes;
};

static void on_error(void *ctx, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static void configp(struct config **c)
{
	config_free(*c);
}

/* Without the capture, which lies in memory here and nowhere else. */
static uint64_t own_bytes(int capture)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kib = 0;
	char line[256];
	struct stat st;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %llu", &kib) == 1)
			break;
	return fstat(capture, &st) < 0 || kib << 10 < (uint64_t)st.st_size ? 0 : (kib << 10) - (uint64_t)st.st_size;
}

/* At the end of each profile, when most is held. */
static int look(void *ctx, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct paced *p = ctx;

	p->peak_bytes = MAX(p->peak_bytes, own_bytes(p->fd));
	return 0;
}

static void print_paced(const struct replay_result *r, const struct paced *p)
{
	uint64_t lost = 0, record = r->samples ? r->record_bytes / r->samples : 0;
	uint64_t rate = (uint64_t)p->cpus * p->hz;

	for (int i = 0; i < OTP_LOSS_MAX; i++)
		lost += r->ledger.lost[i].of[0];
	printf("{\"samples\": %llu, \"lost\": %llu, \"late_ms\": %.1f, \"record_bytes\": %llu, \"backlog_bytes\": %llu, "
	       "\"ring_bytes\": %u, \"engine_bytes\": %llu, \"table_bytes\": %llu, \"cpu_percent\": %.1f}\n",
	       (unsigned long long)r->samples, (unsigned long long)lost, (double)r->late_ns / 1e6, (unsigned long long)record,
	       (unsigned long long)((r->late_ns + 50 * NSEC_PER_MSEC) / 1000 * rate / 1000000 * record),
	       size_ring(p->cpus, p->hz), (unsigned long long)p->peak_bytes, (unsigned long long)size_memory(p->cpus, p->hz),
	       (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / (double)p->ns * 100);
}

static void print(const struct replay_result *r)
{
	const struct ledger_engine *l = &r->ledger;
	double n = r->samples ? (double)r->samples : 1;

	printf("{\"samples\": %llu, \"cold_us\": %.3f, \"warm_us\": %.3f, \"frames\": %.2f, \"bytes\": %llu}\n",
	       (unsigned long long)r->samples, (double)r->cold_ns / 1000 / n, (double)r->warm_ns / 1000 / n,
	       l->stacks ? (double)l->frames / (double)l->stacks : 0.0, (unsigned long long)r->bytes);
}

int main(int argc, char **argv)
{
	_cleanup_(configp) struct config *config = NULL;
	struct replay_options options = { 0 };
	struct replay_result result;
	_cleanup_(closep) int fd = -1;
	struct paced paced = {0};
	int err;

	if (argc != 4 && argc != 7) {
		fprintf(stderr, "usage: bench_replay CONFIG CAPTURE ROUNDS [CPUS HZ SECONDS]\n");
		return 2;
	}
	err = config_load(argv[1], on_error, NULL, &config);
	if (err)
		return 1;
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	hash_seed_init();
	options.config = config;
	options.rounds = (uint32_t)atoi(argv[3]);
	if (argc == 7) {
		paced = (struct paced){.fd = fd, .cpus = (uint32_t)atoi(argv[4]), .hz = (uint32_t)atoi(argv[5]),
				       .ns = (uint64_t)atoi(argv[6]) * NSEC_PER_SEC};
		options.pace_hz = paced.cpus * paced.hz;
		options.pace_ns = paced.ns;
		options.request = look;
		options.ctx = &paced;
	}
	err = replay_run(fd, &options, &result);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-err));
		return 1;
	}
	if (options.pace_hz)
		print_paced(&result, &paced);
	else
		print(&result);
	return 0;
}
