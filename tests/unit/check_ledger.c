// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/report/ledger_sum.h"

Suite *ledger_suite(void);

#define RING 4096
#define CPUS 2

static struct otp_cpu_counters counters[2 * CPUS];
static struct ledger_engine_page engine_page;
static struct ledger_net_page net_page;
static struct ledger_engine engine;
static struct ledger_net net;
static unsigned long consumer, producer;
static uint8_t data[2 * RING] __attribute__((aligned(8)));
static struct ring ring;
static struct ledger_sum sum;

static struct origins origins;

static const struct ledger_view view = {.counters = counters,
					.counters_stride = sizeof(counters[0]),
					.cpus = CPUS,
					.origins = &origins,
					.ring = &ring,
					.engine = &engine_page,
					.net = &net_page};

static void setup(void)
{
	origins = origins_of_clock(1);
	memset(counters, 0, sizeof(counters));
	memset(&engine, 0, sizeof(engine));
	memset(&net, 0, sizeof(net));
	memset(&engine_page, 0, sizeof(engine_page));
	memset(&net_page, 0, sizeof(net_page));
	memset(data, 0, sizeof(data));
	consumer = producer = 0;
	ring_wrap(&ring, &consumer, &producer, data, RING);
	net.destinations = 1;
}

static void put_record(uint16_t type, uint32_t flags)
{
	struct otp_rec rec = {.type = type, .len = 64};
	struct otp_ring_hdr head = {.len = 64 | flags};
	size_t at = producer % RING;

	memcpy(data + at, &head, sizeof(head));
	memcpy(data + at + sizeof(head), &rec, sizeof(rec));
	producer += sizeof(head) + 64;
}

static void put_sample_of(uint8_t origin, uint32_t on_cpu, uint64_t seq)
{
	struct otp_sample s = {
		.rec = {.type = OTP_REC_SAMPLE, .len = sizeof(s)}, .origin = origin, .cpu = on_cpu, .seq = seq};
	struct otp_ring_hdr head = {.len = sizeof(s)};
	size_t at = producer % RING;

	memcpy(data + at, &head, sizeof(head));
	memcpy(data + at + sizeof(head), &s, sizeof(s));
	producer += sizeof(head) + sizeof(s);
}

static void put_sample(uint32_t on_cpu, uint64_t seq)
{
	put_sample_of(OTP_ORIGIN_CPU_CLOCK, on_cpu, seq);
}

static void read_sum(uint32_t destinations)
{
	ledger_publish(&engine_page, &engine);
	ledger_publish(&net_page, &net);
	ledger_sum_read(&view, destinations, &sum);
}

START_TEST(nothing_is_balanced)
{
	read_sum(1);
	ck_assert(sum.all.balanced && sum.stable);
	ck_assert_uint_eq(sum.all.taken, 0);
	ck_assert_uint_eq(sum.all.in_flight, 0);
}
END_TEST

/* 100 taken: 5 lost by the sampler, 2 on the ring, 93 read. */
static void fill(void)
{
	counters[0].taken = 60;
	counters[0].put = 57;
	counters[0].lost[OTP_LOSS_RING_FULL] = 3;
	counters[1].taken = 40;
	counters[1].put = 38;
	counters[1].lost[OTP_LOSS_SCRATCH] = 2;
	put_record(OTP_REC_SAMPLE, 0);
	put_record(OTP_REC_CHUNK, 0);
	put_record(OTP_REC_SAMPLE, OTP_RING_DISCARD);
	put_record(OTP_REC_LOSS, 0);
	put_record(OTP_REC_SAMPLE, 0);
	engine.read.of[0] = 93;
	engine.held.of[0] = 10;
	engine.lost[OTP_LOSS_BAD_RECORD].of[0] = 3;
	engine.handed.of[0] = 80;
	net.received.of[0] = 70;
	net.dest[0].exported.of[0] = 50;
	net.dest[0].unconfirmed.of[0] = 5;
	net.dest[0].queued.of[0] = 8;
	net.dest[0].sending.of[0] = 3;
	net.dest[0].lost[OTP_LOSS_REJECTED].of[0] = 4;
}

START_TEST(every_sample_is_in_one_place)
{
	fill();
	read_sum(1);
	ck_assert(sum.all.balanced);
	ck_assert_uint_eq(sum.all.taken, 100);
	ck_assert_uint_eq(sum.all.on_ring, 2);
	ck_assert_uint_eq(sum.all.between, 10);
	ck_assert_uint_eq(sum.all.in_flight, 2 + 10 + 10 + 11);
	ck_assert_uint_eq(sum.all.lost[OTP_LOSS_RING_FULL], 3);
	ck_assert_uint_eq(sum.all.lost[OTP_LOSS_REJECTED], 4);
	ck_assert_uint_eq(sum.all.dest[0].exported, 50);
}
END_TEST

START_TEST(samples_from_disk_stand_beside_those_taken)
{
	fill();
	net.dest[0].restored.of[0] = 20;
	net.dest[0].spooled.of[0] = 12;
	net.dest[0].exported.of[0] += 8;
	net.dest[0].repeated.of[0] = 6; /* no part of the equation */
	read_sum(1);
	ck_assert(sum.all.balanced);
	ck_assert_uint_eq(sum.all.dest[0].restored, 20);
	ck_assert_uint_eq(sum.all.dest[0].spooled, 12);
	ck_assert_uint_eq(sum.all.dest[0].repeated, 6);
	ck_assert_uint_eq(sum.all.in_flight, 2 + 10 + 10 + 11 + 12);
	net.dest[0].restored.of[0] = 19;
	read_sum(1);
	ck_assert(!sum.all.balanced);
}
END_TEST

START_TEST(one_sample_too_few_is_seen)
{
	fill();
	engine.held.of[0]--;
	read_sum(1);
	ck_assert(!sum.all.balanced);
	ck_assert(sum.stable);
}
END_TEST

/* Beside fill(): a second origin, of which 20 were taken. */
static void fill_faults(void)
{
	origins.count = 2;
	origins.slot[1] = (struct origin_slot){.origin = OTP_ORIGIN_PAGE_FAULTS, .sampled = true, .period = 1};
	counters[CPUS + 1].taken = 20;
	counters[CPUS + 1].put = 19;
	counters[CPUS + 1].lost[OTP_LOSS_RING_FULL] = 1;
	counters[CPUS + 1].value = 2000;
	put_sample_of(OTP_ORIGIN_PAGE_FAULTS, 1, 20);
	engine.read.of[1] = 18;
	engine.held.of[1] = 8;
	engine.handed.of[1] = 10;
	net.received.of[1] = 10;
	net.dest[0].exported.of[1] = 10;
}

START_TEST(each_origin_has_its_own_equation)
{
	fill();
	fill_faults();
	read_sum(1);
	ck_assert(sum.all.balanced && sum.origin[0].balanced && sum.origin[1].balanced);
	ck_assert_uint_eq(sum.all.taken, 120);
	ck_assert_uint_eq(sum.origin[0].taken, 100);
	ck_assert_uint_eq(sum.origin[1].taken, 20);
	ck_assert_uint_eq(sum.origin[1].value, 2000);
	ck_assert_uint_eq(sum.origin[1].on_ring, 1);
	ck_assert_uint_eq(sum.origin[1].in_flight, 9);
	ck_assert_uint_eq(sum.all.in_flight, 33 + 9);
	ck_assert_uint_eq(sum.origin[1].lost[OTP_LOSS_RING_FULL], 1);
	ck_assert_uint_eq(sum.all.lost[OTP_LOSS_RING_FULL], 4);
}
END_TEST

START_TEST(cpus_are_counted_by_the_ticks_of_any_origin)
{
	origins.count = 2;
	ck_assert_uint_eq(ledger_count_cpus(&view), 0);
	counters[CPUS + 1].ticks = 3; /* events only */
	ck_assert_uint_eq(ledger_count_cpus(&view), 1);
	counters[0].ticks = counters[1].ticks = 5;
	ck_assert_uint_eq(ledger_count_cpus(&view), 2);
}
END_TEST

START_TEST(one_origin_does_not_make_up_for_another)
{
	fill();
	fill_faults();
	engine.held.of[0]--;
	engine.held.of[1]++;
	read_sum(1);
	ck_assert(!sum.origin[0].balanced && !sum.origin[1].balanced && !sum.all.balanced);
}
END_TEST

START_TEST(a_record_of_no_origin_of_the_session_counts_in_the_first_slot)
{
	struct ledger_counts n;

	fill_faults();
	put_sample_of(OTP_ORIGIN_CYCLES, 0, 1);
	put_sample_of(255, 0, 1);
	ledger_count_ring(&ring, 0, &origins, &n);
	ck_assert_uint_eq(n.of[0], 2);
	ck_assert_uint_eq(n.of[1], 1);
}
END_TEST

START_TEST(samples_that_come_meanwhile_are_of_the_next_moment)
{
	fill();
	counters[0].taken++;
	counters[0].put++;
	put_sample(0, 61);
	put_sample(0, 62);
	put_sample(1, 41);
	read_sum(1);
	ck_assert(sum.all.balanced && sum.stable);
	ck_assert_uint_eq(sum.all.taken, 101);
	ck_assert_uint_eq(sum.all.on_ring, 3);
}
END_TEST

START_TEST(each_destination_has_its_own_equation)
{
	fill();
	net.destinations = 2;
	net.dest[1].exported.of[0] = 69;
	net.dest[1].lost[OTP_LOSS_WRITE].of[0] = 1;
	read_sum(2);
	ck_assert(sum.all.balanced);
	ck_assert_uint_eq(sum.all.dest[1].in_flight, 22);
	ck_assert_uint_eq(sum.all.in_flight, 33);
	ck_assert_uint_eq(sum.all.dest[1].lost[OTP_LOSS_WRITE], 1);
	ck_assert_uint_eq(sum.all.dest[1].lost[OTP_LOSS_RING_FULL], 3);
	/* With two, a destination's own losses are not the common ones. */
	ck_assert_uint_eq(sum.all.lost[OTP_LOSS_WRITE], 0);
	ck_assert_uint_eq(sum.all.lost[OTP_LOSS_BAD_RECORD], 3);
	net.dest[1].lost[OTP_LOSS_WRITE].of[0] = 0;
	read_sum(2);
	ck_assert(!sum.all.balanced && sum.all.dest[0].balanced && !sum.all.dest[1].balanced);
}
END_TEST

/* One origin waits for the first destination, the other for the second: none has both in its queue. */
START_TEST(in_flight_is_that_of_one_destination)
{
	fill();
	fill_faults();
	net.destinations = 2;
	net.dest[0].exported.of[0] += net.dest[0].queued.of[0] + net.dest[0].sending.of[0];
	net.dest[0].queued.of[0] = net.dest[0].sending.of[0] = 0;
	net.dest[0].exported.of[1] = 4;
	net.dest[0].queued.of[1] = 6;
	net.dest[1].exported.of[0] = 59;
	net.dest[1].queued.of[0] = 11;
	net.dest[1].exported.of[1] = 10;
	read_sum(2);
	ck_assert_uint_eq(sum.all.dest[0].in_flight, 22 + 9 + 6);
	ck_assert_uint_eq(sum.all.dest[1].in_flight, 22 + 9 + 11);
	ck_assert_uint_eq(sum.all.in_flight, sum.all.dest[1].in_flight);
}
END_TEST

START_TEST(destination_that_net_has_not_published_is_in_flight)
{
	counters[0].taken = counters[0].put = 5;
	engine.read.of[0] = engine.handed.of[0] = 5;
	net.destinations = 0;
	read_sum(1);
	ck_assert(sum.all.balanced);
	ck_assert_uint_eq(sum.all.in_flight, 5);
}
END_TEST

static uint64_t count_from(uint64_t pos)
{
	struct ledger_counts n;

	ledger_count_ring(&ring, pos, &origins, &n);
	return ledger_counts_total(&n);
}

START_TEST(busy_record_ends_the_walk)
{
	put_record(OTP_REC_SAMPLE, 0);
	put_record(OTP_REC_SAMPLE, OTP_RING_BUSY);
	put_record(OTP_REC_SAMPLE, 0);
	ck_assert_uint_eq(count_from(0), 1);
}
END_TEST

START_TEST(made_up_position_ends_at_once)
{
	put_record(OTP_REC_SAMPLE, 0);
	ck_assert_uint_eq(count_from(producer + 8), 0);
	ck_assert_uint_eq(count_from(UINT64_MAX), 0);
	producer += 2 * RING;
	ck_assert_uint_eq(count_from(0), 0);
}
END_TEST

START_TEST(strings_of_a_lying_worker_end)
{
	memset(engine.top_name, 'x', sizeof(engine.top_name));
	memset(net.dest[7].last_error, 'x', sizeof(net.dest[7].last_error));
	net.destinations = UINT32_MAX;
	read_sum(1);
	ck_assert_uint_eq(strlen(sum.engine.top_name), sizeof(engine.top_name) - 1);
	ck_assert_uint_eq(strlen(sum.net.dest[7].last_error), sizeof(net.dest[7].last_error) - 1);
	ck_assert_uint_eq(sum.net.destinations, LEDGER_DESTINATIONS_MAX);
}
END_TEST

START_TEST(index_out_of_range_reads_a_slot)
{
	fill();
	ledger_publish(&engine_page, &engine);
	engine_page.current |= 0xfffffffe;
	ledger_look_engine(&engine_page, &engine);
	ck_assert_uint_eq(engine.read.of[0], 93);
}
END_TEST

static bool stop;

static void *publish_all_the_time(void *arg)
{
	struct ledger_engine copy = {0};

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		copy.read.of[0]++;
		copy.held.of[0]++;
		ledger_publish(&engine_page, &copy);
	}
	return NULL;
}

START_TEST(page_that_never_rests_does_not_hold_the_reader)
{
	struct ledger_engine e;
	pthread_t thread;

	stop = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, publish_all_the_time, NULL), 0);
	for (int i = 0; i < 1000; i++)
		ledger_look_engine(&engine_page, &e);
	read_sum(1);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(every_reason_has_a_name)
{
	for (uint32_t i = 0; i < OTP_LOSS_NR; i++)
		ck_assert_ptr_nonnull(ledger_loss_name(i));
	ck_assert_ptr_null(ledger_loss_name(OTP_LOSS_NR));
	ck_assert_str_eq(ledger_loss_name(OTP_LOSS_NET_DIED), "net_died");
	ck_assert_str_eq(ledger_skip_name(OTP_SKIP_IDLE), "idle");
	ck_assert_ptr_null(ledger_skip_name(OTP_SKIP_NR));
}
END_TEST

Suite *ledger_suite(void)
{
	Suite *s = suite_create("ledger");
	TCase *t = tcase_create("sum");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, nothing_is_balanced);
	tcase_add_test(t, every_sample_is_in_one_place);
	tcase_add_test(t, samples_from_disk_stand_beside_those_taken);
	tcase_add_test(t, one_sample_too_few_is_seen);
	tcase_add_test(t, each_origin_has_its_own_equation);
	tcase_add_test(t, cpus_are_counted_by_the_ticks_of_any_origin);
	tcase_add_test(t, one_origin_does_not_make_up_for_another);
	tcase_add_test(t, a_record_of_no_origin_of_the_session_counts_in_the_first_slot);
	tcase_add_test(t, samples_that_come_meanwhile_are_of_the_next_moment);
	tcase_add_test(t, each_destination_has_its_own_equation);
	tcase_add_test(t, in_flight_is_that_of_one_destination);
	tcase_add_test(t, destination_that_net_has_not_published_is_in_flight);
	tcase_add_test(t, busy_record_ends_the_walk);
	tcase_add_test(t, made_up_position_ends_at_once);
	tcase_add_test(t, strings_of_a_lying_worker_end);
	tcase_add_test(t, index_out_of_range_reads_a_slot);
	tcase_add_test(t, page_that_never_rests_does_not_hold_the_reader);
	tcase_add_test(t, every_reason_has_a_name);
	suite_add_tcase(s, t);
	return s;
}
