/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retry rules of OTLP over HTTP: which status codes, and how long to wait.
 * Pure functions; called by the transports and the destination.
 */
#ifndef OTP_EXPORT_RETRY_H
#define OTP_EXPORT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* The longest wait that one answer of a server can cause. */
#define RETRY_AFTER_MAX_NS (3600ULL * 1000000000ULL)

/* 429, 502, 503, 504; every other refusal is final. */
bool retry_status(long status);

/*
 * The value of a Retry-After header: seconds or an HTTP-date. A past date is 0;
 * a wait above RETRY_AFTER_MAX_NS is cut to it. -EINVAL: neither.
 */
int retry_after_parse(const char *value, int64_t now_unix_s, uint64_t *ret_ns);

/*
 * The wait after the n-th failure in a row (1, 2, ...): grows by half each
 * time from initial to max, then is drawn evenly from its upper half, so that
 * hosts that failed together do not retry together.
 */
uint64_t retry_backoff_ns(uint64_t initial_ns, uint64_t max_ns, uint32_t failures, uint64_t random);

#endif
