/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What net makes of the engine's requests, in files, for a destination, and the CPU time that it takes, as JSON:
 *   bench_wire ENGINE_MS PRESET INTERVAL_MS CODING FILE...
 * PRESET otlp, pyroscope or minimal; CODING none, gzip or zstd. The least time of three runs counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "export/request.h"
#include "export/shape.h"

#define FILE_MAX (64u << 20)
#define ROUNDS	 3

struct wire {
	struct export_config cfg;
	uint32_t each; /* of the engine's requests in one of the destination's */
	uint64_t requests, plain_bytes, bytes, shape_ns, coding_ns;
};

static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int wire_send(struct wire *w, struct export_request *r)
{
	uint64_t began = cpu_ns();
	int rc = w->cfg.compression == EXPORT_CODING_NONE ? 0 : request_compress(r, w->cfg.compression);

	w->coding_ns += cpu_ns() - began;
	w->requests++;
	w->plain_bytes += request_bytes(r, EXPORT_CODING_NONE);
	w->bytes += request_bytes(r, request_has(r, w->cfg.compression) ? w->cfg.compression : EXPORT_CODING_NONE);
	export_request_put(r);
	return rc;
}

static int wire_load(const char *path, uint64_t id, struct export_request **ret)
{
	static const struct ledger_counts none;
	_cleanup_(buf_done) struct buf data = {0};
	struct stat st;
	int rc = file_load(path, FILE_MAX, &data, &st);

	return rc < 0 ? rc : request_new_copy(data.data, data.len, id, &none, ret);
}

static int wire_add(struct wire *w, struct shape *s, struct export_request *r, bool last)
{
	struct export_request *merged;
	uint64_t began = cpu_ns();
	int rc;

	if (!shape_wanted(&w->cfg))
		return wire_send(w, r);
	rc = shape_add(s, r, 0);
	if (rc == 0 && last)
		rc = shape_finish(s, &merged);
	w->shape_ns += cpu_ns() - began;
	export_request_put(r);
	return rc == 0 && last ? wire_send(w, merged) : rc;
}

static int wire_run(struct wire *w, char **files, int n)
{
	struct shape s;
	int rc = 0;

	shape_init(&s, &w->cfg);
	for (int i = 0; i < n && !rc; i++) {
		struct export_request *r;

		rc = wire_load(files[i], (uint64_t)i + 1, &r);
		if (!rc)
			rc = wire_add(w, &s, r, (uint32_t)(i + 1) % w->each == 0 || i + 1 == n);
	}
	shape_done(&s);
	return rc;
}

static int wire_preset(const char *name)
{
	static const char *const names[] = {
#define X(NAME, text) text,
		EXPORT_PRESETS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -1;
}

static int wire_coding(const char *name)
{
	for (int i = 0; i < EXPORT_CODING_NR; i++)
		if (!strcmp(export_coding_names[(enum export_coding)i], name))
			return i;
	return -1;
}

int main(int argc, char **argv)
{
	struct wire best = {0};
	int preset = argc > 5 ? wire_preset(argv[2]) : -1, coding = argc > 5 ? wire_coding(argv[4]) : -1;

	if (preset < 0 || coding < 0) {
		fprintf(stderr, "usage: bench_wire ENGINE_MS PRESET INTERVAL_MS CODING FILE...\n");
		return 2;
	}
	hash_seed_init();
	for (int i = 0; i < ROUNDS; i++) {
		struct wire w = {.cfg = {.preset = (enum export_preset)preset, .compression = (enum export_coding)coding,
					 .engine_interval_ns = strtoull(argv[1], NULL, 10) * NSEC_PER_MSEC,
					 .interval_ns = strtoull(argv[3], NULL, 10) * NSEC_PER_MSEC}};
		int rc;

		w.each = (uint32_t)MAX(w.cfg.interval_ns / MAX(w.cfg.engine_interval_ns, 1ULL), 1ULL);
		rc = wire_run(&w, argv + 5, argc - 5);
		if (rc) {
			fprintf(stderr, "bench_wire: %s\n", strerror(-rc));
			return 1;
		}
		if (!i || w.shape_ns + w.coding_ns < best.shape_ns + best.coding_ns)
			best = w;
	}
	printf("{\"requests\": %llu, \"plain_bytes\": %llu, \"bytes\": %llu, \"shape_us\": %.1f, \"coding_us\": %.1f}\n",
	       (unsigned long long)best.requests, (unsigned long long)best.plain_bytes, (unsigned long long)best.bytes,
	       (double)best.shape_ns / 1e3, (double)best.coding_ns / 1e3);
	return 0;
}
