// SPDX-License-Identifier: Apache-2.0
/*
 * Tasks whose registers, memory or thread-local storage are not what they seem:
 * inside exec, io_uring workers, processes that share their parent's memory,
 * threads with a storage base that is no end of a stack.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "probe.h"
#include "probe_loop.h"

#define RUN_MS	1500
#define EXEC_MS 6000 /* of which a small part is spent between two programs */

/* Shared with the child. */
struct act {
	struct stage stage;
	volatile uint64_t tls_near; /* the base of a thread's storage, near its stack pointer */
	volatile uint64_t tls_end;  /* not 0: a base that is the end of a stack */
	volatile int pid;	    /* of the process that spins, where it is not the child */
};

static struct act *act_new(void)
{
	return mmap(NULL, sizeof(struct act), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* What the child of a test does. Returns where the kernel does not provide it. */
typedef void play_fn(struct act *act);

static pid_t act_begin(struct act *act, play_fn *play)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(act);
		_exit(1);
	}
	while (pid > 0 && !act->stage.ready && waitpid(pid, NULL, WNOHANG) == 0)
		sleep_ms(5);
	if (act->stage.ready)
		return pid;
	munmap(act, sizeof(*act));
	return -1;
}

static void act_end(struct act *act, pid_t pid)
{
	if (act->pid)
		kill(act->pid, SIGKILL);
	child_end(pid);
	munmap(act, sizeof(*act));
}

/* Runs a session beside the child; ctx begins with the child's pid. *ret_ran: the child could act. */
static int act_watch(play_fn *play, const struct source_config *cfg, unsigned int ms, record_fn *fn, void *ctx, bool *ret_ran)
{
	struct act *act = act_new();
	pid_t pid = act_begin(act, play);
	struct session s;
	int err;

	*ret_ran = pid > 0;
	if (pid < 0)
		return 0;
	*(pid_t *)ctx = pid;
	err = session_open(&s, cfg);
	if (err == 0)
		err = session_run(&s, ms, fn, ctx);
	session_close(&s);
	act_end(act, pid);
	return err;
}

/* Exec. */
struct range {
	uint64_t start, end;
};

static struct range in_exec[2]; /* code of the kernel that runs only between two programs */

/* The range of a function of the kernel. */
static bool find_function(const char *name, struct range *ret)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long addr, start = 0, end = 0;
	char line[512], symbol[64];

	for (int pass = 0; f && pass < 2; pass++, rewind(f))
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%lx %*c %63s", &addr, symbol) != 2)
				continue;
			if (!pass && strcmp(symbol, name) == 0)
				start = addr;
			if (pass && addr > start && (!end || addr < end))
				end = addr;
		}
	if (f)
		fclose(f);
	*ret = (struct range){start, end};
	return start && end;
}

static void play_exec_storm(struct act *act)
{
	act->stage.ready = 1;
	child_again();
}

int child_again(void)
{
	execl("/proc/self/exe", "otp-again", "--again", (char *)NULL);
	return 1;
}

struct exec_tally {
	pid_t pid;
	unsigned int kernel, inside, mixed, with_user;
};

static bool is_inside_exec(const uint64_t *kstack, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		for (size_t r = 0; r < ARRAY_SIZE(in_exec); r++)
			if (kstack[i] >= in_exec[r].start && kstack[i] < in_exec[r].end)
				return true;
	return false;
}

static void see_exec(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct exec_tally *t = ctx;
	const uint64_t *kstack;
	uint32_t len = 0;
	bool user, inside;

	if (rec->type != OTP_REC_SAMPLE || s->pid != (uint32_t)t->pid)
		return;
	kstack = sample_section(s, OTP_SEC_KSTACK, &len);
	if (!kstack)
		return;
	inside = is_inside_exec(kstack, len / 8);
	user = sample_section(s, OTP_SEC_REGS, &len) || sample_section(s, OTP_SEC_USTACK, &len);
	t->kernel++;
	t->inside += inside;
	t->mixed += inside && (user || !(s->mode & OTP_MODE_NO_USER));
	t->with_user += user;
}

static enum verdict sample_inside_exec_has_its_kernel_stack_only(void)
{
	struct source_config cfg = config_default();
	struct exec_tally t = {0};
	bool ran;
	int err;

	if (!find_function("load_elf_binary", &in_exec[0]) || !find_function("begin_new_exec", &in_exec[1]))
		return SKIPPED;
	cfg.frequency_hz = 997;
	err = act_watch(play_exec_storm, &cfg, EXEC_MS, see_exec, &t, &ran);
	printf("# %u samples in the kernel: %u between two programs, %u of these with user registers; %u with them in all\n",
	       t.kernel, t.inside, t.mixed, t.with_user);
	CHECK(err == 0 && ran, "error %d", err);
	CHECK(t.inside >= 5, "%u of %u samples between two programs", t.inside, t.kernel);
	CHECK(!t.mixed, "%u of %u samples mix two programs", t.mixed, t.inside);
	CHECK(t.with_user >= 20, "%u of %u samples with user registers", t.with_user, t.kernel);
	return PASSED;
}

/* Workers of io_uring. */
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
	int err = act_watch(play_uring, &cfg, RUN_MS, see_worker, &t, &ran);

	if (!ran)
		return SKIPPED;
	CHECK(err == 0, "error %d", err);
	CHECK(t.samples >= 20, "%u samples", t.samples);
	CHECK(!t.wrong, "%u of %u samples", t.wrong, t.samples);
	return PASSED;
}

/* Processes that share their parent's memory. */
#define DEPTH 400000 /* of the stack pointer below its stack's end */

static void announce(struct act *act)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	act->stage.ip_start = (uint64_t)(uintptr_t)spin_user_loop;
	act->stage.ip_end = (uint64_t)(uintptr_t)spin_user_end;
	act->pid = getpid();
	act->stage.sp = act->stage.stack_end - DEPTH;
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

struct stack_tally {
	pid_t pid;
	const struct act *act;
	unsigned int samples, with_end, bases, wrong;
	uint64_t want, end; /* bytes of a right stack; the end that those with one should have */
	bool any_words; /* the stack is in use */
	uint64_t seq;
	uint32_t cpu;
};

static bool words_are_known(const struct otp_ustack *stack, uint32_t len)
{
	const uint64_t *word = (const void *)(stack + 1);

	for (uint32_t i = 0; i < (len - sizeof(*stack)) / 8; i++)
		if (word[i] != ((stack->addr + 8 * i) ^ STACK_KEY))
			return false;
	return true;
}

/* The stack of a sample taken in the loop. NULL: the tick fell elsewhere. */
static const struct otp_ustack *stack_in_loop(const struct otp_sample *s, const struct stage *stage, uint32_t *ret_len)
{
	const struct otp_regs *regs = sample_section(s, OTP_SEC_REGS, ret_len);

	if (!regs || regs->reg[PROBE_PC] < stage->ip_start || regs->reg[PROBE_PC] >= stage->ip_end)
		return NULL;
	return sample_section(s, OTP_SEC_USTACK, ret_len);
}

static void see_stack(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	const struct otp_chunk *c = (const void *)rec;
	struct stack_tally *t = ctx;
	const struct otp_ustack *stack;
	uint32_t len;

	if (rec->type == OTP_REC_CHUNK && c->seq == t->seq && c->cpu == t->cpu)
		t->bases += (rec->flags & OTP_CHUNK_BASE) != 0;
	if (rec->type != OTP_REC_SAMPLE)
		return;
	t->seq = 0;
	if (s->pid != (uint32_t)t->pid)
		return;
	stack = stack_in_loop(s, &t->act->stage, &len);
	if (!stack)
		return;
	t->seq = s->seq;
	t->cpu = s->cpu;
	t->samples++;
	t->with_end += s->stack_end != 0;
	t->wrong += len - sizeof(*stack) != t->want || (!t->any_words && !words_are_known(stack, len)) ||
		    (s->stack_end && s->stack_end != t->end);
}

/* Watches what spins in that play, with copies and bases of other sizes than a usual one. */
static enum verdict watch_stack(struct act *act, play_fn *play, uint32_t stack_bytes, struct stack_tally *t)
{
	struct source_config cfg = config_default();
	pid_t pid = act_begin(act, play);
	struct act copy;
	struct session s;
	int err;

	CHECK(pid > 0, "no child");
	copy = *act;
	t->act = &copy;
	t->pid = act->pid ? act->pid : pid;
	t->end = act->tls_end;
	cfg.defaults.stack_bytes = stack_bytes;
	cfg.defaults.base_bytes = 8192;
	err = session_open(&s, &cfg);
	if (err == 0)
		err = session_run(&s, RUN_MS, see_stack, t);
	session_close(&s);
	act_end(act, pid);
	printf("# %u samples, %u with a stack end, %u base chunks\n", t->samples, t->with_end, t->bases);
	CHECK(err == 0, "error %d", err);
	CHECK(t->samples >= 50, "%u samples", t->samples);
	CHECK(!t->wrong, "%u of %u stacks", t->wrong, t->samples);
	return PASSED;
}

static enum verdict watch_shared(play_fn *play)
{
	struct stack_tally t = {.want = OTP_STACK_FLOOR};
	enum verdict v = watch_stack(act_new(), play, OTP_STACK_FLOOR, &t);

	CHECK(!t.bases && !t.with_end, "%u base chunks of the parent's stack, %u of %u with its end", t.bases, t.with_end,
	      t.samples);
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

/* Threads. The base of their storage is an end of a stack only if it is one: its first word is its own address. */
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
	stage->sp = stage->stack_end - DEPTH;
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
	enum verdict v = watch_stack(act_new(), play_thread, COPY, &t);

	CHECK(v != PASSED || (!t.with_end && !t.bases), "%u samples with an end, %u bases", t.with_end, t.bases);
	return v;
}

static enum verdict stale_storage_cuts_no_stack(void)
{
	struct stack_tally t = {.want = COPY, .any_words = true};

	return getauxval(AT_HWCAP2) & FSBASE ? watch_stack(act_new(), play_thread_of_two_bases, COPY, &t) : SKIPPED;
}

static enum verdict stack_of_a_thread_ends_at_its_storage(void)
{
	struct stack_tally t = {.want = NEAR + OTP_RED_ZONE};
	enum verdict v = watch_stack(act_new(), play_thread_with_storage, COPY, &t);

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

const struct probe_test task_tests[] = {
	{"sample inside exec has its kernel stack only", sample_inside_exec_has_its_kernel_stack_only},
	{"worker of io_uring has no user registers", worker_of_io_uring_has_no_user_registers},
	{"spawned child gets no base of its parent's stack", spawned_child_gets_no_base_of_its_parents_stack},
	{"vforked child gets no base of its parent's stack", vforked_child_gets_no_base_of_its_parents_stack},
	{"storage that is no end cuts no stack", storage_that_is_no_end_cuts_no_stack},
	{"stale storage cuts no stack", stale_storage_cuts_no_stack},
	{"stack of a thread ends at its storage", stack_of_a_thread_ends_at_its_storage},
	{NULL, NULL},
};
