/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a capture through the engine ROUNDS times, the first cold, and prints
 * as JSON what a sample cost: unwinding, naming, counting and encoding.
 *   bench_replay CONFIG CAPTURE ROUNDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "daemon/replay.h"

static void on_error(void *ctx, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static void configp(struct config **c)
{
	config_free(*c);
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
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_replay CONFIG CAPTURE ROUNDS\n");
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
	err = replay_run(fd, &options, &result);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-err));
		return 1;
	}
	print(&result);
	return 0;
}
