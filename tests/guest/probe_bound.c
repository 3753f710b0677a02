// SPDX-License-Identifier: Apache-2.0
/* How much one tick copies of a program that nobody knows, and of one that is known. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "probe.h"

#define STEP_MS	    200
#define STEPS_MAX   50 /* a busy machine gives few samples */
#define ENOUGH	    40
#define TICK_BYTES  24000u /* whole words, no power of two: nothing else has this size */
#define STACK_WANTED (128u << 10)
#define NAME	    "otp-bound"

struct copies { /* of the child, since the last change */
	uint32_t pid, cpu, bytes; /* of the sample at hand */
	uint64_t seq;
	unsigned int samples, bounded, ends;
	uint32_t most, least; /* bytes of a sample, but for the last: its chunks may not have come */
};

static void copies_end_sample(struct copies *c)
{
	if (!c->bytes)
		return;
	c->most = MAX(c->most, c->bytes);
	c->least = c->least ? MIN(c->least, c->bytes) : c->bytes;
	c->bytes = 0;
}

static void copies_see(void *ctx, const struct otp_rec *rec)
{
	const struct otp_chunk *chunk = (const void *)rec;
	const struct otp_sample *s = (const void *)rec;
	struct copies *c = ctx;
	uint32_t len = 0;

	if (rec->type == OTP_REC_CHUNK && chunk->cpu == c->cpu && chunk->seq == c->seq && c->bytes)
		c->bytes += chunk->len;
	if (rec->type != OTP_REC_SAMPLE || s->pid != c->pid)
		return;
	copies_end_sample(c);
	c->samples++;
	c->bounded += (s->mode & OTP_MODE_BOUNDED) != 0;
	c->ends += s->mode & OTP_MODE_BOUNDED && s->mode & OTP_MODE_SHORT;
	c->cpu = s->cpu;
	c->seq = s->seq;
	if (sample_section(s, OTP_SEC_USTACK, &len))
		c->bytes = len - (uint32_t)sizeof(struct otp_ustack);
	if (s->mode & OTP_MODE_BOUNDED && s->stack_bytes > TICK_BYTES)
		c->most = UINT32_MAX;
}

static struct copies copies_now(struct session *s, pid_t pid)
{
	struct copies before = {.pid = (uint32_t)pid}, c = before;

	session_run(s, 50, copies_see, &before);
	for (int i = 0; i < STEPS_MAX && c.samples < ENOUGH; i++)
		session_run(s, STEP_MS, copies_see, &c);
	return c;
}

static enum verdict bound_is_kept(struct session *s, pid_t pid)
{
	struct copies c = copies_now(s, pid);

	CHECK(c.samples >= ENOUGH, "%u samples", c.samples);
	CHECK(c.bounded == c.samples, "%u of %u are marked", c.bounded, c.samples);
	CHECK(c.most <= TICK_BYTES, "%u bytes in one tick", c.most);
	CHECK(c.least > TICK_BYTES / 2, "only %u bytes in one tick", c.least);
	return PASSED;
}

/* 100 KiB deep on its own stack, whose end is nearer than the wanted bytes. */
static pid_t deep_start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		volatile char frame[100u << 10];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0;; i = (i + 64) % sizeof(frame))
			frame[i]++;
	}
	return pid;
}

static enum verdict end_is_not_reached(struct session *s, pid_t pid)
{
	struct copies c = copies_now(s, pid);

	CHECK(c.samples >= ENOUGH && c.bounded, "%u samples, %u cut", c.samples, c.bounded);
	CHECK(!c.ends, "%u of %u cut stacks are said to end", c.ends, c.bounded);
	return PASSED;
}

static enum verdict copy_is_whole(struct session *s, pid_t pid)
{
	struct copies c = copies_now(s, pid);

	CHECK(c.samples >= ENOUGH, "%u samples", c.samples);
	CHECK(!c.bounded, "%u of %u are cut", c.bounded, c.samples);
	CHECK(c.least >= STACK_WANTED, "only %u bytes", c.least);
	return PASSED;
}

static enum verdict bound_and_plans(struct session *s, pid_t pid)
{
	const struct otp_plan plan = {
		.generation = 1, .stack_bytes = STACK_WANTED, .select = OTP_SELECT_YES, .any_exec = 1};
	const struct otp_plan no_depth = {.generation = 1, .select = OTP_SELECT_YES, .any_exec = 1};
	const struct otp_hint hint = {.stack_bytes = STACK_WANTED};
	const struct source_ops *ops = s->source->ops;
	char name[OTP_COMM_LEN] = NAME;
	enum verdict v = bound_is_kept(s, pid);

	CHECK(ops->set_plan(s->source, (uint32_t)pid, &plan) == 0, "set_plan");
	v = v == PASSED ? copy_is_whole(s, pid) : v;
	CHECK(ops->set_plan(s->source, (uint32_t)pid, &no_depth) == 0, "set_plan");
	v = v == PASSED ? bound_is_kept(s, pid) : v;
	CHECK(ops->set_plan(s->source, (uint32_t)pid, NULL) == 0, "set_plan");
	CHECK(ops->set_hint(s->source, name, &hint) == 0, "set_hint");
	return v == PASSED ? copy_is_whole(s, pid) : v;
}

static enum verdict bound_of_one_tick_holds_for_what_nobody_knows(void)
{
	struct stage *stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct source_config cfg = config_default();
	enum verdict v = FAILED;
	struct session s;
	char before[16];
	pid_t pid;

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, NAME);
	pid = child_start(SCENE_USER, stage, 0);
	prctl(PR_SET_NAME, before);
	cfg.defaults.stack_bytes = STACK_WANTED;
	cfg.defaults.base_bytes = OTP_BASE_LIMIT;
	cfg.defaults.tick_bytes = TICK_BYTES;
	if (session_open(&s, &cfg) == 0)
		v = bound_and_plans(&s, pid);
	session_close(&s);
	child_end(pid);
	munmap(stage, 4096);
	return v;
}

static enum verdict bound_of_one_tick_is_no_end_of_the_stack(void)
{
	struct source_config cfg = config_default();
	pid_t pid = deep_start();
	enum verdict v = FAILED;
	struct session s;

	cfg.defaults.stack_bytes = STACK_WANTED;
	cfg.defaults.tick_bytes = TICK_BYTES;
	if (session_open(&s, &cfg) == 0)
		v = end_is_not_reached(&s, pid);
	session_close(&s);
	child_end(pid);
	return v;
}

const struct probe_test bound_tests[] = {
	{"bound of one tick is no end of the stack", bound_of_one_tick_is_no_end_of_the_stack},
	{"bound of one tick holds for what nobody knows", bound_of_one_tick_holds_for_what_nobody_knows},
	{NULL, NULL},
};
