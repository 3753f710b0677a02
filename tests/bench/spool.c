/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes requests to a spool and reads them back, and prints as JSON what that costs the loop of net:
 *   bench_spool DIR REQUESTS BYTES
 * twice, with the thread that syncs and with a sync after each request instead, as a comparison. The page cache
 * serves the reads, as it does after an outage that memory holds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/spool.h"
#include "export/spool_record.h"
#include "export/spool_sync.h"

struct times {
	uint64_t write_ns, worst_ns, read_ns;
};

static struct export_spool place;
static uint64_t requests;
static size_t len;
static char *data;

static int write_all(struct spool *s, struct spool_sync *sync, bool each, struct times *t)
{
	struct spool_record r = {.profiles = 1, .len = len, .coding = EXPORT_CODING_GZIP};
	int err = 0;

	for (uint64_t i = 1; i <= requests && !err; i++) {
		uint64_t began = clock_now_ns(), took;

		r.id = i;
		err = spool_append(s, &r, data, 1ull << 40, sync);
		if (each)
			syncfs(place.dir);
		took = clock_now_ns() - began;
		t->write_ns += took;
		t->worst_ns = MAX(t->worst_ns, took);
	}
	return err;
}

static int read_all(struct spool *s, struct times *t)
{
	uint64_t began = clock_now_ns();
	struct spool_record r;
	int rc;

	while ((rc = spool_peek(s, &r)) == 1) {
		rc = spool_read(s, &r, data);
		if (rc < 0)
			return rc;
		spool_mark(s, true);
		spool_drop(s);
	}
	t->read_ns = clock_now_ns() - began;
	return rc;
}

static int run(bool each, struct times *t)
{
	struct spool_sync *sync = NULL;
	struct spool *s;
	int err = each ? 0 : spool_sync_new(&sync);

	if (err)
		return err;
	err = spool_open(&place, "bench", true, &s);
	if (!err) {
		err = write_all(s, sync, each, t);
		if (!err)
			err = read_all(s, t);
		spool_close(s);
	}
	spool_sync_free(sync);
	return err;
}

static double mib_per_s(uint64_t ns)
{
	return (double)requests * (double)len / (1 << 20) / ((double)ns / NSEC_PER_SEC);
}

static void print_times(const char *name, const struct times *t)
{
	printf("\"%s\": {\"write_us\": %.1f, \"worst_us\": %.1f, \"read_us\": %.1f, ", name, (double)t->write_ns / (double)requests / 1e3, (double)t->worst_ns / 1e3,
	       (double)t->read_ns / (double)requests / 1e3);
	printf("\"write_mib_s\": %.0f, \"read_mib_s\": %.0f}", mib_per_s(t->write_ns), mib_per_s(t->read_ns));
}

int main(int argc, char **argv)
{
	struct times thread = {0}, each = {0};

	if (argc != 4)
		return 2;
	place.dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	requests = strtoull(argv[2], NULL, 10);
	len = strtoull(argv[3], NULL, 10);
	data = malloc(len);
	if (place.dir < 0 || !data)
		return 1;
	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	if (run(false, &thread) < 0 || run(true, &each) < 0)
		return 1;
	printf("{\"requests\": %llu, \"bytes\": %zu, ", (unsigned long long)requests, len);
	print_times("thread", &thread);
	printf(", ");
	print_times("each", &each);
	puts("}");
	free(data);
	return 0;
}
