// SPDX-License-Identifier: Apache-2.0
#include "ring/ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

/* head: bytes of the position pages that are mapped before the data area; at: where they begin. */
typedef void *ring_map_fn(int fd, size_t at, size_t head, size_t size);

/* As a sampler in the kernel lays it out. */
static void *ring_map_kernel(int fd, size_t at, size_t head, size_t size)
{
	return mmap(NULL, head + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)at);
}

/* The same of a file in which the data area lies once. */
static void *ring_map_twice(int fd, size_t at, size_t head, size_t size)
{
	uint8_t *base = mmap(NULL, head + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return base;
	if (mmap(base, head + size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)at) != MAP_FAILED &&
	    mmap(base + head + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)(at + head)) != MAP_FAILED)
		return base;
	munmap(base, head + 2 * size);
	return MAP_FAILED;
}

static int ring_check_size(size_t size, size_t page)
{
	return !size || (size & (size - 1)) || size % page || size > SIZE_MAX / 4 ? -EINVAL : 0;
}

/* producer: mapped, the data area behind it. */
static void ring_init(struct ring *r, unsigned long *consumer, const unsigned long *freed, const void *producer,
		      size_t size, size_t page)
{
	*r = (struct ring){
		.consumer = consumer,
		.freed = freed,
		.producer = producer,
		.data = (const uint8_t *)producer + page,
		.size = size,
		.page = page,
	};
	/* Stack bytes are secrets: they do not belong into a core dump. */
	madvise((void *)(uintptr_t)r->data, 2 * size, MADV_DONTDUMP);
}

static int ring_map_parts(struct ring *r, int consumer_fd, int fd, size_t size, ring_map_fn *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *rest;
	int err = ring_check_size(size, page);

	if (err)
		return err;
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, consumer_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	rest = map(fd, page, page, size);
	if (rest == MAP_FAILED) {
		err = -errno;
		munmap(consumer, page);
		return err;
	}
	ring_init(r, consumer, consumer, rest, size, page);
	return 0;
}

/*
 * The kernel lets nobody write later to what was mapped read-only: bpf_map_mmap (Linux, kernel/bpf/syscall.c, since BPF
 * rings exist) and the module's view take VM_MAYWRITE away, and a memory file is opened read-only for its reader.
 */
static int ring_view_parts(struct ring *r, int fd, size_t size, unsigned long *own, ring_map_fn *map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = ring_check_size(size, page);
	uint8_t *all;

	if (err)
		return err;
	all = map(fd, 0, 2 * page, size);
	if (all == MAP_FAILED)
		return -errno;
	ring_init(r, own, (const void *)all, all + page, size, page);
	return 0;
}

int ring_map(struct ring *r, int fd, size_t size)
{
	return ring_map_parts(r, fd, fd, size, ring_map_kernel);
}

int ring_map_file(struct ring *r, int consumer_fd, int fd, size_t size)
{
	return ring_map_parts(r, consumer_fd, fd, size, ring_map_twice);
}

int ring_view(struct ring *r, int fd, size_t size, unsigned long *own)
{
	return ring_view_parts(r, fd, size, own, ring_map_kernel);
}

int ring_view_file(struct ring *r, int fd, size_t size, unsigned long *own)
{
	return ring_view_parts(r, fd, size, own, ring_map_twice);
}

void ring_unmap(struct ring *r)
{
	if (r->page) {
		munmap((void *)(uintptr_t)r->freed, r->page);
		munmap((void *)(uintptr_t)r->producer, r->page + 2 * r->size);
	}
	*r = (struct ring){0};
}

void ring_wrap(struct ring *r, unsigned long *consumer, const unsigned long *producer, const void *data, size_t size)
{
	*r = (struct ring){.consumer = consumer, .freed = consumer, .producer = producer, .data = data, .size = size};
}

/* Pairs with the sampler's release of its position: the headers below it are written, busy or not. */
uint64_t ring_producer(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

uint64_t ring_consumer(const struct ring *r)
{
	return __atomic_load_n(r->consumer, __ATOMIC_RELAXED);
}

/* Bytes that a record takes, with its header. */
static uint64_t ring_room(uint32_t word)
{
	uint32_t len = word & ~OTP_RING_DISCARD;

	return ALIGN_UP((uint64_t)len + OTP_RING_HDR, 8);
}

/* Pairs with the sampler's commit: the record is whole once the busy bit is gone. */
static uint32_t ring_word(const struct ring *r, uint64_t pos)
{
	const struct otp_ring_hdr *hdr = (const void *)(r->data + (pos & (r->size - 1)));

	return __atomic_load_n(&hdr->len, __ATOMIC_ACQUIRE);
}

static int record_check(const struct otp_rec *rec, uint32_t len)
{
	return len >= sizeof(*rec) && rec->len >= sizeof(*rec) && rec->len <= len ? 1 : -EBADMSG;
}

int ring_next(const struct ring *r, uint64_t *pos, uint64_t end, const struct otp_rec **ret)
{
	while (*pos != end) {
		const struct otp_ring_hdr *hdr = (const void *)(r->data + (*pos & (r->size - 1)));
		uint64_t left = end - *pos, room;
		uint32_t word;

		/* A position from nowhere, or a producer that lies, would lead out of the data area. */
		if (left > r->size || left % OTP_RING_HDR)
			return -EBADMSG;
		word = ring_word(r, *pos);
		if (word & OTP_RING_BUSY)
			return 0;
		room = ring_room(word);
		if (room > left)
			return -EBADMSG;
		if (!(word & OTP_RING_DISCARD)) {
			const struct otp_rec *rec = (const void *)(hdr + 1);

			if (record_check(rec, word) < 0)
				return -EBADMSG;
			*pos += room;
			*ret = rec;
			return 1;
		}
		*pos += room;
	}
	return 0;
}

/* Pairs with the sampler's acquire: our reads are over before it overwrites. */
void ring_release(struct ring *r, uint64_t pos)
{
	__atomic_store_n(r->consumer, (unsigned long)pos, __ATOMIC_RELEASE);
}

/*
 * A record that is being written ends the way: only the kernel's own bookkeeping keeps the next reservation off it, and
 * old kernels have none. A position within a record is no end of one either; the last end before it counts.
 */
void ring_follow(struct ring *r, uint64_t pos)
{
	uint64_t at = ring_consumer(r), end = ring_producer(r);

	if (pos <= at || pos > end || end - at > r->size)
		return;
	while (at < pos) {
		uint32_t word = ring_word(r, at);

		if (word & OTP_RING_BUSY || ring_room(word) > pos - at)
			break;
		at += ring_room(word);
	}
	ring_release(r, at);
}

/* Pairs with ring_follow, though nothing depends on it: the figure only decides when to wake the monitor. */
uint64_t ring_kept(const struct ring *r)
{
	return *r->consumer - __atomic_load_n(r->freed, __ATOMIC_ACQUIRE);
}

const void *sample_section_nth(const struct otp_sample *s, enum otp_section_type type, uint32_t nth, uint32_t *ret_len)
{
	uint64_t at = sizeof(*s);

	for (uint32_t i = 0; i < s->nr_sections; i++) {
		const struct otp_section *section = (const void *)((const uint8_t *)s + at);

		if (at + sizeof(*section) > s->rec.len || section->len > s->rec.len - at - sizeof(*section))
			return NULL;
		if (section->type == type && !nth--) {
			*ret_len = section->len;
			return section + 1;
		}
		at += sizeof(*section) + ALIGN_UP((uint64_t)section->len, 8);
	}
	return NULL;
}

const void *sample_section(const struct otp_sample *s, enum otp_section_type type, uint32_t *ret_len)
{
	return sample_section_nth(s, type, 0, ret_len);
}
