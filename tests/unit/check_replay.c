// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/replay.h"

Suite *replay_suite(void);

#define CODE   0x400000ull
#define STACK  0x7ffd00000000ull
#define SECRET 0x7365637265742121ull
#define SIGNED (0x0034ull << 48 | (CODE + 12))

static struct config *config;

static void on_error(void *ctx, const char *line)
{
	ck_abort_msg("%s", line);
}

static void setup(void)
{
	ck_assert_int_eq(config_parse("defaults", "", 0, on_error, NULL, &config), 0);
}

static void teardown(void)
{
	config = config_free(config);
}

/* A process with one mapping of generated code, so that no file is asked for. */
static struct space *one_mapping(void)
{
	struct mapped_file *f = mapped_file_new(MAPPED_ANON, "", 0);
	struct space *s = space_new();

	f->state = MAPPED_FAILED;
	ck_assert_int_eq(space_map(&s, CODE, CODE + 0x1000, 0, f), 0);
	mapped_file_put(f);
	return s;
}

static struct capture_kept kept;
static bool has_positive_error; /* of the file that the process has mapped */

/* An error is negative: 5 is none, and no file either. */
static void put_answers(struct capture *c)
{
	static const char maps[] = "400000-401000 r-xp 00000000 08:01 99 /usr/bin/program\n";
	const struct host_request of_maps = {.kind = HOST_READ_MAPS, .pid = 4242};
	const struct host_request of_file = {.kind = HOST_OPEN_MAPPED, .pid = 4242, .start = CODE,
					     .end = CODE + 0x1000, .path = "/usr/bin/program"};

	capture_host_answer(c, &of_maps, 0, -1, maps, sizeof(maps) - 1);
	capture_host_answer(c, &of_file, 5, -1, NULL, 0);
}

/* A capture of n such samples. */
static int capture_of(struct sample *s, int n)
{
	int fd = memfd_create("capture", MFD_CLOEXEC);
	const struct origins origins = origins_of_clock(1000000);
	struct space *space = one_mapping();
	struct capture *c;

	ck_assert_int_eq(capture_new(dup(fd), &origins, &c), 0);
	if (has_positive_error)
		put_answers(c);
	for (int i = 0; i < n; i++) {
		s->head.time_ns = 1000u + (uint64_t)i;
		capture_batch(c, 2000u + (uint64_t)i);
		capture_sample(c, s, space, NULL, &kept);
	}
	capture_flush(c, 5000);
	capture_free(c);
	space_put(space);
	return fd;
}

/* A capture of n samples, each with a return address, a stack address and a secret on its stack. */
static int make_capture_of(uint16_t arch, int n)
{
	uint64_t words[4] = {CODE + 8, STACK + 16, SECRET, SIGNED};
	uint64_t reg[OTP_REGS_MAX] = {[0] = SECRET, [7] = STACK, [16] = CODE};
	struct sample s = {.head = {.rec.type = OTP_REC_SAMPLE, .pid = 4242, .tid = 4242, .arch = arch,
				    .start_ns = 1, .exec_id = 1, .comm = "program"},
			   .valid = 0x1ffff, .reg = reg, .stack_addr = STACK, .stack = (const uint8_t *)words,
			   .stack_len = sizeof(words)};

	return capture_of(&s, n);
}

static int make_capture(int n)
{
	return make_capture_of(OTP_ARCH_X86_64, n);
}

static int replay(int fd, struct replay_result *r)
{
	struct replay_options o = {.config = config};

	return replay_run(fd, &o, r);
}

static bool holds(int fd, uint64_t word)
{
	struct stat st;
	uint8_t *data;
	bool found;

	ck_assert_int_eq(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(fd, data, (size_t)st.st_size, 0), st.st_size);
	found = memmem(data, (size_t)st.st_size, &word, sizeof(word)) != NULL;
	free(data);
	return found;
}

/* The words of interpreters' frames are kept, wherever they point. */
START_TEST(a_capture_keeps_walks)
{
	struct { struct otp_walked head; uint64_t word[4]; } walk = {
		.head = {.generation = 3, .frames = 2, .frame_words = 2, .plan = 1}, .word = {STACK, 0x1234567890, 5, SECRET}};
	struct sample s = {.head = {.rec.type = OTP_REC_SAMPLE, .pid = 4242, .tid = 4242, .arch = OTP_ARCH_X86_64},
			   .walks = {NULL, &walk.head}};
	_cleanup_(closep) int fd = capture_of(&s, 1);
	struct replay_result r = {0};

	ck_assert(holds(fd, 0x1234567890));
	ck_assert(holds(fd, SECRET));
	ck_assert_int_eq(replay(fd, &r), 0);
	ck_assert_uint_eq(r.samples, 1);
	ck_assert_uint_eq(ledger_counts_total(&r.ledger.lost[OTP_LOSS_BAD_RECORD]), 0);
}
END_TEST

/* A stack that a walk copied is the program's data, as the thread's own. */
START_TEST(a_capture_drops_secrets_of_stacks_that_were_left)
{
	struct { struct otp_walked head; uint64_t word[2 + OTP_WALK_WORDS]; } walk = {
		.head = {.generation = 3, .frames = 1, .root_words = 1, .frame_words = OTP_WALK_WORDS + 1,
			 .step = OTP_WALK_STACK},
		.word = {0x1234567890, 0x2345678901, CODE + 8, SECRET}};
	struct sample s = {.head = {.rec.type = OTP_REC_SAMPLE, .pid = 4242, .tid = 4242, .arch = OTP_ARCH_X86_64},
			   .walks = {&walk.head}};
	_cleanup_(closep) int fd = capture_of(&s, 1);
	struct replay_result r = {0};

	ck_assert(holds(fd, 0x1234567890)); /* where it was left, and where it is */
	ck_assert(holds(fd, 0x2345678901));
	ck_assert(holds(fd, CODE + 8));
	ck_assert(!holds(fd, SECRET));
	ck_assert_int_eq(replay(fd, &r), 0);
	ck_assert_uint_eq(r.samples, 1);
	ck_assert_uint_eq(ledger_counts_total(&r.ledger.lost[OTP_LOSS_BAD_RECORD]), 0);
}
END_TEST

/* Frame records of it lead from one to the next. */
START_TEST(a_capture_keeps_where_frame_records_of_stacks_are)
{
	struct { struct otp_walked head; uint64_t word[2 + OTP_WALK_WORDS]; } walk = {
		.head = {.generation = 3, .frames = 1, .root_words = 1, .frame_words = OTP_WALK_WORDS + 1,
			 .step = OTP_WALK_STACK},
		.word = {0x1234567890, 0x2345678901 | OTP_WALK_MISSING(0), 0x3456789012, CODE + 8, 0x4567890123, SECRET}};
	struct sample s = {.head = {.rec.type = OTP_REC_SAMPLE, .pid = 4242, .tid = 4242, .arch = OTP_ARCH_X86_64},
			   .walks = {&walk.head}};
	_cleanup_(closep) int fd = capture_of(&s, 1);

	ck_assert(holds(fd, 0x3456789012));
	ck_assert(holds(fd, CODE + 8));
	ck_assert(holds(fd, 0x4567890123));
	ck_assert(!holds(fd, SECRET));
}
END_TEST

START_TEST(a_capture_keeps_what_runtimes_read)
{
	const uint64_t words[] = {STACK + 16, STACK + 32, STACK - 8, UINT64_MAX};
	int fd;

	kept = (struct capture_kept){.words = words + 1, .nr = 3, .regs = 1 << 1};
	fd = make_capture(1);
	ck_assert(!holds(fd, SECRET));
	close(fd);
	kept = (struct capture_kept){.words = words, .nr = 4};
	fd = make_capture(1);
	ck_assert(holds(fd, SECRET));
	close(fd);
	kept = (struct capture_kept){.regs = 1};
	fd = make_capture(1);
	ck_assert(holds(fd, SECRET));
	close(fd);
	kept = (struct capture_kept){0};
}
END_TEST

START_TEST(a_capture_keeps_addresses_and_drops_secrets)
{
	_cleanup_(closep) int fd = make_capture(1);

	ck_assert(holds(fd, CODE + 8));
	ck_assert(holds(fd, STACK + 16));
	ck_assert(!holds(fd, SECRET));
}
END_TEST

START_TEST(a_capture_keeps_signed_return_addresses_of_arm64)
{
	_cleanup_(closep) int arm64 = make_capture_of(OTP_ARCH_ARM64, 1);
	_cleanup_(closep) int x86_64 = make_capture(1);

	ck_assert(holds(arm64, SIGNED));
	ck_assert(!holds(arm64, SECRET));
	ck_assert(!holds(x86_64, SIGNED));
}
END_TEST

START_TEST(a_replay_sees_every_sample)
{
	_cleanup_(closep) int fd = make_capture(50);
	struct replay_result r;

	ck_assert_int_eq(replay(fd, &r), 0);
	ck_assert_uint_eq(r.samples, 50);
	ck_assert_uint_eq(r.ledger.held.of[0], 0);
	ck_assert_uint_eq(r.ledger.handed.of[0], 50);
	ck_assert_uint_ge(r.requests, 1);
}
END_TEST

START_TEST(a_capture_cut_anywhere_is_a_shorter_capture)
{
	_cleanup_(closep) int fd = make_capture(20);
	uint64_t last = 20;
	struct replay_result r;
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	for (off_t len = st.st_size; len >= (off_t)sizeof(struct capture_head); len -= 61) {
		ck_assert_int_eq(ftruncate(fd, len), 0);
		ck_assert_int_eq(replay(fd, &r), 0);
		ck_assert_uint_le(r.samples, last);
		last = r.samples;
	}
	ck_assert_uint_eq(last, 0);
}
END_TEST

START_TEST(what_is_no_capture_is_refused)
{
	_cleanup_(closep) int fd = memfd_create("x", MFD_CLOEXEC);
	struct replay_result r;

	ck_assert_int_eq(replay(fd, &r), -EBADMSG);
	ck_assert_int_eq(write(fd, "not a capture, but long enough for a head of one", 48), 48);
	ck_assert_int_eq(replay(fd, &r), -EBADMSG);
}
END_TEST

START_TEST(a_record_longer_than_the_file_ends_the_capture)
{
	struct capture_record lie = {.type = CAPTURE_SAMPLE, .len = UINT32_MAX};
	_cleanup_(closep) int fd = make_capture(3);
	struct replay_result r;

	ck_assert_int_ge(lseek(fd, 0, SEEK_END), 0);
	ck_assert_int_eq(write(fd, &lie, sizeof(lie)), sizeof(lie));
	ck_assert_int_eq(replay(fd, &r), 0);
	ck_assert_uint_eq(r.samples, 3);
}
END_TEST

START_TEST(an_answer_that_is_neither_error_nor_file_is_none)
{
	struct replay_result r;
	int fd;

	has_positive_error = true;
	fd = make_capture(3);
	has_positive_error = false;
	ck_assert_int_eq(replay(fd, &r), 0);
	ck_assert_uint_eq(r.ledger.handed.of[0], 3);
	close(fd);
}
END_TEST

START_TEST(rounds_give_the_same_samples_each)
{
	_cleanup_(closep) int fd = make_capture(10);
	struct replay_options o = {.config = config, .rounds = 3};
	struct replay_result r;

	ck_assert_int_eq(replay_run(fd, &o, &r), 0);
	ck_assert_uint_eq(r.samples, 10);
	ck_assert_uint_eq(r.ledger.handed.of[0], 30);
}
END_TEST

Suite *replay_suite(void)
{
	Suite *s = suite_create("replay");
	TCase *t = tcase_create("replay");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_capture_keeps_addresses_and_drops_secrets);
	tcase_add_test(t, a_capture_keeps_what_runtimes_read);
	tcase_add_test(t, a_capture_keeps_walks);
	tcase_add_test(t, a_capture_drops_secrets_of_stacks_that_were_left);
	tcase_add_test(t, a_capture_keeps_where_frame_records_of_stacks_are);
	tcase_add_test(t, a_capture_keeps_signed_return_addresses_of_arm64);
	tcase_add_test(t, a_replay_sees_every_sample);
	tcase_add_test(t, a_capture_cut_anywhere_is_a_shorter_capture);
	tcase_add_test(t, what_is_no_capture_is_refused);
	tcase_add_test(t, a_record_longer_than_the_file_ends_the_capture);
	tcase_add_test(t, an_answer_that_is_neither_error_nor_file_is_none);
	tcase_add_test(t, rounds_give_the_same_samples_each);
	suite_add_tcase(s, t);
	return s;
}
