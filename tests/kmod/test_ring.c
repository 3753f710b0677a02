// SPDX-License-Identifier: Apache-2.0
/*
 * The module's ring, with threads in place of CPUs and the daemon's own reader.
 * Every record is a pattern that names its writer and its place in the order,
 * so an overwritten, torn or lost one shows.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kmod/ring.h"
#include "ring/ring.h"
#include "tests/kmod/test.h"

#define WRITERS 4
#define ROUNDS  20000

struct record {
	struct otp_rec rec;
	u32 writer, words;
	u64 number;
	u64 word[];
};

struct world {
	struct otprof_ring ring;
	struct ring reader;
	u64 *consumer, *producer;
	u64 pending[WRITERS];
	u8 *data;
	u64 size;
};

static bool world_open(struct world *w, u64 size)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	u8 *at = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*w = (struct world){.size = size, .data = at};
	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && at != MAP_FAILED);
	CHECK(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
	CHECK(mmap(at + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at + size);
	close(fd);
	w->consumer = calloc(1, 64);
	w->producer = calloc(1, 64);
	otprof_ring_init(&w->ring, at, size, w->consumer, w->producer, w->pending, WRITERS);
	ring_wrap(&w->reader, (unsigned long *)w->consumer, (unsigned long *)w->producer, at, size);
	return true;
}

static void world_close(struct world *w)
{
	munmap(w->data, 2 * w->size);
	free(w->consumer);
	free(w->producer);
}

static u64 pattern(u32 writer, u64 number, u32 i)
{
	return (number * 2654435761u + writer) ^ ((u64)i << 40);
}

static u32 record_len(u32 words)
{
	return (u32)(sizeof(struct record) + words * sizeof(u64));
}

static void record_fill(struct record *rec, u32 writer, u64 number, u32 words)
{
	*rec = (struct record){.rec = {.type = OTP_REC_SAMPLE, .len = record_len(words)},
			       .writer = writer, .words = words, .number = number};
	for (u32 i = 0; i < words; i++)
		rec->word[i] = pattern(writer, number, i);
}

static bool record_whole(const struct record *rec, u32 writer, u64 number)
{
	if (rec->writer != writer || rec->number != number || rec->rec.len != record_len(rec->words))
		return false;
	for (u32 i = 0; i < rec->words; i++)
		if (rec->word[i] != pattern(writer, number, i))
			return false;
	return true;
}

/* A record in room for more: over words of it stay unused. */
static bool put_less(struct world *w, u32 slot, u64 number, u32 words, u32 over)
{
	struct otprof_room room;

	if (otprof_ring_reserve(&w->ring, slot, record_len(words + over), &room) < 0)
		return false;
	memset(room.at, 0xff, record_len(words + over));
	record_fill(room.at, slot, number, words);
	otprof_ring_commit(&w->ring, slot, &room, record_len(words));
	return true;
}

static bool put(struct world *w, u32 slot, u64 number, u32 words)
{
	return put_less(w, slot, number, words, 0);
}

/* The next record, given back at once. */
static const struct record *take(struct world *w)
{
	u64 pos = ring_consumer(&w->reader);
	const struct otp_rec *rec;

	if (ring_next(&w->reader, &pos, ring_producer(&w->reader), &rec) <= 0)
		return NULL;
	ring_release(&w->reader, pos);
	return (const void *)rec;
}

static bool record_survives_a_wrap_at_every_offset(void)
{
	struct world w;
	u64 number = 0;

	CHECK(world_open(&w, 4096));
	for (u32 step = 0; step < 64; step++)
		for (u32 i = 0; i < 512; i++, number++) {
			const struct record *rec;

			CHECK(put(&w, 0, number, step + i % 3));
			rec = take(&w);
			CHECK(rec && record_whole(rec, 0, number));
		}
	CHECK(!take(&w));
	world_close(&w);
	return true;
}

static bool room_left_over_is_passed_at_every_offset(void)
{
	struct world w;
	u64 number = 0;

	CHECK(world_open(&w, 4096));
	for (u32 over = 0; over < 20; over++)
		for (u32 i = 0; i < 512; i++, number++) {
			const struct record *rec;

			CHECK(put_less(&w, 0, number, i % 3, over));
			CHECK(otprof_ring_avail(&w.ring) == record_len(i % 3 + over) + OTP_RING_HDR);
			rec = take(&w);
			CHECK(rec && record_whole(rec, 0, number));
			CHECK(!take(&w));
			ring_release(&w.reader, ring_producer(&w.reader));
		}
	world_close(&w);
	return true;
}

static bool bytes_of_any_length_arrive_padded_with_zeroes(void)
{
	struct world w;
	u8 from[200];

	CHECK(world_open(&w, 4096));
	memset(w.data, 0xff, w.size);
	memset(from, 0x5a, sizeof(from));
	for (u32 len = sizeof(struct otp_rec); len < sizeof(from); len++) {
		struct otp_rec head = {.type = OTP_REC_SAMPLE, .len = len};
		const u8 *got;

		memcpy(from, &head, sizeof(head));
		CHECK(otprof_ring_put(&w.ring, 0, from, len) == 0);
		got = (const void *)take(&w);
		CHECK(got && memcmp(got, from, len) == 0);
		for (u32 i = len; i % 8; i++)
			CHECK(got[i] == 0);
	}
	world_close(&w);
	return true;
}

static bool full_ring_refuses_and_keeps_what_it_has(void)
{
	struct world w;
	u64 n = 0;

	CHECK(world_open(&w, 4096));
	while (put(&w, 0, n, 10))
		n++;
	CHECK(n == 4096 / (record_len(10) + OTP_RING_HDR));
	CHECK(otprof_ring_avail(&w.ring) == n * (record_len(10) + OTP_RING_HDR));
	CHECK(!put(&w, 0, 0, 1000) && w.pending[0] == OTPROF_RING_IDLE);
	for (u64 i = 0; i < n; i++)
		CHECK(record_whole(take(&w), 0, i));
	CHECK(!take(&w) && put(&w, 0, n, 10));
	world_close(&w);
	return true;
}

static bool whole_ring_can_be_one_record(void)
{
	struct world w;

	CHECK(world_open(&w, 4096));
	CHECK(put(&w, 0, 1, (4096 - OTP_RING_HDR - sizeof(struct record)) / 8));
	CHECK(record_whole(take(&w), 0, 1));
	CHECK(!put(&w, 0, 1, (4096 - sizeof(struct record)) / 8));
	world_close(&w);
	return true;
}

/* The second record is committed first, and waits for the first. */
static bool reader_is_shown_nothing_before_its_commit(void)
{
	struct otprof_room first, second;
	struct world w;

	CHECK(world_open(&w, 4096));
	CHECK(otprof_ring_reserve(&w.ring, 0, record_len(4), &first) == 0);
	CHECK(otprof_ring_reserve(&w.ring, 1, record_len(4), &second) == 0);
	record_fill(first.at, 0, 7, 4);
	record_fill(second.at, 1, 8, 4);
	otprof_ring_commit(&w.ring, 1, &second, record_len(4));
	CHECK(!take(&w) && *w.producer == 0);
	otprof_ring_commit(&w.ring, 0, &first, record_len(4));
	CHECK(record_whole(take(&w), 0, 7) && record_whole(take(&w), 1, 8) && !take(&w));
	world_close(&w);
	return true;
}

/* A reservation is open; whatever the reader says, no other one gets at it. */
static bool no_lie_lets_an_open_reservation_be_overwritten(void)
{
	struct otprof_room open;
	struct world w;
	u64 lie, n;

	CHECK(world_open(&w, 4096));
	for (n = 0; n < 10; n++)
		CHECK(put(&w, 1, n, 4) && take(&w));
	CHECK(otprof_ring_reserve(&w.ring, 0, record_len(20), &open) == 0);
	record_fill(open.at, 0, 99, 20);
	for (lie = 0; lie < 3 * 4096; lie += 8) {
		*w.consumer = lie;
		while (put(&w, 1, n, 4))
			n++;
		CHECK(record_whole(open.at, 0, 99));
	}
	for (n = 0; n < 64; n++) {
		*w.consumer = ~0ULL << n;
		put(&w, 1, n, 4);
		*w.consumer = (1ULL << n) - 1;
		put(&w, 1, n, 4);
		CHECK(record_whole(open.at, 0, 99));
	}
	otprof_ring_commit(&w.ring, 0, &open, record_len(20));
	world_close(&w);
	return true;
}

static bool reader_that_lies_beyond_the_end_is_full(void)
{
	struct world w;

	CHECK(world_open(&w, 4096));
	CHECK(put(&w, 0, 1, 4));
	*w.consumer = 4096;
	CHECK(!put(&w, 0, 2, 4) && otprof_ring_avail(&w.ring) == 4096);
	*w.consumer = 0;
	CHECK(put(&w, 0, 2, 4));
	CHECK(record_whole(take(&w), 0, 1) && record_whole(take(&w), 0, 2));
	world_close(&w);
	return true;
}

/* Threads. */

struct crowd {
	struct world w;
	pthread_t threads[WRITERS];
	u64 put[WRITERS], lost[WRITERS], spoilt[WRITERS];
	bool done;
};

struct writer {
	struct crowd *c;
	u32 slot;
};

/* Looks, just before the commit, whether anybody has touched what is reserved. */
static void *write_records(void *arg)
{
	const struct writer *me = arg;
	struct crowd *c = me->c;
	u32 slot = me->slot;

	for (u64 i = 0; i < ROUNDS; i++) {
		u32 words = (u32)(i * 7 + slot) % 40, over = (u32)i % 3 * 2;
		struct otprof_room room;

		if (otprof_ring_reserve(&c->w.ring, slot, record_len(words + over), &room) < 0) {
			/* On a busy host the reader does not run for a yield. */
			if (++c->lost[slot] % 16)
				sched_yield();
			else
				usleep(100);
			continue;
		}
		record_fill(room.at, slot, c->put[slot], words);
		if (i % 64 == 0)
			sched_yield();
		c->spoilt[slot] += !record_whole(room.at, slot, c->put[slot]);
		otprof_ring_commit(&c->w.ring, slot, &room, record_len(words));
		c->put[slot]++;
	}
	return NULL;
}

static bool crowd_start(struct crowd *c, struct writer *writers, u64 size)
{
	*c = (struct crowd){0};
	CHECK(world_open(&c->w, size));
	for (u32 i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){c, i};
		CHECK(pthread_create(&c->threads[i], NULL, write_records, &writers[i]) == 0);
	}
	return true;
}

static void *wait_for_writers(void *arg)
{
	struct crowd *c = arg;

	for (u32 i = 0; i < WRITERS; i++)
		pthread_join(c->threads[i], NULL);
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* pause: so many records are left lying before the reader goes on, as an engine that stopped would. */
static bool every_record_arrives(u64 size, u64 pause)
{
	struct writer writers[WRITERS];
	u64 next[WRITERS] = {0}, n = 0;
	struct crowd c;
	pthread_t waiter;

	CHECK(crowd_start(&c, writers, size));
	CHECK(pthread_create(&waiter, NULL, wait_for_writers, &c) == 0);
	for (;;) {
		bool done = __atomic_load_n(&c.done, __ATOMIC_ACQUIRE);
		u64 pos = ring_consumer(&c.w.reader), end = ring_producer(&c.w.reader);
		const struct otp_rec *rec;
		int got;

		while ((got = ring_next(&c.w.reader, &pos, end, &rec)) > 0) {
			const struct record *r = (const void *)rec;

			CHECK(r->writer < WRITERS && record_whole(r, r->writer, next[r->writer]));
			next[r->writer]++;
			if (pause && ++n % pause == 0)
				usleep(2000);
		}
		CHECK(got == 0 && pos == end);
		ring_release(&c.w.reader, pos);
		if (done)
			break;
		sched_yield();
	}
	pthread_join(waiter, NULL);
	for (u32 i = 0; i < WRITERS; i++) {
		CHECK(next[i] == c.put[i] && c.put[i] + c.lost[i] == ROUNDS && !c.spoilt[i]);
		CHECK(c.put[i] > 0);
	}
	world_close(&c.w);
	return true;
}

static bool threads_write_and_every_record_arrives_once(void)
{
	return every_record_arrives(1 << 20, 0) && every_record_arrives(4096, 0);
}

static bool reader_that_stops_loses_only_what_is_counted(void)
{
	return every_record_arrives(16384, 500);
}

static bool liar_beside_threads_spoils_no_open_reservation(void)
{
	struct writer writers[WRITERS];
	struct crowd c;
	pthread_t waiter;
	u64 x = 88172645463325252ULL, put = 0;

	CHECK(crowd_start(&c, writers, 4096));
	CHECK(pthread_create(&waiter, NULL, wait_for_writers, &c) == 0);
	while (!__atomic_load_n(&c.done, __ATOMIC_ACQUIRE)) {
		u64 seen = __atomic_load_n(c.w.producer, __ATOMIC_ACQUIRE);

		test_random(&x);
		__atomic_store_n(c.w.consumer, x % 4 ? seen + x % 9000 - 4500 : x % 8 ? seen : x, __ATOMIC_RELEASE);
		sched_yield();
	}
	pthread_join(waiter, NULL);
	for (u32 i = 0; i < WRITERS; i++) {
		CHECK(!c.spoilt[i]);
		put += c.put[i];
	}
	CHECK(put > ROUNDS / 10);
	world_close(&c.w);
	return true;
}

static const struct test tests[] = {
	{"record survives a wrap at every offset", record_survives_a_wrap_at_every_offset},
	{"room left over is passed at every offset", room_left_over_is_passed_at_every_offset},
	{"bytes of any length arrive, padded with zeroes", bytes_of_any_length_arrive_padded_with_zeroes},
	{"full ring refuses and keeps what it has", full_ring_refuses_and_keeps_what_it_has},
	{"whole ring can be one record", whole_ring_can_be_one_record},
	{"reader is shown nothing before its commit", reader_is_shown_nothing_before_its_commit},
	{"no lie lets an open reservation be overwritten", no_lie_lets_an_open_reservation_be_overwritten},
	{"reader that lies beyond the end is a full ring", reader_that_lies_beyond_the_end_is_full},
	{"threads write, and every record arrives once", threads_write_and_every_record_arrives_once},
	{"reader that stops loses only what is counted", reader_that_stops_loses_only_what_is_counted},
	{"liar beside threads spoils no open reservation", liar_beside_threads_spoils_no_open_reservation},
};

int main(int argc, char **argv)
{
	char what[64];

	snprintf(what, sizeof(what), "ring%s", argc > 1 ? argv[1] : "");
	return test_run(what, tests, sizeof(tests) / sizeof(*tests)) != 0;
}
