// SPDX-License-Identifier: Apache-2.0
/* The first drain of an engine whose predecessor died: what it skips. */
#include <check.h>
#include <string.h>

#include "daemon/engine/engine_state.h"
#include "tests/unit/ring_fixture.h"

Suite *drain_suite(void);

static struct ring_fixture ring;
static struct ledger_engine_page page;
static struct engine engine;

static void setup(void)
{
	memset(&page, 0, sizeof(page));
	memset(&engine, 0, sizeof(engine));
	ring_fixture_open(&ring, &engine.ring);
	engine.page = &page;
	engine.origins = origins_of_clock(1000000);
}

static void put(enum otp_rec_type type, uint32_t bits)
{
	ring_fixture_put(&ring, type, bits);
}

static const struct {
	const char *what;
	uint64_t batch_end;
	uint64_t pos, lost; /* where the next engine goes on, and the samples that count as lost */
} batches[] = { /* of a sample, a chunk, a sample, a sample that is being written, a sample */
	{"none was under way", 0, 0, 0},
	{"one record", 24, 24, 1},
	{"all that is whole", 72, 72, 2},
	{"into the middle of a record", 56, 48, 1},
	{"into the middle of the first", 8, 0, 0},
	{"not at a multiple of 8", 51, 0, 0},
	{"up to the end of the record that is being written", 96, 72, 2},
	{"behind it", 120, 72, 2},
	{"into the middle of what is behind it", 104, 72, 2},
	{"beyond all records", 144, 0, 0},
	{"from nowhere", UINT64_MAX, 0, 0},
};

START_TEST(engine_goes_on_behind_the_last_whole_record_of_a_fatal_batch)
{
	struct ledger_engine told;

	put(OTP_REC_SAMPLE, 0);
	put(OTP_REC_CHUNK, 0);
	put(OTP_REC_SAMPLE, 0);
	put(OTP_REC_SAMPLE, OTP_RING_BUSY);
	put(OTP_REC_SAMPLE, 0);
	engine.ledger.batch_end = batches[_i].batch_end;
	ledger_publish(&page, &engine.ledger);
	engine_skip_fatal_batch(&engine);
	ledger_read(&page, &told);
	ck_assert_msg(ring.consumer == batches[_i].pos, "%s: at %lu", batches[_i].what, ring.consumer);
	ck_assert_uint_eq(told.ring_pos, batches[_i].pos);
	ck_assert_uint_eq(told.read.of[0], batches[_i].lost);
	ck_assert_uint_eq(told.lost[OTP_LOSS_ENGINE_DIED].of[0], batches[_i].lost);
}
END_TEST

Suite *drain_suite(void)
{
	Suite *s = suite_create("drain");
	TCase *t = tcase_create("drain");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, engine_goes_on_behind_the_last_whole_record_of_a_fatal_batch, 0,
			    sizeof(batches) / sizeof(batches[0]));
	suite_add_tcase(s, t);
	return s;
}
