// SPDX-License-Identifier: Apache-2.0
/*
 * otprofd --replay FILE: replays a capture, and writes its requests into the
 * configured directory.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/engine/replay.h"
#include "daemon/roles.h"

static const char *replay_output_dir(const struct config *c)
{
	const char *dir = NULL;

	for (uint32_t i = 0; !dir && i < c->nr_exporters; i++)
		dir = export_directory(&c->exporters[i]);
	return dir;
}

struct output {
	const char *dir;
	uint64_t id;
};

/* Files are numbered, not dated, so that two replays of a capture write the same names. */
static int replay_write_request(void *ctx, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct output *o = ctx;
	char path[4096];
	_cleanup_(closep) int fd = -1;
	int err;

	if (!o->dir)
		return 0;
	snprintf(path, sizeof(path), "%s/otprof-%013d-%08llu.otlp", o->dir, 0, (unsigned long long)++o->id);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	err = fd < 0 ? -errno : file_write(fd, request, len);
	if (err)
		log_error("%s: %s", path, strerror(-err));
	return err;
}

static void replay_print_result(const struct replay_result *r)
{
	const struct ledger_engine *l = &r->ledger;

	printf("%llu samples, %llu requests of %llu bytes, %.2f us of CPU a sample\n", (unsigned long long)r->samples,
	       (unsigned long long)r->requests, (unsigned long long)r->bytes,
	       r->samples ? (double)r->cold_ns / 1000 / (double)r->samples : 0.0);
	printf("%llu stacks, %llu whole; %llu frames, %llu named\n", (unsigned long long)l->stacks,
	       (unsigned long long)l->stacks_root, (unsigned long long)l->frames, (unsigned long long)l->frames_named);
}

int replay_main(const struct config *c, const char *file)
{
	struct output out = {.dir = replay_output_dir(c)};
	struct replay_options o = {.config = c, .request = replay_write_request, .ctx = &out};
	struct replay_result result;
	_cleanup_(closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0) {
		log_error("%s: %s", file, strerror(errno));
		return 1;
	}
	if (out.dir && mkdir(out.dir, 0755) < 0 && errno != EEXIST) {
		log_error("%s: %s", out.dir, strerror(errno));
		return 1;
	}
	hash_seed_init();
	r = replay_run(fd, &o, &result);
	if (r < 0) {
		log_error("%s: %s", file, r == -EBADMSG ? "not a capture of this version" : strerror(-r));
		return 1;
	}
	replay_print_result(&result);
	return 0;
}
