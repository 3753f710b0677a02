// SPDX-License-Identifier: Apache-2.0
/* Tasks inside exec, between two programs: the saved registers are the old one's, the memory may be the new one's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe_act.h"

#define EXEC_MS 6000 /* of which a small part is spent between two programs */

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
	printf("# %u samples in the kernel: %u between two programs, %u of these with user registers; "
	       "%u with them in all\n",
	       t.kernel, t.inside, t.mixed, t.with_user);
	CHECK(err == 0 && ran, "error %d", err);
	CHECK(t.inside >= 5, "%u of %u samples between two programs", t.inside, t.kernel);
	CHECK(!t.mixed, "%u of %u samples mix two programs", t.mixed, t.inside);
	CHECK(t.with_user >= 20, "%u of %u samples with user registers", t.with_user, t.kernel);
	return PASSED;
}

const struct probe_test exec_tests[] = {
	{"sample inside exec has its kernel stack only", sample_inside_exec_has_its_kernel_stack_only},
	{NULL, NULL},
};
