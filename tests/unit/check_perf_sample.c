// SPDX-License-Identifier: Apache-2.0
/* The samples of this file are as an x86-64 kernel writes them, word by word. */
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "ring/ring.h"
#include "source/perf_sample.h"

Suite *perf_sample_suite(void);

#define PAIR(low, high) ((uint64_t)(low) | (uint64_t)(high) << 32)
#define HEADER(misc, words) ((uint64_t)PERF_RECORD_SAMPLE | (uint64_t)(misc) << 32 | (uint64_t)((words) * 8) << 48)

static uint64_t record[1024];
static uint32_t words;

static void add(uint64_t word)
{
	record[words++] = word;
}

static void begin(uint64_t misc)
{
	words = 1;
	record[0] = misc; /* finished by end */
	add(PAIR(100, 101));
	add(7000000000);
	add(PAIR(3, 0));
}

static void end(void)
{
	record[0] = HEADER(record[0], words);
}

#if defined(__x86_64__)
/* ax bx cx dx si di bp sp ip r8..r15: the order of perf's bits. */
static void add_regs(uint64_t sp)
{
	static const uint64_t regs[] = {0xa, 0xb, 0xc, 0xd, 0x51, 0xd1, 0xb9, 0, 0x401000, 8, 9, 10, 11, 12, 13, 14, 15};

	add(PERF_SAMPLE_REGS_ABI_64);
	for (size_t i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		add(i == 7 ? sp : regs[i]);
}

static const uint64_t dwarf[] = {0xa, 0xd, 0xc, 0xb, 0x51, 0xd1, 0xb9, 0x7ff0, 8, 9, 10, 11, 12, 13, 14, 15, 0x401000};

/* nr words of stack, each its own number, of which copied bytes are said to be real. */
static void add_stack(uint32_t nr, uint64_t copied)
{
	add(nr * 8);
	for (uint32_t i = 0; i < nr; i++)
		add(0x1000 + i);
	if (nr)
		add(copied);
}

static const struct perf_format plain, full = {.callchain = true, .cgroup = true};

static struct perf_subject subject(uint32_t stack_bytes)
{
	return (struct perf_subject){.start_ns = 5, .exec_id = 6, .cgroup_id = 77, .ppid = 1, .plan_gen = 9,
				     .stack_bytes = stack_bytes, .stack_take = stack_bytes, .comm = "worker"};
}

static union {
	struct otp_sample head;
	uint8_t byte[OTP_SCRATCH];
	uint64_t align;
} out;

static const struct otp_sample *write_out(const struct perf_sample *s, const struct perf_subject *who)
{
	uint32_t len;

	memset(&out, 0xee, sizeof(out));
	len = perf_sample_write(&out, s, who, 42);
	ck_assert_uint_le(len, perf_sample_bound(s));
	ck_assert_uint_eq(len, out.head.rec.len);
	ck_assert_uint_eq(out.byte[len], 0xee);
	return &out.head;
}

START_TEST(user_sample_becomes_the_contracts_record)
{
	const struct otp_ustack *stack;
	const struct otp_regs *regs;
	struct perf_subject who = subject(32);
	struct perf_sample s;
	const struct otp_sample *head;
	uint32_t len;

	begin(PERF_RECORD_MISC_USER);
	add_regs(0x7ff0);
	add_stack(8, 64);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &plain, &s), 0);
	head = write_out(&s, &who);
	ck_assert_uint_eq(head->rec.type, OTP_REC_SAMPLE);
	ck_assert_uint_eq(head->time_ns, 7000000000);
	ck_assert_uint_eq(head->seq, 42);
	ck_assert(head->cpu == 3 && head->pid == 100 && head->tid == 101 && head->ppid == 1);
	ck_assert(head->start_ns == 5 && head->exec_id == 6 && head->plan_gen == 9 && head->cgroup_id == 77);
	ck_assert(!head->tls_base && !head->mode && head->stack_bytes == 32 && head->arch == OTP_ARCH_X86_64);
	ck_assert_str_eq(head->comm, "worker");
	regs = sample_section(head, OTP_SEC_REGS, &len);
	ck_assert_uint_eq(len, 8 + sizeof(dwarf));
	ck_assert_uint_eq(regs->valid, 0x1ffff);
	ck_assert_mem_eq(regs->reg, dwarf, sizeof(dwarf));
	stack = sample_section(head, OTP_SEC_USTACK, &len);
	ck_assert_uint_eq(len, sizeof(*stack) + 32);
	ck_assert_uint_eq(stack->addr, 0x7ff0);
	ck_assert_mem_eq(stack + 1, &record[words - 9], 32);
	ck_assert_ptr_null(sample_section(head, OTP_SEC_KSTACK, &len));
}
END_TEST

START_TEST(kernel_sample_has_its_stack_and_no_registers_that_perf_invents)
{
	const uint64_t *kstack, unknown = UINT64_MAX;
	const struct otp_regs *regs;
	struct perf_subject who = subject(16);
	struct perf_sample s;
	uint32_t len;

	begin(PERF_RECORD_MISC_KERNEL);
	add(3);
	add((uint64_t)PERF_CONTEXT_KERNEL);
	add(0xffffffff81000010);
	add(0xffffffff81000020);
	add(PERF_SAMPLE_REGS_ABI_64);
	for (int i = 0; i < 17; i++) /* bx and r12 to r15: as a system call left them, which nobody saved */
		add(i == 1 || i > 12 ? unknown : i == 7 ? 0x7ff0 : (uint64_t)i);
	add_stack(8, 16);
	add(4321);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &full, &s), 0);
	ck_assert_uint_eq(s.cgroup_id, 4321);
	kstack = sample_section(write_out(&s, &who), OTP_SEC_KSTACK, &len);
	ck_assert_uint_eq(len, 16);
	ck_assert(kstack[0] == 0xffffffff81000010 && kstack[1] == 0xffffffff81000020);
	regs = sample_section(&out.head, OTP_SEC_REGS, &len);
	ck_assert_uint_eq(regs->valid, 0x10fff & ~8);
	ck_assert(!regs->reg[3] && !regs->reg[12] && regs->reg[6] == 6);
	ck_assert_uint_eq(out.head.mode, OTP_MODE_KERNEL);
	ck_assert_uint_eq(out.head.cgroup_id, 4321);
}
END_TEST

START_TEST(thread_without_user_side_has_none)
{
	struct perf_subject who = subject(4096), kthread = who;
	struct perf_sample s;
	uint32_t len;

	begin(PERF_RECORD_MISC_KERNEL);
	add(0); /* no callchain */
	add(PERF_SAMPLE_REGS_ABI_NONE);
	add(0); /* no stack */
	add(1);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &full, &s), 0);
	write_out(&s, &who);
	ck_assert_uint_eq(out.head.mode, OTP_MODE_KERNEL | OTP_MODE_NO_USER);
	ck_assert_ptr_null(sample_section(&out.head, OTP_SEC_REGS, &len));
	ck_assert_ptr_null(sample_section(&out.head, OTP_SEC_USTACK, &len));
	kthread.mode = OTP_MODE_KTHREAD;
	write_out(&s, &kthread);
	ck_assert_uint_eq(out.head.mode, OTP_MODE_KERNEL | OTP_MODE_KTHREAD);
}
END_TEST

START_TEST(compat_registers_are_those_of_32_bits)
{
	struct perf_subject who = subject(16);
	const struct otp_regs *regs;
	struct perf_sample s;
	uint32_t len;

	begin(PERF_RECORD_MISC_USER);
	add_regs(0x7ff0);
	record[4] = PERF_SAMPLE_REGS_ABI_32;
	add_stack(2, 16);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &plain, &s), 0);
	regs = sample_section(write_out(&s, &who), OTP_SEC_REGS, &len);
	ck_assert_uint_eq(out.head.mode, OTP_MODE_COMPAT);
	ck_assert_uint_eq(regs->valid, 0x100ff);
	ck_assert_uint_eq(regs->reg[8], 0);
}
END_TEST

/* Why fewer bytes came than were wanted, of 64 that the event copies. */
static const struct {
	uint32_t copied, asked, left, len, mode;
} stacks[] = {
	{64, 64, 64, 64, 0},
	{64, 40, 40, 40, 0},
	{64, 37, 37, 40, 0},
	{64, 512, 512, 64, OTP_MODE_THROTTLE}, /* the event copies less than the plan wants */
	{64, 64, 32, 32, OTP_MODE_THROTTLE},   /* the bound on bytes */
	{40, 64, 64, 40, OTP_MODE_SHORT},      /* memory ends */
	{40, 512, 32, 32, OTP_MODE_THROTTLE},
	{40, 512, 512, 40, OTP_MODE_SHORT},
	{0, 64, 64, 0, OTP_MODE_SHORT},
};

START_TEST(what_is_missing_of_a_stack_says_why)
{
	struct perf_subject who = subject(stacks[_i].asked);
	struct perf_sample s;
	uint32_t len = 0;

	who.stack_take = stacks[_i].left;
	begin(PERF_RECORD_MISC_USER);
	add_regs(0x7ff0);
	add_stack(8, stacks[_i].copied);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &plain, &s), 0);
	ck_assert_ptr_nonnull(sample_section(write_out(&s, &who), OTP_SEC_USTACK, &len));
	ck_assert_uint_eq(len, 8 + stacks[_i].len);
	ck_assert_uint_eq(out.head.mode, stacks[_i].mode);
}
END_TEST

START_TEST(stack_begins_at_a_multiple_of_8)
{
	struct perf_subject who = subject(64);
	const struct otp_ustack *stack;
	struct perf_sample s;
	uint32_t len;

	begin(PERF_RECORD_MISC_USER);
	add_regs(0x7ff3);
	add_stack(8, 64);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &plain, &s), 0);
	stack = sample_section(write_out(&s, &who), OTP_SEC_USTACK, &len);
	ck_assert_uint_eq(stack->addr, 0x7ff8);
	ck_assert_uint_eq(len, 8 + 56);
	ck_assert_mem_eq(stack + 1, (const uint8_t *)&record[words - 9] + 5, 56);
}
END_TEST

START_TEST(record_cut_anywhere_is_refused)
{
	struct perf_sample s;
	uint32_t whole;

	begin(PERF_RECORD_MISC_KERNEL);
	add(1);
	add((uint64_t)PERF_CONTEXT_KERNEL);
	add_regs(0x7ff0);
	add_stack(4, 32);
	add(1);
	end();
	whole = words;
	ck_assert_int_eq(perf_sample_decode(record, whole * 8, &full, &s), 0);
	for (words = 1; words < whole; words++) {
		record[0] = PERF_RECORD_MISC_KERNEL;
		end();
		ck_assert_int_eq(perf_sample_decode(record, words * 8, &full, &s), -EBADMSG);
	}
	ck_assert_int_eq(perf_sample_decode(record, whole * 8, &full, &s), -EBADMSG);
	ck_assert_int_eq(perf_sample_decode(record, 4, &full, &s), -EBADMSG);
}
END_TEST

START_TEST(lengths_beyond_the_record_are_refused)
{
	struct perf_sample s;

	begin(PERF_RECORD_MISC_KERNEL);
	add(UINT64_MAX); /* callchain */
	add_regs(0x7ff0);
	add_stack(4, 32);
	add(1);
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &full, &s), -EBADMSG);
	begin(PERF_RECORD_MISC_USER);
	add_regs(0x7ff0);
	add_stack(4, 33); /* more copied than there is room */
	end();
	ck_assert_int_eq(perf_sample_decode(record, words * 8, &plain, &s), -EBADMSG);
}
END_TEST
#endif

Suite *perf_sample_suite(void)
{
	Suite *s = suite_create("perf_sample");
	TCase *t = tcase_create("sample");

#if defined(__x86_64__)
	tcase_add_test(t, user_sample_becomes_the_contracts_record);
	tcase_add_test(t, kernel_sample_has_its_stack_and_no_registers_that_perf_invents);
	tcase_add_test(t, thread_without_user_side_has_none);
	tcase_add_test(t, compat_registers_are_those_of_32_bits);
	tcase_add_loop_test(t, what_is_missing_of_a_stack_says_why, 0, sizeof(stacks) / sizeof(*stacks));
	tcase_add_test(t, stack_begins_at_a_multiple_of_8);
	tcase_add_test(t, record_cut_anywhere_is_refused);
	tcase_add_test(t, lengths_beyond_the_record_are_refused);
#endif
	suite_add_tcase(s, t);
	return s;
}
