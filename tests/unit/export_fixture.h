/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter with its ledger, whose equation is checked at each change, and the
 * loop that runs it. For the tests of the exporter; everything is static.
 */
#ifndef OTP_TESTS_EXPORT_FIXTURE_H
#define OTP_TESTS_EXPORT_FIXTURE_H

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/export.h"
#include "export/response.h"
#include "tests/lib/counts.h"
#include "tests/lib/net_books.h"

/* Two profiles: resource_profiles { scope_profiles { profiles {} profiles {} } } */
#define TWO_PROFILES "\x0a\x06\x12\x04\x12\x00\x12\x00"

static struct export_config config[2];
static char endpoint[128];
static struct ledger_net ledger;
static struct exporter *exporter;
static unsigned int events[EXPORT_EVENTS];
static char last_text[RESPONSE_TEXT];
static uint64_t next_id;

static inline void on_changed(void *ctx)
{
	net_books_balance(&ledger);
}

static inline void on_event(void *ctx, const char *name, enum export_event event, const char *text, uint64_t samples)
{
	events[event]++;
	snprintf(last_text, sizeof(last_text), "%s", text);
}

/* A destination at endpoint that loses patience within a test. */
static inline struct export_config http_config(void)
{
	return (struct export_config){
		.name = "sink",
		.endpoint = endpoint,
		.compression = EXPORT_CODING_GZIP,
		.timeout_ns = 2 * NSEC_PER_SEC,
		.retry_initial_ns = 20 * NSEC_PER_MSEC,
		.retry_max_ns = 50 * NSEC_PER_MSEC,
		.retry_elapsed_ns = 10 * NSEC_PER_SEC,
		.queue_bytes = 1 << 20,
	};
}

static inline void start_exporter(uint32_t n)
{
	ck_assert_int_eq(exporter_new(config, n, &ledger, on_changed, NULL, &exporter), 0);
	exporter_on_event(exporter, on_event, NULL);
}

static inline void fixture_setup(void)
{
	memset(&ledger, 0, sizeof(ledger));
	memset(events, 0, sizeof(events));
	last_text[0] = '\0';
	exporter = NULL;
	next_id = 1;
	config[0] = config[1] = http_config();
}

static inline int sealed(const void *data, size_t len, int seals)
{
	int fd = memfd_create("request", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static inline void submit_as(uint64_t id, const void *data, size_t len, uint64_t samples)
{
	struct export_request *r;

	ck_assert_int_eq(export_request_new(sealed(data, len, SEALS), id, COUNTS(samples), len, &r), 0);
	exporter_submit(exporter, r);
	export_request_put(r);
}

static inline void submit(uint64_t samples)
{
	submit_as(next_id++, TWO_PROFILES, sizeof(TWO_PROFILES) - 1, samples);
}

static inline void turn(int max_ms)
{
	struct pollfd fds[4];
	int n = exporter_pollfds(exporter, fds, 4), ms = exporter_timeout_ms(exporter);

	poll(fds, (nfds_t)n, ms < 0 ? max_ms : MIN(ms, max_ms));
	exporter_run(exporter);
}

#define RUN_UNTIL(condition)                                                   \
	do {                                                                   \
		uint64_t _end = clock_now_ns() + 20 * NSEC_PER_SEC;            \
		while (!(condition) && clock_now_ns() < _end)                  \
			turn(20);                                              \
		ck_assert_msg(condition, "%s does not come true", #condition); \
	} while (0)

static inline void run(void)
{
	RUN_UNTIL(exporter_idle(exporter));
}

static inline const struct ledger_destination *dest(void)
{
	return &ledger.dest[0];
}

#endif
