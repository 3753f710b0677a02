// SPDX-License-Identifier: Apache-2.0
/* Who is sampled: plan, cgroup rule, default; and that a plan never outlives its exec. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe.h"

#define RUN_MS	 700
#define RUNS_MAX 20
#define ENOUGH	 21 /* samples */

struct tally {
	uint32_t pid;    /* of the child */
	uint64_t start_ns, exec_id, second_exec_id;
	unsigned int own, of_children, others, kthreads, second, inherited;
	uint32_t plan_gen, stack_bytes;
	/* Of the sample at hand, whose chunks follow it on its CPU. */
	uint32_t cpu;
	uint64_t seq, end;
	unsigned int bases, base_bytes; /* samples of its own with a base that ends where the stack does; bytes of the last */
};

static void count_base(struct tally *t, const struct otp_chunk *c)
{
	if (!(c->rec.flags & OTP_CHUNK_BASE) || c->cpu != t->cpu || c->seq != t->seq)
		return;
	t->bases += c->addr + c->len == t->end;
	t->base_bytes = c->len;
}

static void count(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	struct tally *t = ctx;

	if (rec->type == OTP_REC_CHUNK)
		count_base(t, (const void *)rec);
	if (rec->type != OTP_REC_SAMPLE)
		return;
	t->seq = 0;
	t->kthreads += (s->mode & OTP_MODE_KTHREAD) != 0;
	t->inherited += (s->mode & OTP_MODE_INHERITED) != 0;
	t->of_children += s->ppid == t->pid;
	t->others += s->pid != t->pid && s->ppid != t->pid && !(s->mode & OTP_MODE_KTHREAD);
	if (s->pid != t->pid)
		return;
	t->own++;
	t->cpu = s->cpu;
	t->seq = s->seq;
	t->end = s->stack_end & ~7ULL;
	t->plan_gen = s->plan_gen;
	t->stack_bytes = s->stack_bytes;
	if (strcmp(s->comm, "otp-second") == 0 || strcmp(s->comm, "exe") == 0) {
		t->second++;
		t->second_exec_id = s->exec_id;
	} else {
		t->exec_id = s->exec_id;
	}
	if (!t->start_ns)
		t->start_ns = s->start_ns;
	else if (t->start_ns != s->start_ns)
		t->start_ns = 1;
}

struct cast { /* a session that selects nobody, and a child */
	struct session s;
	struct stage *stage;
	struct tally tally;
	pid_t pid;
};

static int cast_begin(struct cast *c, enum scene scene, uint8_t select)
{
	struct source_config cfg = config_default();

	cfg.defaults.select = select;
	cfg.defaults.kthreads = select;
	*c = (struct cast){0};
	c->stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	c->pid = child_start(scene, c->stage, -1);
	c->tally.pid = (uint32_t)c->pid;
	return session_open(&c->s, &cfg);
}

static void cast_end(struct cast *c)
{
	child_end(c->pid);
	session_close(&c->s);
	munmap(c->stage, 4096);
}

static int set_defaults(struct cast *c, uint8_t select, uint8_t have_rules)
{
	struct otp_defaults d = config_default().defaults;

	d.select = d.kthreads = select;
	d.have_rules = have_rules;
	return c->s.source->ops->set_defaults(c->s.source, &d);
}

/* The child's identity from a sample, then nobody by default. */
static int learn(struct cast *c)
{
	for (int i = 0; i < 50 && !c->tally.own; i++)
		session_run(&c->s, 100, count, &c->tally);
	set_defaults(c, OTP_SELECT_NO, 0);
	session_run(&c->s, 50, count, &c->tally);
	return c->tally.own ? 0 : -1;
}

static struct tally again(struct cast *c)
{
	struct tally t = {.pid = (uint32_t)c->pid}, before = t;

	/* What was taken before the last change does not count. */
	session_drain(&c->s, count, &before);
	session_run(&c->s, RUN_MS, count, &t);
	return t;
}

/* Again, until the tally's number at this offset is enough: a guest may have little of its CPU. */
static struct tally again_for(struct cast *c, size_t number)
{
	struct tally t = again(c);

	for (int i = 0; i < RUNS_MAX && *(unsigned int *)((char *)&t + number) < ENOUGH; i++)
		session_run(&c->s, RUN_MS, count, &t);
	return t;
}

/* On all CPUs: the scheduler decides where the child runs. */
static unsigned long long ticks_not_selected(const struct session *s)
{
	unsigned long long n = 0;

	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++)
		n += session_counters(s, cpu).skip[OTP_SKIP_NOT_SELECTED];
	return n;
}

static enum verdict nobody(struct cast *c)
{
	struct tally t = again(c);
	unsigned long long n = ticks_not_selected(&c->s);

	CHECK(!t.own && !t.others && !t.kthreads && !t.of_children, "%u + %u samples", t.own, t.others);
	CHECK(n > 10, "%llu ticks not selected", n);
	return PASSED;
}

static enum verdict default_no_puts_nothing_on_the_ring(void)
{
	enum verdict v = FAILED;
	struct cast c;

	if (cast_begin(&c, SCENE_FORK, OTP_SELECT_NO) == 0)
		v = nobody(&c);
	cast_end(&c);
	return v;
}

static struct otp_plan plan_of(const struct cast *c)
{
	return (struct otp_plan){
		.generation = 77,
		.stack_bytes = 1024,
		.start_ns = c->tally.start_ns,
		.exec_id = c->tally.exec_id,
		.select = OTP_SELECT_YES,
	};
}

static int give_plan(struct cast *c, const struct otp_plan *p)
{
	return c->s.source->ops->set_plan(c->s.source, (uint32_t)c->pid, p);
}

static enum verdict plan_decides(struct cast *c)
{
	struct otp_plan p;
	struct tally t;

	CHECK(learn(c) == 0, "no sample of the child");
	p = plan_of(c);
	CHECK(give_plan(c, &p) == 0, "set_plan");
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && !t.others, "%u own, %u others", t.own, t.others);
	CHECK(t.plan_gen == 77 && t.stack_bytes == 1024, "generation %u, %u bytes", t.plan_gen, t.stack_bytes);
	p.start_ns++;
	CHECK(give_plan(c, &p) == 0, "set_plan");
	t = again(c);
	CHECK(!t.own, "%u samples by the plan of another process", t.own);
	CHECK(give_plan(c, NULL) == 0 && give_plan(c, NULL) == 0, "removing a plan, twice");
	return PASSED;
}

static enum verdict plan_selects_its_process_only(void)
{
	enum verdict v = FAILED;
	struct cast c;

	if (cast_begin(&c, SCENE_USER, OTP_SELECT_YES) == 0)
		v = plan_decides(&c);
	cast_end(&c);
	return v;
}

static enum verdict children_follow(struct cast *c)
{
	struct otp_plan p;
	struct tally t;

	CHECK(learn(c) == 0, "no sample of the parent");
	p = plan_of(c);
	CHECK(give_plan(c, &p) == 0, "set_plan");
	t = again_for(c, offsetof(struct tally, of_children));
	CHECK(t.of_children >= ENOUGH && t.inherited >= t.of_children && !t.others, "%u of children, %u inherited, %u others",
	      t.of_children, t.inherited, t.others);
	return PASSED;
}

static enum verdict child_inherits_its_parents_plan(void)
{
	enum verdict v = FAILED;
	struct cast c;

	if (cast_begin(&c, SCENE_FORK, OTP_SELECT_YES) == 0)
		v = children_follow(&c);
	cast_end(&c);
	return v;
}

static enum verdict exec_changes_identity(struct cast *c)
{
	struct otp_plan p;
	struct tally t;

	CHECK(learn(c) == 0, "no sample before the exec");
	p = plan_of(c);
	CHECK(give_plan(c, &p) == 0, "set_plan");
	/* The child executes its second program 200 ms after its start; by then it is over. */
	sleep_ms(400);
	session_drain(&c->s, count, &c->tally);
	t = again(c);
	CHECK(!t.own, "%u samples by a plan from before the exec", t.own);
	set_defaults(c, OTP_SELECT_YES, 0);
	t = again_for(c, offsetof(struct tally, second));
	CHECK(t.second >= ENOUGH, "%u samples of the second program", t.second);
	CHECK(t.second_exec_id != p.exec_id && t.start_ns == p.start_ns, "identity");
	set_defaults(c, OTP_SELECT_NO, 0);
	p.any_exec = 1;
	CHECK(give_plan(c, &p) == 0, "set_plan");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH, "%u samples by a plan for any exec", t.own);
	return PASSED;
}

static enum verdict plan_from_before_an_exec_is_not_applied(void)
{
	enum verdict v = FAILED;
	struct cast c;

	if (cast_begin(&c, SCENE_EXEC, OTP_SELECT_YES) == 0)
		v = exec_changes_identity(&c);
	cast_end(&c);
	return v;
}

#define CGROUPS "/sys/fs/cgroup"

/* Where cgroup v2 is mounted, or NULL. */
static const char *cgroup2(void)
{
	if (access(CGROUPS "/cgroup.procs", F_OK) == 0)
		return CGROUPS;
	return access(CGROUPS "/unified/cgroup.procs", F_OK) == 0 ? CGROUPS "/unified" : NULL;
}

static int write_pid(const char *path, pid_t pid)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && dprintf(fd, "%d", pid) > 0 ? 0 : -1;
}

/* A cgroup's id is its directory's inode number. */
static uint64_t cgroup_id(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static enum verdict rule_decides(struct cast *c, const char *outer, const char *inner)
{
	struct otp_cgroup_rule yes = {.select = OTP_SELECT_YES}, no = {.select = OTP_SELECT_NO};
	const struct source_ops *ops = c->s.source->ops;
	struct tally t;

	CHECK(ops->set_cgroup(c->s.source, cgroup_id(outer), &yes) == 0, "set_cgroup");
	t = again(c);
	CHECK(!t.own, "%u samples by rules that are switched off", t.own);
	set_defaults(c, OTP_SELECT_NO, 1);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && !t.others, "%u own, %u others by the rule of a cgroup above", t.own, t.others);
	CHECK(ops->set_cgroup(c->s.source, cgroup_id(inner), &no) == 0, "set_cgroup");
	session_run(&c->s, 50, count, &c->tally);
	t = again(c);
	CHECK(!t.own, "%u samples although the nearest rule says no", t.own);
	return PASSED;
}

static enum verdict nearest_cgroup_rule_decides(void)
{
	char outer[128], inner[160], procs[192];
	const char *mount = cgroup2();
	enum verdict v = FAILED;
	struct cast c;

	if (!mount)
		return SKIPPED;
	snprintf(outer, sizeof(outer), "%s/otprof-test", mount);
	snprintf(inner, sizeof(inner), "%s/inner", outer);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", inner);
	mkdir(outer, 0755);
	mkdir(inner, 0755);
	if (cast_begin(&c, SCENE_USER, OTP_SELECT_NO) == 0 && write_pid(procs, c.pid) == 0)
		v = rule_decides(&c, outer, inner);
	cast_end(&c);
	rmdir(inner);
	rmdir(outer);
	return v;
}

#define LONG_NAME  "otp-long-name-1"
#define SHORT_NAME "otp-hint"

static enum verdict hint_applies(struct cast *c)
{
	struct otp_hint hint = {.stack_bytes = 2048};
	char name[OTP_COMM_LEN] = SHORT_NAME, other[OTP_COMM_LEN] = LONG_NAME;
	const struct source_ops *ops = c->s.source->ops;
	struct tally t;

	CHECK(ops->set_hint(c->s.source, name, &hint) == 0, "set_hint");
	hint.stack_bytes = 1024;
	CHECK(ops->set_hint(c->s.source, other, &hint) == 0, "set_hint");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && t.stack_bytes == 2048, "%u samples, %u bytes", t.own, t.stack_bytes);
	CHECK(ops->set_hint(c->s.source, name, NULL) == 0, "removing a hint");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && t.stack_bytes == OTP_STACK_FLOOR, "%u samples, %u bytes without it", t.own, t.stack_bytes);
	return PASSED;
}

/* With a child of this name, which had a longer one before. */
static enum verdict with_name(const char *name, enum verdict (*act)(struct cast *c))
{
	enum verdict v = FAILED;
	char before[16];
	struct cast c;

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, LONG_NAME);
	prctl(PR_SET_NAME, name);
	if (cast_begin(&c, SCENE_USER, OTP_SELECT_YES) == 0)
		v = act(&c);
	cast_end(&c);
	prctl(PR_SET_NAME, before);
	return v;
}

/* Before Linux 5.17 the end of a longer name stays behind a shorter one that took its place. */
static enum verdict hint_goes_by_the_name_and_nothing_behind_it(void)
{
	return with_name(SHORT_NAME, hint_applies);
}

#define BASE_NAME "otp-base"

static enum verdict base_is_the_defaults(struct cast *c)
{
	struct otp_defaults d = config_default().defaults;
	struct otp_hint hint = {.stack_bytes = OTP_STACK_FLOOR};
	char name[OTP_COMM_LEN] = BASE_NAME;
	const struct source_ops *ops = c->s.source->ops;
	struct tally t = again_for(c, offsetof(struct tally, own));

	CHECK(t.own >= ENOUGH && !t.bases, "%u of %u samples with a base that nobody wants", t.bases, t.own);
	d.base_bytes = 8192;
	CHECK(ops->set_defaults(c->s.source, &d) == 0, "set_defaults");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && t.bases * 10 >= t.own * 9 && t.base_bytes == 8192, "%u of %u samples with a base, of %u bytes",
	      t.bases, t.own, t.base_bytes);
	/* The first of its two chunks lies below all that was ever touched. */
	d.base_bytes = OTP_BASE_LIMIT;
	CHECK(ops->set_defaults(c->s.source, &d) == 0, "set_defaults");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && t.bases * 10 >= t.own * 9 && t.base_bytes == OTP_CHUNK_STACK,
	      "%u of %u samples with a base to the end, the last of %u bytes", t.bases, t.own, t.base_bytes);
	CHECK(ops->set_hint(c->s.source, name, &hint) == 0, "set_hint");
	session_run(&c->s, 50, count, &c->tally);
	t = again_for(c, offsetof(struct tally, own));
	CHECK(t.own >= ENOUGH && !t.bases, "%u of %u samples with a base that the hint does not want", t.bases, t.own);
	return PASSED;
}

static enum verdict base_comes_with_the_default_copy_only(void)
{
	return with_name(BASE_NAME, base_is_the_defaults);
}

/* Above every pid that a kernel gives (Linux, include/linux/threads.h, PID_MAX_LIMIT). */
#define NO_SUCH_PID 0x10000000u

static enum verdict plans_of_the_dead_make_room(void)
{
	struct source_config cfg = config_default();
	struct otp_plan plan = {.generation = 1, .stack_bytes = 8192};
	struct session s;
	int err = 0;

	CHECK(session_open(&s, &cfg) == 0, "no session");
	for (uint32_t i = 0; err == 0 && i < cfg.plans_max; i++)
		err = s.source->ops->set_plan(s.source, NO_SUCH_PID + i, &plan);
	if (err == 0)
		err = s.source->ops->set_plan(s.source, (uint32_t)getpid(), &plan);
	session_close(&s);
	CHECK(err == 0, "%s", strerror(-err));
	return PASSED;
}

const struct probe_test select_tests[] = {
	{"default no puts nothing on the ring", default_no_puts_nothing_on_the_ring},
	{"plan selects its process only", plan_selects_its_process_only},
	{"child inherits its parent's plan", child_inherits_its_parents_plan},
	{"plan from before an exec is not applied", plan_from_before_an_exec_is_not_applied},
	{"nearest cgroup rule decides", nearest_cgroup_rule_decides},
	{"hint goes by the name and nothing behind it", hint_goes_by_the_name_and_nothing_behind_it},
	{"base comes with the default copy only", base_comes_with_the_default_copy_only},
	{"plans of the dead make room", plans_of_the_dead_make_room},
	{NULL, NULL},
};
