// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/monitor/monitor.h"

Suite *rate_suite(void);

/* A sampler that only notes what it is told. */
static struct {
	struct source source;
	uint32_t hz, starts, stops;
	int refuse;
} fake;

static int fake_start(struct source *s)
{
	fake.starts++;
	return 0;
}

static int fake_stop(struct source *s)
{
	fake.stops++;
	return 0;
}

static int fake_set_rate(struct source *s, uint32_t hz, uint32_t configured_hz)
{
	if (!fake.refuse)
		fake.hz = hz;
	return fake.refuse;
}

static void fake_layout(const struct source *s, struct source_layout *ret)
{
	*ret = (struct source_layout){.origins = origins_of_clock(NSEC_PER_SEC / fake.hz)};
}

static const struct source_ops ops = {
	.name = "fake", .start = fake_start, .stop = fake_stop, .set_rate = fake_set_rate, .layout = fake_layout};
static const struct source_ops stubborn = {.name = "stubborn", .start = fake_start, .stop = fake_stop, .layout = fake_layout};

static struct monitor *m;
static struct config config = {.frequency_hz = 100};
static struct ledger_engine_page page;
static struct ipc_message msg;
static unsigned long ring_page[2][1];
static int engine;

static void set_ring(uint64_t producer, uint64_t engine_at)
{
	struct ledger_engine e = {.ring_pos = engine_at};

	ring_page[1][0] = producer;
	ledger_publish(&page, &e);
}

static void setup(void)
{
	int pair[2];

	memset(&fake, 0, sizeof(fake));
	fake.source.ops = &ops;
	fake.hz = 100;
	m = calloc(1, sizeof(*m));
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(ipc_pair(pair), 0);
	m->sampler.source = &fake.source;
	m->config = &config;
	m->workers.engine = (struct worker){.kind = WORKER_ENGINE, .pid = 1, .sock = pair[0], .ready = true};
	engine = pair[1];
	m->books.engine = &page;
	m->sampler.ring = (struct ring){.consumer = ring_page[0], .producer = ring_page[1]};
	m->sampler.sampling = true;
	m->rate.hz = m->rate.wanted_hz = 100;
	fake_layout(NULL, &m->sampler.layout);
	set_ring(4096, 4096);
}

static void teardown(void)
{
	close(engine);
	close(m->workers.engine.sock);
	free(m);
}

static struct ipc_rate told(void)
{
	struct ipc_rate r;

	ck_assert_int_eq(ipc_receive(engine, &msg), 1);
	ck_assert_uint_eq(msg.head.type, IPC_RATE);
	ck_assert(ipc_fits(&msg, sizeof(r), 0));
	memcpy(&r, msg.data, sizeof(r));
	return r;
}

static void answer(uint64_t id)
{
	struct ipc_message a = {.head = {.type = IPC_RATE, .len = sizeof(id)}, .fds = {-1, -1, -1, -1}};

	memcpy(a.data, &id, sizeof(id));
	rate_acked(m, &a);
}

START_TEST(change_waits_for_the_profile_to_close)
{
	struct ipc_rate r;

	set_ring(8192, 4096);
	ck_assert_int_eq(rate_change(m, 50), 0);
	ck_assert_uint_eq(fake.stops, 1);
	ck_assert_uint_eq(fake.starts, 0);
	r = told();
	ck_assert_uint_eq(r.pos, 8192);
	ck_assert_uint_eq(r.origins.slot[0].period, NSEC_PER_SEC / 50);
	rate_run(m, clock_now_ns());
	ck_assert_uint_eq(fake.starts, 0);
	answer(r.id);
	ck_assert_uint_eq(fake.starts, 1);
	ck_assert_uint_eq(fake.hz, 50);
	ck_assert_uint_eq(m->rate.hz, 50);
}
END_TEST

START_TEST(same_rate_changes_nothing)
{
	ck_assert_int_eq(rate_change(m, 100), 0);
	ck_assert_uint_eq(fake.stops, 0);
	ck_assert_int_eq(ipc_receive(engine, &msg), -EAGAIN);
}
END_TEST

START_TEST(rate_outside_the_range_is_refused)
{
	ck_assert_int_eq(rate_change(m, 0), -ERANGE);
	ck_assert_int_eq(rate_change(m, 10001), -ERANGE);
	ck_assert_uint_eq(m->rate.wanted_hz, 100);
}
END_TEST

START_TEST(source_without_rates_keeps_its_own)
{
	fake.source.ops = &stubborn;
	ck_assert_int_eq(rate_change(m, 50), -EOPNOTSUPP);
	rate_run(m, clock_now_ns());
	ck_assert_uint_eq(fake.stops, 0);
	ck_assert_uint_eq(m->rate.hz, 100);
}
END_TEST

START_TEST(engine_that_hangs_holds_nobody_up)
{
	uint64_t now = clock_now_ns();

	rate_change(m, 50);
	rate_run(m, now + 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(fake.starts, 0);
	rate_run(m, now + 4 * NSEC_PER_SEC);
	ck_assert_uint_eq(fake.starts, 1);
	ck_assert_uint_eq(m->rate.hz, 50);
}
END_TEST

START_TEST(late_answer_does_not_start_twice)
{
	rate_change(m, 50);
	rate_run(m, clock_now_ns() + 4 * NSEC_PER_SEC);
	answer(1);
	ck_assert_uint_eq(fake.starts, 1);
}
END_TEST

START_TEST(next_engine_reads_the_old_rate_to_its_end)
{
	set_ring(8192, 4096);
	rate_change(m, 50);
	m->workers.engine.pid = 0;
	m->workers.engine.ready = false;
	rate_run(m, clock_now_ns());
	ck_assert_uint_eq(fake.starts, 1);
	ck_assert_uint_eq(rate_ring_origins(m)->slot[0].period, NSEC_PER_SEC / 100);
	ck_assert_ptr_nonnull(rate_pending(m));
	ck_assert_uint_eq(rate_pending(m)->pos, 8192);
	set_ring(9000, 8192);
	ck_assert_ptr_null(rate_pending(m));
	ck_assert_uint_eq(rate_ring_origins(m)->slot[0].period, NSEC_PER_SEC / 50);
}
END_TEST

START_TEST(second_change_waits_for_the_first)
{
	set_ring(8192, 4096);
	rate_change(m, 50);
	rate_run(m, clock_now_ns() + 4 * NSEC_PER_SEC);
	rate_change(m, 25);
	ck_assert_uint_eq(m->rate.hz, 50);
	set_ring(9000, 8192);
	rate_run(m, clock_now_ns() + 6 * NSEC_PER_SEC);
	ck_assert_uint_eq(m->rate.hz, 25);
}
END_TEST

START_TEST(guard_holds_below_the_configuration)
{
	rate_limit(m, 25);
	answer(1);
	ck_assert_uint_eq(fake.hz, 25);
	rate_change(m, 200);
	ck_assert_uint_eq(fake.hz, 25);
	rate_limit(m, 0);
	rate_run(m, clock_now_ns() + 2 * NSEC_PER_SEC);
	ck_assert_uint_eq(fake.hz, 200);
}
END_TEST

START_TEST(refused_rate_leaves_the_old_one_running)
{
	fake.refuse = -EINVAL;
	rate_change(m, 50);
	ck_assert_uint_eq(m->rate.hz, 100);
	ck_assert_uint_eq(fake.starts, 1);
	ck_assert_int_eq(ipc_receive(engine, &msg), -EAGAIN);
}
END_TEST

START_TEST(end_is_not_undone_by_a_late_answer)
{
	rate_change(m, 50);
	m->phase = PHASE_STOP_ENGINE;
	answer(1);
	ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

Suite *rate_suite(void)
{
	Suite *s = suite_create("rate");
	TCase *t = tcase_create("rate");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, change_waits_for_the_profile_to_close);
	tcase_add_test(t, same_rate_changes_nothing);
	tcase_add_test(t, rate_outside_the_range_is_refused);
	tcase_add_test(t, source_without_rates_keeps_its_own);
	tcase_add_test(t, engine_that_hangs_holds_nobody_up);
	tcase_add_test(t, late_answer_does_not_start_twice);
	tcase_add_test(t, next_engine_reads_the_old_rate_to_its_end);
	tcase_add_test(t, second_change_waits_for_the_first);
	tcase_add_test(t, guard_holds_below_the_configuration);
	tcase_add_test(t, refused_rate_leaves_the_old_one_running);
	tcase_add_test(t, end_is_not_undone_by_a_late_answer);
	suite_add_tcase(s, t);
	return s;
}
