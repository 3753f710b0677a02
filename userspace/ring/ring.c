// SPDX-License-Identifier: Apache-2.0
#include "ring/ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Producer page and data area as a sampler in the kernel lays them out. */
static void *map_rest(int fd, size_t page, size_t size)
{
	return mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page);
}

/* The same of a file in which the data area lies once. */
static void *map_rest_twice(int fd, size_t page, size_t size)
{
	uint8_t *base = mmap(NULL, page + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return base;
	if (mmap(base, page + size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED &&
	    mmap(base + page + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)page) != MAP_FAILED)
		return base;
	munmap(base, page + 2 * size);
	return MAP_FAILED;
}

static int map(struct ring *r, int consumer_fd, int fd, size_t size, void *(*rest_of)(int, size_t, size_t))
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *rest;
	int err;

	if (!size || (size & (size - 1)) || size % page || size > SIZE_MAX / 4)
		return -EINVAL;
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, consumer_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	rest = rest_of(fd, page, size);
	if (rest == MAP_FAILED) {
		err = -errno;
		munmap(consumer, page);
		return err;
	}
	/* Stack bytes are secrets: they do not belong into a core dump. */
	madvise(rest, page + 2 * size, MADV_DONTDUMP);
	*r = (struct ring){
		.consumer = consumer,
		.producer = rest,
		.data = (const uint8_t *)rest + page,
		.size = size,
		.page = page,
	};
	return 0;
}

int ring_map(struct ring *r, int fd, size_t size)
{
	return map(r, fd, fd, size, map_rest);
}

int ring_map_files(struct ring *r, int consumer_fd, int fd, size_t size)
{
	return map(r, consumer_fd, fd, size, map_rest_twice);
}

void ring_unmap(struct ring *r)
{
	if (r->page) {
		munmap(r->consumer, r->page);
		munmap((void *)(uintptr_t)r->producer, r->page + 2 * r->size);
	}
	*r = (struct ring){0};
}

void ring_wrap(struct ring *r, unsigned long *consumer, const unsigned long *producer, const void *data, size_t size)
{
	*r = (struct ring){.consumer = consumer, .producer = producer, .data = data, .size = size};
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

static int record_check(const struct otp_rec *rec, uint32_t len)
{
	return len >= sizeof(*rec) && rec->len >= sizeof(*rec) && rec->len <= len ? 1 : -EBADMSG;
}

int ring_next(const struct ring *r, uint64_t *pos, uint64_t end, const struct otp_rec **ret)
{
	while (*pos != end) {
		const struct otp_ring_hdr *hdr = (const void *)(r->data + (*pos & (r->size - 1)));
		uint64_t left = end - *pos, room;
		uint32_t word, len;

		/* A position from nowhere, or a producer that lies, would lead out of the data area. */
		if (left > r->size || left % OTP_RING_HDR)
			return -EBADMSG;
		/* Pairs with the sampler's commit: the record is whole once the busy bit is gone. */
		word = __atomic_load_n(&hdr->len, __ATOMIC_ACQUIRE);
		if (word & OTP_RING_BUSY)
			return 0;
		len = word & ~OTP_RING_DISCARD;
		room = ALIGN_UP((uint64_t)len + OTP_RING_HDR, 8);
		if (room > left)
			return -EBADMSG;
		if (!(word & OTP_RING_DISCARD)) {
			const struct otp_rec *rec = (const void *)(hdr + 1);

			if (record_check(rec, len) < 0)
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

const void *sample_section(const struct otp_sample *s, enum otp_section_type type, uint32_t *ret_len)
{
	uint64_t at = sizeof(*s);

	for (uint32_t i = 0; i < s->nr_sections; i++) {
		const struct otp_section *section = (const void *)((const uint8_t *)s + at);

		if (at + sizeof(*section) > s->rec.len || section->len > s->rec.len - at - sizeof(*section))
			return NULL;
		if (section->type == type) {
			*ret_len = section->len;
			return section + 1;
		}
		at += sizeof(*section) + ALIGN_UP((uint64_t)section->len, 8);
	}
	return NULL;
}
