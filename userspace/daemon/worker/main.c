// SPDX-License-Identifier: Apache-2.0
/*
 * otprof-worker: the roles without a network. Executed by otprofd only.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "daemon/roles.h"

static const struct role worker_roles[] = {
	{"engine", "otprof-engine", engine_main},
	{"opener", "otprof-opener", opener_main},
	{"indexer", "otprof-indexer", indexer_main},
	{"decoder", "otprof-decoder", decoder_main},
};

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "--role")) {
		fprintf(stderr, "otprof-worker is a part of otprofd, which executes it. Try 'otprofd --help'.\n");
		return EXIT_USAGE;
	}
	hash_seed_init();
	return role_run(worker_roles, ARRAY_SIZE(worker_roles), argv[2]);
}
