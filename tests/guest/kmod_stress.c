// SPDX-License-Identifier: Apache-2.0
/* kmod_stress ACTION NUMBER [ACTION NUMBER]...: a number of times, or of milliseconds; kmod_stress.h says which. */
#include "kmod_stress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed;

uint64_t rng_next(struct rng *r)
{
	r->x ^= r->x << 13;
	r->x ^= r->x >> 7;
	r->x ^= r->x << 17;
	return r->x;
}

uint64_t rng_seed(void)
{
	return seed;
}

struct rng rng_new(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct rng){(seed ^ (uint64_t)t.tv_nsec << 20 ^ (uint64_t)getpid()) | 1};
}

bool fact(bool so, const char *fmt, ...)
{
	va_list ap;

	printf("%s - ", so ? "ok" : "not ok");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return so;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_us(uint64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&t, NULL);
}

int dev_new(void)
{
	int fd = open(OTPROF_DEV_PATH, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int call(int fd, unsigned long request, const void *arg)
{
	int n = ioctl(fd, request, arg);

	return n < 0 ? -errno : n;
}

struct otprof_config config_good(uint64_t hz, uint32_t ring_bytes)
{
	struct otprof_config c = {
		.period_ns = 1000000000 / hz,
		.ring_bytes = ring_bytes,
		.plans_max = 64,
		.hints_max = 16,
		.rules_max = 16,
		.defaults = {.stack_bytes = OTP_STACK_FLOOR, .wake_bytes = ring_bytes / 4, .select = OTP_SELECT_YES,
			     .ancestors = 2, .have_rules = 1, .stack_budget = 1 << 20},
	};

	memset(c.cpus, 0xff, sizeof(c.cpus));
	return c;
}

static void *map(int fd, size_t bytes, int prot, off_t at)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, at);

	return p == MAP_FAILED ? NULL : p;
}

static int owner_map(struct owner *o)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	o->consumer = map(o->ring, page, PROT_READ | PROT_WRITE, 0);
	o->producer = map(o->ring, page + 2 * o->ring_bytes, PROT_READ, (off_t)page);
	o->count = map(o->counters, page, PROT_READ, 0);
	if (!o->consumer || !o->producer || !o->count)
		return -errno;
	o->data = o->producer + page;
	return 0;
}

int owner_open(struct owner *o, const struct otprof_config *c)
{
	int err;

	*o = (struct owner){.dev = dev_new(), .ring = -1, .counters = -1, .ring_bytes = c->ring_bytes};
	if (o->dev < 0)
		return o->dev;
	err = call(o->dev, OTPROF_IOC_CONFIG, c);
	if (err < 0)
		return err;
	o->ring = call(o->dev, OTPROF_IOC_VIEW, (void *)OTPROF_VIEW_RING);
	o->counters = call(o->dev, OTPROF_IOC_VIEW, (void *)OTPROF_VIEW_COUNTERS);
	if (o->ring < 0 || o->counters < 0)
		return o->ring < 0 ? o->ring : o->counters;
	err = owner_map(o);
	return err < 0 ? err : call(o->dev, OTPROF_IOC_START, NULL);
}

void owner_close(struct owner *o)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (o->consumer)
		munmap(o->consumer, page);
	if (o->producer)
		munmap(o->producer, page + 2 * o->ring_bytes);
	if (o->count)
		munmap((void *)(uintptr_t)o->count, page);
	for (int *fd = (int[]){o->ring, o->counters, o->dev, -2}; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
}

uint64_t owner_seen(const struct owner *o)
{
	return __atomic_load_n((const uint64_t *)o->producer, __ATOMIC_ACQUIRE);
}

void owner_release(struct owner *o, uint64_t pos)
{
	__atomic_store_n((uint64_t *)o->consumer, pos, __ATOMIC_RELEASE);
}

const struct otp_rec *owner_next(struct owner *o, uint64_t end, uint32_t *ret_len)
{
	while (o->pos < end) {
		const struct otp_ring_hdr *hdr = (const void *)(o->data + (o->pos & (o->ring_bytes - 1)));
		uint32_t len = hdr->len & ~OTP_RING_DISCARD;

		o->pos += ((uint64_t)len + OTP_RING_HDR + 7) & ~7ULL;
		*ret_len = len;
		if (!(hdr->len & OTP_RING_DISCARD))
			return (const void *)(hdr + 1);
	}
	return NULL;
}

struct otp_cpu_counters owner_counters(const struct owner *o, unsigned int cpu)
{
	return ((const struct otp_cpu_counters *)o->count)[cpu];
}

/* Positions rise when someone runs: ourselves. */
bool owner_works(void)
{
	struct otprof_config c = config_good(199, 1 << 16);
	uint64_t end = now_ms() + 5000;
	struct owner o;
	bool works = owner_open(&o, &c) == 0;

	while (works && owner_seen(&o) == 0 && now_ms() < end)
		;
	works = works && owner_seen(&o) > 0;
	owner_close(&o);
	return works;
}

pid_t spin_start(void)
{
	volatile uint64_t n = 0;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			n = n + 1;
	return pid;
}

static void spin_here(int signo)
{
	(void)signo;
	for (volatile uint64_t n = 0;; n = n + 1)
		;
}

/* On a stack of its own, which a page that cannot be read follows at once. */
static void spin_short(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
	uint8_t *at = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = at, .ss_size = size};
	struct sigaction act = {.sa_handler = spin_here, .sa_flags = SA_ONSTACK};

	if (at != MAP_FAILED && mprotect(at + size, page, PROT_NONE) == 0 && sigaltstack(&stack, NULL) == 0 &&
	    sigaction(SIGUSR1, &act, NULL) == 0)
		raise(SIGUSR1);
}

pid_t spin_short_start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		spin_short();
		_exit(1);
	}
	return pid;
}

void spin_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const struct action {
	const char *name;
	bool (*run)(unsigned long n);
} actions[] = {
	{"loads", stress_loads},       {"owners", stress_owners}, {"overflow", stress_overflow},
	{"pressure", stress_pressure}, {"faults", stress_faults}, {"hotplug", stress_hotplug},
	{"plans", stress_plans},       {"rest", stress_rest},	  {"calls", fuzz_calls},
	{"maps", fuzz_maps},	       {"walks", stress_walks},
	{NULL, NULL},
};

static bool run(const char *name, unsigned long n)
{
	for (const struct action *a = actions; a->name; a++)
		if (strcmp(a->name, name) == 0)
			return n == 0 || a->run(n);
	return fact(false, "no action is called %s", name);
}

int main(int argc, char **argv)
{
	const char *given = getenv("OTPROF_SEED");
	bool good = argc > 2;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	seed = given ? strtoull(given, NULL, 0) : now_ms() * 2654435761u;
	printf("# seed %llu\n", (unsigned long long)seed);
	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t began = now_ms();

		good = run(argv[i], strtoul(argv[i + 1], NULL, 0)) && good;
		printf("# %s %s took %llu ms\n", argv[i], argv[i + 1], (unsigned long long)(now_ms() - began));
	}
	return good ? 0 : 1;
}
