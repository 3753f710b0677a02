// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/query.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define PID_MAX (1u << 22) /* the kernel's own bound, include/linux/threads.h */

static int parse_pid(const char *s, const char *end, uint32_t *ret)
{
	uint32_t pid = 0;

	if (s == end)
		return -EINVAL;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		pid = pid * 10 + (uint32_t)(*s - '0');
		if (pid > PID_MAX)
			return -ERANGE;
	}
	if (!pid)
		return -ERANGE;
	*ret = pid;
	return 0;
}

int query_parse(const char *text, size_t len, struct query *ret)
{
	static const char verb[] = "explain ";
	const char *end = memchr(text, '\n', len);

	if (!end)
		return len < QUERY_LINE_MAX ? -EAGAIN : -EMSGSIZE;
	/* One question: nothing may follow it. */
	if (end + 1 != text + len || (size_t)(end - text) < sizeof(verb) - 1 ||
	    memcmp(text, verb, sizeof(verb) - 1) != 0)
		return -EINVAL;
	return parse_pid(text + sizeof(verb) - 1, end, &ret->pid);
}
