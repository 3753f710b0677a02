// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/targets.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config_keys.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/target_match.h"
#include "process/host.h"
#include "process/proc_stat.h"
#include "source/copy_speed.h"

#define ANCESTORS_MAX	  64
#define PROCESS_ANCESTORS 4
#define TARGET_GENERATION 1 /* not 0, so that it is not one of the engine's plans */
#define CGROUP_TOP	  "/sys/fs/cgroup"

static bool targets_any(const struct config *c, bool exclude)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].exclude == exclude)
			return true;
	return false;
}

static bool targets_any_of(const struct config *c, bool (*is)(const struct config_target *t))
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (is(&c->targets[i]))
			return true;
	return false;
}

static bool targets_by_pid(const struct config_target *t)
{
	return t->kind == TARGET_PID;
}

/* The stack bytes above the default that one CPU may copy in 100 ms, from the configured sum a second. */
static uint32_t targets_stack_budget(const struct config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t budget = c->stack_rate_bytes / 10 / (uint64_t)MAX(cpus, 1);

	return (uint32_t)MIN(budget, OTP_BUDGET_LIMIT);
}

static uint8_t targets_ancestors(const struct config *c)
{
	if (targets_any_of(c, targets_by_pid))
		return OTP_ANCESTORS_MAX;
	return targets_any_of(c, target_by_process) || targets_any_of(c, target_by_cgroup) ? PROCESS_ANCESTORS : 1;
}

void targets_defaults(const struct config *c, struct otp_defaults *d)
{
	bool chosen = targets_any(c, false);

	*d = (struct otp_defaults){
		.stack_bytes = c->stack_bytes,
		.base_bytes = config_base(c->stack_bytes),
		.select = chosen ? OTP_SELECT_NO : OTP_SELECT_YES,
		.kthreads = c->kernel_threads && !chosen ? OTP_SELECT_YES : OTP_SELECT_NO,
		.have_rules = targets_any_of(c, target_by_cgroup),
		.ancestors = targets_ancestors(c),
		.stack_budget = targets_stack_budget(c),
		.tick_bytes = copy_speed_tick_bytes(),
	};
}

/* Processes by number. */

static const struct config_target *targets_find_pid(const struct config *c, uint32_t pid)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == TARGET_PID && c->targets[i].pid == pid)
			return &c->targets[i];
	return NULL;
}

static uint32_t targets_parent_of(uint32_t pid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, &stat) ? 0 : stat.ppid;
}

/* Children have the selection of their nearest listed ancestor. */
static const struct config_target *targets_nearest_pid(const struct config *c, uint32_t pid)
{
	const struct config_target *t = NULL;

	if (!targets_any_of(c, targets_by_pid))
		return NULL;
	for (int depth = 0; depth < ANCESTORS_MAX && pid > 1 && !t; depth++) {
		t = targets_find_pid(c, pid);
		if (!t)
			pid = targets_parent_of(pid);
	}
	return t;
}

/* An exclude line that matches the process wins over a pid; a pid wins over all other lines. */
void targets_select(struct monitor *m, uint32_t pid, struct otp_plan *p)
{
	const struct config_target *t = targets_nearest_pid(m->config, pid);
	uint8_t by_look = target_processes_select(m, pid);

	p->select = by_look;
	p->flags &= OTP_PLAN_WALK;
	if (by_look != OTP_SELECT_UNSET)
		p->flags |= OTP_PLAN_SAME_PROGRAM;
	p->any_exec = false;
	if (!t || by_look == OTP_SELECT_NO)
		return;
	p->select = t->exclude ? OTP_SELECT_NO : OTP_SELECT_YES;
	p->flags &= ~OTP_PLAN_SAME_PROGRAM;
	p->any_exec = t->pid == pid;
}

/* Whether the process has walks is not known here, so they are looked up. */
bool targets_plan(struct monitor *m, uint32_t pid, struct otp_plan *ret)
{
	struct otp_plan p = {.generation = TARGET_GENERATION, .stack_bytes = m->config->stack_bytes, .flags = OTP_PLAN_WALK,
			     .base_units = (uint8_t)(config_base(m->config->stack_bytes) / OTP_BASE_UNIT)};

	targets_select(m, pid, &p);
	/* A descendant of a listed process inherits the plan. */
	if (p.select == OTP_SELECT_UNSET || (!p.any_exec && !(p.flags & OTP_PLAN_SAME_PROGRAM)))
		return false;
	p.any_exec = true;
	*ret = p;
	return true;
}

static void targets_set_pid(struct monitor *m, uint32_t i)
{
	const struct config_target *t = &m->config->targets[i];
	struct otp_plan plan;
	int err;

	m->targets.pidfd[i] = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (m->targets.pidfd[i] < 0) {
		log_warn("targets: there is no process %u", t->pid);
		return;
	}
	if (!targets_plan(m, t->pid, &plan))
		return;
	err = m->sampler.source->ops->set_plan(m->sampler.source, t->pid, &plan);
	if (err)
		log_error("targets: pid %u: the plan cannot be set: %s", t->pid, strerror(-err));
}

static void targets_drop_pid(struct monitor *m, const struct config *c, uint32_t i)
{
	m->sampler.source->ops->set_plan(m->sampler.source, c->targets[i].pid, NULL);
	close(m->targets.pidfd[i]);
	m->targets.pidfd[i] = -1;
}

/* The pid may be reused soon: the plan must not outlive the process. */
static void targets_follow_pid(struct monitor *m, uint32_t i)
{
	struct pollfd p = {.fd = m->targets.pidfd[i], .events = POLLIN};

	if (p.fd >= 0 && poll(&p, 1, 0) == 1)
		targets_drop_pid(m, m->config, i);
}

/* Lookups at the start. */

static void targets_find_user(struct monitor *m, uint32_t i)
{
	const char *name = m->config->targets[i].text;
	const struct passwd *user;
	uint64_t uid;

	m->targets.uid[i] = -1;
	if (!value_u64(name, &uid) && uid < UINT32_MAX) {
		m->targets.uid[i] = (int64_t)uid;
		return;
	}
	user = getpwnam(name);
	if (user)
		m->targets.uid[i] = (int64_t)user->pw_uid;
	else
		log_warn("targets: there is no user %s: its line selects nothing until the next reload", name);
}

/* "/sys/fs/cgroup/a", "/a" and "a" are the same; in layouts of version 1 the hierarchy's name precedes the path. */
static int targets_find_pattern(struct monitor *m, uint32_t i)
{
	const char *path = m->config->targets[i].text, *root = m->targets.rules.root;
	size_t n = strlen(root);

	if (n && !strncmp(path, root, n) && (!path[n] || path[n] == '/')) {
		path += n;
	} else if (!strncmp(path, CGROUP_TOP "/", sizeof(CGROUP_TOP))) {
		path += sizeof(CGROUP_TOP) - 1;
		path += 1 + strcspn(path + 1, "/");
	}
	path += strspn(path, "/");
	if (asprintf(&m->targets.pattern[i], "/%s", path) < 0) {
		m->targets.pattern[i] = NULL;
		return -ENOMEM;
	}
	n = strlen(m->targets.pattern[i]);
	while (n > 1 && m->targets.pattern[i][n - 1] == '/')
		m->targets.pattern[i][--n] = '\0';
	return 0;
}

static void targets_prepare(struct monitor *m, uint32_t i)
{
	m->targets.pidfd[i] = -1;
	switch (m->config->targets[i].kind) {
	case TARGET_CGROUP:
		if (targets_find_pattern(m, i) < 0)
			log_error("targets: out of memory: cgroup:%s is left out", m->config->targets[i].text);
		break;
	case TARGET_USER:
		targets_find_user(m, i);
		break;
	default:
		break;
	}
}

/* The whole. */

void targets_open(struct monitor *m)
{
	struct targets *t = &m->targets;

	*t = (struct targets){.rules.inotify_fd = -1, .names = t->names};
	t->rules.wanted = targets_any_of(m->config, target_by_cgroup);
	t->processes.wanted = targets_any_of(m->config, target_by_process);
	target_rules_open(m); /* finds the hierarchy */
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		targets_prepare(m, i);
	target_rules_run(m, clock_now_ns());
	target_processes_open(m);
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		if (m->config->targets[i].kind == TARGET_PID)
			targets_set_pid(m, i);
}

void targets_run(struct monitor *m, uint64_t now)
{
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		if (m->config->targets[i].kind == TARGET_PID)
			targets_follow_pid(m, i);
	target_rules_run(m, now);
	target_processes_run(m, now);
}

void targets_close(struct monitor *m, const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_targets; i++) {
		free(m->targets.pattern[i]);
		if (c->targets[i].kind == TARGET_PID && m->targets.pidfd[i] > 0)
			targets_drop_pid(m, c, i);
	}
	target_rules_close(m);
	target_processes_close(m);
	m->targets = (struct targets){.rules.inotify_fd = -1, .names = m->targets.names};
}

/* Names of containers. */

bool targets_want_names(const struct config *c)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == TARGET_CONTAINER)
			return true;
	return false;
}

/* A round of names: one complete walk of the cgroups, and one complete scan where processes are scanned. */
void targets_age_names(struct monitor *m)
{
	struct targets *t = &m->targets;

	if (!t->rules.complete || (t->processes.wanted && !t->processes.complete))
		return;
	t->rules.complete = t->processes.complete = false;
	target_names_end_round(&t->names);
}

void targets_ask_names(struct monitor *m)
{
	struct ipc_ask ask = {.kind = HOST_READ_CONTAINERS};
	char path[HOST_PATH_MAX];

	if (!target_names_question(&m->targets.names, path))
		return;
	ask.path_len = (uint32_t)strlen(path);
	if (asks_add_own(&m->asks, &ask, path))
		targets_names_answered(m, NULL);
}

/* The answer is inline, or a memfd where it is long. */
static int targets_take_names(struct monitor *m, const struct ipc_message *answer)
{
	const struct ipc_answer *head = (const void *)answer->data;
	_cleanup_(freep) char *text = NULL;
	const char *data = (const char *)(head + 1);
	size_t len = answer->head.len - sizeof(*head);
	int err = MIN(head->err, 0);

	if (!err && answer->fds[0] >= 0) {
		err = ipc_memfd_read(answer->fds[0], HOST_CONTAINERS_MAX, &text, &len);
		data = text;
	}
	target_names_answer(&m->targets.names, err, data, len, clock_now_ns());
	return err;
}

void targets_names_answered(void *monitor, const struct ipc_message *answer)
{
	static struct log_rate rate;
	struct monitor *m = monitor;
	int err = -EIO;

	if (answer)
		err = targets_take_names(m, answer);
	else
		target_names_answer(&m->targets.names, err, NULL, 0, clock_now_ns());
	if (err)
		log_rated(&rate, LOG_LEVEL_WARN, "targets: the names of containers cannot be read: %s; trying again later",
			  strerror(-err));
	if (!target_names_settled(&m->targets.names))
		return;
	target_rules_names_known(m);
	target_processes_names_known(m);
}

int targets_send_watch(struct monitor *m)
{
	const uint32_t on = m->targets.processes.wanted;

	return worker_send(&m->workers.engine, IPC_WATCH, 0, &on, sizeof(on), -1);
}

int targets_poll_fd(const struct monitor *m)
{
	return m->targets.rules.inotify_fd;
}

uint64_t targets_next_ns(const struct monitor *m)
{
	return target_names_has_question(&m->targets.names) ? 0 : m->targets.rules.due_ns;
}
