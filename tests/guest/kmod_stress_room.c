// SPDX-License-Identifier: Apache-2.0
/* No room: in the ring, in memory, and for each single allocation. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod_stress.h"

#define CPUS	 2
#define FAULTS_MAX 2000
#define LOW_MB	 96 /* what is left to the rest while memory is short */

/* What a reader can know of each CPU: no sample is missing that no report of loss names. */
struct story {
	uint64_t next[CPUS]; /* sequence number that has to come */
	unsigned long samples, losses, events, wrong;
};

static void tell_sample(struct story *st, const struct otp_sample *s)
{
	if (s->cpu >= CPUS || s->seq != st->next[s->cpu])
		st->wrong++;
	if (s->cpu < CPUS)
		st->next[s->cpu] = s->seq + 1;
	st->samples++;
}

static void tell_loss(struct story *st, const struct otp_loss *l)
{
	if (l->cpu >= CPUS || l->reason != OTP_LOSS_RING_FULL || l->first_seq != st->next[l->cpu])
		st->wrong++;
	if (l->cpu < CPUS)
		st->next[l->cpu] = l->first_seq + l->samples;
	st->losses++;
}

static void read_all(struct owner *o, struct story *st)
{
	uint64_t end = owner_seen(o);
	const struct otp_rec *rec;
	uint32_t len;

	while ((rec = owner_next(o, end, &len))) {
		if (rec->len != len)
			st->wrong++;
		if (rec->type == OTP_REC_SAMPLE)
			tell_sample(st, (const void *)rec);
		else if (rec->type == OTP_REC_LOSS)
			tell_loss(st, (const void *)rec);
		st->events += rec->type == OTP_REC_LIFE;
	}
	owner_release(o, o->pos);
}

static uint64_t lost(const struct owner *o)
{
	uint64_t n = 0;

	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		n += owner_counters(o, cpu).lost[OTP_LOSS_RING_FULL];
	return n;
}

static unsigned long short_stacks(const struct owner *o)
{
	return (unsigned long)(owner_counters(o, 0).short_stacks + owner_counters(o, 1).short_stacks);
}

static unsigned long events(const struct owner *o)
{
	return (unsigned long)(owner_counters(o, 0).life + owner_counters(o, 1).life);
}

static bool balanced(const struct owner *o)
{
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		struct otp_cpu_counters c = owner_counters(o, cpu);
		uint64_t skipped = 0, gone = 0;

		for (unsigned int i = 0; i < OTP_SKIP_MAX; i++)
			skipped += c.skip[i];
		for (unsigned int i = 0; i < OTP_LOSS_MAX; i++)
			gone += c.lost[i];
		if (c.ticks != c.taken + skipped || c.taken != c.put + gone)
			return false;
	}
	return true;
}

/* The reader stops and comes back, over and over; each time the ring is full in between. */
static bool overflow(struct owner *o, unsigned long ms)
{
	uint64_t end = now_ms() + ms, before;
	struct story st = {.next = {1, 1}};
	unsigned long times = 0;
	bool good;

	while (now_ms() < end) {
		for (before = lost(o); lost(o) < before + 20 && now_ms() < end + 5000; sleep_us(2000))
			;
		for (int i = 0; i < 10; i++, sleep_us(5000))
			read_all(o, &st);
		times++;
	}
	call(o->dev, OTPROF_IOC_STOP, NULL);
	read_all(o, &st);
	good = fact(st.samples > 0 && st.losses > 0 && st.wrong == 0,
		    "a reader that stopped %lu times finds %lu samples and %lu reports of loss in order, %lu wrong", times,
		    st.samples, st.losses, st.wrong);
	good = fact(short_stacks(o) > 0, "%lu of them left room over that the reader passes", short_stacks(o)) && good;
	good = fact(st.events == events(o), "of %lu events in the ring it finds %lu", events(o), st.events) && good;
	return fact(balanced(o), "the counters balance: %llu lost to a full ring", (unsigned long long)lost(o)) && good;
}

bool stress_overflow(unsigned long ms)
{
	struct otprof_config c = config_good(1999, 1 << 15);
	pid_t one = spin_start(), two = spin_short_start();
	struct owner o;
	bool good;
	int err;

	c.flags = OTPROF_CONFIG_LIFE;
	err = owner_open(&o, &c);
	if (err == -EOPNOTSUPP) { /* this kernel has no tracepoints */
		owner_close(&o);
		c.flags = 0;
		err = owner_open(&o, &c);
	}
	good = err == 0 ? overflow(&o, ms) : fact(false, "a sampler for a full ring: %s", strerror(-err));
	owner_close(&o);
	spin_end(one);
	spin_end(two);
	return good;
}

static long available_mb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %ld kB", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb / 1024;
}

/* Takes nearly all there is, gives some back, takes it again. The kernel may kill it, and nothing else. */
static _Noreturn void hog(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	struct rng r = rng_new();
	static char *piece[4096];
	unsigned int n = 0;

	if (fd < 0 || write(fd, "1000", 4) != 4)
		_exit(1);
	for (;;) {
		if (n < 4096 && available_mb() > LOW_MB) {
			piece[n] = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
			n += piece[n] != MAP_FAILED;
			continue;
		}
		for (unsigned int i = (unsigned int)(rng_next(&r) % 64); i && n; i--)
			munmap(piece[--n], 1 << 20);
		sleep_us(1000);
	}
}

struct tally {
	unsigned long made, refused, wrong;
};

/* Whatever is asked for is had, or refused for want of memory, or as more than one may have. */
static void count_open(struct tally *t, const struct otprof_config *c)
{
	struct owner o;
	int err = owner_open(&o, c);

	t->made += err == 0;
	t->refused += err == -ENOMEM || err == -E2BIG;
	t->wrong += err != 0 && err != -ENOMEM && err != -E2BIG;
	if (err == 0)
		sleep_us(5000);
	owner_close(&o);
}

#define PATIENCE_MS 20000

bool stress_pressure(unsigned long ms)
{
	uint64_t end = now_ms() + ms;
	struct rng r = rng_new();
	struct tally t = {0};
	pid_t pid = fork();

	if (pid == 0)
		hog();
	/* A slow guest gets more time for the first that has room. */
	while (now_ms() < (t.made ? end : end + PATIENCE_MS)) {
		struct otprof_config c = config_good(997, 4096u << rng_next(&r) % 19);

		c.plans_max = (uint32_t)(rng_next(&r) % OTPROF_PLANS_MAX);
		c.hints_max = (uint32_t)(rng_next(&r) % OTPROF_PLANS_MAX);
		count_open(&t, &c);
		if (waitpid(pid, NULL, WNOHANG) == pid && (pid = fork()) == 0)
			hog();
	}
	spin_end(pid);
	return fact(t.made > 0 && t.wrong == 0,
		    "memory short: %lu samplers made, %lu refused for want of it, %lu refused for other reasons", t.made,
		    t.refused, t.wrong) &&
	       fact(owner_works(), "with memory there again it samples");
}

/* The kernel fails this thread's nth allocation from here on; false: it cannot. */
static bool fail_at(unsigned long n)
{
	int fd = open("/proc/thread-self/fail-nth", O_WRONLY | O_CLOEXEC);
	char text[24];
	int len = snprintf(text, sizeof(text), "%lu", n);
	bool good = fd >= 0 && write(fd, text, (size_t)len) == len;

	if (fd >= 0)
		close(fd);
	return good;
}

/* What is left of the count; 0: it has failed one. */
static unsigned long fail_left(void)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDONLY | O_CLOEXEC);
	char text[24] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? strtoul(text, NULL, 10) : 0;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static bool with_faults(void)
{
	if (access("/proc/thread-self/fail-nth", W_OK) < 0)
		return false;
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_file("/sys/kernel/debug/failslab/verbose", "0");
	write_file("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	write_file("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	write_file("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	return true;
}

/* A whole life that does everything once. */
static int live_once(void)
{
	struct otprof_config c = config_good(997, 4096);
	struct otprof_set_plan p = {.op = OTPROF_SET, .pid = 1, .plan = {.generation = 1, .any_exec = 1}};
	struct otprof_set_hint h = {.op = OTPROF_SET, .comm = "init", .hint = {.stack_bytes = 4096}};
	struct otprof_set_rule u = {.op = OTPROF_SET, .cgroup_id = 1, .rule = {.select = OTP_SELECT_YES}};
	struct owner o;
	int err = owner_open(&o, &c);

	err = err ? err : call(o.dev, OTPROF_IOC_PLAN, &p);
	err = err ? err : call(o.dev, OTPROF_IOC_PLAN, &p);
	err = err ? err : call(o.dev, OTPROF_IOC_HINT, &h);
	err = err ? err : call(o.dev, OTPROF_IOC_RULE, &u);
	err = err ? err : call(o.dev, OTPROF_IOC_DEFAULTS, &c.defaults);
	owner_close(&o);
	return err;
}

bool stress_faults(unsigned long every)
{
	unsigned long n, failed = 0, refused = 0, wrong = 0;
	bool more = true;

	if (!with_faults()) {
		printf("skip - each allocation fails once: this kernel cannot fail them\n");
		return true;
	}
	for (n = 1; more && n < FAULTS_MAX; n += every, failed++) {
		int err;

		fail_at(n);
		err = live_once();
		more = fail_left() == 0;
		fail_at(0);
		/* Without memory for its scratch area a CPU's samples are lost, and counted: no error. */
		refused += err != 0;
		wrong += err != 0 && err != -ENOMEM && err != -ENFILE && err != -EMFILE;
	}
	return fact(n > 20 && refused > 5 && wrong == 0,
		    "%lu of %lu allocations failed once each: %lu refusals, %lu for other reasons", failed - 1, n - every,
		    refused, wrong) &&
	       fact(!more, "and there was no further one") && fact(owner_works(), "afterwards it samples");
}
