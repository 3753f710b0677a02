/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the requests of a directory to the hub's store, over and over, with a slot open for each workload, and prints
 * as JSON how much history the slots hold beside the requests themselves, what the allocator says of the slots' bytes, and
 * what an answer costs.
 *   bench_hub DIR HOURS
 * The requests are those of HOURS of one load: they repeat, so the trees stand still after the first round.
 */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "hub/api.h"

#define FILES_MAX   256
#define INTERVAL_NS (5 * NSEC_PER_SEC)
#define ROUNDS	    20

struct requests {
	struct buf list[FILES_MAX];
	uint32_t count;
};

static int read_one(const char *dir, const char *name, struct buf *to)
{
	char path[1024];
	FILE *f;
	size_t n = 1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && n) {
		void *room = buf_reserve(to, 65536);

		n = room ? fread(room, 1, 65536, f) : 0;
		buf_commit(to, n);
	}
	fclosep(&f);
	return f ? 0 : -1;
}

static void read_all(const char *dir, struct requests *r)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && r->count < FILES_MAX && (e = readdir(d)))
		if (strstr(e->d_name, ".otlp") && read_one(dir, e->d_name, &r->list[r->count]) == 0)
			r->count++;
	if (d)
		closedir(d);
}

static void open_all(struct store *s, uint64_t now_ns)
{
	const struct gone *evicted;

	for (uint32_t i = 0; i < s->count; i++)
		store_open(s, s->list[i], now_ns, &evicted);
}

/* Bytes that are allocated, as malloc counts them. */
static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Bytes of the requests. Two hours after they were made: as of now, whenever that is. */
static uint64_t feed(struct store *s, const struct requests *r, uint64_t intervals, uint64_t *ret_ns)
{
	static const struct otlp_limits limits = {.request_bytes = 64u << 20, .memory_bytes = 1u << 30, .depth = 8192};
	uint64_t now_ns = clock_read_ns(CLOCK_REALTIME) + 7200 * NSEC_PER_SEC, bytes = 0, began = clock_now_ns();

	for (uint64_t i = 0; i < intervals; i++, now_ns += INTERVAL_NS) {
		const struct buf *b = &r->list[i % r->count];

		store_take(s, b->data, b->len, &limits, now_ns);
		open_all(s, now_ns);
		bytes += b->len;
	}
	*ret_ns = clock_now_ns() - began;
	return bytes;
}

/* Closes all slots. Returns the bytes that the allocator gets back. */
static size_t close_all(struct store *s)
{
	size_t before = allocated();

	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot)
			store_close(s, s->list[i], GONE_CLOSED, 0);
	return before - allocated();
}

static const struct workload *largest(const struct store *s)
{
	const struct workload *most = NULL;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot && (!most || s->list[i]->slot->tree->count > most->slot->tree->count))
			most = s->list[i];
	return most;
}

static uint64_t answer(struct store *s, const struct workload *w, size_t *ret_bytes)
{
	struct api api = {.store = s, .version = "bench"};
	struct api_call call = {.method = "GET"};
	uint64_t best = UINT64_MAX, began;
	struct api_reply reply;
	char path[128];

	snprintf(path, sizeof(path), API_PREFIX "/workloads/%016llx/tree", (unsigned long long)w->id);
	call.path = path;
	for (int i = 0; i < ROUNDS; i++) {
		began = clock_now_ns();
		api_serve(&api, &call, &reply);
		best = MIN(best, clock_now_ns() - began);
		*ret_bytes = reply.body.len;
		api_reply_done(&reply);
	}
	return best;
}

int main(int argc, char **argv)
{
	static struct requests r;
	struct hub_limits limits = hub_limits_default;
	const struct workload *w;
	struct store_counts c;
	struct store *s;
	uint64_t bytes, took, answer_ns, intervals, samples;
	uint32_t open, nodes;
	size_t json, told;

	hash_seed_init();
	if (argc != 3)
		return 2;
	read_all(argv[1], &r);
	limits.max_slots = 1024;
	if (!r.count || store_new(&limits, &s) < 0)
		return 1;
	intervals = strtoull(argv[2], NULL, 10) * 720;
	bytes = feed(s, &r, intervals, &took);
	w = largest(s);
	if (!w)
		return 1;
	answer_ns = answer(s, w, &json);
	store_counts(s, &c);
	open = s->nr_slots;
	told = store_slot_bytes(s);
	nodes = w->slot->tree->count;
	samples = w->slot->counts.kept;
	printf("{\"requests\":%llu,\"request_bytes\":%llu,\"slots\":%u,\"slot_bytes\":%zu,\"kept\":%llu,\"evicted\":%llu,"
	       "\"allocated\":%zu,\"take_us\":%.1f,\"nodes\":%u,\"samples\":%llu,\"answer_us\":%.1f,\"answer_bytes\":%zu}\n",
	       (unsigned long long)intervals, (unsigned long long)bytes, open, told, (unsigned long long)c.slots.kept,
	       (unsigned long long)c.slots.evicted, close_all(s), (double)took / 1e3 / (double)intervals, nodes,
	       (unsigned long long)samples, (double)answer_ns / 1e3, json);
	store_free(s);
	return 0;
}
