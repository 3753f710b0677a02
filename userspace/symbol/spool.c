// SPDX-License-Identifier: Apache-2.0
#include "symbol/spool.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

#define SCRATCH_PAGE 4096
#define MERGE_AHEAD  128 /* records read at a time of each run */

/* -ENOSPC is our own bound, and records within it stay valid; after a full disk none are. */
static int spool_write_at(int fd, const void *data, size_t len, uint64_t offset)
{
	int err = file_write_at(fd, data, len, offset);

	return err == -ENOSPC ? -EDQUOT : err;
}

void spool_init(struct spool *s, int fd, uint64_t start, uint64_t limit)
{
	s->fd = fd;
	s->error = 0;
	s->start = s->end = start;
	s->limit = limit;
	s->len = 0;
}

int spool_flush(struct spool *s)
{
	if (!s->error && s->len)
		s->error = spool_write_at(s->fd, s->buffer, s->len, s->end - s->len);
	s->len = 0;
	return s->error;
}

void spool_add(struct spool *s, const void *data, size_t len)
{
	if (s->error)
		return;
	if (len > s->limit - s->end) {
		s->error = -EFBIG;
		return;
	}
	while (len) {
		size_t n = MIN(len, sizeof(s->buffer) - s->len);

		memcpy(s->buffer + s->len, data, n);
		s->len += n;
		s->end += n;
		data = (const uint8_t *)data + n;
		len -= n;
		if (s->len == sizeof(s->buffer))
			spool_flush(s);
	}
}

int scratch_take(struct scratch *s, uint64_t bytes, uint64_t *ret_offset)
{
	uint64_t size;

	if (__builtin_add_overflow(bytes, SCRATCH_PAGE - 1, &size))
		return -ENOSPC;
	size -= size % SCRATCH_PAGE;
	if (size > s->limit - s->end)
		return -ENOSPC;
	*ret_offset = s->end;
	s->end += size;
	return 0;
}

/* A run in the scratch file, and while runs are merged its records that were read ahead. */
struct run {
	uint64_t offset;
	uint32_t left, at, have;
	struct sort_record *ahead; /* owned, while merging */
};

struct sorter {
	struct scratch *scratch;
	sort_order_fn *order;
	struct run *runs; /* owned */
	uint32_t nr_runs;
	uint32_t count;
	struct sort_record records[SORT_MEMORY];
};

int sorter_new(struct scratch *scratch, sort_order_fn *order, struct sorter **ret)
{
	struct sorter *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->scratch = scratch;
	s->order = order;
	*ret = s;
	return 0;
}

struct sorter *sorter_free(struct sorter *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->nr_runs; i++)
		free(s->runs[i].ahead);
	free(s->runs);
	free(s);
	return NULL;
}

static int sorter_spill(struct sorter *s)
{
	size_t bytes = s->count * sizeof(*s->records);
	struct run *runs;
	uint64_t offset;
	int r;

	if (s->nr_runs == SORT_RUNS_MAX)
		return -ENOSPC;
	runs = reallocarray(s->runs, s->nr_runs + 1, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	s->runs = runs;
	r = scratch_take(s->scratch, bytes, &offset);
	if (r < 0)
		return r;
	qsort(s->records, s->count, sizeof(*s->records), s->order);
	r = spool_write_at(s->scratch->fd, s->records, bytes, offset);
	if (r < 0)
		return r;
	s->runs[s->nr_runs++] = (struct run){.offset = offset, .left = s->count};
	s->count = 0;
	return 0;
}

int sorter_add(struct sorter *s, const struct sort_record *r)
{
	int err = s->count == SORT_MEMORY ? sorter_spill(s) : 0;

	if (err < 0)
		return err;
	s->records[s->count++] = *r;
	return 0;
}

static int sorter_run_refill(struct sorter *s, struct run *r)
{
	uint32_t n = MIN(r->left, (uint32_t)MERGE_AHEAD);
	int err = file_read_at(s->scratch->fd, r->ahead, n * sizeof(*r->ahead), r->offset);

	if (err < 0)
		return err;
	r->offset += n * sizeof(*r->ahead);
	r->left -= n;
	r->have = n;
	r->at = 0;
	return 0;
}

/* A heap of runs by their next record. */
static bool sorter_run_before(const struct sorter *s, uint32_t a, uint32_t b)
{
	const struct run *x = &s->runs[a], *y = &s->runs[b];

	return s->order(&x->ahead[x->at], &y->ahead[y->at]) < 0;
}

static void sorter_sift_down(const struct sorter *s, uint32_t *heap, uint32_t n, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1, t;

		if (child >= n)
			return;
		if (child + 1 < n && sorter_run_before(s, heap[child + 1], heap[child]))
			child++;
		if (!sorter_run_before(s, heap[child], heap[i]))
			return;
		t = heap[i];
		heap[i] = heap[child];
		heap[child] = t;
		i = child;
	}
}

static int sorter_merge_begin(struct sorter *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->nr_runs && r == 0; i++) {
		s->runs[i].ahead = malloc(MERGE_AHEAD * sizeof(struct sort_record));
		r = s->runs[i].ahead ? sorter_run_refill(s, &s->runs[i]) : -ENOMEM;
	}
	return r;
}

static int sorter_merge(struct sorter *s, sort_take_fn *take, void *ctx)
{
	_cleanup_(freep) uint32_t *heap = calloc(s->nr_runs, sizeof(*heap));
	uint32_t n = s->nr_runs;
	int r = heap ? sorter_merge_begin(s) : -ENOMEM;

	for (uint32_t i = 0; i < n && heap; i++)
		heap[i] = i;
	for (uint32_t i = n / 2; r == 0 && i-- > 0;)
		sorter_sift_down(s, heap, n, i);
	while (r == 0 && n) {
		struct run *first = &s->runs[heap[0]];

		r = take(ctx, &first->ahead[first->at++]);
		if (r == 0 && first->at == first->have && first->left)
			r = sorter_run_refill(s, first);
		else if (first->at == first->have)
			heap[0] = heap[--n];
		sorter_sift_down(s, heap, n, 0);
	}
	return r;
}

int sorter_finish(struct sorter *s, sort_take_fn *take, void *ctx)
{
	int r = 0;

	if (s->nr_runs) {
		r = s->count ? sorter_spill(s) : 0;
		return r < 0 ? r : sorter_merge(s, take, ctx);
	}
	qsort(s->records, s->count, sizeof(*s->records), s->order);
	for (uint32_t i = 0; i < s->count && r == 0; i++)
		r = take(ctx, &s->records[i]);
	return r;
}
