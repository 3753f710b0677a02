// SPDX-License-Identifier: Apache-2.0
/*
 * Threads and the base of their thread-local storage, which ends their stack only if a C library placed it there: then
 * its first word is its own address.
 */
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "probe_act.h"
#include "probe_loop.h"

#if defined(__x86_64__)
#define COPY   8192  /* bytes of stack */
#define NEAR   3008  /* of the storage above the stack pointer: within the copy */
#define FSBASE 2     /* Linux, arch/x86/include/uapi/asm/hwcap2.h: HWCAP2_FSGSBASE */

/* rdi: rounds */
__asm__(".text\n"
	"spin_rounds:\n"
	"	decq %rdi\n"
	"	jnz spin_rounds\n"
	"spin_rounds_end:\n"
	"	ret\n");
void spin_rounds(uint64_t rounds);
extern const char spin_rounds_end[];

static int spin_as_thread(void *ctx)
{
	struct act *act = ctx;

	act->stage.ready = 1;
	spin_user(act->stage.sp, 0);
}

/* Each pause leaves the near base with the kernel, which does not see the far one until the thread is switched out. */
static int spin_as_thread_of_two_bases(void *ctx)
{
	struct act *act = ctx;

	act->stage.ready = 1;
	while (act->stage.ready) {
		__asm__ volatile("wrfsbase %0" ::"r"(act->tls_near));
		sleep_ms(1);
		__asm__ volatile("wrfsbase %0" ::"r"(act->tls_end));
		spin_rounds(5000000);
	}
	return 0;
}

static void thread_start(struct act *act, int (*fn)(void *), uint64_t sp)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;

	clone(fn, (void *)(uintptr_t)sp, flags, act, NULL, (void *)(uintptr_t)act->tls_near);
	for (;;)
		pause();
}

static void thread_stage(struct act *act, const char *ip_start, const char *ip_end)
{
	struct stage *stage = &act->stage;

	child_make_stack(stage, 0);
	stage->ip_start = (uint64_t)(uintptr_t)ip_start;
	stage->ip_end = (uint64_t)(uintptr_t)ip_end;
	stage->sp = stage->stack_end - ACT_DEPTH;
	act->tls_near = stage->sp + NEAR;
}

static void play_thread(struct act *act)
{
	thread_stage(act, spin_user_loop, spin_user_end);
	thread_start(act, spin_as_thread, act->stage.stack_end - 8192);
}

static void storage_make(struct act *act, uint64_t base)
{
	act->tls_end = base;
	*(uint64_t *)(uintptr_t)base = base;
}

static void play_thread_with_storage(struct act *act)
{
	thread_stage(act, spin_user_loop, spin_user_end);
	storage_make(act, act->tls_near);
	thread_start(act, spin_as_thread, act->stage.stack_end - 8192);
}

static void play_thread_of_two_bases(struct act *act)
{
	thread_stage(act, (const char *)(uintptr_t)spin_rounds, spin_rounds_end);
	storage_make(act, act->stage.stack_end - 4096);
	thread_start(act, spin_as_thread_of_two_bases, act->stage.sp);
}

static enum verdict storage_that_is_no_end_cuts_no_stack(void)
{
	struct stack_tally t = {.want = COPY};
	enum verdict v = act_watch_stack(act_new(), play_thread, COPY, &t);

	CHECK(v != PASSED || (!t.with_end && !t.bases), "%u samples with an end, %u bases", t.with_end, t.bases);
	return v;
}

static enum verdict stale_storage_cuts_no_stack(void)
{
	struct stack_tally t = {.want = COPY, .any_words = true};

	return getauxval(AT_HWCAP2) & FSBASE ? act_watch_stack(act_new(), play_thread_of_two_bases, COPY, &t) : SKIPPED;
}

static enum verdict stack_of_a_thread_ends_at_its_storage(void)
{
	struct stack_tally t = {.want = NEAR + OTP_RED_ZONE};
	enum verdict v = act_watch_stack(act_new(), play_thread_with_storage, COPY, &t);

	CHECK(v != PASSED || t.with_end == t.samples, "%u of %u samples with an end", t.with_end, t.samples);
	return v;
}
#else
static enum verdict storage_that_is_no_end_cuts_no_stack(void)
{
	return SKIPPED; /* nothing in memory tells whether it is one */
}

static enum verdict stale_storage_cuts_no_stack(void)
{
	return SKIPPED;
}

static enum verdict stack_of_a_thread_ends_at_its_storage(void)
{
	return SKIPPED;
}
#endif

const struct probe_test storage_tests[] = {
	{"storage that is no end cuts no stack", storage_that_is_no_end_cuts_no_stack},
	{"stale storage cuts no stack", stale_storage_cuts_no_stack},
	{"stack of a thread ends at its storage", stack_of_a_thread_ends_at_its_storage},
	{NULL, NULL},
};
