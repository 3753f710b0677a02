// SPDX-License-Identifier: Apache-2.0
/* Regions of code by address: how long they hold, and which function is where in them. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/engine/codes.h"

Suite *codes_suite(void);

#define S NSEC_PER_SEC

static struct codes codes;
static struct runtime_code_made made;
static uint64_t epoch; /* of samples, and of what is read */
static bool waited, begins; /* what asks has, or may be of */
static uint64_t ran_ns = 1;

static struct runtime_code_made *region(uint64_t start, uint64_t end, uint64_t identity)
{
	made.code = (struct runtime_code){.start = start, .end = end, .identity = {identity}, .epoch = epoch};
	return &made;
}

static struct runtime_frame ask(uint64_t pc, uint64_t time_ns)
{
	struct runtime_frame q;

	ck_assert(codes_want(&codes, pc, (struct codes_when){.time_ns = time_ns, .epoch = epoch, .ran_ns = ran_ns, .begins = begins,
									      .waited = waited}, time_ns, &q));
	ck_assert(q.flags & RUNTIME_CODE);
	ck_assert_uint_eq(q.key, pc);
	return q;
}

static bool holds(uint64_t pc, uint64_t time_ns)
{
	return codes_hold(&codes, codes_find(&codes, pc), (struct codes_when){.time_ns = time_ns, .epoch = epoch, .ran_ns = ran_ns, .begins = begins,
									      .waited = waited});
}

static void teardown(void)
{
	codes_done(&codes);
	codes.replaced_ns = codes.gone_ns = 0;
	codes.ended = waited = false;
	epoch = 0;
	ck_assert_uint_eq(codes_bytes(), 0);
}

START_TEST(a_region_answers_for_all_of_its_addresses)
{
	struct runtime_frame q;

	ask(0x1010, S);
	ck_assert(!codes_want(&codes, 0x1010, (struct codes_when){.time_ns = S}, S, &q));
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ck_assert(holds(0x1000, S) && holds(0x10ff, S));
	ck_assert(!holds(0xfff, S) && !holds(0x1100, S));
	ck_assert(!codes_want(&codes, 0x1080, (struct codes_when){.time_ns = S}, S, &q));
	ck_assert_uint_eq(codes.count, 1);
}
END_TEST

START_TEST(a_region_is_read_again_when_its_trust_is_over)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ck_assert(holds(0x1010, S));
	ck_assert_uint_eq(ask(0x1080, S + 8).cookie[0], 1);
	codes_settle(&codes, 0x1080, 0, region(0x1000, 0x1100, 1), S + 9);
	ck_assert(holds(0x1010, S) && holds(0x1010, S + 8));
	ck_assert(holds(0x1010, S + 9));
	ck_assert(!holds(0x1010, S + 10));
	ask(0x1010, 100 * S);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 100 * S);
	ck_assert(holds(0x1010, 50 * S) && holds(0x1010, 101 * S));
	ck_assert(!holds(0x1010, 101 * S + 1));
}
END_TEST

/* What ran behind the question may be what ran behind the reading. */
START_TEST(a_region_was_read_no_later_than_it_was_asked_for)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), 2 * S);
	ck_assert(holds(0x1010, S));
	ck_assert(!holds(0x1010, S + 1));
}
END_TEST

START_TEST(a_sample_that_has_waited_trusts_what_is_known)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, S + 5);
	ck_assert(!holds(0x1010, S + 5));
	waited = true;
	ck_assert(holds(0x1010, S + 5) && !holds(0x1010, S + CODES_TRUST_NS + 1));
	codes_settle(&codes, 0x1010, -EALREADY, NULL, S + 6);
	ask(0x1010, 9 * S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, 9 * S); /* code goes: of none is it sure */
	ask(0x2010, 9 * S);
	codes_settle(&codes, 0x2010, 0, region(0x2000, 0x2100, 1), 9 * S);
	ck_assert(!holds(0x2010, 9 * S + 1));
}
END_TEST

START_TEST(code_of_a_process_that_has_ended_is_trusted_once_more)
{
	struct runtime_frame q;

	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, S + 5);
	codes_settle(&codes, 0x1010, -ESRCH, NULL, S + 6);
	ck_assert(holds(0x1010, S) && holds(0x1010, S + 5) && holds(0x1010, S + CODES_ENDED_NS));
	ck_assert(!holds(0x1010, S + CODES_ENDED_NS + 1));
	ck_assert(!codes_want(&codes, 0x2000, (struct codes_when){.time_ns = S}, S, &q));
}
END_TEST

START_TEST(code_that_was_replaced_is_of_no_sample_in_between)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, 3 * S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 2), 4 * S);
	ck_assert(!holds(0x1010, 3 * S));
	/* Where code is replaced, none is trusted unless it was read since. */
	ck_assert(codes_are_alert(&codes, 4 * S));
	ck_assert(!holds(0x1010, 4 * S + 1));
	ask(0x1010, 4 * S + 1);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 5 * S);
	ck_assert(holds(0x1010, 4 * S) && holds(0x1010, 4 * S + 1) && !holds(0x1010, 4 * S + 2));
	ck_assert(!codes_are_alert(&codes, 4 * S + CODES_ALERT_NS));
}
END_TEST

START_TEST(where_code_goes_nothing_is_of_samples_before_it_was_found)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, 3 * S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, 4 * S);
	ask(0x2010, 5 * S);
	codes_settle(&codes, 0x2010, 0, region(0x2000, 0x2100, 3), 6 * S);
	ck_assert(!holds(0x2010, 5 * S));
	ask(0x2010, 7 * S);
	codes_settle(&codes, 0x2010, -EALREADY, NULL, 8 * S);
	ck_assert(holds(0x2010, 6 * S) && holds(0x2010, 7 * S));
}
END_TEST

/* As dynamic methods are, which are collected. */
START_TEST(fleeting_code_holds_between_readings_only)
{
	ask(0x1010, S);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_FLEETING;
	codes_settle(&codes, 0x1010, 0, &made, 2 * S);
	ck_assert(!holds(0x1010, S) && !holds(0x1010, 2 * S)); /* it may have come since the sample */
	ask(0x1010, 9 * S);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 9 * S);
	ck_assert(!holds(0x1010, 2 * S - 1) && holds(0x1010, 2 * S));
	ck_assert(holds(0x1010, 9 * S) && !holds(0x1010, 9 * S + 1));
	ck_assert(!codes_are_alert(&codes, 3 * S));
	/* So it is in an epoch, too: it tells of other code. */
	epoch = 5;
	ask(0x2010, S);
	region(0x2000, 0x2100, 2)->code.flags = RUNTIME_CODE_FLEETING;
	codes_settle(&codes, 0x2010, 0, &made, 2 * S);
	ck_assert(!holds(0x2010, S) && !holds(0x2010, 2 * S - 1));
}
END_TEST

START_TEST(a_region_over_others_replaces_them)
{
	for (uint64_t pc = 0x1000; pc < 0x1300; pc += 0x100) {
		ask(pc, S);
		codes_settle(&codes, pc, 0, region(pc, pc + 0x80, 1), S);
	}
	ask(0x10a0, 2 * S);
	codes_settle(&codes, 0x10a0, 0, region(0x1040, 0x1180, 2), 3 * S);
	ask(0x10a0, 3 * S);
	codes_settle(&codes, 0x10a0, -EALREADY, NULL, 3 * S);
	ck_assert_uint_eq(codes.count, 2);
	ck_assert(!codes_find(&codes, 0x1000) && !holds(0x10a0, 2 * S) && holds(0x10a0, 3 * S));
	ck_assert(holds(0x1200, S));
}
END_TEST

START_TEST(unknown_code_is_asked_for_again_later)
{
	struct runtime_frame q;

	ask(0x1010, S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, S);
	ck_assert(!holds(0x1010, S));
	ck_assert(!codes_want(&codes, 0x1010, (struct codes_when){.time_ns = S}, S, &q));
	ck_assert_uint_eq(ask(0x1010, 2 * S).cookie[0], 1);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), 3 * S);
	ask(0x1010, 4 * S);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 4 * S);
	ck_assert(!holds(0x1010, 2 * S) && holds(0x1010, 3 * S));
}
END_TEST

/* As of an address that the compiler has on its stack. */
START_TEST(code_that_was_asked_for_too_early_is_of_the_samples_since)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, S);
	ask(0x1010, S + S / 8);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S + S / 4);
	ck_assert(!holds(0x1010, S - 1) && holds(0x1010, S + S / 8));
	ask(0x2010, 2 * S);
	codes_settle(&codes, 0x2010, -ENOENT, NULL, 2 * S);
	codes.gone_ns = 2 * S;
	ask(0x2010, 2 * S + S / 8);
	codes_settle(&codes, 0x2010, 0, region(0x2000, 0x2100, 1), 2 * S + S / 4);
	ck_assert(!holds(0x2010, 2 * S + S / 8));
}
END_TEST

START_TEST(code_that_is_gone_holds_no_more)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, 3 * S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, 3 * S);
	ck_assert(!holds(0x1010, 3 * S) && !holds(0x1010, S));
}
END_TEST

START_TEST(a_region_holds_for_the_epochs_in_which_it_was_found)
{
	epoch = 5;
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ck_assert(holds(0x1010, S - 1));
	epoch = 4; /* it may have come later */
	ck_assert(!holds(0x1010, S - 1));
	ck_assert(!codes_want(&codes, 0x1010, (struct codes_when){.time_ns = S - 1, .epoch = epoch}, S, &(struct runtime_frame){0}));
	epoch = 7; /* it may be gone */
	ck_assert(!holds(0x1010, S + 1));
	ck_assert_uint_eq(ask(0x1010, S + 1).cookie[RUNTIME_COOKIE_EPOCH], 5);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S + 2);
	for (epoch = 5; epoch <= 7; epoch++)
		ck_assert(holds(0x1010, S + 1));
	ck_assert(!holds(0x1010, S + 1));
	epoch = 0; /* of a sample that says none */
	ck_assert(holds(0x1010, S + 1));
}
END_TEST

START_TEST(code_of_an_epoch_holds_until_that_ends)
{
	epoch = 5;
	ask(0x1010, S);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_OF_EPOCH;
	codes_settle(&codes, 0x1010, 0, &made, S);
	codes_run(codes_find(&codes, 0x1010), (struct codes_when){.time_ns = S, .epoch = epoch});
	codes.replaced_ns = S + 1;
	ck_assert(holds(0x1010, S + 2) && holds(0x1010, 100 * S));
	epoch = 6;
	ck_assert(!holds(0x1010, S + 2));
	epoch = 0; /* by time alone */
	ck_assert(!holds(0x1010, S + 2));
}
END_TEST

/* By a word of the stack, which was a return address once. */
/* A module that is read at this time, in the epoch at hand. */
static void read_module(uint64_t time_ns, uint64_t identity)
{
	ask(0x1010, time_ns);
	region(0x1000, 0x1100, identity);
	made.code.flags = RUNTIME_CODE_RECURS;
	codes_settle(&codes, 0x1010, 0, &made, time_ns + 1);
}

static bool holds_in(uint64_t of, uint64_t time_ns)
{
	const uint64_t now = epoch;
	bool ret;

	epoch = of;
	ret = holds(0x1010, time_ns);
	epoch = now;
	return ret;
}

START_TEST(a_module_that_recurs_is_of_the_epochs_in_which_it_was_read)
{
	epoch = 2;
	read_module(S, 1);
	/* As long as nothing is freed, it is the same, before its reading and after it. */
	ck_assert(holds_in(2, S - 1) && holds_in(2, 9 * S));
	ck_assert(!holds_in(1, S - 1) && !holds_in(3, S + 1));
	/* Equal code in another epoch: in between another module may have been there. */
	epoch = 5;
	read_module(2 * S, 1);
	ck_assert(holds_in(2, S) && holds_in(5, 2 * S));
	ck_assert(!holds_in(3, S + 1) && !holds_in(4, 2 * S - 1));
	/* Of a sample without an epoch, times decide. */
	ck_assert(!holds_in(0, 2 * S - 1) && holds_in(0, 2 * S + 1));
}
END_TEST

/* It was seen for a second: for an eighth of that it is held to stay. */
START_TEST(a_module_that_was_seen_for_long_was_there_between_two_readings)
{
	epoch = 2;
	read_module(S, 1);
	for (uint64_t i = 1; i <= 16; i++) {
		epoch++;
		read_module(S + i * S / 16, 1);
	}
	epoch++;
	read_module(2 * S + S / 8, 1);
	ck_assert(holds_in(epoch - 1, 2 * S) && holds_in(epoch, 2 * S + S / 8));
	epoch += 4;
	read_module(2 * S + S / 4, 1);
	ck_assert(holds_in(epoch - 2, 2 * S + S / 5));
	epoch += 4;
	read_module(3 * S, 1);
	ck_assert(!holds_in(epoch - 2, 2 * S + S / 2));
	ck_assert(holds_in(epoch - 4, 2 * S + S / 4));
}
END_TEST

START_TEST(another_module_in_its_place_is_of_its_own_epochs)
{
	epoch = 2;
	read_module(S, 1);
	epoch = 3;
	read_module(2 * S, 2);
	ck_assert(holds_in(3, 2 * S) && holds_in(3, S + 1));
	ck_assert(!holds_in(2, S));
}
END_TEST

/* Where epochs are not known: not while code is being replaced. */
START_TEST(a_module_that_recurs_without_epochs_is_not_trusted_where_code_is_replaced)
{
	read_module(S, 1);
	read_module(S + 100, 1);
	ck_assert(holds(0x1010, S + 50));
	codes.replaced_ns = S;
	read_module(2 * S, 1);
	ck_assert(!holds(0x1010, S + 200));
	/* Nor is it by an answer that it is still the same. */
	ask(0x1010, 4 * S);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 4 * S + 1);
	ck_assert(!holds(0x1010, 2 * S + 200));
}
END_TEST

START_TEST(code_that_no_sample_has_is_not_trusted_for_its_epoch)
{
	struct code_entry *e;

	epoch = 5;
	ask(0x1010, S);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_OF_EPOCH;
	codes_settle(&codes, 0x1010, 0, &made, S);
	ck_assert(holds(0x1010, S) && !holds(0x1010, S + 1));
	ask(0x1010, S + 1);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, S + 1);
	e = codes_find(&codes, 0x1010);
	codes_run(e, (struct codes_when){.time_ns = S + 1, .epoch = epoch, .ran_ns = 1});
	ck_assert(holds(0x1010, 100 * S));
}
END_TEST

START_TEST(what_is_read_during_a_collection_is_not_trusted_for_its_epoch)
{
	epoch = 5;
	ran_ns = 0;
	ask(0x1010, S);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_OF_EPOCH;
	codes_settle(&codes, 0x1010, 0, &made, S);
	begins = true; /* a sample of the collection may have what lay there before */
	ck_assert(!holds(0x1010, S));
	begins = false;
	ran_ns = S + 5;
	ck_assert(!holds(0x1010, S + 5));
	ask(0x1010, S + 5);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_OF_EPOCH;
	codes_settle(&codes, 0x1010, 0, &made, S + 6);
	codes_run(codes_find(&codes, 0x1010), (struct codes_when){.time_ns = S + 5, .epoch = epoch});
	ck_assert(holds(0x1010, S + 5) && holds(0x1010, 100 * S));
	ran_ns = 1;
}
END_TEST

START_TEST(a_decoder_that_was_late_does_not_say_that_code_goes)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ask(0x1010, 2 * S);
	codes_settle(&codes, 0x1010, -ETIMEDOUT, NULL, 3 * S);
	ask(0x2010, 4 * S);
	codes_settle(&codes, 0x2010, 0, region(0x2000, 0x2100, 3), 5 * S);
	ck_assert(holds(0x2010, 4 * S));
	/* It is still known, and is what it was when the next one says so. */
	ck_assert(!holds(0x1010, 2 * S));
	ask(0x1010, 6 * S);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 6 * S);
	ck_assert(holds(0x1010, 2 * S));
	/* Nor does what changed while it was read. */
	ask(0x1010, 7 * S);
	codes_settle(&codes, 0x1010, -ESTALE, NULL, 7 * S);
	ck_assert(!codes.gone_ns && !holds(0x1010, 2 * S));
}
END_TEST

/* Of which epoch nothing was found is not known: it is trusted as without epochs. */
START_TEST(what_was_not_found_again_is_not_asked_for_each_sample)
{
	epoch = 5;
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	epoch = 6;
	ask(0x1010, S + 10);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, S + 20);
	ask(0x1010, 2 * S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, 2 * S);
	ck_assert(!codes_want(&codes, 0x1010, (struct codes_when){.time_ns = 2 * S + S / 10, .epoch = epoch}, 3 * S,
			      &(struct runtime_frame){0}));
	ask(0x1010, 2 * S + S / 4);
}
END_TEST

START_TEST(code_of_a_later_epoch_is_of_all_its_samples)
{
	epoch = 5;
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	epoch = 6;
	ask(0x1010, S + 5);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 2), S + 10);
	ck_assert(holds(0x1010, S + 5));
	ck_assert(!codes_are_alert(&codes, S + 10));
	epoch = 5;
	ck_assert(!holds(0x1010, S - 5));
	epoch = 6; /* within an epoch, what was run is as without; what was only read may have been dead */
	ask(0x1010, 2 * S + 6);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 4), 2 * S + 7);
	ck_assert(!codes_are_alert(&codes, 2 * S + 7));
	codes_run(codes_find(&codes, 0x1010), (struct codes_when){.time_ns = 2 * S + 6, .epoch = 6});
	ask(0x1010, 4 * S);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 3), 4 * S + 5);
	ck_assert(codes_are_alert(&codes, 4 * S + 5));
	ask(0x1010, 4 * S + 6);
	codes_settle(&codes, 0x1010, -EALREADY, NULL, 4 * S + 7);
	ck_assert(!holds(0x1010, 4 * S) && holds(0x1010, 4 * S + 5));
}
END_TEST

/* A sample that has met the code has kept it; what was only read may be dead. */
START_TEST(what_may_go_within_an_epoch_is_of_the_samples_before_it_was_read)
{
	epoch = 5;
	ask(0x1010, S);
	region(0x1000, 0x1100, 1)->code.flags = RUNTIME_CODE_MAY_GO;
	codes_settle(&codes, 0x1010, 0, &made, S);
	ck_assert(holds(0x1010, S) && !holds(0x1010, S + 1));
	ask(0x1010, S + 20);
	region(0x1000, 0x1100, 2)->code.flags = RUNTIME_CODE_MAY_GO;
	codes_settle(&codes, 0x1010, 0, &made, S + 20);
	ck_assert(!codes_are_alert(&codes, S + 20));
	ck_assert(!holds(0x1010, S + 19)); /* it may have been either */
	/* That code was given up elsewhere says nothing of what is met for the first time. */
	ask(0x2010, S + 30);
	region(0x2000, 0x2100, 3)->code.flags = RUNTIME_CODE_MAY_GO;
	codes_settle(&codes, 0x2010, 0, &made, S + 40);
	ck_assert(holds(0x2010, S + 25) && !holds(0x2010, S + 41));
	epoch = 4;
	ck_assert(!holds(0x2010, S + 25));
}
END_TEST

START_TEST(what_a_sample_of_an_epoch_has_met_is_trusted_in_it)
{
	const struct codes_when met = {.time_ns = S + 10, .epoch = 5, .ran_ns = 1};

	epoch = 5;
	ask(0x1010, S + 15);
	region(0x1000, 0x1100, 1)->code.flags = RUNTIME_CODE_MAY_GO;
	codes_settle(&codes, 0x1010, 0, &made, S + 20);
	ck_assert(!holds(0x1010, S + 30));
	codes_run(codes_find(&codes, 0x1010), met);
	codes.replaced_ns = codes.gone_ns = S + 18;
	ck_assert(holds(0x1010, S + 30) && holds(0x1010, 2 * S + 15) && !holds(0x1010, 2 * S + 16));
	epoch = 6;
	ck_assert(!holds(0x1010, S + 30));
}
END_TEST

/* As of a worker in whose place another one has begun, with code that looks the same. */
START_TEST(code_holds_for_samples_of_its_heap_alone)
{
	epoch = 2ULL << 32 | 5;
	ck_assert_uint_eq(ask(0x1010, S).position, 2);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S);
	ck_assert(holds(0x1010, S));
	epoch = 3ULL << 32 | 5;
	ck_assert(!holds(0x1010, S));
	epoch = 1ULL << 32 | 9; /* it is older, and has the place now */
	ck_assert(!holds(0x1010, S));
	ck_assert_uint_eq(ask(0x1010, S + 1).position, 1);
	codes_settle(&codes, 0x1010, 0, region(0x1000, 0x1100, 1), S + 2);
	ck_assert(holds(0x1010, S));
	ck_assert(!codes_are_alert(&codes, S + 2));
	epoch = 2ULL << 32 | 5;
	ck_assert(!holds(0x1010, S));
}
END_TEST

/* As what a runtime's file brings along, whatever happens to code that was made. */
START_TEST(code_that_lasts_is_read_once)
{
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, -ENOENT, NULL, S);
	codes.replaced_ns = codes.gone_ns = 2 * S;
	ask(0x1010, 3 * S);
	region(0x1000, 0x1100, 1);
	made.code.flags = RUNTIME_CODE_LASTS;
	codes_settle(&codes, 0x1010, 0, &made, 3 * S);
	ck_assert(holds(0x1010, S) && holds(0x1010, 1000 * S));
	epoch = 2ULL << 32 | 5;
	ck_assert(holds(0x1010, 3 * S));
	ck_assert(!codes_want(&codes, 0x1010, (struct codes_when){.time_ns = 1000 * S, .epoch = epoch}, 1000 * S,
			      &(struct runtime_frame){0}));
}
END_TEST

/* Traces are made, and all are flushed. */
START_TEST(code_holds_for_all_samples_of_its_stamp)
{
	struct codes_when when = {.time_ns = S, .stamp = 7};
	struct runtime_frame q;

	codes.replaced_ns = codes.gone_ns = S - 1;
	ask(0x1010, S);
	region(0x1000, 0x1100, 1)->code.stamp = 7;
	codes_settle(&codes, 0x1010, 0, &made, S + 10);
	ck_assert(!holds(0x1010, S) && !holds(0x1010, S + 20)); /* of samples without one times tell */
	ck_assert(codes_hold(&codes, codes_find(&codes, 0x1010), when));
	when.time_ns = 5 * S;
	ck_assert(codes_hold(&codes, codes_find(&codes, 0x1010), when));
	ck_assert(!codes_want(&codes, 0x1010, when, 5 * S, &q));
	when.stamp = 8;
	ck_assert(!codes_hold(&codes, codes_find(&codes, 0x1010), when));
	ck_assert(codes_want(&codes, 0x1010, when, 5 * S, &q));
	/* What is found in two readings was there in between. */
	region(0x1000, 0x1100, 1)->code.stamp = 8;
	codes_settle(&codes, 0x1010, 0, &made, 5 * S + 10);
	ck_assert(codes_hold(&codes, codes_find(&codes, 0x1010), when));
	when.stamp = 0;
	when.time_ns = 2 * S;
	ck_assert(codes_hold(&codes, codes_find(&codes, 0x1010), when));
}
END_TEST

START_TEST(a_question_that_had_no_room_is_asked_again)
{
	ask(0x1010, S);
	codes_unask(&codes, 0x1010);
	ck_assert_uint_eq(ask(0x1010, S).cookie[0], 0);
}
END_TEST

/* A bound says nothing of how long code stays: by it, no sample counts as one that has met the code. */
START_TEST(code_that_was_first_read_beyond_a_bound_is_of_no_sample_before)
{
	const struct codes_when within = {.time_ns = S, .bound = 6}, before = {.time_ns = S, .bound = 5};
	struct runtime_code_made *c = region(0x1000, 0x1100, 1);

	c->code.epoch = 6;
	ask(0x1010, S);
	codes_settle(&codes, 0x1010, 0, c, S);
	ck_assert(codes_hold(&codes, codes_find(&codes, 0x1010), within));
	ck_assert(!codes_hold(&codes, codes_find(&codes, 0x1010), before));
	codes_run(codes_find(&codes, 0x1010), within);
	ck_assert_uint_eq(codes_find(&codes, 0x1010)->ran_epoch, 0);
}
END_TEST

START_TEST(regions_are_bounded)
{
	struct runtime_frame q;

	for (uint64_t i = 0; i < CODES_MAX; i++)
		ask(0x10000 + i, S);
	ck_assert(!codes_want(&codes, 0x1, (struct codes_when){.time_ns = S}, S, &q));
}
END_TEST

/* --- places in a region --- */

static void make_places(void)
{
	memset(&made.code, 0, sizeof(made.code));
	made.code.start = 0x1000;
	made.code.end = 0x1100;
	for (uint64_t i = 0; i < 3; i++)
		runtime_code_add_function(&made, &(struct runtime_frame){.key = 100 + i});
	ck_assert_int_eq(runtime_code_add_node(&made, 0, 0, 7), 0);
	ck_assert_int_eq(runtime_code_add_node(&made, 1, 1, 8), 1);
	ck_assert_int_eq(runtime_code_add_row(&made, 0x10, 0), 0);
	ck_assert_int_eq(runtime_code_add_row(&made, 0x21, 1), 0);
	ck_assert_int_eq(runtime_code_add_row(&made, 0x31, RUNTIME_NO_NODE), 0);
}

static uint32_t at(uint64_t pc, bool caller)
{
	return runtime_code_node_at(&made.code, made.rows, pc, caller);
}

START_TEST(a_place_is_of_the_row_before_it)
{
	make_places();
	ck_assert_uint_eq(at(0x100f, false), RUNTIME_NO_NODE);
	ck_assert_uint_eq(at(0x1010, false), 0);
	ck_assert_uint_eq(at(0x1021, false), 1);
	ck_assert_uint_eq(at(0x1021, true), 0);
	ck_assert_uint_eq(at(0x1031, false), RUNTIME_NO_NODE);
	ck_assert_uint_eq(at(0x1100, false), RUNTIME_NO_NODE);
	ck_assert_uint_eq(at(0xfff, true), RUNTIME_NO_NODE);
}
END_TEST

START_TEST(what_is_there_already_is_not_added_twice)
{
	make_places();
	ck_assert_int_eq(runtime_code_add_function(&made, &(struct runtime_frame){.key = 101}), 1);
	ck_assert_int_eq(runtime_code_add_node(&made, 1, 1, 8), 1);
	ck_assert_uint_eq(made.code.nr_nodes, 2);
	ck_assert_int_eq(runtime_code_add_row(&made, 0x31, 1), 0);
	ck_assert_uint_eq(made.code.nr_rows, 3);
	ck_assert_int_eq(runtime_code_add_row(&made, 0x30, 1), -EBADMSG);
}
END_TEST

START_TEST(regions_beyond_their_bounds_are_not_sound)
{
	make_places();
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
	made.nodes[1].outer = 2; /* itself */
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.nodes[1].outer = 1;
	made.nodes[1].function = 3;
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.nodes[1].function = 1;
	made.rows[1].node = 2;
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.rows[1].node = 1;
	made.rows[1].offset = 0x10;
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.rows[1].offset = 0x21;
	made.code.end = made.code.start;
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.code.end = 0x1100;
	made.code.nr_more = RUNTIME_CODE_MORE + 1;
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
	made.code.nr_more = 0;
	memset(made.code.name, 'n', sizeof(made.code.name));
	ck_assert(!runtime_code_sound(&made.code, made.nodes, made.rows));
}
END_TEST

Suite *codes_suite(void)
{
	Suite *s = suite_create("codes");
	TCase *t = tcase_create("codes");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, a_region_answers_for_all_of_its_addresses);
	tcase_add_test(t, a_region_is_read_again_when_its_trust_is_over);
	tcase_add_test(t, a_region_was_read_no_later_than_it_was_asked_for);
	tcase_add_test(t, a_sample_that_has_waited_trusts_what_is_known);
	tcase_add_test(t, code_of_a_process_that_has_ended_is_trusted_once_more);
	tcase_add_test(t, where_code_goes_nothing_is_of_samples_before_it_was_found);
	tcase_add_test(t, code_that_was_replaced_is_of_no_sample_in_between);
	tcase_add_test(t, fleeting_code_holds_between_readings_only);
	tcase_add_test(t, a_region_over_others_replaces_them);
	tcase_add_test(t, unknown_code_is_asked_for_again_later);
	tcase_add_test(t, code_that_was_asked_for_too_early_is_of_the_samples_since);
	tcase_add_test(t, code_that_is_gone_holds_no_more);
	tcase_add_test(t, a_region_holds_for_the_epochs_in_which_it_was_found);
	tcase_add_test(t, code_of_an_epoch_holds_until_that_ends);
	tcase_add_test(t, a_module_that_recurs_is_of_the_epochs_in_which_it_was_read);
	tcase_add_test(t, a_module_that_was_seen_for_long_was_there_between_two_readings);
	tcase_add_test(t, another_module_in_its_place_is_of_its_own_epochs);
	tcase_add_test(t, a_module_that_recurs_without_epochs_is_not_trusted_where_code_is_replaced);
	tcase_add_test(t, code_that_no_sample_has_is_not_trusted_for_its_epoch);
	tcase_add_test(t, what_is_read_during_a_collection_is_not_trusted_for_its_epoch);
	tcase_add_test(t, a_decoder_that_was_late_does_not_say_that_code_goes);
	tcase_add_test(t, what_was_not_found_again_is_not_asked_for_each_sample);
	tcase_add_test(t, code_of_a_later_epoch_is_of_all_its_samples);
	tcase_add_test(t, what_may_go_within_an_epoch_is_of_the_samples_before_it_was_read);
	tcase_add_test(t, what_a_sample_of_an_epoch_has_met_is_trusted_in_it);
	tcase_add_test(t, code_holds_for_samples_of_its_heap_alone);
	tcase_add_test(t, code_that_lasts_is_read_once);
	tcase_add_test(t, code_holds_for_all_samples_of_its_stamp);
	tcase_add_test(t, a_question_that_had_no_room_is_asked_again);
	tcase_add_test(t, code_that_was_first_read_beyond_a_bound_is_of_no_sample_before);
	tcase_add_test(t, regions_are_bounded);
	tcase_add_test(t, a_place_is_of_the_row_before_it);
	tcase_add_test(t, what_is_there_already_is_not_added_twice);
	tcase_add_test(t, regions_beyond_their_bounds_are_not_sound);
	suite_add_tcase(s, t);
	return s;
}
