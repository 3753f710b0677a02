// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "ring/ring.h"

Suite *ring_suite(void);

#define SIZE 4096

static unsigned long consumer, producer;
static uint8_t data[2 * SIZE] __attribute__((aligned(8)));
static struct ring ring;
static uint64_t pos;

static void setup(void)
{
	consumer = producer = 0;
	pos = 0;
	memset(data, 0, sizeof(data));
	ring_wrap(&ring, &consumer, &producer, data, SIZE);
}

/* The data area is mapped twice: what is written in one half shows in the other. */
static void write_at(uint64_t at, const void *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[(at + i) & (SIZE - 1)] = data[((at + i) & (SIZE - 1)) + SIZE] = ((const uint8_t *)from)[i];
}

static void put(uint32_t body, uint32_t rec_len, uint32_t bits)
{
	struct otp_ring_hdr hdr = {.len = body | bits};
	struct otp_rec rec = {.type = OTP_REC_SAMPLE, .len = rec_len};

	write_at(producer, &hdr, sizeof(hdr));
	write_at(producer + sizeof(hdr), &rec, sizeof(rec));
	producer += (body + OTP_RING_HDR + 7) & ~7ULL;
}

static int next(const struct otp_rec **ret)
{
	return ring_next(&ring, &pos, ring_producer(&ring), ret);
}

START_TEST(reader_walks_records_to_the_end)
{
	const struct otp_rec *rec;

	put(120, 120, 0);
	put(33, 33, 0);
	ck_assert_int_eq(next(&rec), 1);
	ck_assert_uint_eq(rec->len, 120);
	ck_assert_int_eq(next(&rec), 1);
	ck_assert_uint_eq(rec->len, 33);
	ck_assert_int_eq(next(&rec), 0);
	ck_assert_uint_eq(pos, producer);
}
END_TEST

START_TEST(reader_stops_at_a_busy_record)
{
	const struct otp_rec *rec;

	put(64, 64, 0);
	put(64, 64, OTP_RING_BUSY);
	put(64, 64, 0);
	ck_assert_int_eq(next(&rec), 1);
	ck_assert_int_eq(next(&rec), 0);
	ck_assert_uint_eq(pos, 72);
}
END_TEST

START_TEST(reader_skips_discarded_records)
{
	const struct otp_rec *rec;

	put(64, 1, OTP_RING_DISCARD);
	put(40, 40, 0);
	ck_assert_int_eq(next(&rec), 1);
	ck_assert_uint_eq(rec->len, 40);
	put(64, 1, OTP_RING_DISCARD);
	ck_assert_int_eq(next(&rec), 0);
	ck_assert_uint_eq(pos, producer);
}
END_TEST

START_TEST(record_that_wraps_is_read_in_one_piece)
{
	const struct otp_rec *rec;

	/* Every place at which a record can begin. */
	pos = producer = (unsigned long)_i * 8;
	put(SIZE - 16, SIZE - 16, 0);
	ck_assert_int_eq(next(&rec), 1);
	ck_assert_uint_eq(rec->len, SIZE - 16);
	ck_assert((const uint8_t *)rec >= data);
	ck_assert((const uint8_t *)rec + rec->len <= data + 2 * SIZE);
}
END_TEST

static const struct {
	uint32_t body, rec_len;
} lies[] = {
	{SIZE * 2, 64},  /* longer than what was produced */
	{64, 65},        /* the record claims more than its place */
	{64, 7},         /* less than a record's own head */
	{4, 4},          /* no room for a head */
	{0x3fffffff, 8}, /* as long as can be said */
};

START_TEST(record_that_lies_is_refused)
{
	struct otp_ring_hdr hdr = {.len = lies[_i].body};
	struct otp_rec rec = {.len = lies[_i].rec_len};
	const struct otp_rec *ret = NULL;

	write_at(0, &hdr, sizeof(hdr));
	write_at(8, &rec, sizeof(rec));
	producer = 72;
	ck_assert_int_eq(next(&ret), -EBADMSG);
	ck_assert_uint_eq(pos, 0);
	ck_assert_ptr_null(ret);
}
END_TEST

START_TEST(producer_that_lies_is_refused)
{
	const struct otp_rec *ret;

	producer = SIZE + 8;
	ck_assert_int_eq(next(&ret), -EBADMSG);
	producer = 12;
	ck_assert_int_eq(next(&ret), -EBADMSG);
	producer = 0;
	pos = 8;
	ck_assert_int_eq(next(&ret), -EBADMSG);
}
END_TEST

START_TEST(release_moves_the_consumer)
{
	ring_release(&ring, 4096);
	ck_assert_uint_eq(ring_consumer(&ring), 4096);
	ck_assert_uint_eq(consumer, 4096);
}
END_TEST

/* Three records of 24, 40 and 24 bytes with their headers. */
static void put_three(uint32_t bits_of_the_second)
{
	put(16, 16, 0);
	put(32, 32, bits_of_the_second);
	put(16, 16, 0);
}

START_TEST(what_the_reader_has_read_is_freed)
{
	put_three(OTP_RING_DISCARD);
	ring_follow(&ring, 24);
	ck_assert_uint_eq(consumer, 24);
	ring_follow(&ring, 88);
	ck_assert_uint_eq(consumer, 88);
}
END_TEST

/* A sampler in an old kernel would reserve over its header, and then obey what was written there. */
START_TEST(record_that_is_being_written_is_never_freed)
{
	put_three(OTP_RING_BUSY);
	ring_follow(&ring, 64);
	ck_assert_uint_eq(consumer, 24);
	ring_follow(&ring, 88);
	ck_assert_uint_eq(consumer, 24);
	write_at(24, &(struct otp_ring_hdr){.len = 32}, sizeof(struct otp_ring_hdr));
	ring_follow(&ring, 88);
	ck_assert_uint_eq(consumer, 88);
}
END_TEST

static const struct {
	uint64_t pos, freed; /* by a reader at 24, of 88 bytes */
} forged[] = {
	{0, 24},  {23, 24},  {25, 24}, {63, 24}, {65, 64},	 {87, 64},
	{89, 24}, {96, 24},  {SIZE, 24}, {24 + SIZE, 24}, {1ULL << 63, 24}, {UINT64_MAX, 24}, {UINT64_MAX - 7, 24},
};

START_TEST(forged_position_frees_whole_records_or_none)
{
	put_three(0);
	ring_follow(&ring, 24);
	ring_follow(&ring, forged[_i].pos);
	ck_assert_uint_eq(consumer, forged[_i].freed);
}
END_TEST

/* The second header claims more than the whole ring; no sampler writes that. */
START_TEST(length_that_lies_ends_what_is_freed)
{
	put_three(0);
	write_at(24, &(struct otp_ring_hdr){.len = OTP_RING_DISCARD - 1}, sizeof(struct otp_ring_hdr));
	ring_follow(&ring, 88);
	ck_assert_uint_eq(consumer, 24);
}
END_TEST

START_TEST(records_are_freed_at_every_offset)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < 4 * SIZE / 8; i++) {
		put(16 + i % 40 * 8, 16 + i % 40 * 8, 0);
		end += 24 + i % 40 * 8;
		ring_follow(&ring, end);
		ck_assert_uint_eq(consumer, end);
	}
	ck_assert_uint_gt(end, 10 * SIZE);
}
END_TEST

START_TEST(sizes_that_are_no_ring_are_refused)
{
	unsigned long own = 0;
	struct ring r = {0};

	ck_assert_int_eq(ring_view(&r, -1, 12288, &own), -EINVAL);
	ck_assert_int_eq(ring_view_file(&r, -1, 1024, &own), -EINVAL);
	ck_assert_int_eq(ring_view(&r, -1, 4096, &own), -EBADF);
	ck_assert_int_eq(ring_map(&r, -1, 0), -EINVAL);
	ck_assert_int_eq(ring_map(&r, -1, 12288), -EINVAL);
	ck_assert_int_eq(ring_map(&r, -1, 1024), -EINVAL);
	ck_assert_int_eq(ring_map(&r, -1, 4096), -EBADF);
	ring_unmap(&r);
}
END_TEST

/* One thread produces as a sampler does, the other reads: every record once, whole, in order. */
#define STRESS 50000

static void *produce(void *arg)
{
	for (uint64_t n = 0; n < STRESS;) {
		unsigned long at = producer;
		uint32_t body = (uint32_t)(24 + n % 13 * 8);
		struct otp_ring_hdr *hdr = (void *)(data + (at & (SIZE - 1)));
		struct otp_chunk *mirror;

		if (at + body + OTP_RING_HDR - __atomic_load_n(&consumer, __ATOMIC_ACQUIRE) > SIZE / 2) {
			sched_yield();
			continue;
		}
		/* Records that would wrap are left out by discarding: the area is not really mapped twice here. */
		if ((at & (SIZE - 1)) + body + OTP_RING_HDR > SIZE) {
			body = (uint32_t)(SIZE - (at & (SIZE - 1)) - OTP_RING_HDR);
			__atomic_store_n(&hdr->len, body | OTP_RING_DISCARD, __ATOMIC_RELAXED);
			__atomic_store_n(&producer, at + body + OTP_RING_HDR, __ATOMIC_RELEASE);
			continue;
		}
		__atomic_store_n(&hdr->len, body | OTP_RING_BUSY, __ATOMIC_RELAXED);
		__atomic_store_n(&producer, at + body + OTP_RING_HDR, __ATOMIC_RELEASE);
		mirror = (void *)(hdr + 1);
		mirror->rec.type = OTP_REC_CHUNK;
		mirror->rec.len = body;
		mirror->seq = n++;
		__atomic_store_n(&hdr->len, body, __ATOMIC_RELEASE);
	}
	return arg;
}

START_TEST(reader_keeps_up_with_a_producer)
{
	const struct otp_rec *rec;
	uint64_t expected = 0, wrong = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, produce, NULL);
	while (expected < STRESS) {
		uint64_t end = ring_producer(&ring);
		int n;

		while ((n = ring_next(&ring, &pos, end, &rec)) > 0) {
			wrong += ((const struct otp_chunk *)rec)->seq != expected;
			wrong += rec->len != 24 + expected % 13 * 8;
			expected++;
		}
		wrong += n != 0;
		ring_release(&ring, pos);
		sched_yield();
	}
	pthread_join(thread, NULL);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* A sample of sections. */
static union {
	struct otp_sample s;
	uint8_t bytes[1024];
} sample;

static struct otp_section *section_add(uint32_t *at, uint16_t type, uint32_t len)
{
	struct otp_section *section = (void *)(sample.bytes + *at);

	*section = (struct otp_section){.type = type, .len = len};
	*at += sizeof(*section) + ((len + 7) & ~7U);
	sample.s.nr_sections++;
	return section;
}

static uint32_t sample_make(void)
{
	uint32_t at = sizeof(sample.s);

	memset(&sample, 0, sizeof(sample));
	section_add(&at, OTP_SEC_REGS, 144);
	section_add(&at, 200, 13); /* a type from the future, and a length that needs padding */
	section_add(&at, OTP_SEC_USTACK, 72);
	sample.s.rec.len = at;
	return at;
}

START_TEST(section_is_found_behind_unknown_ones)
{
	uint32_t len = 0;

	sample_make();
	ck_assert_ptr_eq(sample_section(&sample.s, OTP_SEC_USTACK, &len), sample.bytes + 112 + 152 + 24 + 8);
	ck_assert_uint_eq(len, 72);
	ck_assert_ptr_eq(sample_section(&sample.s, OTP_SEC_REGS, &len), sample.bytes + 120);
	ck_assert_uint_eq(len, 144);
}
END_TEST

START_TEST(missing_section_is_none)
{
	uint32_t len = 7;

	sample_make();
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_KSTACK, &len));
	ck_assert_ptr_null(sample_section_nth(&sample.s, OTP_SEC_REGS, 1, &len));
	ck_assert_uint_eq(len, 7);
}
END_TEST

START_TEST(section_beyond_the_record_is_none)
{
	uint32_t len, end = sample_make();

	sample.s.rec.len = end - 1;
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_USTACK, &len));
	sample.s.rec.len = end;
	((struct otp_section *)(sample.bytes + 112))->len = 0xffffffff;
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_REGS, &len));
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_USTACK, &len));
	sample_make();
	sample.s.nr_sections = 0xffff;
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_KSTACK, &len));
	sample.s.rec.len = 8;
	ck_assert_ptr_null(sample_section(&sample.s, OTP_SEC_REGS, &len));
}
END_TEST

Suite *ring_suite(void)
{
	Suite *s = suite_create("ring");
	TCase *t = tcase_create("records"), *sections = tcase_create("sections");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, reader_walks_records_to_the_end);
	tcase_add_test(t, reader_stops_at_a_busy_record);
	tcase_add_test(t, reader_skips_discarded_records);
	tcase_add_loop_test(t, record_that_wraps_is_read_in_one_piece, 0, SIZE / 8);
	tcase_add_loop_test(t, record_that_lies_is_refused, 0, sizeof(lies) / sizeof(lies[0]));
	tcase_add_test(t, producer_that_lies_is_refused);
	tcase_add_test(t, release_moves_the_consumer);
	tcase_add_test(t, what_the_reader_has_read_is_freed);
	tcase_add_test(t, record_that_is_being_written_is_never_freed);
	tcase_add_loop_test(t, forged_position_frees_whole_records_or_none, 0, sizeof(forged) / sizeof(forged[0]));
	tcase_add_test(t, length_that_lies_ends_what_is_freed);
	tcase_add_test(t, records_are_freed_at_every_offset);
	tcase_add_test(t, sizes_that_are_no_ring_are_refused);
	tcase_add_test(t, reader_keeps_up_with_a_producer);
	suite_add_tcase(s, t);
	tcase_add_test(sections, section_is_found_behind_unknown_ones);
	tcase_add_test(sections, missing_section_is_none);
	tcase_add_test(sections, section_beyond_the_record_is_none);
	suite_add_tcase(s, sections);
	return s;
}
