// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/ring.h"
#include "ring/writer.h"

Suite *ring_writer_suite(void);

#define SIZE 4096

static struct ring_writer writer;
static struct ring ring;

static void setup(void)
{
	ck_assert_int_eq(ring_writer_open(&writer, SIZE), 0);
	ck_assert_int_eq(ring_map_file(&ring, writer.consumer_fd, writer.ring_fd, SIZE), 0);
}

static void teardown(void)
{
	ring_unmap(&ring);
	ring_writer_close(&writer);
}

/* A record whose every byte behind the head is its number. */
static bool put(uint32_t len, uint8_t number)
{
	struct otp_rec *rec = ring_writer_reserve(&writer, len);

	if (!rec)
		return false;
	memset(rec, number, len);
	*rec = (struct otp_rec){.type = OTP_REC_LOSS, .len = len};
	ring_writer_commit(&writer, len);
	return true;
}

static bool is_whole(const struct otp_rec *rec, uint8_t number)
{
	const uint8_t *p = (const uint8_t *)(rec + 1);

	for (uint32_t i = 0; i < rec->len - sizeof(*rec); i++)
		if (p[i] != number)
			return false;
	return true;
}

/* Reads everything; how many, each of which is whole and one more than the one before. */
static uint32_t read_all(uint8_t *number)
{
	uint64_t pos = ring_consumer(&ring), end = ring_producer(&ring);
	const struct otp_rec *rec;
	uint32_t n = 0;

	for (; ring_next(&ring, &pos, end, &rec) == 1; n++, (*number)++)
		ck_assert(is_whole(rec, *number));
	ck_assert_uint_eq(pos, end);
	ring_release(&ring, pos);
	return n;
}

START_TEST(records_arrive_whole_at_every_offset)
{
	uint8_t in = 0, out = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		ck_assert(put(8 + i % 700, in++));
		if (i % 3 == 2)
			ck_assert_uint_eq(read_all(&out), 3);
	}
	ck_assert_uint_gt(ring_producer(&ring), 100 * SIZE);
}
END_TEST

START_TEST(nothing_is_visible_before_commit)
{
	uint8_t out = 0;

	ck_assert_ptr_nonnull(ring_writer_reserve(&writer, 100));
	ck_assert_uint_eq(ring_producer(&ring), 0);
	ck_assert(put(16, 0));
	ck_assert_uint_eq(ring_producer(&ring), 24);
	ck_assert_uint_eq(read_all(&out), 1);
}
END_TEST

START_TEST(commit_may_take_less_than_was_reserved)
{
	struct otp_rec *rec = ring_writer_reserve(&writer, 2000);

	*rec = (struct otp_rec){.type = OTP_REC_LOSS, .len = 9};
	ring_writer_commit(&writer, 9);
	ck_assert_uint_eq(ring_producer(&ring), 24);
}
END_TEST

START_TEST(full_ring_takes_nothing_until_it_is_read)
{
	uint8_t in = 0, out = 0;

	while (put(248, in))
		in++;
	ck_assert_uint_eq(in, SIZE / 256);
	ck_assert_uint_eq(ring_writer_unread(&writer), SIZE);
	ck_assert_ptr_null(ring_writer_reserve(&writer, 8));
	ck_assert_uint_eq(read_all(&out), in);
	ck_assert(put(SIZE - 8, in));
	ck_assert_uint_eq(read_all(&out), 1);
}
END_TEST

START_TEST(record_larger_than_the_ring_is_refused)
{
	ck_assert_ptr_null(ring_writer_reserve(&writer, SIZE - 7));
	ck_assert_ptr_null(ring_writer_reserve(&writer, UINT32_MAX));
	ck_assert_ptr_null(ring_writer_reserve(&writer, OTP_RING_DISCARD));
}
END_TEST

static const unsigned long lies[] = {1, 3, 4096 + 8, 1UL << 40, UINT64_MAX, UINT64_MAX - 7};

START_TEST(consumer_that_lies_frees_nothing)
{
	uint8_t in = 0;

	while (put(248, in))
		in++;
	*ring.consumer = lies[_i];
	ck_assert_ptr_null(ring_writer_reserve(&writer, 8));
	ck_assert_uint_eq(ring_writer_unread(&writer), SIZE);
	*ring.consumer = 256;
	ck_assert(put(248, in));
	*ring.consumer = 0; /* back in time */
	ck_assert_uint_eq(ring_writer_unread(&writer), SIZE);
}
END_TEST

START_TEST(reader_cannot_write_what_was_written)
{
	void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, writer.ring_fd, 0);

	ck_assert_ptr_eq(map, MAP_FAILED);
	ck_assert_int_eq(errno, EACCES);
	map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, writer.ring_fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_lt(mprotect(map, SIZE, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_lt(write(writer.ring_fd, "x", 1), 0);
	munmap(map, SIZE);
}
END_TEST

/* As the engine does: its own position frees nothing until the monitor follows it. */
START_TEST(reader_of_a_view_frees_nothing_itself)
{
	unsigned long own = 0;
	const struct otp_rec *rec;
	uint8_t in = 0, out = 0;
	struct ring view;
	uint64_t pos = 0;

	ck_assert_int_eq(ring_view_file(&view, writer.ring_fd, SIZE, &own), 0);
	while (put(248, in))
		in++;
	while (ring_next(&view, &pos, ring_producer(&view), &rec) == 1)
		ck_assert(is_whole(rec, out++));
	ck_assert_uint_eq(out, in);
	ring_release(&view, pos);
	ck_assert_uint_eq(ring_consumer(&view), SIZE);
	ck_assert_uint_eq(ring_kept(&view), SIZE);
	ck_assert_ptr_null(ring_writer_reserve(&writer, 8));
	ring_follow(&ring, own);
	ck_assert_uint_eq(ring_kept(&view), 0);
	ck_assert(put(248, in));
	ring_unmap(&view);
}
END_TEST

START_TEST(view_cannot_be_made_writable)
{
	unsigned long own = 0;
	struct ring view;

	ck_assert_int_eq(ring_view_file(&view, writer.ring_fd, SIZE, &own), 0);
	ck_assert_int_lt(mprotect((void *)(uintptr_t)view.freed, 2 * view.page, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_lt(mprotect((void *)(uintptr_t)view.data, SIZE, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_lt(mprotect((void *)(uintptr_t)(view.data + SIZE), SIZE, PROT_READ | PROT_WRITE), 0);
	ring_unmap(&view);
}
END_TEST

START_TEST(files_cannot_be_cut)
{
	ck_assert_int_lt(ftruncate(writer.consumer_fd, 0), 0);
	ck_assert_int_lt(ftruncate(writer.ring_fd, 0), 0);
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
	struct ring_writer w = {0};

	ck_assert_int_eq(ring_writer_open(&w, 0), -EINVAL);
	ck_assert_int_eq(ring_writer_open(&w, 2048), -EINVAL);
	ck_assert_int_eq(ring_writer_open(&w, 4096 + 8), -EINVAL);
	ck_assert_int_eq(ring_writer_open(&w, 3 * 4096), -EINVAL);
	ring_writer_close(&w);
}
END_TEST

#define MANY 200000

static void *write_many(void *arg)
{
	for (uint32_t i = 0; i < MANY; i++)
		while (!put(8 + i % 97, (uint8_t)i))
			sched_yield();
	return NULL;
}

START_TEST(two_threads_lose_nothing)
{
	uint8_t out = 0;
	uint32_t n = 0;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, write_many, NULL), 0);
	while (n < MANY) {
		uint32_t now = read_all(&out);

		n += now;
		if (!now)
			sched_yield();
	}
	pthread_join(t, NULL);
	ck_assert_uint_eq(n, MANY);
}
END_TEST

Suite *ring_writer_suite(void)
{
	Suite *s = suite_create("ring_writer");
	TCase *t = tcase_create("writer");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, records_arrive_whole_at_every_offset);
	tcase_add_test(t, nothing_is_visible_before_commit);
	tcase_add_test(t, commit_may_take_less_than_was_reserved);
	tcase_add_test(t, full_ring_takes_nothing_until_it_is_read);
	tcase_add_test(t, record_larger_than_the_ring_is_refused);
	tcase_add_loop_test(t, consumer_that_lies_frees_nothing, 0, sizeof(lies) / sizeof(*lies));
	tcase_add_test(t, reader_cannot_write_what_was_written);
	tcase_add_test(t, reader_of_a_view_frees_nothing_itself);
	tcase_add_test(t, view_cannot_be_made_writable);
	tcase_add_test(t, files_cannot_be_cut);
	tcase_add_test(t, impossible_sizes_are_refused);
	tcase_add_test(t, two_threads_lose_nothing);
	suite_add_tcase(s, t);
	return s;
}
