// SPDX-License-Identifier: Apache-2.0
/* Events that samples stand for: a child makes a known number of each. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PAGE	 4096u
#define PAGES	 7000u
#define SWITCHES 400u

/* What the ring said of a child, by origin. */
struct tally {
	pid_t pid;
	uint64_t samples[OTP_ORIGIN_NR], value[OTP_ORIGIN_NR];
	uint64_t kernel[OTP_ORIGIN_NR]; /* with a kernel stack */
	uint64_t all[OTP_ORIGIN_NR], all_value[OTP_ORIGIN_NR]; /* of every process */
	const char *wrong;
	struct rusage usage; /* of the child, by the kernel */
};

static void see(void *ctx, const struct otp_rec *rec)
{
	const struct otp_sample *s = (const void *)rec;
	const struct otp_value *value;
	struct tally *t = ctx;
	uint32_t len;

	if (rec->type != OTP_REC_SAMPLE || s->origin >= OTP_ORIGIN_NR)
		return;
	t->all[s->origin]++;
	value = sample_section(s, OTP_SEC_VALUE, &len);
	t->all_value[s->origin] += value ? value->value : 1;
	if (!value != (s->origin == OTP_ORIGIN_CPU_CLOCK))
		t->wrong = "a value where none belongs, or none";
	if (s->pid != (uint32_t)t->pid)
		return;
	t->samples[s->origin]++;
	t->value[s->origin] += value ? value->value : 1;
	t->kernel[s->origin] += sample_section(s, OTP_SEC_KSTACK, &len) && len;
	if (s->mode & OTP_MODE_EXITING)
		return; /* the last switch of all */
	if (!sample_section(s, OTP_SEC_REGS, &len) || !sample_section(s, OTP_SEC_USTACK, &len))
		t->wrong = "no registers or no stack";
}

/* Each page once. */
static void touch_pages(void)
{
	char *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(at, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	for (unsigned int i = 0; i < PAGES; i++) {
		((volatile char *)at)[(size_t)i * PAGE] = 1;
		if (i % 500 == 0)
			sleep_ms(5); /* the ring is read meanwhile */
	}
}

static void sleep_often(void)
{
	for (unsigned int i = 0; i < SWITCHES; i++)
		sleep_ms(1);
}

/* On a stack that takes chunks. */
static void sleep_deep(void)
{
	char deep[200 << 10];

	memset(deep, 1, sizeof(deep));
	sleep_often();
	__asm__ volatile("" : : "r"(deep) : "memory");
}

/* The child runs while its records are read; false: it or the session failed. */
static bool run(const struct source_config *cfg, void (*make)(void), struct session *s, struct tally *t)
{
	int status, err = session_open(s, cfg);
	pid_t ended = 0;

	if (err)
		return false;
	t->pid = fork();
	if (!t->pid) {
		make();
		_exit(0);
	}
	while (!err && !ended) {
		err = session_run(s, 40, see, t);
		ended = wait4(t->pid, &status, WNOHANG, &t->usage);
	}
	s->source->ops->stop(s->source);
	return !err && session_drain(s, see, t) >= 0;
}

static struct source_config config_of(const char *events)
{
	struct source_config cfg = config_default();
	char why[EVENT_WHY];

	if (event_list_parse(events, &cfg.events, why) < 0)
		abort();
	return cfg;
}

static enum verdict faults_are_counted(void)
{
	const struct source_config cfg = config_of("page-faults/period=7/");
	const uint8_t faults = OTP_ORIGIN_PAGE_FAULTS;
	struct tally t = {0};
	struct session s;
	bool ran = run(&cfg, touch_pages, &s, &t);

	session_close(&s);
	CHECK(ran, "it did not run");
	CHECK(!t.wrong, "%s", t.wrong);
	CHECK(t.value[faults] == 7 * t.samples[faults], "%lu samples stand for %lu", (unsigned long)t.samples[faults],
	      (unsigned long)t.value[faults]);
	/* Beside the pages: the fork's own, and on each CPU what was counted before. */
	CHECK(t.value[faults] >= PAGES - 100 && t.value[faults] < PAGES + 1500, "%lu faults of %u",
	      (unsigned long)t.value[faults], PAGES);
	CHECK(!t.all[OTP_ORIGIN_CPU_CLOCK], "ticks that nobody asked for");
	return PASSED;
}

static enum verdict switches_are_counted(void)
{
	const struct source_config cfg = config_of("context-switches/period=1/");
	const uint8_t switches = OTP_ORIGIN_CONTEXT_SWITCHES;
	struct tally t = {0};
	struct session s;
	bool ran = run(&cfg, sleep_often, &s, &t);
	uint64_t slept;

	session_close(&s);
	CHECK(ran, "it did not run");
	CHECK(!t.wrong, "%s", t.wrong);
	/* On a slow machine a sleep may be over before it begins. */
	slept = (uint64_t)(t.usage.ru_nvcsw + t.usage.ru_nivcsw);
	CHECK(slept >= SWITCHES / 2, "the child slept %lu times of %u", (unsigned long)slept, SWITCHES);
	CHECK(t.value[switches] >= slept && t.value[switches] <= slept + 2, "%lu switches of %lu",
	      (unsigned long)t.value[switches], (unsigned long)slept);
	CHECK(t.kernel[switches] == t.samples[switches], "%lu of %lu without a kernel stack",
	      (unsigned long)(t.samples[switches] - t.kernel[switches]), (unsigned long)t.samples[switches]);
	return PASSED;
}

/* The kernel finds the period for all processes of a CPU together: so they are counted together. */
static enum verdict frequency_gives_values_that_add_up(void)
{
	const struct source_config cfg = config_of("page-faults/freq=400/");
	const uint8_t faults = OTP_ORIGIN_PAGE_FAULTS;
	struct tally t = {0};
	struct session s;
	bool ran = run(&cfg, touch_pages, &s, &t);

	session_close(&s);
	CHECK(ran, "it did not run");
	CHECK(t.all[faults] >= 5 && t.samples[faults] < PAGES / 2, "%lu samples, %lu of the child",
	      (unsigned long)t.all[faults], (unsigned long)t.samples[faults]);
	CHECK(t.all_value[faults] > PAGES / 2, "%lu faults of %u", (unsigned long)t.all_value[faults], PAGES);
	return PASSED;
}

static enum verdict each_origin_has_its_own_counters(void)
{
	const struct source_config cfg = config_of("cpu-clock, page-faults/period=1/, context-switches/period=3/");
	struct tally t = {0};
	struct session s;
	bool ran = run(&cfg, touch_pages, &s, &t), balanced = true;

	CHECK(ran, "it did not run");
	for (uint32_t slot = 0; slot < 3; slot++) {
		uint64_t put = 0, taken = 0;

		for (uint32_t cpu = 0; cpu < s.layout.cpus; cpu++) {
			struct otp_cpu_counters c = session_counters(&s, slot * s.layout.cpus + cpu);

			balanced = balanced && counters_balanced(&c);
			put += c.put;
			taken += c.taken;
		}
		CHECK(put == t.all[s.layout.origins.slot[slot].origin], "slot %u: %lu put, %lu read", slot, (unsigned long)put,
		      (unsigned long)t.all[s.layout.origins.slot[slot].origin]);
		CHECK(taken, "slot %u: nothing", slot);
	}
	session_close(&s);
	CHECK(balanced, "not balanced");
	return PASSED;
}

/* Deep copies go in chunks, which count where their sample does. */
static enum verdict chunks_count_in_their_slot(void)
{
	struct source_config cfg = config_of("context-switches/period=1/");
	struct otp_cpu_counters clock = {0};
	uint64_t chunks = 0, bytes = 0;
	struct tally t = {0};
	struct session s;
	bool ran;

	cfg.defaults.stack_bytes = OTP_STACK_LIMIT;
	ran = run(&cfg, sleep_deep, &s, &t);
	CHECK(ran, "it did not run");
	for (uint32_t cpu = 0; cpu < s.layout.cpus; cpu++) {
		struct otp_cpu_counters c = session_counters(&s, cpu), event = session_counters(&s, s.layout.cpus + cpu);

		clock.chunks += c.chunks + c.chunks_lost;
		clock.put_bytes += c.put_bytes;
		chunks += event.chunks;
		bytes += event.put_bytes;
	}
	session_close(&s);
	CHECK(!clock.chunks && !clock.put_bytes, "%lu chunks, %lu bytes of the clock", (unsigned long)clock.chunks,
	      (unsigned long)clock.put_bytes);
	CHECK(chunks && bytes, "no chunks");
	return PASSED;
}

static enum verdict what_the_machine_lacks_is_named(void)
{
	const struct source_config cfg = config_of("cycles");
	char why[SOURCE_WHY] = "";
	struct source *source;
	int err = source_open(probe_ops(), &cfg, &source, why);

	if (!err) {
		source_close(source);
		return SKIPPED; /* it has a counter of cycles */
	}
	printf("# %s\n", why);
	CHECK(strstr(why, "cycles"), "%s", why);
	return PASSED;
}

const struct probe_test event_tests[] = {
	{"page faults are counted", faults_are_counted},
	{"context switches are counted", switches_are_counted},
	{"a frequency gives values that add up", frequency_gives_values_that_add_up},
	{"each origin has its own counters", each_origin_has_its_own_counters},
	{"chunks count in their slot", chunks_count_in_their_slot},
	{"an event that the machine lacks is named", what_the_machine_lacks_is_named},
	{NULL, NULL},
};
