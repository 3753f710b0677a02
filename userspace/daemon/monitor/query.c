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

/* The rest of a line that begins with the verb; NULL: it has another. */
static const char *query_rest(const char *text, const char *end, const char *verb)
{
	size_t n = strlen(verb);

	return (size_t)(end - text) >= n && memcmp(text, verb, n) == 0 ? text + n : NULL;
}

static int query_parse_select(const char *text, const char *end, struct query *ret, char why[SELECTION_WHY])
{
	ret->verb = QUERY_DESELECT;
	if (text == end)
		return 0;
	if (*text != ' ')
		return -EINVAL;
	ret->verb = QUERY_SELECT;
	return selection_parse(text, (size_t)(end - text), &ret->selection, why) ? -EDOM : 0;
}

int query_parse(const char *text, size_t len, struct query *ret, char why[SELECTION_WHY])
{
	const char *end = memchr(text, '\n', len), *rest;

	if (!end)
		return len < QUERY_LINE_MAX ? -EAGAIN : -EMSGSIZE;
	if (end + 1 != text + len)
		return -EINVAL; /* one question: nothing may follow it */
	ret->verb = QUERY_EXPLAIN;
	if ((rest = query_rest(text, end, "explain ")))
		return parse_pid(rest, end, &ret->pid);
	rest = query_rest(text, end, "select");
	return rest ? query_parse_select(rest, end, ret, why) : -EINVAL;
}
