// SPDX-License-Identifier: Apache-2.0
#include "export/retry.h"

#include <curl/curl.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

bool retry_status(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Digits only: strtoull would take signs, blanks and hexadecimal too. */
static int parse_seconds(const char *value, uint64_t *ret_s)
{
	uint64_t s = 0;

	if (!*value)
		return -EINVAL;
	for (; *value >= '0' && *value <= '9'; value++)
		if (s < RETRY_AFTER_MAX_NS)
			s = s * 10 + (uint64_t)(*value - '0');
	value += strspn(value, " \t\r\n");
	if (*value)
		return -EINVAL;
	*ret_s = s;
	return 0;
}

int retry_after_parse(const char *value, int64_t now_unix_s, uint64_t *ret_ns)
{
	uint64_t s;
	time_t at;

	value += strspn(value, " \t");
	if (*value >= '0' && *value <= '9') {
		if (parse_seconds(value, &s) < 0)
			return -EINVAL;
	} else {
		at = curl_getdate(value, NULL);
		if (at == (time_t)-1)
			return -EINVAL;
		s = at > now_unix_s ? (uint64_t)(at - now_unix_s) : 0;
	}
	*ret_ns = MIN(s, RETRY_AFTER_MAX_NS / NSEC_PER_SEC) * NSEC_PER_SEC;
	return 0;
}

uint64_t retry_backoff_ns(uint64_t initial_ns, uint64_t max_ns, uint32_t failures, uint64_t random)
{
	uint64_t wait = MIN(initial_ns, max_ns);

	while (failures-- > 1 && wait < max_ns && wait)
		wait += MIN(wait / 2 + 1, max_ns - wait);
	return wait - (wait / 2 ? random % (wait / 2) : 0);
}
