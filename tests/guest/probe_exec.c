// SPDX-License-Identifier: Apache-2.0
/* Tasks inside exec, between two programs: the saved registers are the old one's, the memory may be the new one's. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe_act.h"

#define EXEC_MS 6000 /* of which a small part is spent between two programs */

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

/* The kernel runs these between two programs only: after the new file was opened, before its first instruction. */
static bool is_inside_exec(const uint64_t *kstack, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const char *name = kernel_name(kstack[i]);

		if (strcmp(name, "load_elf_binary") == 0 || strcmp(name, "begin_new_exec") == 0)
			return true;
	}
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

	if (!kernel_names_load())
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
