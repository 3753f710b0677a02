// SPDX-License-Identifier: Apache-2.0
/*
 * Selection: [targets] becomes the sampler's default, cgroup rules and plans
 * before sampling starts. cgroups come and go, so their rules follow.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor.h"

#define ANCESTORS_MAX	  64
#define TARGET_GENERATION 1 /* any but 0: it is not the engine's plan */

static bool any(const struct config *c, bool exclude, bool cgroups_only)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].exclude == exclude && (!cgroups_only || c->targets[i].kind == TARGET_CGROUP))
			return true;
	return false;
}

static bool any_pid(const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == TARGET_PID)
			return true;
	return false;
}

/* Stack bytes above the default that one CPU may copy in 100 ms, of the configured sum in a second. */
static uint32_t stack_budget(const struct config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t budget = c->stack_rate_bytes / 10 / (uint64_t)MAX(cpus, 1);

	return (uint32_t)MIN(budget, UINT32_MAX);
}

void targets_defaults(const struct config *c, struct otp_defaults *d)
{
	bool chosen = any(c, false, false);

	*d = (struct otp_defaults){
		.stack_bytes = c->stack_bytes,
		.select = chosen ? OTP_SELECT_NO : OTP_SELECT_YES,
		.kthreads = c->kernel_threads && !chosen ? OTP_SELECT_YES : OTP_SELECT_NO,
		.have_rules = any(c, false, true) || any(c, true, true),
		.ancestors = any_pid(c) ? OTP_ANCESTORS_MAX : 1,
		.stack_budget = stack_budget(c),
	};
}

static const struct config_target *find_pid(const struct config *c, uint32_t pid)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == TARGET_PID && c->targets[i].pid == pid)
			return &c->targets[i];
	return NULL;
}

static uint32_t parent_of(uint32_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32], text[512] = "";
	const char *rest;
	uint32_t ppid;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		return 0;
	rest = strrchr(text, ')');
	return rest && sscanf(rest + 1, " %*c %u", &ppid) == 1 ? ppid : 0;
}

/* Children belong to the selection of their nearest ancestor that is listed. */
const struct config_target *targets_pid(const struct config *c, uint32_t pid)
{
	const struct config_target *t = NULL;

	if (!any_pid(c))
		return NULL;
	for (int depth = 0; depth < ANCESTORS_MAX && pid > 1 && !t; depth++) {
		t = find_pid(c, pid);
		if (!t)
			pid = parent_of(pid);
	}
	return t;
}

void targets_plan(const struct config_target *t, uint32_t stack_bytes, struct otp_plan *ret)
{
	*ret = (struct otp_plan){
		.generation = TARGET_GENERATION,
		.stack_bytes = stack_bytes,
		.select = t->exclude ? OTP_SELECT_NO : OTP_SELECT_YES,
		.any_exec = 1,
	};
}

static const char *cgroup_mount(void)
{
	/* One hierarchy, or version 2 beside version 1 (systemd's hybrid layout). */
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (!statfs(mounts[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return mounts[i];
	return NULL;
}

/* The id that samples carry is the directory's inode number; 0: there is no such cgroup now. */
static uint64_t cgroup_id(const char *path)
{
	const char *mount = cgroup_mount();
	char full[1200];
	struct stat st;

	if (mount && !strncmp(path, mount, strlen(mount)))
		snprintf(full, sizeof(full), "%s", path);
	else
		snprintf(full, sizeof(full), "%s/%s", mount ? mount : "", path);
	return mount && !stat(full, &st) && S_ISDIR(st.st_mode) ? st.st_ino : 0;
}

static void follow_cgroup(struct monitor *m, uint32_t i, bool first)
{
	const struct config_target *t = &m->config->targets[i];
	const struct otp_cgroup_rule rule = {.select = t->exclude ? OTP_SELECT_NO : OTP_SELECT_YES};
	uint64_t id = cgroup_id(t->text), *have = &m->targets[i].cgroup_id;
	int err;

	if (first && !id && !cgroup_mount())
		log_warn("targets: cgroup %s: there are no cgroups of version 2 in /sys/fs/cgroup, its rule waits for them",
			 t->text);
	else if (first && !id)
		log_notice("targets: cgroup %s does not exist yet, its rule waits", t->text);
	if (id == *have)
		return;
	if (*have)
		m->source->ops->set_cgroup(m->source, *have, NULL);
	*have = 0;
	err = id ? m->source->ops->set_cgroup(m->source, id, &rule) : 0;
	if (err)
		log_error("targets: cgroup %s: the rule cannot be set: %s", t->text, strerror(-err));
	else
		*have = id;
}

static void set_pid(struct monitor *m, uint32_t i)
{
	const struct config_target *t = &m->config->targets[i];
	struct otp_plan plan;
	int err;

	m->targets[i].pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (m->targets[i].pidfd < 0) {
		log_warn("targets: there is no process %u", t->pid);
		return;
	}
	targets_plan(t, m->config->stack_bytes, &plan);
	err = m->source->ops->set_plan(m->source, t->pid, &plan);
	if (err)
		log_error("targets: pid %u: the plan cannot be set: %s", t->pid, strerror(-err));
}

/* Its pid may be another process' soon: the plan must not outlive it. */
static void follow_pid(struct monitor *m, uint32_t i)
{
	struct pollfd p = {.fd = m->targets[i].pidfd, .events = POLLIN};

	if (p.fd < 0 || poll(&p, 1, 0) != 1)
		return;
	m->source->ops->set_plan(m->source, m->config->targets[i].pid, NULL);
	close(p.fd);
	m->targets[i].pidfd = -1;
}

void targets_apply(struct monitor *m, bool first)
{
	for (uint32_t i = 0; i < m->config->nr_targets; i++) {
		if (m->config->targets[i].kind == TARGET_CGROUP)
			follow_cgroup(m, i, first);
		else if (first)
			set_pid(m, i);
		else
			follow_pid(m, i);
	}
}

void targets_close(struct monitor *m)
{
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		if (m->config->targets[i].kind == TARGET_PID && m->targets[i].pidfd > 0)
			close(m->targets[i].pidfd);
}
