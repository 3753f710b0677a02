// SPDX-License-Identifier: Apache-2.0
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define DRAIN_MS 20

void sleep_ms(unsigned int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * (long)NSEC_PER_MSEC};

	while (nanosleep(&t, &t) < 0)
		;
}

const struct source_ops *probe_ops(void)
{
	const char *name = getenv("OTPROF_SOURCE");

	for (const struct source_ops *const *s = source_list; name && *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return &source_bpf;
}

struct source_config config_default(void)
{
	return (struct source_config){
		.frequency_hz = 199,
		.ring_bytes = 16u << 20,
		.plans_max = 256,
		.defaults = {
			.stack_bytes = OTP_STACK_FLOOR,
			.wake_bytes = 1u << 20,
			.select = OTP_SELECT_YES,
			.kthreads = OTP_SELECT_YES,
			.stack_budget = 64u << 20,
			.ancestors = 1,
		},
	};
}

static size_t counters_bytes(const struct source_layout *l)
{
	return ALIGN_UP(l->cpus * l->origins.count * l->counters_stride, (size_t)sysconf(_SC_PAGESIZE));
}

static int session_map(struct session *s)
{
	void *counters;
	int err;

	s->source->ops->layout(s->source, &s->layout);
	if (s->layout.consumer_fd >= 0)
		err = ring_map_file(&s->ring, s->layout.consumer_fd, s->layout.ring_fd, s->layout.ring_bytes);
	else
		err = ring_map(&s->ring, s->layout.ring_fd, s->layout.ring_bytes);
	if (err < 0)
		return err;
	counters = mmap(NULL, counters_bytes(&s->layout), PROT_READ, MAP_SHARED, s->layout.counters_fd, 0);
	if (counters == MAP_FAILED)
		return -errno;
	s->counters = counters;
	return 0;
}

int session_open(struct session *s, const struct source_config *cfg)
{
	char why[SOURCE_WHY] = "";
	int err;

	*s = (struct session){0};
	err = probe_ops()->probe(cfg, why);
	if (err == 0)
		err = source_open(probe_ops(), cfg, &s->source, why);
	if (err < 0) {
		printf("# %s\n", why);
		return err;
	}
	err = session_map(s);
	return err < 0 ? err : s->source->ops->start(s->source);
}

void session_close(struct session *s)
{
	if (s->counters)
		munmap((void *)(uintptr_t)s->counters, counters_bytes(&s->layout));
	ring_unmap(&s->ring);
	source_close(s->source);
}

int session_drain(struct session *s, record_fn *fn, void *ctx)
{
	const struct source_ops *ops = s->source->ops;
	const struct otp_rec *rec;
	uint64_t end;
	int n;

	if (ops->pump)
		ops->pump(s->source, clock_now_ns());
	end = ring_producer(&s->ring);
	while ((n = ring_next(&s->ring, &s->pos, end, &rec)) > 0)
		fn(ctx, rec);
	ring_release(&s->ring, s->pos);
	return n;
}

int session_run(struct session *s, unsigned int ms, record_fn *fn, void *ctx)
{
	uint64_t end = clock_now_ns() + ms * NSEC_PER_MSEC;
	int err = 0;

	while (err == 0 && clock_now_ns() < end) {
		sleep_ms(DRAIN_MS);
		err = session_drain(s, fn, ctx);
	}
	return err;
}

struct otp_cpu_counters session_counters(const struct session *s, uint32_t cpu)
{
	struct otp_cpu_counters c;

	counters_read((const void *)(s->counters + cpu * s->layout.counters_stride), &c);
	return c;
}

int get_sysctl(const char *path, char ret[16])
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, 15);

	if (n <= 0)
		return -1;
	ret[n] = '\0';
	return 0;
}

int set_sysctl(const char *path, const char *value)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, strlen(value)) > 0 ? 0 : -1;
}

enum verdict verdict_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("# %s:%d: ", file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return FAILED;
}
