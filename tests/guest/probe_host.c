// SPDX-License-Identifier: Apache-2.0
/* What the host may lack: each is a sentence that names it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe.h"
#include "source/bpf_probe.h"

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

#define BIT(cap) (1ULL << (cap))

static void keep_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
		{.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)},
	};

	if (syscall(SYS_capset, &head, data) < 0)
		_exit(FAILED);
}

/* A test that changes the process' own rights runs in a child. */
static enum verdict apart(enum verdict (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		enum verdict v = fn();

		fflush(stdout);
		_exit((int)v);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? (enum verdict)WEXITSTATUS(status) : FAILED;
}

static enum verdict refused_with(const char *word)
{
	struct source_config cfg = config_default();
	struct source *s = NULL;
	char why[SOURCE_WHY] = "";
	int err = probe_ops()->probe(&cfg, why);

	if (err == 0)
		err = source_open(probe_ops(), &cfg, &s, why);
	CHECK(err < 0, "it opens");
	CHECK(strstr(why, word), "%s", why);
	printf("# %s\n", why);
	return PASSED;
}

static enum verdict without_capabilities(void)
{
	keep_capabilities(0);
	return refused_with("CAP_PERFMON");
}

static enum verdict missing_capability_is_named(void)
{
	return apart(without_capabilities);
}

static enum verdict paranoid_three(void)
{
	keep_capabilities(BIT(CAP_BPF) | BIT(CAP_PERFMON));
	return refused_with("perf_event_paranoid");
}

static enum verdict at_paranoid(const char *level, enum verdict (*fn)(void))
{
	enum verdict v;
	char old[16];

	if (get_sysctl(PARANOID, old) < 0 || set_sysctl(PARANOID, level) < 0)
		return SKIPPED;
	v = apart(fn);
	set_sysctl(PARANOID, old);
	return v;
}

static enum verdict paranoid_level_is_named(void)
{
	/* Only that source needs perf events. */
	return probe_ops() == &source_bpf ? at_paranoid("3", paranoid_three) : SKIPPED;
}

static enum verdict refused_by_pid_namespace(void)
{
	return refused_with("pid namespace");
}

static enum verdict enter_pid_namespace(void)
{
	return unshare(CLONE_NEWPID) < 0 ? SKIPPED : apart(refused_by_pid_namespace);
}

static enum verdict foreign_pid_namespace_is_refused(void)
{
	return apart(enter_pid_namespace);
}

/* The least rights, and the limit of an ordinary service. */
static enum verdict low_memlock(void)
{
	struct rlimit limit = {65536, 65536};
	struct source_config cfg = config_default();
	struct kernel_version v = {0};
	struct session s;
	struct utsname uts;
	int err;

	uname(&uts);
	kernel_version_parse(uts.release, uts.version, &v);
	setrlimit(RLIMIT_MEMLOCK, &limit);
	keep_capabilities(BIT(CAP_BPF) | BIT(CAP_PERFMON));
	if (probe_ops() == &source_bpf && kernel_version_below(&v, 5, 11, 0))
		return refused_with("LimitMEMLOCK=");
	/* The least rights that there are, were CAP_SYS_ADMIN. */
	if (kernel_version_below(&v, 5, 8, 0))
		return SKIPPED;
	err = session_open(&s, &cfg);
	CHECK(err == 0, "error %d with CAP_BPF and CAP_PERFMON alone", err);
	session_close(&s);
	return PASSED;
}

static enum verdict memlock_is_no_limit_or_is_named(void)
{
	return at_paranoid("2", low_memlock);
}

const struct probe_test host_tests[] = {
	{"missing capability is named", missing_capability_is_named},
	{"perf_event_paranoid is named", paranoid_level_is_named},
	{"foreign pid namespace is refused", foreign_pid_namespace_is_refused},
	{"RLIMIT_MEMLOCK is no limit, or its figure is named", memlock_is_no_limit_or_is_named},
	{NULL, NULL},
};
