// SPDX-License-Identifier: Apache-2.0
/* The engine's half of the ring: a view that nobody can write, and that wakes without a descriptor. */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe.h"

#define WAKE_MS	 60000
#define WRAPS_MS 60000

/* Runs fn with a session of this ring, its view, and a program to sample. */
static enum verdict with_view(uint32_t ring_bytes, enum verdict (*fn)(struct session *s, struct ring *view))
{
	struct stage *stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct source_config cfg = config_default();
	enum verdict v = FAILED;
	unsigned long own = 0;
	struct ring view = {0};
	struct session s;
	pid_t pid = child_start(SCENE_USER, stage, -1);

	cfg.ring_bytes = ring_bytes;
	cfg.defaults.wake_bytes = ring_bytes / 4;
	if (session_open(&s, &cfg) == 0 && ring_view(&view, s.layout.ring_fd, s.layout.ring_bytes, &own) == 0)
		v = fn(&s, &view);
	ring_unmap(&view);
	session_close(&s);
	child_end(pid);
	return v;
}

static bool can_be_written(const void *at, size_t bytes)
{
	return mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE) == 0;
}

static enum verdict parts_are_read_only(struct session *s, struct ring *view)
{
	CHECK(!can_be_written(view->freed, view->page), "the consumer's page");
	CHECK(!can_be_written(view->producer, view->page), "the producer's page");
	CHECK(!can_be_written(view->data, view->size), "the data");
	CHECK(!can_be_written(view->data + view->size, view->size), "the data's second mapping");
	CHECK(mremap((void *)(uintptr_t)view->freed, view->page, 2 * view->page, MREMAP_MAYMOVE) == MAP_FAILED, "it grows");
	return PASSED;
}

static enum verdict view_cannot_be_made_writable(void)
{
	return with_view(4u << 20, parts_are_read_only);
}

/* An epoll on the ring, whose descriptor is closed then; negative where it has no first event. */
static int watch_closed(struct session *s, struct ring *view)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = 7};
	_cleanup_(closep) int epoll = epoll_create1(EPOLL_CLOEXEC);
	int fd = dup(s->layout.ring_fd), r;

	/* The first event, of records that are there already, is no wake-up. */
	for (unsigned int ms = 0; ms < WAKE_MS && !ring_producer(view); ms++)
		sleep_ms(1);
	r = epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	close(fd);
	if (r < 0 || epoll_wait(epoll, &event, 1, 0) != 1)
		return -1;
	return steal_fd(&epoll);
}

/* The child is young: it wakes too, so often that the fill's wake-up is the one at its place. */
static enum verdict closed_ring_wakes(struct session *s, struct ring *view)
{
	_cleanup_(closep) int epoll = watch_closed(s, view);
	struct epoll_event event = {0};
	uint64_t before = 0, at = 0;

	CHECK(epoll >= 0, "no first event");
	while (at < view->size / 4) {
		before = at;
		CHECK(epoll_wait(epoll, &event, 1, WAKE_MS) == 1, "it does not wake after %llu bytes", (unsigned long long)before);
		CHECK(event.data.u32 == 7, "another event");
		at = ring_producer(view);
	}
	return PASSED;
}

/* The first child is no longer young where a session takes a second to be made. */
static enum verdict young_process_wakes(struct session *s, struct ring *view)
{
	struct stage *stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_cleanup_(closep) int epoll = watch_closed(s, view);
	struct epoll_event event = {0};
	pid_t young = epoll >= 0 ? child_start(SCENE_USER, stage, -1) : 0;
	int woken = epoll >= 0 ? epoll_wait(epoll, &event, 1, WAKE_MS) : 0;
	uint64_t at = ring_producer(view);

	if (young)
		child_end(young);
	CHECK(epoll >= 0, "no first event");
	CHECK(woken == 1, "it does not wake");
	CHECK(at < view->size / 4, "after %llu bytes", (unsigned long long)at);
	return PASSED;
}

static enum verdict young_process_wakes_a_reader_before_the_ring_fills(void)
{
	return with_view(16u << 20, young_process_wakes);
}

static enum verdict ring_wakes_a_reader_without_its_descriptor(void)
{
	return with_view(4u << 20, closed_ring_wakes);
}

/* Reader and monitor in turns: the ring is written several times over, and every record is read once. */
static enum verdict monitor_follows(struct session *s, struct ring *view)
{
	uint64_t samples = 0, put = 0, pos = 0;
	const struct otp_rec *rec;

	for (unsigned int ms = 0; ms < WRAPS_MS && pos < 4 * view->size; ms += 10) {
		sleep_ms(10);
		while (ring_next(view, &pos, ring_producer(view), &rec) > 0)
			samples += rec->type == OTP_REC_SAMPLE;
		ring_release(view, pos);
		ring_follow(&s->ring, pos);
		CHECK(ring_kept(view) == 0, "%llu bytes are not freed", (unsigned long long)ring_kept(view));
	}
	s->source->ops->stop(s->source);
	while (ring_next(view, &pos, ring_producer(view), &rec) > 0)
		samples += rec->type == OTP_REC_SAMPLE;
	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++)
		put += session_counters(s, cpu).put;
	CHECK(pos >= 4 * view->size, "only %llu bytes", (unsigned long long)pos);
	CHECK(samples == put, "%llu samples of %llu", (unsigned long long)samples, (unsigned long long)put);
	return PASSED;
}

static enum verdict what_a_view_has_read_is_freed_for_it(void)
{
	return with_view(256u << 10, monitor_follows);
}

const struct probe_test view_tests[] = {
	{"view cannot be made writable", view_cannot_be_made_writable},
	{"ring wakes a reader without its descriptor", ring_wakes_a_reader_without_its_descriptor},
	{"young process wakes a reader before the ring fills", young_process_wakes_a_reader_before_the_ring_fills},
	{"what a view has read is freed for it", what_a_view_has_read_is_freed_for_it},
	{0},
};
