// SPDX-License-Identifier: Apache-2.0
/* What the module can beside samples of a timer: process life, other rates, and a counter that virtual machines lack. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kmod/uapi/otprof_dev.h"
#include "probe.h"
#include "process/events.h"
#include "source/copy_speed.h"

static bool with_module(void)
{
	return access(OTPROF_DEV_PATH, F_OK) == 0;
}

static uint64_t features(void)
{
	_cleanup_(closep) int fd = open(OTPROF_DEV_PATH, O_RDWR | O_CLOEXEC);
	struct otprof_info info = {0};

	return fd >= 0 && ioctl(fd, OTPROF_IOC_INFO, &info) == 0 ? info.features : 0;
}

struct life {
	uint32_t pid, forks, renames, execs, exits, maps, wrong, disorder, samples;
	uint64_t last_ns;
	bool parent, program, vdso, comm;
};

static bool is_named(const struct proc_event *ev, const char *name)
{
	return ev->name && ev->name_len == strlen(name) && memcmp(ev->name, name, ev->name_len) == 0;
}

static void tell_map(struct life *l, const struct proc_event *ev)
{
	struct stat st;

	l->maps++;
	l->vdso |= is_named(ev, "[vdso]");
	if (is_named(ev, "/bin/busybox"))
		l->program |= stat("/bin/busybox", &st) == 0 && ev->ino == st.st_ino && ev->end > ev->start;
}

static void tell(struct life *l, const struct proc_event *ev)
{
	if (ev->pid != l->pid)
		return;
	l->disorder += ev->time_ns < l->last_ns;
	l->last_ns = ev->time_ns;
	switch (ev->type) {
	case PROC_FORK:
		l->forks++;
		l->parent = ev->ppid == (uint32_t)getpid();
		break;
	case PROC_COMM:
		l->renames++;
		break;
	case PROC_EXEC:
		l->execs++;
		l->comm = is_named(ev, "busybox");
		break;
	case PROC_MMAP:
		tell_map(l, ev);
		break;
	case PROC_EXIT:
		l->exits++;
		break;
	}
}

static void hear(void *ctx, const struct otp_rec *rec)
{
	struct life *l = ctx;
	struct proc_event ev;

	if (rec->type != OTP_REC_LIFE) {
		l->samples += rec->type == OTP_REC_SAMPLE;
		return;
	}
	if (proc_event_decode((const struct otp_life *)rec + 1, rec->len - sizeof(struct otp_life), &ev) == 0)
		tell(l, &ev);
	else
		l->wrong++;
}

static pid_t run_true(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/busybox", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static enum verdict life_is_told(struct session *s)
{
	struct life l = {0};
	uint64_t told = 0;

	CHECK(s->layout.life, "the source does not say that it tells");
	session_drain(s, hear, &(struct life){0});
	l.pid = (uint32_t)run_true();
	CHECK(session_drain(s, hear, &l) == 0, "the ring");
	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++) {
		struct otp_cpu_counters c = session_counters(s, cpu);

		told += c.life;
		CHECK(c.life_lost == 0 && counters_balanced(&c), "%llu lost", c.life_lost);
	}
	CHECK(l.forks == 1 && l.parent && l.execs == 1 && l.comm && l.exits == 1, "%u forks, %u execs, %u exits", l.forks,
	      l.execs, l.exits);
	/* A real-time kernel lets nobody read mappings at a tracepoint. */
	CHECK(kernel_is_rt() || (l.program && l.maps >= 1), "%u mappings, the program %d, vDSO %d", l.maps, l.program,
	      l.vdso);
	CHECK(!l.wrong && !l.disorder, "%u wrong, %u in disorder", l.wrong, l.disorder);
	CHECK(told >= 3 + l.maps, "%lu counted", (unsigned long)told);
	return PASSED;
}

static enum verdict module_tells_of_process_life(void)
{
	struct source_config cfg = config_default();
	enum verdict v = FAILED;
	struct session s;

	if (!with_module() || !(features() & OTPROF_FEATURE_LIFE))
		return SKIPPED;
	cfg.life = true;
	if (session_open(&s, &cfg) == 0)
		v = life_is_told(&s);
	session_close(&s);
	return v;
}

/* A storm, and a reader that does not read. */
static enum verdict storm_is_counted(struct session *s)
{
	uint64_t lost = 0;

	for (int i = 0; i < 60; i++)
		run_true();
	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++) {
		struct otp_cpu_counters c = session_counters(s, cpu);

		lost += c.life_lost;
		CHECK(counters_balanced(&c), "events in the samples' account");
	}
	CHECK(lost > 0, "nothing lost in a ring of a page");
	return PASSED;
}

static enum verdict events_without_room_are_counted(void)
{
	struct source_config cfg = config_default();
	enum verdict v = FAILED;
	struct session s;

	if (!with_module() || !(features() & OTPROF_FEATURE_LIFE))
		return SKIPPED;
	cfg.life = true;
	cfg.ring_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	if (session_open(&s, &cfg) == 0)
		v = storm_is_counted(&s);
	session_close(&s);
	return v;
}

static uint64_t ticks(const struct session *s)
{
	uint64_t n = 0;

	for (uint32_t cpu = 0; cpu < s->layout.cpus; cpu++)
		n += session_counters(s, cpu).ticks;
	return n;
}

static void forget(void *ctx, const struct otp_rec *rec)
{
}

/* Ticks that came and ticks that were due while the session ran for half a second. */
static enum verdict half_second(struct session *s, uint32_t hz, uint64_t *ret_had, uint64_t *ret_due)
{
	const struct source_ops *ops = s->source->ops;
	uint64_t had = ticks(s), due = ops->expected_ticks(s->source), min = hz / 4;

	CHECK(session_run(s, 500, forget, NULL) == 0, "the ring");
	had = ticks(s) - had;
	due = ops->expected_ticks(s->source) - due;
	/* One CPU; two ticks may be due and not there yet. */
	CHECK(due >= min && due < 20 * (uint64_t)hz, "%lu due at %u Hz", (unsigned long)due, hz);
	CHECK(had <= due + 2, "%lu of %lu at %u Hz", (unsigned long)had, (unsigned long)due, hz);
	*ret_had = had;
	*ret_due = due;
	return PASSED;
}

/* A guest that stands still misses ticks, and gains none; it does not stand still every time. */
static enum verdict stretch(struct session *s, uint32_t hz)
{
	uint64_t had = 0, due = 1;
	struct source_layout l;

	CHECK(s->source->ops->set_rate(s->source, hz, hz) == 0, "%u Hz", hz);
	s->source->ops->layout(s->source, &l);
	CHECK(l.origins.slot[0].period == 1000000000ULL / hz, "period %lu", (unsigned long)l.origins.slot[0].period);
	for (int i = 0; i < 8 && had < (due + 1) / 2; i++)
		if (half_second(s, hz, &had, &due) != PASSED)
			return FAILED;
	CHECK(had >= due / 2, "%lu of %lu at %u Hz, eight times", (unsigned long)had, (unsigned long)due, hz);
	return PASSED;
}

static enum verdict rates(struct session *s)
{
	static const uint32_t hz[] = {50, 400, 100, 20};
	uint64_t had, due;

	CHECK(s->source->ops->set_rate(s->source, 0, 199) < 0 && s->source->ops->set_rate(s->source, 20000, 199) < 0, "no rate");
	for (size_t i = 0; i < ARRAY_SIZE(hz); i++)
		if (stretch(s, hz[i]) != PASSED)
			return FAILED;
	/* Fifty changes leave nothing behind. */
	for (uint32_t i = 0; i < 50; i++)
		CHECK(s->source->ops->set_rate(s->source, 100 + i % 2 * 100, 200) == 0, "change %u", i);
	CHECK(s->source->ops->stop(s->source) == 0 && s->source->ops->set_rate(s->source, 199, 199) == 0, "while stopped");
	had = ticks(s);
	due = s->source->ops->expected_ticks(s->source);
	CHECK(had <= due + 2 && had >= due / 20, "%lu of %lu in all", (unsigned long)had, (unsigned long)due);
	return PASSED;
}

static enum verdict rate_changes_and_the_expectation_follows(void)
{
	struct source_config cfg = config_default();
	struct stage *stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum verdict v = FAILED;
	struct session s;
	pid_t pid;

	if (!with_module())
		return SKIPPED;
	cfg.cpus = "0";
	pid = child_start(SCENE_USER, stage, 0);
	if (session_open(&s, &cfg) == 0)
		v = rates(&s);
	session_close(&s);
	child_end(pid);
	return v;
}

/* Where there is one, samples come of it. */
static enum verdict counter_works_or_is_named(void)
{
	struct source_config cfg = config_default();
	struct life l = {0};
	struct session s;
	char why[SOURCE_WHY] = "";
	int err;

	if (!with_module())
		return SKIPPED;
	cfg.hardware = true;
	err = probe_ops()->probe(&cfg, why);
	if (err < 0) {
		CHECK(strstr(why, "no counter of cycles"), "%s", why);
		printf("# %s\n", why);
		return PASSED;
	}
	CHECK(session_open(&s, &cfg) == 0, "open");
	for (volatile unsigned long i = 0; i < 400000000; i++)
		;
	err = session_drain(&s, hear, &l);
	session_close(&s);
	CHECK(err == 0 && l.samples > 10, "error %d, %u samples", err, l.samples);
	return PASSED;
}

const struct probe_test kmod_life_tests[] = {
	{"module tells of process life", module_tells_of_process_life},
	{"events without room are counted", events_without_room_are_counted},
	{"rate changes, and the expectation follows", rate_changes_and_the_expectation_follows},
	{"hardware counter works, or its absence is named", counter_works_or_is_named},
	{NULL, NULL},
};
