// SPDX-License-Identifier: Apache-2.0
#include <check.h>

#include "base/cleanup.h"
#include "daemon/monitor/books.h"
#include "tests/unit/ring_fixture.h"

Suite *books_suite(void);

static struct ring_fixture ring;
static struct sampler sampler;
static struct books books;

static void setup(void)
{
	ring_fixture_open(&ring, &sampler.ring);
	books_init(&books);
	ck_assert_int_eq(books_open(&books), 0);
}

static void teardown(void)
{
	books_close(&books);
}

static void put(uint32_t bits)
{
	ring_fixture_put(&ring, OTP_REC_LOSS, bits);
}

static void engine_says(uint64_t pos)
{
	struct ledger_engine e = {.ring_pos = pos};

	ledger_publish(books.engine, &e);
}

static uint64_t engine_begins_at(void)
{
	struct ledger_engine e;

	ledger_read(books.engine, &e);
	return e.ring_pos;
}

START_TEST(ring_is_freed_as_far_as_the_engine_has_read)
{
	put(0);
	put(0);
	books_follow_engine(&books, &sampler);
	ck_assert_uint_eq(ring.consumer, 0);
	engine_says(24);
	books_follow_engine(&books, &sampler);
	ck_assert_uint_eq(ring.consumer, 24);
}
END_TEST

static const struct {
	uint64_t says, believed; /* of three records, whose second is being written */
} engines[] = {{0, 0}, {24, 24}, {17, 0}, {48, 24}, {72, 24}, {73, 0}, {1ULL << 40, 0}, {UINT64_MAX, 0}};

START_TEST(engine_that_lies_frees_no_record_that_is_being_written)
{
	put(0);
	put(OTP_RING_BUSY);
	put(0);
	engine_says(engines[_i].says);
	books_follow_engine(&books, &sampler);
	ck_assert_uint_eq(ring.consumer, engines[_i].believed);
}
END_TEST

/* What a dead engine says is no better. */
START_TEST(next_engine_begins_where_the_last_can_be_believed)
{
	put(0);
	put(OTP_RING_BUSY);
	put(0);
	engine_says(engines[_i].says);
	books_engine_died(&books, &sampler);
	ck_assert_uint_eq(ring.consumer, engines[_i].believed);
	ck_assert_uint_eq(engine_begins_at(), engines[_i].believed);
}
END_TEST

Suite *books_suite(void)
{
	Suite *s = suite_create("books");
	TCase *t = tcase_create("ring");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, ring_is_freed_as_far_as_the_engine_has_read);
	tcase_add_loop_test(t, engine_that_lies_frees_no_record_that_is_being_written, 0, ARRAY_SIZE(engines));
	tcase_add_loop_test(t, next_engine_begins_where_the_last_can_be_believed, 0, ARRAY_SIZE(engines));
	suite_add_tcase(s, t);
	return s;
}
