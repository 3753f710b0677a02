// SPDX-License-Identifier: Apache-2.0
#include "ring/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

static int writer_memory_file(const char *name, size_t size)
{
	_cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	/* Truncation by the reader would raise SIGBUS here. */
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* Another, read-only descriptor of the same file: its mappings cannot be made writable. */
static int writer_read_only(int fd)
{
	char path[40];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/* Both pages and the data, and the data once more after them: a record never wraps. */
static int writer_map(struct ring_writer *w, int fd)
{
	const int both = PROT_READ | PROT_WRITE;
	const size_t head = 2 * w->page;
	uint8_t *base = mmap(NULL, head + 2 * w->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	w->consumer = (const unsigned long *)(void *)base;
	w->producer = (unsigned long *)(void *)(base + w->page);
	w->data = base + head;
	if (mmap(base, head + w->size, both, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(w->data + w->size, w->size, both, MAP_SHARED | MAP_FIXED, fd, (off_t)head) == MAP_FAILED)
		return -errno;
	/* Stack bytes are secrets: they are left out of core dumps. */
	madvise(base, head + 2 * w->size, MADV_DONTDUMP);
	return 0;
}

static int writer_open_parts(struct ring_writer *w)
{
	int err;

	w->consumer_fd = writer_memory_file("otprof-ring", 2 * w->page + w->size);
	if (w->consumer_fd < 0)
		return w->consumer_fd;
	err = writer_map(w, w->consumer_fd);
	if (err < 0)
		return err;
	w->ring_fd = writer_read_only(w->consumer_fd);
	return w->ring_fd < 0 ? w->ring_fd : 0;
}

int ring_writer_open(struct ring_writer *w, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	if (size < page || (size & (size - 1)) || size > SIZE_MAX / 4)
		return -EINVAL;
	*w = (struct ring_writer){.size = size, .page = page, .consumer_fd = -1, .ring_fd = -1};
	err = writer_open_parts(w);
	if (err < 0)
		ring_writer_close(w);
	return err;
}

void ring_writer_close(struct ring_writer *w)
{
	if (!w->page)
		return;
	if (w->consumer)
		munmap((void *)(uintptr_t)w->consumer, 2 * (w->page + w->size));
	closep(&w->consumer_fd);
	closep(&w->ring_fd);
	*w = (struct ring_writer){0};
}

/*
 * A position below the last one or above our own is invalid and ignored. Any
 * other can only cost the reader its own records. Pairs with the reader's
 * release: it has finished reading the bytes that we are about to overwrite.
 */
static void writer_read_consumer(struct ring_writer *w)
{
	uint64_t at = __atomic_load_n(w->consumer, __ATOMIC_ACQUIRE);

	if (at >= w->tail && at <= w->head && at % OTP_RING_HDR == 0)
		w->tail = at;
}

uint64_t ring_writer_unread(struct ring_writer *w)
{
	writer_read_consumer(w);
	return w->head - w->tail;
}

void *ring_writer_reserve(struct ring_writer *w, uint32_t len)
{
	uint64_t room = ALIGN_UP((uint64_t)len + OTP_RING_HDR, 8);

	if (len >= OTP_RING_DISCARD || room > w->size || ring_writer_unread(w) > w->size - room)
		return NULL;
	return w->data + (w->head & (w->size - 1)) + OTP_RING_HDR;
}

void ring_writer_commit(struct ring_writer *w, uint32_t len)
{
	struct otp_ring_hdr *hdr = (void *)(w->data + (w->head & (w->size - 1)));

	*hdr = (struct otp_ring_hdr){.len = len};
	w->head += ALIGN_UP((uint64_t)len + OTP_RING_HDR, 8);
	/* Pairs with the reader's acquire: the record and its header are whole. */
	__atomic_store_n(w->producer, (unsigned long)w->head, __ATOMIC_RELEASE);
}
