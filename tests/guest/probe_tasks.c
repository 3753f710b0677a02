// SPDX-License-Identifier: Apache-2.0
/*
 * Tasks without user registers or memory of their own: a worker of io_uring belongs to a process but runs no user code,
 * and a child of vfork or posix_spawn runs in its parent's memory.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe_act.h"
#include "probe_loop.h"

/* --- workers of io_uring --- */

/* Linux, include/uapi/linux/io_uring.h: IORING_SETUP_SQPOLL, IORING_ENTER_SQ_WAKEUP */
#define URING_SQPOLL	 2
#define URING_WAKEUP	 2
#define URING_PARAMS	 120 /* bytes of struct io_uring_params; flags at 8, sq_thread_idle at 16 */
#define URING_IDLE_MS	 60000

/* The kernel's thread for the ring polls without pause once it was woken; a call before it sleeps wakes nothing. */
static void play_uring(struct act *act)
{
	uint32_t params[URING_PARAMS / 4] = {[2] = URING_SQPOLL, [4] = URING_IDLE_MS};

	long fd = syscall(SYS_io_uring_setup, 4, params);

	if (fd < 0)
		return;
	act->stage.ready = 1;
	for (;;) {
		syscall(SYS_io_uring_enter, fd, 0, 0, URING_WAKEUP, NULL, 0);
		sleep_ms(100);
	}
}

struct worker_tally {
	pid_t pid;
	unsigned int samples, wrong;
};

static void see_worker(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct worker_tally *t = ctx;
	uint32_t len;

	if (rec->type != OTP_REC_SAMPLE || strncmp(s->comm, "iou-sqp-", 8) != 0)
		return;
	t->samples++;
	t->wrong += s->pid != (uint32_t)t->pid || !(s->mode & OTP_MODE_NO_USER) || s->stack_end ||
		    sample_section(s, OTP_SEC_REGS, &len);
}

static enum verdict worker_of_io_uring_has_no_user_registers(void)
{
	struct source_config cfg = config_default();
	struct worker_tally t = {0};
	bool ran;
	int err = act_watch(play_uring, &cfg, ACT_MS, see_worker, &t, &ran);

	if (!ran)
		return SKIPPED;
	CHECK(err == 0, "error %d", err);
	CHECK(t.samples >= 20, "%u samples", t.samples);
	CHECK(!t.wrong, "%u of %u samples", t.wrong, t.samples);
	return PASSED;
}

/* --- processes that share their parent's memory --- */

static void announce(struct act *act)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act->stage.ip_start = (uint64_t)(uintptr_t)spin_user_loop;
	act->stage.ip_end = (uint64_t)(uintptr_t)spin_user_end;
	act->pid = getpid();
	act->stage.sp = act->stage.stack_end - ACT_DEPTH;
	act->stage.ready = 1;
}

static int spin_as_spawned(void *ctx)
{
	struct act *act = ctx;

	announce(act);
	spin_user(act->stage.sp, 0);
}

/* As posix_spawn: a stack of its own, in the caller's memory. */
static void play_spawn(struct act *act)
{
	child_make_stack(&act->stage, 0);
	clone(spin_as_spawned, (void *)(uintptr_t)(act->stage.stack_end - 4096), CLONE_VM | CLONE_VFORK | SIGCHLD, act);
}

/* On its caller's stack, as far as the call goes; then as above, so that its words are known. */
static void play_vfork(struct act *act)
{
	child_make_stack(&act->stage, 0);
	if (vfork() == 0) /* NOLINT: neither returns nor calls exec, which is the test */
		spin_as_spawned(act);
}

static enum verdict watch_shared(play_fn *play)
{
	struct stack_tally t = {.want = OTP_STACK_FLOOR};
	enum verdict v = act_watch_stack(act_new(), play, OTP_STACK_FLOOR, &t);

	CHECK(!t.bases && !t.with_end, "%u base chunks of the parent's stack, %u of %u with its end", t.bases,
	      t.with_end, t.samples);
	return v;
}

static enum verdict spawned_child_gets_no_base_of_its_parents_stack(void)
{
	return watch_shared(play_spawn);
}

static enum verdict vforked_child_gets_no_base_of_its_parents_stack(void)
{
	return watch_shared(play_vfork);
}

const struct probe_test task_tests[] = {
	{"worker of io_uring has no user registers", worker_of_io_uring_has_no_user_registers},
	{"spawned child gets no base of its parent's stack", spawned_child_gets_no_base_of_its_parents_stack},
	{"vforked child gets no base of its parent's stack", vforked_child_gets_no_base_of_its_parents_stack},
	{NULL, NULL},
};
