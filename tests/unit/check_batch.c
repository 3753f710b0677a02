// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/engine/batch.h"

Suite *batch_suite(void);

/* A sample with registers and a few stack bytes, as a sampler would write it. */
struct test_sample {
	struct otp_sample head;
	struct otp_section regs_sec;
	uint64_t valid, reg[OTP_REGS_X86_64];
	struct otp_section stack_sec;
	uint64_t stack_addr;
	uint8_t stack[16];
};

struct test_chunk {
	struct otp_chunk head;
	uint8_t bytes[8];
};

static struct test_sample make_sample(uint32_t cpu, uint64_t seq, uint64_t time_ns, uint32_t mode)
{
	struct test_sample s = {
		.head = {.rec = {.type = OTP_REC_SAMPLE, .len = sizeof(s)}, .time_ns = time_ns, .seq = seq,
			 .cpu = cpu, .pid = 1, .mode = mode, .arch = OTP_ARCH_X86_64, .nr_sections = 2},
		.regs_sec = {.type = OTP_SEC_REGS, .len = 8 + sizeof(s.reg)},
		.valid = 0x1ffff,
		.stack_sec = {.type = OTP_SEC_USTACK, .len = 8 + sizeof(s.stack)},
		.stack_addr = 0x7000,
	};

	memset(s.stack, 0x11, sizeof(s.stack));
	return s;
}

static struct test_chunk make_chunk(uint32_t cpu, uint64_t seq, uint32_t index, uint64_t addr, uint16_t flags)
{
	struct test_chunk c = {.head = {.rec = {.type = OTP_REC_CHUNK, .flags = flags, .len = sizeof(c)}, .seq = seq,
					.cpu = cpu, .index = index, .addr = addr, .len = sizeof(c.bytes)}};

	memset(c.bytes, 0x22, sizeof(c.bytes));
	return c;
}

START_TEST(samples_come_out_in_time_order)
{
	struct test_sample a = make_sample(0, 1, 300, 0), b = make_sample(1, 1, 100, 0), c = make_sample(0, 2, 200, 0);
	struct batch batch = {0};
	struct sample s;
	uint64_t times[3];

	ck_assert_int_eq(batch_add_ring(&batch, &a.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &b.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c.head.rec), 0);
	batch_sort(&batch);
	ck_assert_uint_eq(batch_count(&batch), 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, i), &s), 0);
		times[i] = s.head.time_ns;
	}
	ck_assert_uint_eq(times[0], 100);
	ck_assert_uint_eq(times[1], 200);
	ck_assert_uint_eq(times[2], 300);
	batch_done(&batch);
}
END_TEST

START_TEST(chunks_of_two_cpus_join_their_own_heads)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED), b = make_sample(1, 7, 2, OTP_MODE_CHUNKED);
	struct test_chunk a0 = make_chunk(0, 7, 0, 0x7010, 0), b0 = make_chunk(1, 7, 0, 0x7010, OTP_CHUNK_LAST);
	struct test_chunk a1 = make_chunk(0, 7, 1, 0x7018, OTP_CHUNK_LAST);
	struct batch batch = {0};
	struct sample s;

	batch_add_ring(&batch, &a.head.rec);
	batch_add_ring(&batch, &b.head.rec);
	batch_add_ring(&batch, &a0.head.rec);
	batch_add_ring(&batch, &b0.head.rec);
	batch_add_ring(&batch, &a1.head.rec);
	ck_assert_ptr_null(batch_incomplete(&batch));
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert_uint_eq(s.stack_len, 32);
	ck_assert_uint_eq(s.stack[15], 0x11);
	ck_assert_uint_eq(s.stack[16], 0x22);
	ck_assert(!s.chunk_lost);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 1), &s), 0);
	ck_assert_uint_eq(s.stack_len, 24);
	batch_done(&batch);
}
END_TEST

START_TEST(a_last_chunk_that_ends_with_memory_marks_the_sample_short)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED);
	struct test_chunk c = make_chunk(0, 7, 0, 0x7010, OTP_CHUNK_LAST | OTP_CHUNK_SHORT);
	struct batch batch = {0};
	struct sample s;

	batch_add_ring(&batch, &a.head.rec);
	batch_add_ring(&batch, &c.head.rec);
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert(s.head.mode & OTP_MODE_SHORT);
	ck_assert(!s.chunk_lost);
	batch_done(&batch);
}
END_TEST

START_TEST(base_chunks_join_beside_the_stack)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED);
	struct test_chunk c0 = make_chunk(0, 7, 0, 0x7010, OTP_CHUNK_HOLES);
	struct test_chunk c1 = make_chunk(0, 7, 1, 0x9000, OTP_CHUNK_BASE);
	struct test_chunk c2 = make_chunk(0, 7, 2, 0x9008, OTP_CHUNK_BASE | OTP_CHUNK_LAST);
	struct batch batch = {0};
	struct sample s;

	ck_assert_int_eq(batch_add_ring(&batch, &a.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c0.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c1.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c2.head.rec), 0);
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert_uint_eq(s.stack_len, 24);
	ck_assert_uint_eq(s.base_addr, 0x9000);
	ck_assert_uint_eq(s.base_len, 16);
	ck_assert(!s.chunk_lost);
	ck_assert(s.head.mode & OTP_MODE_HOLES);
	batch_done(&batch);
}
END_TEST

/* Its lower pages were never touched. */
START_TEST(a_base_may_begin_with_an_empty_chunk)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED);
	struct test_chunk c0 = make_chunk(0, 7, 0, 0x9000, OTP_CHUNK_BASE);
	struct test_chunk c1 = make_chunk(0, 7, 1, 0x11000, OTP_CHUNK_BASE | OTP_CHUNK_LAST);
	struct batch batch = {0};
	struct sample s;

	c0.head.len = 0;
	c0.head.rec.len = sizeof(c0.head);
	ck_assert_int_eq(batch_add_ring(&batch, &a.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c0.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &c1.head.rec), 0);
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert_uint_eq(s.base_addr, 0x11000);
	ck_assert_uint_eq(s.base_len, 8);
	ck_assert(!s.chunk_lost);
	batch_done(&batch);
}
END_TEST

START_TEST(a_missing_chunk_cuts_the_stack_and_says_so)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED), next = make_sample(0, 8, 2, 0);
	struct test_chunk second = make_chunk(0, 7, 1, 0x7018, 0);
	struct batch batch = {0};
	struct sample s;

	batch_add_ring(&batch, &a.head.rec);
	batch_add_ring(&batch, &second.head.rec);
	batch_add_ring(&batch, &next.head.rec);
	ck_assert_ptr_null(batch_incomplete(&batch));
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert_uint_eq(s.stack_len, 16);
	ck_assert(s.chunk_lost);
	batch_done(&batch);
}
END_TEST

START_TEST(a_head_whose_chunks_are_to_come_is_incomplete)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED), b = make_sample(1, 1, 2, 0);
	struct batch batch = {0};

	batch_add_ring(&batch, &a.head.rec);
	batch_add_ring(&batch, &b.head.rec);
	ck_assert_ptr_eq(batch_incomplete(&batch), &a.head.rec);
	batch_done(&batch);
}
END_TEST

START_TEST(a_chunk_of_another_sample_is_passed_over)
{
	struct test_sample a = make_sample(0, 7, 1, OTP_MODE_CHUNKED);
	struct test_chunk other = make_chunk(0, 6, 0, 0x7010, OTP_CHUNK_LAST);
	struct batch batch = {0};
	struct sample s;

	batch_add_ring(&batch, &a.head.rec);
	ck_assert_int_eq(batch_add_ring(&batch, &other.head.rec), 0);
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), 0);
	ck_assert_uint_eq(s.stack_len, 16);
	ck_assert(s.chunk_lost);
	batch_done(&batch);
}
END_TEST

START_TEST(records_that_lie_about_their_length_are_refused)
{
	struct test_sample a = make_sample(0, 1, 1, 0);
	struct test_chunk c = make_chunk(0, 1, 0, 0, 0);
	struct batch batch = {0};

	a.head.rec.len = sizeof(struct otp_sample) - 8;
	ck_assert_int_eq(batch_add_ring(&batch, &a.head.rec), -EBADMSG);
	c.head.len = sizeof(c.bytes) + 1;
	ck_assert_int_eq(batch_add_ring(&batch, &c.head.rec), -EBADMSG);
	ck_assert_uint_eq(batch.bad, 2);
	ck_assert_uint_eq(batch_count(&batch), 0);
	batch_done(&batch);
}
END_TEST

START_TEST(too_few_registers_are_refused)
{
	struct test_sample a = make_sample(0, 1, 1, 0);
	struct batch batch = {0};
	struct sample s;

	a.head.arch = OTP_ARCH_ARM64; /* which has more of them */
	batch_add_ring(&batch, &a.head.rec);
	batch_sort(&batch);
	ck_assert_int_eq(batch_sample(&batch, batch_item(&batch, 0), &s), -EBADMSG);
	batch_done(&batch);
}
END_TEST

START_TEST(unknown_record_types_are_passed_over)
{
	struct otp_rec rec = {.type = 999, .len = sizeof(rec)};
	struct batch batch = {0};

	ck_assert_int_eq(batch_add_ring(&batch, &rec), 0);
	ck_assert_uint_eq(batch_count(&batch), 0);
	batch_done(&batch);
}
END_TEST

START_TEST(an_event_goes_before_a_sample_of_the_same_instant)
{
	struct {
		struct perf_event_header h;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		uint32_t id_pid, id_tid;
		uint64_t id_time;
	} fork_record = {.h = {.type = PERF_RECORD_FORK, .size = sizeof(fork_record)}, .pid = 2, .ppid = 1, .tid = 2,
			 .ptid = 1, .time = 50, .id_time = 50};
	struct test_sample a = make_sample(0, 1, 50, 0);
	struct batch batch = {0};
	struct proc_event ev;

	batch_add_ring(&batch, &a.head.rec);
	batch_add_sideband(&batch, &fork_record, sizeof(fork_record));
	batch_sort(&batch);
	ck_assert_uint_eq(batch_count(&batch), 2);
	ck_assert_int_eq(batch_item(&batch, 0)->kind, BATCH_EVENT);
	ck_assert_int_eq(batch_event(&batch, batch_item(&batch, 0), &ev), 0);
	ck_assert_int_eq(ev.type, PROC_FORK);
	ck_assert_uint_eq(ev.pid, 2);
	batch_done(&batch);
}
END_TEST

struct fork_event {
	struct otp_life head;
	struct perf_event_header h;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
	uint32_t id_pid, id_tid;
	uint64_t id_time;
};

static struct fork_event make_fork(void)
{
	return (struct fork_event){
		.head = {.rec = {.type = OTP_REC_LIFE, .len = sizeof(struct fork_event)}},
		.h = {.type = PERF_RECORD_FORK, .size = sizeof(struct fork_event) - sizeof(struct otp_life)},
		.pid = 2, .ppid = 1, .tid = 2, .ptid = 1, .time = 50, .id_time = 50,
	};
}

START_TEST(process_life_may_come_in_the_ring)
{
	struct test_sample a = make_sample(0, 1, 60, 0);
	struct fork_event e = make_fork();
	struct batch batch = {0};
	struct proc_event ev;

	ck_assert_int_eq(batch_add_ring(&batch, &a.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &e.head.rec), 0);
	batch_sort(&batch);
	ck_assert_uint_eq(batch_count(&batch), 2);
	ck_assert_int_eq(batch_item(&batch, 0)->kind, BATCH_EVENT);
	ck_assert_int_eq(batch_event(&batch, batch_item(&batch, 0), &ev), 0);
	ck_assert(ev.type == PROC_FORK && ev.pid == 2 && ev.ppid == 1 && ev.time_ns == 50);
	ck_assert_mem_eq(batch_event_bytes(&batch, batch_item(&batch, 0)), &e.h, e.h.size);
	batch_done(&batch);
}
END_TEST

START_TEST(malformed_process_life_is_passed_over)
{
	struct fork_event empty = make_fork(), lying = make_fork(), foreign = make_fork();
	struct batch batch = {0};

	empty.head.rec.len = sizeof(struct otp_life);
	lying.h.size += 8;
	foreign.h.type = 200;
	ck_assert_int_eq(batch_add_ring(&batch, &empty.head.rec), -EBADMSG);
	ck_assert_int_eq(batch_add_ring(&batch, &lying.head.rec), 0);
	ck_assert_int_eq(batch_add_ring(&batch, &foreign.head.rec), 0);
	ck_assert_uint_eq(batch_count(&batch), 0);
	ck_assert_uint_eq(batch.bad, 1);
	batch_done(&batch);
}
END_TEST

/* Two walks of two frames of three words, the first with a word of the root. */
struct walked_sample {
	struct test_sample base;
	struct otp_section sec0;
	struct otp_walked walk0;
	uint64_t word0[7];
	struct otp_section sec1;
	struct otp_walked walk1;
	uint64_t word1[6];
};

static struct walked_sample make_walked(void)
{
	struct walked_sample s = {
		.base = make_sample(0, 1, 1, 0),
		.sec0 = {.type = OTP_SEC_WALK, .len = sizeof(s.walk0) + sizeof(s.word0)},
		.walk0 = {.generation = 7, .frames = 2, .root_words = 1, .frame_words = 3, .plan = 1, .end = OTP_WALK_END_FRAMES},
		.word0 = {0x100, 0x200, 0x201, 0x202, 0x210, 0x211, 0x212},
		.sec1 = {.type = OTP_SEC_WALK, .len = sizeof(s.walk1) + sizeof(s.word1)},
		.walk1 = {.generation = 7, .frames = 2, .frame_words = 3, .plan = 0},
		.word1 = {0x300},
	};

	s.base.head.rec.len = sizeof(s);
	s.base.head.nr_sections += 2;
	return s;
}

static int read_walked(struct walked_sample *w, struct sample *ret)
{
	struct batch batch = {0};
	int err;

	batch_add_ring(&batch, &w->base.head.rec);
	batch_sort(&batch);
	err = batch_sample(&batch, batch_item(&batch, 0), ret);
	batch_done(&batch);
	return err;
}

START_TEST(walks_are_found_by_plan)
{
	struct walked_sample w = make_walked();
	struct sample s;

	ck_assert_int_eq(read_walked(&w, &s), 0);
	ck_assert_ptr_eq(s.walks[0], &w.walk1);
	ck_assert_ptr_eq(s.walks[1], &w.walk0);
	ck_assert_ptr_eq(sample_walk_words(s.walks[1]), w.word0);
	ck_assert_uint_eq(sample_walk_bytes(s.walks[1]), w.sec0.len);
}
END_TEST

/* What makes a section one that no sampler writes. */
static void break_walk(struct walked_sample *w, int how)
{
	switch (how) {
	case 0: w->walk1.frames = 3; break;
	case 1: w->walk1.frames = 1; break;
	case 2: w->walk1.root_words = 1; break;
	case 3: w->walk1.frame_words = 0; break;
	case 4: w->walk1.plan = OTP_WALK_PLANS; break;
	case 5: w->walk1.plan = 1; break; /* twice */
	case 6: w->walk1.end = OTP_WALK_END_NR; break;
	case 7: w->walk1.generation = 0; break;
	case 8: w->sec1.len = 15; break;
	case 9: w->sec1.len -= 8; break;
	case 10: w->walk1.frames = OTP_WALK_FRAMES + 1; break;
	case 11: w->walk1.frame_words = OTP_WALK_FRAME_WORDS + 1; break;
	case 12: w->walk1.root_words = OTP_WALK_WORDS + 1; break;
	}
}

START_TEST(a_walk_that_is_not_whole_is_refused)
{
	struct walked_sample w = make_walked();
	struct sample s;

	break_walk(&w, _i);
	ck_assert_int_eq(read_walked(&w, &s), -EBADMSG);
}
END_TEST

Suite *batch_suite(void)
{
	Suite *s = suite_create("batch");
	TCase *t = tcase_create("batch");

	tcase_add_test(t, samples_come_out_in_time_order);
	tcase_add_test(t, chunks_of_two_cpus_join_their_own_heads);
	tcase_add_test(t, a_last_chunk_that_ends_with_memory_marks_the_sample_short);
	tcase_add_test(t, base_chunks_join_beside_the_stack);
	tcase_add_test(t, a_base_may_begin_with_an_empty_chunk);
	tcase_add_test(t, a_missing_chunk_cuts_the_stack_and_says_so);
	tcase_add_test(t, a_head_whose_chunks_are_to_come_is_incomplete);
	tcase_add_test(t, a_chunk_of_another_sample_is_passed_over);
	tcase_add_test(t, records_that_lie_about_their_length_are_refused);
	tcase_add_test(t, too_few_registers_are_refused);
	tcase_add_test(t, unknown_record_types_are_passed_over);
	tcase_add_test(t, an_event_goes_before_a_sample_of_the_same_instant);
	tcase_add_test(t, process_life_may_come_in_the_ring);
	tcase_add_test(t, malformed_process_life_is_passed_over);
	tcase_add_test(t, walks_are_found_by_plan);
	tcase_add_loop_test(t, a_walk_that_is_not_whole_is_refused, 0, 13);
	suite_add_tcase(s, t);
	return s;
}
