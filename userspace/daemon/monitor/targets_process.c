// SPDX-License-Identifier: Apache-2.0
/*
 * Plans of processes that an executable, a user, or a cgroup of version 1
 * selects. Each is checked when it executes a program, as the engine reads in
 * the side-band, and all of them every few seconds: users change, processes
 * move, records are lost.
 *
 * A plan holds until it is removed; since its pid may be reused, the process
 * is identified by its start time as well.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/target_match.h"
#include "process/proc_stat.h"
#include "process/proc_status.h"

#define SCAN_NS	     (10 * NSEC_PER_SEC)
#define SCAN_V1_NS   (2 * NSEC_PER_SEC) /* a move into a cgroup is not reported */
#define SCAN_TURN    512		/* processes checked in a second */
#define CHOSEN_MAX   8192		/* the most plans of a sampler */
#define UNNAMED_MAX  65536
#define LOOKS_BURST  2000
#define LOOK_PAUSE   (NSEC_PER_SEC / 1000)
#define TEXT_MAX     8192
#define SELECT_BITS  2

/* The data read of a process; texts are cut. */
struct look {
	uint64_t start_ticks; /* start time; 0: the process is gone */
	char comm[64];
	int64_t uid; /* effective; -1: not read */
	char exe[TARGET_PATH_MAX];
	char cgroups[TEXT_MAX];
	bool all_rules; /* also check rules that the sampler looks up itself */
};

static uint64_t target_process_pack(uint64_t start_ticks, uint8_t select)
{
	return start_ticks << SELECT_BITS | select;
}

uint8_t target_processes_select(const struct monitor *m, uint32_t pid)
{
	const uint64_t *have = map_find(&m->targets.processes.chosen, pid);

	return have ? *have & ((1u << SELECT_BITS) - 1) : OTP_SELECT_UNSET;
}

/* Reading /proc: none of these files blocks on the process. */

static void target_process_read_stat(uint32_t pid, struct look *l)
{
	struct proc_stat stat = {0};

	proc_stat_read(pid, &stat);
	_Static_assert(sizeof(l->comm) == sizeof(stat.comm), "copied whole");
	memcpy(l->comm, stat.comm, sizeof(l->comm));
	l->start_ticks = stat.start_ticks;
}

static void target_process_read_user(uint32_t pid, struct look *l)
{
	struct proc_status status;
	char text[TEXT_MAX];

	l->uid = -1;
	if (file_read_proc(pid, "status", text, sizeof(text)) > 0 && !proc_status_parse(text, &status))
		l->uid = status.uid;
}

static void target_process_read_exe(uint32_t pid, struct look *l)
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, l->exe, sizeof(l->exe) - 1);
	l->exe[MAX(n, 0)] = '\0';
}

static bool target_process_line_wants(const struct config *c, enum target_kind kind)
{
	for (uint32_t i = 0; i < c->nr_targets; i++)
		if (c->targets[i].kind == kind)
			return true;
	return false;
}

static void target_process_read(struct monitor *m, uint32_t pid, struct look *l)
{
	target_process_read_stat(pid, l);
	if (!l->start_ticks)
		return;
	l->uid = -1;
	l->exe[0] = l->cgroups[0] = '\0';
	if (target_process_line_wants(m->config, TARGET_USER))
		target_process_read_user(pid, l);
	if (target_process_line_wants(m->config, TARGET_EXE))
		target_process_read_exe(pid, l);
	if (m->targets.rules.wanted)
		file_read_proc(pid, "cgroup", l->cgroups, sizeof(l->cgroups));
}

/* Deciding. */

struct match {
	struct target_names *names;
	bool unnamed; /* a name that is needed is not resolved yet */
};

static const char *target_process_container_name(void *ctx, const char *id)
{
	struct match *match = ctx;
	const char *name = target_names_find(match->names, id, clock_now_ns());

	match->unnamed |= !name;
	return name;
}

/*
 * "number:controllers:path", one line a hierarchy; of version 2 number is 0 and controllers empty. The sampler itself
 * looks up includes of version 2.
 */
static bool target_process_fits_any_cgroup(struct match *match, const struct config_target *t, const char *pattern,
					   const struct look *l)
{
	char path[TARGET_PATH_MAX];
	const char *text = l->cgroups, *end, *at;

	for (; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		at = memchr(text, ':', (size_t)(end - text));
		at = at ? memchr(at + 1, ':', (size_t)(end - at - 1)) : NULL;
		if (!at || (!t->exclude && !l->all_rules && !strncmp(text, "0::", 3)) || end - at > (ptrdiff_t)sizeof(path))
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)(end - at - 1), at + 1);
		if (target_fits_below(t, pattern, path, target_process_container_name, match))
			return true;
	}
	return false;
}

static bool target_process_fits(struct monitor *m, struct match *match, uint32_t i, const struct look *l)
{
	const struct config_target *t = &m->config->targets[i];

	if (t->kind == TARGET_EXE)
		return target_fits_exe(t, l->exe, l->comm);
	if (t->kind == TARGET_USER)
		return l->uid >= 0 && l->uid == m->targets.uid[i];
	if (t->kind == TARGET_PID || (t->kind == TARGET_CGROUP && !m->targets.pattern[i]))
		return false;
	return target_process_fits_any_cgroup(match, t, m->targets.pattern[i], l);
}

static bool target_process_is_excluded(struct monitor *m, struct match *match, const struct look *l)
{
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		if (m->config->targets[i].exclude && target_process_fits(m, match, i, l))
			return true;
	return false;
}

static bool target_process_is_included(struct monitor *m, struct match *match, const struct look *l)
{
	unsigned int lists = target_lists(m->config), met = 0, list;

	for (uint32_t i = 0; i < m->config->nr_targets; i++) {
		list = target_list_of(&m->config->targets[i]);
		if (list && !(met & list) && target_process_fits(m, match, i, l))
			met |= list;
	}
	return lists && met == lists;
}

/*
 * A kernel thread has no executable and no user of its own. While a container's name is not resolved, a line that
 * excludes by name may concern its processes: they are excluded until then.
 */
static uint8_t target_process_decide(struct monitor *m, const struct look *l, bool *ret_unnamed)
{
	struct match match = {.names = &m->targets.names};
	uint8_t select = OTP_SELECT_NO;

	if (!target_process_is_excluded(m, &match, l) && !match.unnamed)
		select = target_process_is_included(m, &match, l) ? OTP_SELECT_YES : OTP_SELECT_UNSET;
	*ret_unnamed = match.unnamed;
	return select;
}

bool target_processes_wants(struct monitor *m, uint32_t pid)
{
	struct look l = {.all_rules = true};
	struct otp_plan by_pid = {0};
	bool all = true, unnamed;
	uint8_t select;

	target_process_read(m, pid, &l);
	if (!l.start_ticks)
		return false;
	targets_select(m, pid, &by_pid);
	select = by_pid.select == OTP_SELECT_UNSET ? target_process_decide(m, &l, &unnamed) : by_pid.select;
	for (uint32_t i = 0; i < m->config->nr_targets; i++)
		all &= m->config->targets[i].exclude;
	return select == OTP_SELECT_UNSET ? all : select == OTP_SELECT_YES;
}

/* Acting. */

static void target_process_set_plan(struct monitor *m, uint32_t pid)
{
	struct otp_plan plan;
	int err = m->sampler.source->ops->set_plan(m->sampler.source, pid, targets_plan(m, pid, &plan) ? &plan : NULL);

	if (err && !m->targets.processes.logged_full) {
		m->targets.processes.logged_full = true;
		log_error("targets: the sampler rejects the plan for process %u: %s; some processes are left out", pid,
			  strerror(-err));
	}
}

static void target_process_choose(struct monitor *m, uint32_t pid, uint64_t start_ticks, uint8_t select)
{
	struct target_processes *t = &m->targets.processes;
	const uint64_t *have = map_find(&t->chosen, pid);

	if (have ? *have == target_process_pack(start_ticks, select) : select == OTP_SELECT_UNSET)
		return;
	if (select == OTP_SELECT_UNSET)
		map_remove(&t->chosen, pid);
	else if ((!have && t->chosen.count >= CHOSEN_MAX) ||
		 map_put(&t->chosen, pid, target_process_pack(start_ticks, select)) < 0)
		return;
	target_process_set_plan(m, pid);
}

/* Checks the process again once the name of its container is resolved. */
static void target_process_check_later(struct monitor *m, uint32_t pid)
{
	struct target_processes *t = &m->targets.processes;

	if (t->unnamed.count >= UNNAMED_MAX || map_put(&t->unnamed, pid, 1) < 0)
		t->next_scan_ns = 0;
}

static void target_process_check(struct monitor *m, uint32_t pid)
{
	uint8_t select = OTP_SELECT_UNSET;
	bool unnamed = false;
	/* Of two lists a cgroup may match one and the process the other: the sampler's rules alone do not decide then. */
	struct look l = {.all_rules = target_lists(m->config) == LISTS_ALL};

	target_process_read(m, pid, &l);
	if (l.start_ticks)
		select = target_process_decide(m, &l, &unnamed);
	target_process_choose(m, pid, l.start_ticks, select);
	if (unnamed)
		target_process_check_later(m, pid);
}

static bool target_processes_may_check(struct target_processes *t)
{
	uint64_t now = clock_now_ns();
	uint64_t oldest = now > LOOKS_BURST * LOOK_PAUSE ? now - LOOKS_BURST * LOOK_PAUSE : 0;

	t->tokens_ns = MAX(t->tokens_ns, oldest);
	if (t->tokens_ns + LOOK_PAUSE > now)
		return false; /* the next scan of all will find it */
	t->tokens_ns += LOOK_PAUSE;
	return true;
}

/* Before the first sample all of them are checked; later a scan, which has its pace, takes those that are too many. */
void target_processes_names_known(struct monitor *m)
{
	struct target_processes *t = &m->targets.processes;
	struct map waiting = t->unnamed;

	t->unnamed = (struct map){0};
	map_for_each(&waiting, slot) {
		if (!m->sampler.sampling || target_processes_may_check(t))
			target_process_check(m, (uint32_t)slot->key);
		else
			t->next_scan_ns = 0;
	}
	map_done(&waiting);
}

/* A scan of all processes, a part in each turn. */

static void target_processes_begin_scan(struct monitor *m, uint64_t now)
{
	struct target_processes *t = &m->targets.processes;

	t->proc = opendir("/proc");
	t->next_scan_ns = now + (t->v1 && m->targets.rules.wanted ? SCAN_V1_NS : SCAN_NS);
}

/* Drops processes whose end was not reported: their pid is free, or reused. */
static void target_processes_drop_ended(struct monitor *m)
{
	struct target_processes *t = &m->targets.processes;
	uint32_t ended[64], n = 0;
	struct look l;

	map_for_each(&t->chosen, slot) {
		target_process_read_stat((uint32_t)slot->key, &l);
		if (l.start_ticks != slot->value >> SELECT_BITS && n < ARRAY_SIZE(ended))
			ended[n++] = (uint32_t)slot->key;
	}
	while (n)
		target_process_check(m, ended[--n]);
}

static void target_processes_end_scan(struct monitor *m)
{
	closedir(m->targets.processes.proc);
	m->targets.processes.proc = NULL;
	target_processes_drop_ended(m);
	m->targets.processes.complete = true;
	targets_age_names(m);
}

static void target_processes_scan(struct monitor *m, unsigned int most)
{
	struct target_processes *t = &m->targets.processes;
	const struct dirent *e;

	while (t->proc && most) {
		e = readdir(t->proc);
		if (!e) {
			target_processes_end_scan(m);
		} else if (isdigit((unsigned char)e->d_name[0])) {
			target_process_check(m, (uint32_t)strtoul(e->d_name, NULL, 10));
			most--;
		}
	}
}

/* Whether version 1 has hierarchies: every process is in each of them, so ours shows it. */
static bool target_processes_has_v1(void)
{
	char text[TEXT_MAX];

	if (file_read_proc((uint32_t)getpid(), "cgroup", text, sizeof(text)) < 0)
		return false;
	return strncmp(text, "0::", 3) != 0 || strchr(text, '\n') != strrchr(text, '\n');
}

void target_processes_open(struct monitor *m)
{
	struct target_processes *t = &m->targets.processes;

	t->v1 = target_processes_has_v1();
	t->wanted = t->wanted || (t->v1 && m->targets.rules.wanted);
	if (!t->wanted)
		return;
	target_processes_begin_scan(m, clock_now_ns());
	target_processes_scan(m, UINT32_MAX); /* before the first sample */
}

void target_processes_run(struct monitor *m, uint64_t now)
{
	struct target_processes *t = &m->targets.processes;

	if (!t->wanted)
		return;
	if (!t->proc && now >= t->next_scan_ns)
		target_processes_begin_scan(m, now);
	target_processes_scan(m, SCAN_TURN);
}

void target_processes_close(struct monitor *m)
{
	struct target_processes *t = &m->targets.processes;

	map_for_each(&t->chosen, slot)
		m->sampler.source->ops->set_plan(m->sampler.source, (uint32_t)slot->key, NULL);
	map_done(&t->chosen);
	map_done(&t->unnamed);
	if (t->proc)
		closedir(t->proc);
	t->proc = NULL;
}

/*
 * A forked child inherits its parent's plan; if its parent was chosen, the child needs its own for the time after the
 * parent's end.
 */
static bool target_process_is_worth_check(const struct target_processes *t, const struct ipc_life *l)
{
	return !l->parent || map_find(&t->chosen, l->parent);
}

void target_processes_life(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_life *l = (const void *)msg->data;
	struct target_processes *t = &m->targets.processes;

	if (!t->wanted || m->phase != PHASE_RUN)
		return;
	for (size_t i = 0; i < msg->head.len / sizeof(*l); i++)
		if (target_process_is_worth_check(t, &l[i]) && target_processes_may_check(t))
			target_process_check(m, l[i].pid);
}
