// SPDX-License-Identifier: Apache-2.0
#include "process/proc_stat.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#define START_LATE_NS (NSEC_PER_SEC / 50)

/* Numbers of fields. */
enum { STAT_PPID = 4, STAT_FLAGS = 9, STAT_START = 22 };

static int proc_stat_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno || *ret > max || (*end && !isspace((unsigned char)*end)) ? -EBADMSG : 0;
}

/* at: the last bracket. */
static int proc_stat_parse_fields(const char *at, struct proc_stat *s)
{
	uint64_t n;

	if (at[1] != ' ' || !isalpha((unsigned char)at[2]))
		return -EBADMSG;
	s->state = at[2];
	at += 2;
	for (int field = STAT_PPID; field <= STAT_START; field++) {
		at = strchr(at, ' ');
		if (!at)
			return -EBADMSG;
		at++;
		if (field == STAT_START)
			return proc_stat_number(at, UINT64_MAX / NSEC_PER_SEC, &s->start_ticks);
		if (field != STAT_PPID && field != STAT_FLAGS)
			continue;
		if (proc_stat_number(at, UINT32_MAX, &n))
			return -EBADMSG;
		*(field == STAT_PPID ? &s->ppid : &s->flags) = (uint32_t)n;
	}
	return -EBADMSG;
}

int proc_stat_parse(const char *text, struct proc_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct proc_stat s = {0};
	uint64_t pid;

	if (!open || !close || close < open || proc_stat_number(text, UINT32_MAX, &pid) ||
	    proc_stat_parse_fields(close, &s))
		return -EBADMSG;
	s.pid = (uint32_t)pid;
	memcpy(s.comm, open + 1, MIN((size_t)(close - open - 1), sizeof(s.comm) - 1));
	*ret = s;
	return 0;
}

int proc_stat_read(uint32_t pid, struct proc_stat *ret)
{
	char text[1024];
	ssize_t n = file_read_proc(pid, "stat", text, sizeof(text));

	if (n <= 0)
		return n == 0 || n == -ENOENT ? -ESRCH : (int)n;
	return proc_stat_parse(text, ret);
}

uint64_t proc_stat_start_ns(const struct proc_stat *s)
{
	return s->start_ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool proc_stat_started_at(const struct proc_stat *s, uint64_t start_ns)
{
	uint64_t known = proc_stat_start_ns(s);

	return !start_ns || (start_ns >= known && start_ns - known < START_LATE_NS);
}
