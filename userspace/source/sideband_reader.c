// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's half: drains the buffers that the monitor opened. The layout is
 * that of perf (Linux, include/uapi/linux/perf_event.h): a page with head and
 * tail, then a power of two of data, in which a record may wrap.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/sideband_buffer.h"
#include "source/source.h"

struct sideband_reader {
	struct sideband_buffer *buffers; /* owned */
	uint32_t nr;
	uint8_t scratch[SIDEBAND_RECORD_MAX];
};

/* The record at position at: in place, or put together in scratch where it wraps. */
static const void *record_at(const struct sideband_buffer *b, uint64_t at, size_t len, uint8_t *scratch)
{
	size_t start = at & (b->data_bytes - 1), first = b->data_bytes - start;

	if (len <= first)
		return b->data + start;
	memcpy(scratch, b->data + start, first);
	memcpy(scratch + first, b->data, len - first);
	return scratch;
}

int sideband_buffer_record(const struct sideband_buffer *b, uint64_t at, uint64_t head, uint8_t *scratch,
			   const void **ret)
{
	uint64_t left = head - at;
	struct perf_event_header h;

	if (!left)
		return 0;
	/* Records and positions are multiples of 8: a header never wraps. */
	if (left > b->data_bytes || left < sizeof(h) || at % sizeof(h))
		return -EBADMSG;
	memcpy(&h, b->data + (at & (b->data_bytes - 1)), sizeof(h));
	if (h.size < sizeof(h) || h.size % 8 || h.size > left)
		return -EBADMSG;
	*ret = record_at(b, at, h.size, scratch);
	return h.size;
}

int sideband_buffer_drain(struct sideband_buffer *b, uint8_t *scratch, sideband_fn *fn, void *ctx)
{
	/* Pairs with the kernel's release of data_head: the records below it are whole. */
	uint64_t head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE), at = b->page->data_tail;
	const void *record;
	int len;

	while ((len = sideband_buffer_record(b, at, head, scratch, &record)) > 0) {
		fn(ctx, record, (size_t)len);
		at += (uint64_t)len;
	}
	/* Pairs with the kernel's read of data_tail before it overwrites: our reads are over. */
	__atomic_store_n(&b->page->data_tail, head, __ATOMIC_RELEASE);
	return len;
}

int sideband_reader_new(struct sideband_reader **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void sideband_reader_free(struct sideband_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nr; i++) {
		munmap(r->buffers[i].page, r->buffers[i].map_bytes);
		close(r->buffers[i].fd);
	}
	free(r->buffers);
	free(r);
}

int sideband_reader_add(struct sideband_reader *r, int fd, size_t data_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(closep) int owned = fd;
	struct sideband_buffer *buffers;
	void *base;

	if (data_bytes < page || (data_bytes & (data_bytes - 1)) || data_bytes > SIZE_MAX / 2)
		return -EINVAL;
	buffers = reallocarray(r->buffers, r->nr + 1, sizeof(*buffers));
	if (!buffers)
		return -ENOMEM;
	r->buffers = buffers;
	base = mmap(NULL, page + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	buffers[r->nr++] = (struct sideband_buffer){
		.fd = steal_fd(&owned),
		.page = base,
		.data = (const uint8_t *)base + page,
		.data_bytes = data_bytes,
		.map_bytes = page + data_bytes,
	};
	return 0;
}

int sideband_reader_drain(struct sideband_reader *r, sideband_fn *fn, void *ctx)
{
	int err = 0, each;

	for (uint32_t i = 0; i < r->nr; i++) {
		each = sideband_buffer_drain(&r->buffers[i], r->scratch, fn, ctx);
		if (each < 0)
			err = each;
	}
	return err;
}
