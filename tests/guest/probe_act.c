// SPDX-License-Identifier: Apache-2.0
#include "probe_act.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe_loop.h"

struct act *act_new(void)
{
	return mmap(NULL, sizeof(struct act), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

pid_t act_begin(struct act *act, play_fn *play)
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

void act_end(struct act *act, pid_t pid)
{
	if (act->pid)
		kill(act->pid, SIGKILL);
	child_end(pid);
	munmap(act, sizeof(*act));
}

int act_watch(play_fn *play, const struct source_config *cfg, unsigned int ms, record_fn *fn, void *ctx,
	      bool *ret_ran)
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

/* --- stacks of known words --- */

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

enum verdict act_watch_stack(struct act *act, play_fn *play, uint32_t stack_bytes, struct stack_tally *t)
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
		err = session_run(&s, ACT_MS, see_stack, t);
	session_close(&s);
	act_end(act, pid);
	printf("# %u samples, %u with a stack end, %u base chunks\n", t->samples, t->with_end, t->bases);
	CHECK(err == 0, "error %d", err);
	CHECK(t->samples >= 50, "%u samples", t->samples);
	CHECK(!t->wrong, "%u of %u stacks", t->wrong, t->samples);
	return PASSED;
}
