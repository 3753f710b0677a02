// SPDX-License-Identifier: Apache-2.0
/* The module's device: what it refuses, and what hostile callers cannot break. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kmod/uapi/otprof_dev.h"
#include "probe.h"

#define HAMMER_NS (3 * NSEC_PER_SEC)

static bool with_module(void)
{
	return probe_ops() == &source_kmod && access(OTPROF_DEV_PATH, F_OK) == 0;
}

static struct otprof_config config_good(void)
{
	struct otprof_config c = {
		.period_ns = 5000000,
		.ring_bytes = 65536,
		.plans_max = 16,
		.hints_max = 16,
		.rules_max = 16,
		.defaults = {.stack_bytes = 4096, .select = OTP_SELECT_YES},
	};

	memset(c.cpus, 0xff, sizeof(c.cpus));
	return c;
}

static int dev_new(void)
{
	return open(OTPROF_DEV_PATH, O_RDWR | O_CLOEXEC);
}

static int error_of(int fd, unsigned long request, const void *arg)
{
	return ioctl(fd, request, arg) < 0 ? errno : 0;
}

static enum verdict calls_before_configuration(void)
{
	_cleanup_(closep) int fd = dev_new();
	struct otprof_config c = config_good();
	struct otprof_times t;

	CHECK(fd >= 0, "open: %s", strerror(errno));
	CHECK(error_of(fd, OTPROF_IOC_START, NULL) == ENODATA, "START before CONFIG");
	CHECK(error_of(fd, OTPROF_IOC_TIMES, &t) == ENODATA, "TIMES before CONFIG");
	CHECK(error_of(fd, OTPROF_IOC_CONFIG, NULL) == EFAULT, "CONFIG from nowhere");
	CHECK(error_of(fd, OTPROF_IOC_CONFIG, &c) == 0, "CONFIG: %s", strerror(errno));
	CHECK(error_of(fd, OTPROF_IOC_CONFIG, &c) == EBUSY, "CONFIG twice");
	CHECK(error_of(fd, _IO(OTPROF_IOC_MAGIC, 99), NULL) == ENOTTY, "an unknown call");
	CHECK(error_of(fd, OTPROF_IOC_START, NULL) == 0 && error_of(fd, OTPROF_IOC_START, NULL) == EALREADY, "START twice");
	return PASSED;
}

static enum verdict device_wants_its_order(void)
{
	return with_module() ? calls_before_configuration() : SKIPPED;
}

static enum verdict bad_configuration_is_refused(void)
{
	struct otprof_config bad[14];

	if (!with_module())
		return SKIPPED;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = config_good();
	bad[0].period_ns = 0;
	bad[1].ring_bytes = 65535;
	bad[2].ring_bytes = 0;
	bad[3].plans_max = ~0u;
	bad[4].reserved[1] = 1;
	bad[5].defaults.running = 1;
	bad[6].defaults.select = OTP_SELECT_UNSET;
	bad[7].defaults.ancestors = OTP_ANCESTORS_MAX + 1;
	bad[8].defaults.stack_bytes = OTP_STACK_LIMIT + 8;
	bad[9].period_ns = ~0ULL;
	bad[10].defaults.base_bytes = OTP_BASE_LIMIT + 8;
	bad[11].defaults.stack_budget = OTP_BUDGET_LIMIT + 1;
	bad[12].defaults.tick_bytes = OTP_STACK_FLOOR - 8;
	bad[13].defaults.reserved = 1;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(closep) int fd = dev_new();

		CHECK(error_of(fd, OTPROF_IOC_CONFIG, &bad[i]) == EINVAL, "number %zu", i);
	}
	return PASSED;
}

static bool maps(int fd, int prot, int flags, size_t bytes, off_t at)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, at);

	if (p == MAP_FAILED)
		return false;
	munmap(p, bytes);
	return true;
}

static enum verdict views_are_closed(struct session *s)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = s->layout.ring_fd, counters = s->layout.counters_fd;
	size_t all = 2 * (size_t)page + 2 * s->layout.ring_bytes;
	char byte = 0;

	CHECK(maps(fd, PROT_READ, MAP_SHARED, all, 0), "all of it, to read: %s", strerror(errno));
	CHECK(!maps(fd, PROT_READ, MAP_SHARED, all + (size_t)page, 0), "beyond the end");
	CHECK(!maps(fd, PROT_READ, MAP_SHARED, (size_t)page, (off_t)all), "behind the end");
	CHECK(!maps(fd, PROT_READ | PROT_WRITE, MAP_SHARED, (size_t)page, page), "the producer's page, to write");
	CHECK(!maps(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 2 * (size_t)page, 0), "both pages, to write");
	CHECK(!maps(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, (size_t)page, 0), "a private copy");
	CHECK(!maps(fd, PROT_READ | PROT_EXEC, MAP_SHARED, (size_t)page, page), "to execute");
	CHECK(!maps(counters, PROT_READ | PROT_WRITE, MAP_SHARED, (size_t)page, 0), "the counters, to write");
	CHECK(mprotect((void *)(uintptr_t)s->ring.producer, (size_t)page, PROT_READ | PROT_WRITE) < 0, "write access later");
	CHECK(mprotect((void *)(uintptr_t)s->ring.producer, (size_t)page, PROT_READ | PROT_EXEC) < 0, "execution later");
	CHECK(read(fd, &byte, 1) < 0 && write(fd, &byte, 1) < 0, "read or write");
	CHECK(error_of(fd, OTPROF_IOC_STOP, NULL) == ENOTTY, "a call through a view");
	return PASSED;
}

static enum verdict views_can_be_mapped_and_polled_only(void)
{
	struct source_config cfg = config_default();
	enum verdict v = FAILED;
	struct session s;

	if (!with_module())
		return SKIPPED;
	if (session_open(&s, &cfg) == 0)
		v = views_are_closed(&s);
	session_close(&s);
	return v;
}

static uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* The reader's page says anything at all while samples come. */
static enum verdict survives_lies(struct session *s)
{
	uint64_t x = 88172645463325252ULL, end = clock_now_ns() + HAMMER_NS;
	struct otp_cpu_counters c;

	while (clock_now_ns() < end) {
		uint64_t seen = ring_producer(&s->ring), lie = random_next(&x);

		/* Near and far, and now and then the truth, or nothing would move at all. */
		ring_release(&s->ring, lie % 4 == 0 ? seen : lie % 4 == 1 ? lie : seen + lie % 400000 - 200000);
		poll(&(struct pollfd){.fd = s->layout.ring_fd, .events = POLLIN}, 1, 0);
	}
	s->source->ops->stop(s->source);
	c = session_counters(s, 0);
	CHECK(counters_balanced(&c) && c.put > 0, "%llu put", c.put);
	ring_release(&s->ring, ring_producer(&s->ring));
	s->pos = ring_producer(&s->ring);
	CHECK(s->source->ops->start(s->source) == 0, "start");
	sleep_ms(500);
	CHECK(ring_producer(&s->ring) > s->pos, "no samples after the truth");
	return PASSED;
}

static enum verdict lying_reader_harms_only_himself(void)
{
	struct source_config cfg = config_default();
	struct stage *stage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum verdict v = FAILED;
	struct session s;
	pid_t pid;

	if (!with_module())
		return SKIPPED;
	cfg.ring_bytes = 65536;
	cfg.frequency_hz = 997;
	pid = child_start(SCENE_USER, stage, 0);
	if (session_open(&s, &cfg) == 0)
		v = survives_lies(&s);
	session_close(&s);
	child_end(pid);
	return v;
}

/* What is not a call, or a call with bytes that nobody meant. */
static enum verdict random_calls_break_nothing(void)
{
	static uint64_t arg[sizeof(struct otprof_config) / 8 + 1];
	uint64_t x = 2463534242, end = clock_now_ns() + HAMMER_NS, calls = 0;
	struct otprof_config c = config_good();

	if (!with_module())
		return SKIPPED;
	while (clock_now_ns() < end) {
		_cleanup_(closep) int fd = dev_new();

		if (random_next(&x) % 4)
			ioctl(fd, OTPROF_IOC_CONFIG, &c);
		for (int i = 0; i < 200; i++, calls++) {
			unsigned int nr = random_next(&x) % 13, size = (unsigned int)(random_next(&x) % 4 ? 0 : x % 2000);
			static const unsigned long known[] = {
				OTPROF_IOC_INFO, OTPROF_IOC_CONFIG, OTPROF_IOC_START, OTPROF_IOC_STOP,
				OTPROF_IOC_DEFAULTS, OTPROF_IOC_PLAN, OTPROF_IOC_HINT, OTPROF_IOC_RULE,
				OTPROF_IOC_TIMES, OTPROF_IOC_CPUS, OTPROF_IOC_WALKS};
			unsigned long request = nr < ARRAY_SIZE(known) ? known[nr] : _IOC(3, OTPROF_IOC_MAGIC, nr, size);

			for (size_t w = 0; w < ARRAY_SIZE(arg); w++)
				arg[w] = random_next(&x) % 3 ? x & 3 : x;
			ioctl(fd, request, x % 16 ? (void *)arg : (void *)(uintptr_t)x);
		}
	}
	printf("# %lu calls\n", (unsigned long)calls);
	CHECK(calls > 100, "%lu calls", (unsigned long)calls);
	return PASSED;
}

static enum verdict view_outlives_its_owner(void)
{
	struct source_config cfg = config_default();
	struct session s;
	int fd;

	if (!with_module())
		return SKIPPED;
	CHECK(session_open(&s, &cfg) == 0, "session");
	fd = dup(s.layout.ring_fd);
	sleep_ms(200);
	session_close(&s);
	CHECK(maps(fd, PROT_READ, MAP_SHARED, 4096, 0), "mapping: %s", strerror(errno));
	close(fd);
	CHECK(session_open(&s, &cfg) == 0, "another session");
	CHECK(ring_producer(&s.ring) < cfg.ring_bytes, "the ring is another one's");
	session_close(&s);
	return PASSED;
}

/* sessions_max, unless the module was loaded otherwise. */
#define SESSIONS_MAX 4

/* A sampler of which only a view is left still has its memory. */
static int view_alone(void)
{
	_cleanup_(closep) int fd = dev_new();
	struct otprof_config c = config_good();
	int view;

	if (fd < 0 || error_of(fd, OTPROF_IOC_CONFIG, &c))
		return -errno;
	view = ioctl(fd, OTPROF_IOC_VIEW, OTPROF_VIEW_COUNTERS);
	return view < 0 ? -errno : view;
}

static enum verdict views_count_as_their_samplers(void)
{
	int view[SESSIONS_MAX + 1], last;
	unsigned int n = 0;

	if (!with_module())
		return SKIPPED;
	while (n <= SESSIONS_MAX && (view[n] = view_alone()) >= 0)
		n++;
	last = n <= SESSIONS_MAX ? view[n] : 0;
	while (n)
		close(view[--n]);
	CHECK(last == -EBUSY, "%d", last);
	view[0] = view_alone();
	CHECK(view[0] >= 0, "after they are gone: %s", strerror(-view[0]));
	close(view[0]);
	return PASSED;
}

const struct probe_test kmod_tests[] = {
	{"device wants its order", device_wants_its_order},
	{"bad configuration is refused", bad_configuration_is_refused},
	{"views can be mapped and polled only", views_can_be_mapped_and_polled_only},
	{"lying reader harms only himself", lying_reader_harms_only_himself},
	{"random calls break nothing", random_calls_break_nothing},
	{"view outlives its owner", view_outlives_its_owner},
	{"views count as their samplers", views_count_as_their_samplers},
	{NULL, NULL},
};
