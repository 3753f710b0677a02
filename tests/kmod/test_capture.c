// SPDX-License-Identifier: Apache-2.0
/*
 * The module's counters of ticks: every tick is a sample or a skip, and every
 * sample is put or lost. A guest cannot test all of them: a tick is skipped as
 * resting only where it is the NMI of a hardware counter, which virtual machines
 * lack (ticks of a timer are put off instead). Here the capture runs with a
 * made-up kernel, and samples of one size.
 */
#include <stdlib.h>

#include "tests/kmod/kernel.h"
#include "tests/kmod/test.h"

/* In place of the kernel's headers, of kmod/compat/compat.h and of kmod/session.h. */
#define OTPROF_COMPAT_H
#define OTPROF_SESSION_H
#define SOFTIRQ_OFFSET 256
#define HARDIRQ_OFFSET 65536
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define rcu_dereference(p) (p)
typedef uint16_t u16;
struct task_struct {
	int pid;
};
struct pt_regs {
	int unused;
};
static struct task_struct task, *current = &task;
static unsigned int preempted;
static unsigned int preempt_count(void)
{
	return preempted;
}
static unsigned int hardirq_count(void)
{
	return preempted & ~(HARDIRQ_OFFSET - 1u);
}
static void rcu_read_lock(void)
{
}
static void rcu_read_unlock(void)
{
}
static u64 otprof_compat_boot_ns(void)
{
	return 1;
}

#include "kmod/ring.h"
#include "kmod/sample.h"

/* What the capture reads of a session. */
struct otprof_defaults {
	struct otp_defaults d;
};
struct otprof_session {
	struct otprof_ring ring;
	struct otprof_defaults *defaults;
};
struct otprof_cpu {
	struct otprof_session *session;
	struct otp_cpu_counters *counters;
	unsigned int cpu;
	u64 loss_samples, loss_first_seq, time_ns, seq;
};
static void otprof_session_notice(struct otprof_session *s, u32 wake_bytes)
{
}
static void otprof_session_notice_young(struct otprof_session *s, u64 now_ns)
{
}

#include "kmod/capture.c"
#include "source/source.h"

#define RING  4096
#define BYTES 500
#define STEPS 100000

/* --- samples of one size, with chunks or without --- */

static bool selected;
static u32 chunks;

void otprof_choose_subject(struct otprof_subject *who)
{
	memset(who, 0, sizeof(*who));
}

bool otprof_choose(const struct otprof_session *s, const struct otp_defaults *d, const struct otprof_subject *who,
		   struct otprof_choice *ret)
{
	memset(ret, 0, sizeof(*ret));
	return selected;
}

u32 otprof_sample_measure(struct otprof_sample *s)
{
	s->mode = chunks ? OTP_MODE_CHUNKED : 0;
	return BYTES;
}

u32 otprof_sample_write(struct otprof_sample *s, void *to)
{
	memset(to, 0, BYTES);
	return BYTES;
}

bool otprof_chunk_measure(const struct otprof_sample *s, struct otprof_chunk *ret)
{
	ret->want = BYTES;
	ret->flags = 0;
	return ret->index < chunks;
}

u32 otprof_chunk_write(struct otprof_sample *s, struct otprof_chunk *chunk, void *to)
{
	memset(to, 0, sizeof(struct otp_chunk) + BYTES);
	return BYTES;
}

/* --- ticks --- */

static u8 data[2 * RING] __attribute__((aligned(8)));
static u64 consumer, producer, pending[1];
static struct otprof_defaults defaults;
static struct otprof_session session;
static struct otp_cpu_counters counters;
static struct otprof_cpu cpu;

static void cpu_begin(void)
{
	consumer = producer = 0;
	memset(&counters, 0, sizeof(counters));
	session.defaults = &defaults;
	cpu = (struct otprof_cpu){.session = &session, .counters = &counters};
	otprof_ring_init(&session.ring, data, RING, &consumer, &producer, pending, 1);
}

enum event { AT_REST, IDLE, SOFTIRQ_OF_IDLE, NO_REGISTERS, NOT_SELECTED, TAKEN, IN_CHUNKS, EVENTS };

static bool tick(enum event e)
{
	struct pt_regs regs;

	if (e == AT_REST) {
		otprof_capture_rest(&cpu);
		return false;
	}
	task.pid = e != IDLE && e != SOFTIRQ_OF_IDLE;
	preempted = HARDIRQ_OFFSET | (e == SOFTIRQ_OF_IDLE ? SOFTIRQ_OFFSET : 0);
	selected = e != NOT_SELECTED;
	chunks = e == IN_CHUNKS ? 3 : 0;
	return otprof_capture_tick(&cpu, e == NO_REGISTERS ? NULL : &regs);
}

static bool each_kind_of_tick_has_its_count(void)
{
	cpu_begin();
	for (enum event e = 0; e < EVENTS; e++) {
		CHECK(tick(e) == (e == SOFTIRQ_OF_IDLE || e >= TAKEN));
		CHECK(counters.ticks == (u64)e + 1 && counters_balanced(&counters));
	}
	CHECK(counters.skip[OTP_SKIP_RESTING] == 1 && counters.skip[OTP_SKIP_NOT_SELECTED] == 1);
	CHECK(counters.skip[OTP_SKIP_IDLE] == 2 && counters.put == 3 && counters.chunks == 3);
	return true;
}

/* In any order; the reader empties the ring so seldom that it is full at times. */
static bool every_tick_is_a_sample_or_a_skip(void)
{
	u64 had[EVENTS] = {0};

	cpu_begin();
	srand(1);
	for (u64 n = 0; n < STEPS; n++) {
		enum event e = (enum event)(rand() % EVENTS);

		if (rand() % 16 == 0)
			consumer = producer;
		had[e]++;
		tick(e);
		CHECK(counters.ticks == n + 1 && counters_balanced(&counters));
	}
	CHECK(counters.skip[OTP_SKIP_RESTING] == had[AT_REST]);
	CHECK(counters.skip[OTP_SKIP_NOT_SELECTED] == had[NOT_SELECTED]);
	CHECK(counters.skip[OTP_SKIP_IDLE] == had[IDLE] + had[NO_REGISTERS]);
	CHECK(counters.taken == had[SOFTIRQ_OF_IDLE] + had[TAKEN] + had[IN_CHUNKS]);
	CHECK(counters.put && counters.lost[OTP_LOSS_RING_FULL] && counters.chunks && counters.chunks_lost);
	return true;
}

static const struct test tests[] = {
	{"each kind of tick has its count", each_kind_of_tick_has_its_count},
	{"every tick is a sample or a skip", every_tick_is_a_sample_or_a_skip},
};

int main(void)
{
	return test_run("capture", tests, sizeof(tests) / sizeof(*tests)) != 0;
}
