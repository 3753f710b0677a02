// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "source/event_list.h"
#include "source/slots.h"

Suite *event_list_suite(void);

static const struct { const char *in, *out; } lists[] = {
	{"cpu-clock", "cpu-clock"},
	{"page-faults", "page-faults"},
	{" faults ,\tcs", "page-faults, context-switches"},
	{"cycles, cpu-clock", "cpu-clock, cycles"},
	{"cpu-cycles/freq=997/,branch-instructions/period=1000003/", "cycles/freq=997/, branches/period=1000003/"},
	{"page-faults/period=281474976710656/", "page-faults/period=281474976710656/"},
	{"page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults,emulation-faults,cpu-clock",
	 "cpu-clock, page-faults, minor-faults, major-faults, context-switches, cpu-migrations, alignment-faults, "
	 "emulation-faults"},
};

START_TEST(a_list_prints_as_it_is_read)
{
	char why[EVENT_WHY] = "";
	struct event_list l, again;
	struct buf b = {0};

	ck_assert_msg(event_list_parse(lists[_i].in, &l, why) == 0, "%s: %s", lists[_i].in, why);
	event_list_print(&l, &b);
	ck_assert_str_eq(buf_cstr(&b), lists[_i].out);
	ck_assert_int_eq(event_list_parse(buf_cstr(&b), &again, why), 0);
	ck_assert_mem_eq(&l, &again, sizeof(l));
	buf_done(&b);
}
END_TEST

static const struct { const char *in, *why; } bad[] = {
	{"", "unknown event '', expected cpu-clock, page-faults"},
	{"page-fault", "unknown event 'page-fault'"},
	{"page-faults,", "unknown event ''"},
	{",page-faults", "unknown event ''"},
	{"page-faults/", "'page-faults/': expected EVENT/period=N/ or EVENT/freq=N/"},
	{"page-faults/period=1", "expected EVENT/period=N/"},
	{"page-faults//", "'': expected period=N or freq=N"},
	{"page-faults/period=0/", "'period=0': expected period= with a number of events"},
	{"page-faults/period=281474976710657/", "period= with a number"},
	{"page-faults/period=99999999999999999999/", "period= with a number"},
	{"page-faults/freq=100001/", "freq= with samples a second"},
	{"page-faults/freq=-1/", "freq= with samples a second"},
	{"page-faults/count=1/", "'count=1': expected period=N or freq=N"},
	{"page-faults, faults", "'page-faults' is there twice"},
	{"cpu-clock, cpu-clock", "'cpu-clock' is there twice"},
	{"cpu-clock/freq=99/", "'cpu-clock' has its own setting"},
	{"page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults,emulation-faults,cycles",
	 "more than 7 events"},
};

START_TEST(a_wrong_list_is_refused_in_words)
{
	struct event_list l = {.count = 77};
	char why[EVENT_WHY] = "";

	ck_assert_int_eq(event_list_parse(bad[_i].in, &l, why), -EINVAL);
	ck_assert_msg(strstr(why, bad[_i].why) != NULL, "%s: %s", bad[_i].in, why);
	ck_assert_uint_eq(l.count, 77);
}
END_TEST

static struct event_list list_of(const char *text)
{
	char why[EVENT_WHY];
	struct event_list l;

	ck_assert_int_eq(event_list_parse(text, &l, why), 0);
	return l;
}

START_TEST(events_without_a_rate_get_the_session_s)
{
	struct event_list l = list_of("page-faults, cycles/freq=50/, context-switches/period=3/");

	event_list_set_rate(&l, 0, 97);
	ck_assert_uint_eq(l.event[0].frequency_hz, 97);
	ck_assert_uint_eq(l.event[1].frequency_hz, 50);
	ck_assert(l.event[2].period == 3 && !l.event[2].frequency_hz);
	l = list_of("page-faults");
	event_list_set_rate(&l, 11, 97);
	ck_assert(l.event[0].period == 11 && !l.event[0].frequency_hz);
}
END_TEST

START_TEST(origins_have_their_slots)
{
	struct event_list l = list_of("page-faults, context-switches/period=3/");
	struct origins o;

	event_list_origins(&l, 1000, &o);
	ck_assert_uint_eq(o.count, 3);
	ck_assert(!o.slot[0].sampled && o.slot[0].period == 1000);
	ck_assert(o.slot[1].origin == OTP_ORIGIN_PAGE_FAULTS && o.slot[1].period == 1);
	ck_assert_uint_eq(o.slot[2].period, 3);
	ck_assert_int_eq(origins_slot(&o, OTP_ORIGIN_CPU_CLOCK), -ENOENT);
	ck_assert_int_eq(origins_slot(&o, OTP_ORIGIN_CONTEXT_SWITCHES), 2);
	l = (struct event_list){0};
	event_list_origins(&l, 1000, &o);
	ck_assert_uint_eq(o.count, 1);
	ck_assert_int_eq(origins_slot(&o, OTP_ORIGIN_CPU_CLOCK), 0);
}
END_TEST

START_TEST(every_origin_has_a_name_and_types)
{
	uint8_t origin;

	for (uint32_t i = 0; i < OTP_ORIGIN_NR; i++) {
		ck_assert_ptr_nonnull(origin_name(i));
		ck_assert_int_eq(origin_find(origin_name(i), &origin), 0);
		ck_assert_uint_eq(origin, i);
		/* Pyroscope refuses a type with a hyphen. */
		ck_assert_ptr_null(strchr(origin_types(i)->type, '-'));
	}
	ck_assert_ptr_null(origin_name(OTP_ORIGIN_NR));
	ck_assert_ptr_null(origin_types(OTP_ORIGIN_NR));
}
END_TEST

/* No event is opened: what is asked is what would be. */
START_TEST(rates_of_events_follow_the_session_s)
{
	struct source_config cfg = {.frequency_hz = 100,
				    .events = list_of("cpu-clock, page-faults, context-switches/period=30/")};
	struct event_setup e;
	struct slots s;

	ck_assert_int_eq(slots_init(&s, 2, &cfg), 0);
	e = *slots_in_force(&s, 0);
	ck_assert(!e.by_frequency && e.period == NSEC_PER_SEC / 100);
	e = *slots_in_force(&s, 1);
	ck_assert(e.by_frequency && e.period == 100);
	e = *slots_in_force(&s, 2);
	ck_assert(!e.by_frequency && e.period == 30);
	ck_assert_int_eq(slots_set_rate(&s, 25, 100), 0);
	e = *slots_in_force(&s, 1);
	ck_assert_uint_eq(e.period, 25);
	e = *slots_in_force(&s, 2);
	ck_assert_uint_eq(e.period, 120);
	ck_assert_uint_eq(s.origins.slot[0].period, NSEC_PER_SEC / 25);
	ck_assert_uint_eq(s.origins.slot[1].period, 1);
	ck_assert_uint_eq(s.origins.slot[2].period, 120);
	ck_assert_int_eq(slots_set_rate(&s, 0, 100), -ERANGE);
	ck_assert_int_eq(slots_set_rate(&s, 100, 100), 0);
	ck_assert_uint_eq(s.origins.slot[2].period, 30);
	slots_done(&s);
}
END_TEST

START_TEST(a_list_says_how_many_samples_to_make_room_for)
{
	struct event_list l = list_of("cpu-clock, page-faults, context-switches/freq=50/, cpu-migrations/period=3/");

	ck_assert_uint_eq(event_list_rate(&l, 20), 20 + 20 + 50 + 1000);
	l = list_of("page-faults");
	ck_assert_uint_eq(event_list_rate(&l, 20), 20);
}
END_TEST

START_TEST(another_configured_rate_leaves_events_as_they_are_configured)
{
	struct source_config cfg = {.frequency_hz = 20,
				    .events = list_of("cpu-clock, page-faults/period=1/, context-switches/freq=50/, cpu-migrations")};
	struct event_setup e;
	struct slots s;

	ck_assert_int_eq(slots_init(&s, 2, &cfg), 0);
	ck_assert_int_eq(slots_set_rate(&s, 40, 40), 0);
	e = *slots_in_force(&s, 1);
	ck_assert(!e.by_frequency && e.period == 1);
	e = *slots_in_force(&s, 2);
	ck_assert(e.by_frequency && e.period == 50);
	e = *slots_in_force(&s, 3);
	ck_assert(e.by_frequency && e.period == 40);
	/* The guard's limit is a share of that. */
	ck_assert_int_eq(slots_set_rate(&s, 10, 40), 0);
	ck_assert_uint_eq(s.origins.slot[1].period, 4);
	e = *slots_in_force(&s, 2);
	ck_assert_uint_eq(e.period, 12);
	slots_done(&s);
}
END_TEST

Suite *event_list_suite(void)
{
	Suite *s = suite_create("event_list");
	TCase *t = tcase_create("event_list");

	tcase_add_loop_test(t, a_list_prints_as_it_is_read, 0, ARRAY_SIZE(lists));
	tcase_add_loop_test(t, a_wrong_list_is_refused_in_words, 0, ARRAY_SIZE(bad));
	tcase_add_test(t, events_without_a_rate_get_the_session_s);
	tcase_add_test(t, origins_have_their_slots);
	tcase_add_test(t, every_origin_has_a_name_and_types);
	tcase_add_test(t, rates_of_events_follow_the_session_s);
	tcase_add_test(t, a_list_says_how_many_samples_to_make_room_for);
	tcase_add_test(t, another_configured_rate_leaves_events_as_they_are_configured);
	suite_add_tcase(s, t);
	return s;
}
